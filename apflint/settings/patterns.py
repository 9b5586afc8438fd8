"""Shell patterns for paths, as in `exclude` and `per-file-ignores`."""

from __future__ import annotations

import os
import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from apflint.budgets import MAX_PATTERN_WORK
from apflint.named_tuple import NamedTuple
from apflint.user_error import UserError
from apflint.wording import count_noun

if TYPE_CHECKING:
    from collections.abc import Sequence

_WILDCARD = re.compile(r"[*?]|\[.*", re.DOTALL)


class Patterns(NamedTuple):
    """Shell patterns, and the directory to which the patterns are relative."""

    globs: tuple[str, ...] = ()
    directory: str | None = None
    """Absolute path of the directory, or None for the current directory."""


class _Glob(NamedTuple):
    text: str
    """A string that is a part of every path that the pattern matches."""
    pattern: str

    @classmethod
    def parse(cls, pattern: str) -> _Glob:
        return cls(max(_WILDCARD.split(pattern), key=len), pattern)


class PathMatcher:
    """Matches paths against patterns. Paths are relative to the current directory.

    `*` also matches slashes. A pattern without a slash matches the last component of a path. `**/` at
    the start of a pattern matches any number of directories. In `matches_or_parent`, but not in
    `matches`, a pattern that matches a directory also matches everything below the directory. Both of
    these methods raise UserError if the comparisons of this matcher exceed `MAX_PATTERN_WORK`.
    """

    def __init__(self, patterns: Patterns) -> None:
        self._directory = patterns.directory or os.getcwd()
        self._is_elsewhere = self._directory != os.getcwd()
        paths: list[str] = []
        names: list[str] = []
        for glob in patterns.globs:
            pattern = glob.removeprefix("./").rstrip("/").removesuffix("/**") or glob
            (paths if "/" in pattern else names).append(pattern)
            if pattern.startswith("**/"):  # `**/` also matches zero directories, so `**/x` matches `x`
                rest = pattern[3:]
                (paths if "/" in rest else names).append(rest)
        self._paths = [_Glob.parse(pattern) for pattern in paths]
        self._names = [_Glob.parse(pattern) for pattern in names]
        self._work = 0
        self._has_absolute = any(pattern.startswith("/") for pattern in paths)

    def matches(self, path: str) -> bool:
        """Return whether a pattern matches the path itself. Parent directories of the path are not compared.

        Callers walk a directory tree, and compare each directory before its entries.
        """
        return self._matches(self._relative(path) if self._is_elsewhere else path)

    def matches_or_parent(self, path: str) -> bool:
        """Return whether a pattern matches the path or one of its parent directories.

        Only parents below the directory of the patterns are compared.
        """
        name = self._relative(path)
        while name not in ("", ".", "/"):
            if self._matches(name):
                return True
            name = os.path.dirname(name)
        return False

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self._directory).replace(os.sep, "/")

    def _matches(self, name: str) -> bool:
        if self._match(self._paths, name) or self._match(self._names, name[name.rfind("/") + 1 :]):
            return True
        return self._has_absolute and self._match(self._paths, os.path.normpath(os.path.join(self._directory, name)))

    def _match(self, globs: Sequence[_Glob], name: str) -> bool:
        for text, pattern in globs:
            if text in name:  # this fast test excludes most patterns
                self._work += len(pattern) + len(name)
                if self._work > MAX_PATTERN_WORK:
                    count = count_noun(len(self._paths) + len(self._names), "path pattern")
                    raise UserError(f"Comparing all paths with {count} takes too long. Use fewer or shorter patterns.")
                if fnmatchcase(name, pattern):
                    return True
        return False
