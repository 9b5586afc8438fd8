"""Which files are left out: shell patterns against paths from a directory. `exclude` and `per-file-ignores` both go by it."""

from __future__ import annotations

import os
import re
from fnmatch import translate
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterable


class Patterns(tuple[str, ...]):  # noqa: SLOT001  # a tuple has no room for them
    """Patterns that count from `folder`, an absolute path, and not from the current directory."""

    folder: str

    def __new__(cls, patterns: Iterable[str], folder: str) -> Self:
        """Both as the file of settings has them."""
        made = super().__new__(cls, patterns)
        made.folder = folder
        return made


class Excluder:
    """Whether patterns stand for a path, which is given from the current directory.

    `*` also stands for slashes. A pattern without a slash is held against the last part alone, `**/` before a name is any
    depth, and what stands for a directory stands for all below it.
    """

    def __init__(self, patterns: Iterable[str], folder: str | None = None) -> None:
        """The patterns count from `folder`, an absolute path; from the current directory where there is none."""
        self._folder = folder or os.getcwd()
        self._elsewhere = self._folder != os.getcwd()
        whole: list[str] = []
        last: list[str] = []
        for given in patterns:
            pattern = given.removeprefix("./").rstrip("/").removesuffix("/**") or given
            (whole if "/" in pattern else last).append(pattern)
            if pattern.startswith("**/"):  # any depth, none included
                rest = pattern[3:]
                (whole if "/" in rest else last).append(rest)
        self._whole = re.compile("|".join(map(translate, whole)) if whole else r"(?!)").match
        self._last = re.compile("|".join(map(translate, last)) if last else r"(?!)").match
        self._absolute = any(pattern.startswith("/") for pattern in whole)

    def __call__(self, path: str) -> bool:
        """For a walk, which asks about every directory before it enters it."""
        return self._covers(self._name(path) if self._elsewhere else path)

    def above(self, path: str) -> bool:
        """Whether a path or a directory above it is excluded, as it would be in a walk from the directory of the patterns."""
        name = self._name(path)
        while name not in ("", ".", "/"):
            if self._covers(name):
                return True
            name = os.path.dirname(name)
        return False

    def _name(self, path: str) -> str:
        return os.path.relpath(path, self._folder).replace(os.sep, "/")

    def _covers(self, name: str) -> bool:
        if self._whole(name) or self._last(name[name.rfind("/") + 1 :]):
            return True
        return self._absolute and bool(self._whole(os.path.normpath(os.path.join(self._folder, name))))


def excluder(patterns: Iterable[str]) -> Excluder | None:
    """What tells whether a path is excluded; `None` where no pattern was given."""
    given = patterns if isinstance(patterns, Patterns) else Patterns(patterns, os.getcwd())
    return Excluder(given, given.folder) if given else None
