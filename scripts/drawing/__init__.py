"""Pictures of the documentation, drawn from what apflint computes."""
