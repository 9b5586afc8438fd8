"""Renderers of the results of `apflint test`."""
