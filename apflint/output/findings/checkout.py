"""Paths of files as a code host knows them: relative to the root of the checkout."""

from __future__ import annotations

import os
from functools import lru_cache

from apflint.load.source import STDIN

_ROOT_VARIABLES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Environment variables with the directory of the checkout in a job of GitHub or GitLab."""


def relative_to_checkout(file: str) -> str:
    """Return a file's path from the root of the checkout, with `/` and without `./`: there a code host looks for it.

    Outside a CI job, or outside its checkout, the root is the current directory. A file outside the root keeps its name.
    """
    if file == STDIN:
        return file
    root = _find_root(os.getcwd(), tuple(os.environ.get(name, "") for name in _ROOT_VARIABLES))
    inside = os.path.relpath(file, root)
    if inside == os.pardir or inside.startswith(os.pardir + os.sep):
        inside = os.path.normpath(file)
    return inside.replace(os.sep, "/")


@lru_cache(maxsize=1)
def _find_root(here: str, candidates: tuple[str, ...]) -> str:
    for candidate in filter(None, candidates):
        root = os.path.realpath(candidate)
        if here == root or here.startswith(root.rstrip(os.sep) + os.sep):
            return root
    return here
