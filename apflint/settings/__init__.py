"""Settings of a project: `apflint.toml`, `.apflint.toml` or `[tool.apflint]` in `pyproject.toml`.

The command line takes precedence over the settings file, and the settings file over the defaults. Only the closest
settings file is used.
"""
