"""What is found below a directory."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, NamedTuple

from apflint.finding import Skipped
from apflint.inputs.files import SUFFIXES, Found, failed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_SKIPPED_DIRECTORIES = frozenset({"node_modules"})  # hidden ones are skipped by their dot
HIDDEN, INSTALLED = "hidden directory", "directory of installed packages"
UPPER_CASE = "upper-case suffix, which kubectl does not read"
"""Why a directory or a file is left out."""


class Directory(NamedTuple):
    """A directory that is walked through, as it is called by turns."""

    path: str
    prefix: str
    """What findings show before the name of an entry: `manifests/`, or nothing for the current directory."""
    real: str
    """The real path, with a slash at its end."""
    relative: str
    """The path from the current directory, which exclude patterns see; with a slash at its end, or empty."""


def walk(
    start: Directory, excluded: Callable[[str], bool] | None, seen: set[str], skipped: list[Skipped] | None = None
) -> Iterator[Found]:
    """What is found below `start`. A stack of our own: nesting is bounded by the file system, not by Python.

    Entries that are left out because of their names are appended to `skipped`.
    """
    stack: list[Directory | tuple[str, Found]] = [start]
    while stack:
        item = stack.pop()
        if isinstance(item, Directory):
            key = item.real
            if key in seen:
                continue
            seen.add(key)
            try:
                stack += reversed(_entries(item, excluded, skipped))
            except OSError as error:
                yield Found(item.prefix or ".", item.path, failed(item.path, error).reason)
        elif item[0] not in seen:
            seen.add(item[0])
            yield item[1]


def _entries(
    directory: Directory, excluded: Callable[[str], bool] | None, skipped: list[Skipped] | None
) -> list[Directory | tuple[str, Found]]:
    """What of a directory concerns us, sorted by name: files with their real path, and directories to enter."""
    kept: list[Directory | tuple[str, Found]] = []
    with os.scandir(directory.path) as listing:
        entries = sorted(listing, key=lambda entry: entry.name)
    for entry in entries:
        name = entry.name
        named_as_manifest = name.endswith(SUFFIXES)
        if entry.is_dir(follow_symlinks=False):
            relative = directory.relative + name
            if not (excluded and excluded(relative)):
                if reason := _why_left_out(name):
                    if skipped is not None and name != ".git":
                        skipped.append(Skipped(directory.prefix + name, reason))
                else:
                    prefix = directory.prefix + name + "/"
                    kept.append(Directory(prefix, prefix, directory.real + name + "/", relative + "/"))
        elif named_as_manifest and not (excluded and excluded(directory.relative + name)):
            path = directory.prefix + name
            real = directory.real + name
            if entry.is_symlink():
                if _leads_to_directory(path) or name.startswith(".#"):  # `.#` is a lock of Emacs, which leads nowhere
                    continue
                real = os.path.realpath(path)
            kept.append((real, Found(path, path)))
        elif (
            skipped is not None
            and not named_as_manifest
            and name.lower().endswith(SUFFIXES)
            and not (excluded and excluded(directory.relative + name))
        ):
            skipped.append(Skipped(directory.prefix + name, UPPER_CASE))
    return kept


def _why_left_out(name: str) -> str:
    """Why a directory of this name is not entered; empty if it is."""
    return HIDDEN if name.startswith(".") else INSTALLED if name in _SKIPPED_DIRECTORIES else ""


def _leads_to_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.stat(path).st_mode)
    except OSError:
        return False
