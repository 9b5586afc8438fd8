"""Reports of replayed audit logs, as `apflint replay` prints them."""
