"""Finds the settings file of a directory: the closest one, up to the root of the git repository."""

from __future__ import annotations

import os


def find_settings_file(directory: str) -> str | None:
    """Return the path of the closest settings file, relative to `directory`, or None if there is none."""
    start = directory
    while True:
        for name in ("apflint.toml", ".apflint.toml", "pyproject.toml"):
            path = os.path.join(directory, name)
            if os.path.isfile(path) and (name != "pyproject.toml" or _has_apflint_table(path)):
                return os.path.relpath(path, start)
        parent = os.path.dirname(directory)
        if parent == directory or os.path.exists(os.path.join(directory, ".git")):
            return None
        directory = parent


def find_git_root(directory: str) -> str | None:
    """Return the root of the git repository that contains a directory, or None if there is none."""
    while not os.path.exists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return None
        directory = parent
    return directory


def _has_apflint_table(path: str) -> bool:
    from apflint.settings.toml import has_apflint_table  # most runs have no pyproject.toml

    return has_apflint_table(path)
