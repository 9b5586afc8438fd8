"""File names as a code host knows them."""

from __future__ import annotations

import os
from functools import lru_cache

from apflint.engine import STDIN

ROOTS = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Environment: where GitHub and GitLab have the checkout while a job runs."""


def from_root(file: str) -> str:
    """A file's path from the root of the checkout, with `/`, without `./`: that is where a code host looks for it.

    Without a job of CI, or outside its checkout, the root is the directory that we run in. A file that lies elsewhere
    keeps its name.
    """
    if file == STDIN:  # it is in no directory
        return file
    root = _root(os.getcwd(), tuple(os.environ.get(name, "") for name in ROOTS))
    inside = os.path.relpath(file, root)
    if inside == os.pardir or inside.startswith(os.pardir + os.sep):
        inside = os.path.normpath(file)
    return inside.replace(os.sep, "/")


@lru_cache(maxsize=1)
def _root(here: str, candidates: tuple[str, ...]) -> str:
    for candidate in filter(None, candidates):
        root = os.path.realpath(candidate)
        if here == root or here.startswith(root.rstrip(os.sep) + os.sep):
            return root
    return here
