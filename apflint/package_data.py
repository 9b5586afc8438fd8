"""Finds the data files that ship with apflint: rule pages and schemas."""

from __future__ import annotations

import os
from typing import Literal


def find_data_directory(name: Literal["rules", "schemas"]) -> str:
    """Return the path of a data directory of apflint.

    In a wheel, the directory is inside the package. In a checkout or editable install, it is next to the package. Raises
    FileNotFoundError if both are missing, because the installation is incomplete.
    """
    package = os.path.dirname(os.path.abspath(__file__))
    # Only a wheel has the directory `_shipped` (`force-include` in pyproject.toml). Try it first, because in site-packages, a
    # directory `rules` next to the package may belong to a different project.
    for path in (os.path.join(package, "_shipped", name), os.path.join(os.path.dirname(package), name)):
        if os.path.isdir(path):
            return path
    raise FileNotFoundError(
        f"The installation of apflint is incomplete: directory {name!r} is missing. Reinstall apflint."
    )
