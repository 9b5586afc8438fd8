"""Reads the data files that ship with apflint, from an installed package or from the single-file build.

The loader of the package reads the files, because in the single-file build they are not in a directory.
"""

from __future__ import annotations

import os
from typing import Any, Literal

_PACKAGE = os.path.dirname(os.path.abspath(__file__))
_LOADER: Any = __spec__.loader


def read_text(path: str) -> str:
    """Return the text of a file of the package, such as `cli/help_pages/check.txt`. Raises OSError for an unknown file."""
    data: bytes = _LOADER.get_data(os.path.join(_PACKAGE, *path.split("/")))
    return data.decode()


def read_shipped_text(directory: Literal["rules", "schemas"], name: str) -> str:
    """Return the text of the file `name` in the directory of rule pages or schemas. Raises OSError for an unknown file.

    In a wheel, the directory is inside the package. In a checkout or editable install, the directory is next to the
    package.
    """
    try:
        # Only a wheel has `_shipped` (`force-include` in pyproject.toml). `_shipped` is tried first, because in
        # site-packages, another project may have a directory named `rules`.
        return read_text(f"_shipped/{directory}/{name}")
    except OSError:
        return read_text(f"../{directory}/{name}")


def list_rule_pages() -> list[str]:
    """Return the names of the files in the directory of rule pages, in any order.

    Raises FileNotFoundError if the directory is missing, because the installation is incomplete.
    """
    for path in (os.path.join(_PACKAGE, "_shipped", "rules"), os.path.join(os.path.dirname(_PACKAGE), "rules")):
        try:
            return os.listdir(path)
        except NotADirectoryError:  # single-file build: the path is inside of an archive, which `Importer` can list
            return list(_LOADER.list_directory(path))
        except FileNotFoundError:
            pass
    raise FileNotFoundError("The installation of apflint is incomplete: its rule pages are missing. Reinstall apflint.")
