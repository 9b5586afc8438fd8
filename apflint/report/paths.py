"""File names as a code host knows them."""

from __future__ import annotations

import os


def from_here(file: str) -> str:
    """A file's path from the directory that we run in, with `/`, without `./`; absolute where it lies elsewhere.

    The host looks for it from the root of the repository, so that is where a job should run apflint.
    """
    if os.path.isabs(file):
        inside = os.path.relpath(file)
        file = file if inside.startswith(os.pardir) else inside
    return os.path.normpath(file).replace(os.sep, "/")
