"""Inputs and command lines of a golden run."""
