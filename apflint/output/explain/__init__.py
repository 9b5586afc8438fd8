"""Renderers of `apflint explain`: text, JSON, and lines of JSON for many requests."""
