"""Shell patterns for paths, as in `exclude` and `per-file-ignores`."""

from __future__ import annotations

import os
import re
from fnmatch import translate

from apflint.record import NamedTuple


class Patterns(NamedTuple):
    """Patterns, and the directory that they are relative to."""

    globs: tuple[str, ...] = ()
    directory: str | None = None
    """Absolute path of the directory, or None for the current directory."""


class PathMatcher:
    """Matches paths against patterns. Paths are relative to the current directory.

    `*` also matches slashes. A pattern without a slash matches the last part of a path. `**/` at the start of a pattern
    matches any depth. A pattern that matches a directory also matches everything below it (`matches_or_parent`).
    """

    def __init__(self, patterns: Patterns) -> None:
        self._directory = patterns.directory or os.getcwd()
        self._is_elsewhere = self._directory != os.getcwd()
        paths: list[str] = []
        names: list[str] = []
        for glob in patterns.globs:
            pattern = glob.removeprefix("./").rstrip("/").removesuffix("/**") or glob
            (paths if "/" in pattern else names).append(pattern)
            if pattern.startswith("**/"):  # at any depth, or at the top
                rest = pattern[3:]
                (paths if "/" in rest else names).append(rest)
        self._match_path = re.compile("|".join(map(translate, paths)) if paths else r"(?!)").match
        self._match_name = re.compile("|".join(map(translate, names)) if names else r"(?!)").match
        self._has_absolute = any(pattern.startswith("/") for pattern in paths)

    def matches(self, path: str) -> bool:
        """Return whether a pattern matches the path itself.

        Directories above the path are not tested, because a walk tests each directory before entering it.
        """
        return self._matches(self._relative(path) if self._is_elsewhere else path)

    def matches_or_parent(self, path: str) -> bool:
        """Return whether a pattern matches the path or a parent directory, up to the directory of the patterns."""
        name = self._relative(path)
        while name not in ("", ".", "/"):
            if self._matches(name):
                return True
            name = os.path.dirname(name)
        return False

    def _relative(self, path: str) -> str:
        return os.path.relpath(path, self._directory).replace(os.sep, "/")

    def _matches(self, name: str) -> bool:
        if self._match_path(name) or self._match_name(name[name.rfind("/") + 1 :]):
            return True
        return self._has_absolute and bool(self._match_path(os.path.normpath(os.path.join(self._directory, name))))
