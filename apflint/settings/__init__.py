"""Settings of a project: `apflint.toml`, `.apflint.toml` or `[tool.apflint]` in `pyproject.toml`.

The command line takes precedence over the settings file, and that over the defaults. Only the closest file is used.
"""
