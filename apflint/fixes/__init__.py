"""Fixes that rules suggest, if a fix needs more code than a line in the rule."""
