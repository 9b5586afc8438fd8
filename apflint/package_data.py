"""Finds the data files that ship with apflint: rule pages and schemas."""

from __future__ import annotations

import os
from typing import Literal


def find_data_directory(name: Literal["rules", "schemas"]) -> str:
    """Return the path of a data directory: inside the package in a wheel, beside it in a checkout or editable install.

    Raises FileNotFoundError if neither exists: the installation is broken.
    """
    package = os.path.dirname(os.path.abspath(__file__))
    # `force-include` in pyproject.toml creates `_shipped`, in wheels only. It is first, because an installed package is
    # in the site-packages directory, where another project may have a directory named `rules`.
    for path in (os.path.join(package, "_shipped", name), os.path.join(os.path.dirname(package), name)):
        if os.path.isdir(path):
            return path
    raise FileNotFoundError(
        f"The installation of apflint is incomplete: directory {name!r} is missing. Reinstall apflint."
    )
