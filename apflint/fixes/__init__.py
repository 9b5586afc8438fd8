"""Fixes that rules suggest, if they need more than a line."""
