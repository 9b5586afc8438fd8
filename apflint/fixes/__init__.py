"""Fixes that rules suggest, if they take more than a line."""
