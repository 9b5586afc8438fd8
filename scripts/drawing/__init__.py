"""Draws the pictures of the documentation from results of apflint."""
