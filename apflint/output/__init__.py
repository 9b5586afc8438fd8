"""Renderers: a value in, text out, no input or output."""
