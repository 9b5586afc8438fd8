"""Where the files are that ship with apflint but are no code."""

from __future__ import annotations

import os
from typing import Literal


def shipped(folder: Literal["rules", "schemas"]) -> str:
    """The path of a shipped folder: inside the package in a wheel, beside it in a checkout or an editable install.

    A plain string, as importing pathlib costs 3 ms at the start of every run. Raises FileNotFoundError where there is
    neither: the installation is broken.
    """
    package = os.path.dirname(os.path.abspath(__file__))
    # `_shipped` is made by `force-include` in pyproject.toml, in wheels alone. It goes first: what lies beside an
    # installed package is the site-packages folder, where another project may have put a folder named `rules`.
    for path in (os.path.join(package, "_shipped", folder), os.path.join(os.path.dirname(package), folder)):
        if os.path.isdir(path):
            return path
    raise FileNotFoundError(
        f"The installation of apflint is incomplete: there is no folder {folder!r}. Install it again."
    )
