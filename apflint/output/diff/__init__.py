"""Renderers of `apflint diff`: what changes from one configuration to another."""
