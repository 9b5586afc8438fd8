"""Finds the input files: files that the user names, and manifests in directories that the user names."""
# This module uses os instead of pathlib, which takes 10 ms to import and is several times slower for each file.

from __future__ import annotations

import os
import stat
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

from apflint.finding import SkippedDocuments
from apflint.load.source_text import STDIN
from apflint.named_tuple import NamedTuple
from apflint.settings.patterns import PathMatcher, Patterns
from apflint.sources.file_reading import describe_failure, is_stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

SUFFIXES = (".yaml", ".yml", ".json")
"""Suffixes of files to read in directories. A file that the user names may have any name."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"  # the mark of UTF-8
INSTALLED_DIRECTORY = "node_modules"
"""Name of directories that are not searched."""
HIDDEN, INSTALLED = "hidden directory", "directory of installed packages"
_UPPER_CASE = "upper-case suffix, which kubectl does not read"
"""Reasons for skipping a directory (`HIDDEN`, `INSTALLED`) or a file (`_UPPER_CASE`)."""


class FoundFile(NamedTuple):
    """An input file that has not been read yet."""

    name: str
    """The name in findings: the path without a leading `./`, or `<stdin>` for `-`."""
    path: str
    """The path to open, or `-` for standard input."""
    problem: str = ""
    """A sentence that says why the file cannot be read, or "" if there is no problem yet."""


class InputFile(NamedTuple):
    """An input file and its content."""

    name: str
    """The name in findings."""
    path: str
    """The path of the file, or `-` for standard input."""
    content: str | bytes
    """The text of a file in UTF-8, or the bytes of a file in another encoding.

    The loaded file refers to the same string, so that a large file is in memory only once.
    """
    may_hold_apf: bool
    """Whether the file may contain APF objects. A file without APF objects is not parsed."""

    @classmethod
    def from_bytes(cls, name: str, path: str, data: bytes, *, may_hold_apf: bool) -> InputFile:
        """Return the file with this name, path and bytes."""
        # Bytes that begin with a byte order mark, or are not UTF-8, are not decoded here: `load` removes the mark,
        # decodes UTF-16, and reports other bytes.
        content: str | bytes = data
        if not data.startswith(_BYTE_ORDER_MARK):
            with suppress(UnicodeDecodeError):
                content = data.decode()
        return cls(name, path, content, may_hold_apf)

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self.content if isinstance(self.content, bytes) else self.content.encode()

    @property
    def input(self) -> tuple[str, str | bytes]:
        """The name and the content of the file, as `load` takes them.

        The content is empty if the file cannot contain APF objects.
        """
        return self.name, self.content if self.may_hold_apf else ""

    def to_found_file(self) -> FoundFile:
        """Return the same file without its bytes."""
        return FoundFile(self.name, self.path)


class _Directory(NamedTuple):
    """A directory to walk."""

    path: str
    prefix: str
    """Prefix of the names of files in the directory, such as `manifests/`. Empty for the current directory."""
    real: str
    """The absolute path without symbolic links. Ends with a slash."""
    relative: str
    """The path relative to the current directory, which patterns match. Ends with a slash, or is empty."""


_Entry = _Directory | tuple[str, FoundFile]
"""A directory to walk, or the real path of a file and the file."""


def discover_files(
    paths: Iterable[str],
    exclude: Patterns = Patterns(),  # noqa: B008  # a frozen value
    force_exclude: bool = False,
) -> Iterator[FoundFile]:
    """Yield the input files that `discover_entries` yields, but not the skipped files and directories."""
    return (entry for entry in discover_entries(paths, exclude, force_exclude) if isinstance(entry, FoundFile))


def discover_entries(
    paths: Iterable[str],
    exclude: Patterns = Patterns(),  # noqa: B008  # a frozen value
    force_exclude: bool = False,
) -> Iterator[FoundFile | SkippedDocuments]:
    """Yield each input file once, in the order of `paths`. Files in a directory are sorted by name.

    If one of `paths` is a directory, yield the files with one of the `SUFFIXES` in this directory and its
    subdirectories. Hidden directories and `node_modules` are skipped. Links to directories are not followed, as in
    `kubectl apply -R`, `grep -r` and git. The path `-` is standard input.

    `exclude` applies to files and directories below `paths`. If `force_exclude` is true, `exclude` also applies to
    `paths` themselves. The path `.` is always compared with `exclude`, because it is also the default if the user names
    no path.

    A path that does not exist or cannot be listed is yielded as a file with a `problem`. Directories and files that are
    skipped because of their names are yielded as `SkippedDocuments`.
    """
    excluded = PathMatcher(exclude) if exclude.globs else None
    real_directory = cache(os.path.realpath)  # cached, because pre-commit names thousands of files
    seen: set[str] = set()
    for path in paths:
        if path == "-" or is_stream(path):
            key = "-" if path in ("-", "/dev/stdin") else path
            if key not in seen:
                seen.add(key)
                yield FoundFile(STDIN if path == "-" else path, key)
            continue
        name = _without_dots(path)
        try:
            if excluded and (force_exclude or name == ".") and excluded.matches_or_parent(path):
                continue
            if not stat.S_ISDIR(os.stat(path).st_mode):
                directory, base = os.path.split(path)
                key = os.path.realpath(path) if os.path.islink(path) else os.path.join(real_directory(directory), base)
                if key not in seen:
                    seen.add(key)
                    yield FoundFile(name, path)
                continue
            real, relative = os.path.realpath(path), os.path.relpath(path)
        except (OSError, ValueError) as error:
            yield FoundFile(name, path, describe_failure(path, error))
            continue
        prefix = "" if name == "." else name.rstrip("/") + "/"
        start = _Directory(path, prefix, real.rstrip("/") + "/", "" if relative == "." else relative + "/")
        yield from _walk(start, excluded, seen)


def is_dangling(path: str) -> bool:
    """Return whether a path is a symbolic link to a file that does not exist."""
    return os.path.islink(path) and not os.path.exists(path)


def _without_dots(path: str) -> str:
    """Return a path without a leading `./`."""
    while path.startswith("./"):
        path = path[2:].lstrip("/") or "."
    return path


def _walk(start: _Directory, excluded: PathMatcher | None, seen: set[str]) -> Iterator[FoundFile | SkippedDocuments]:
    """Yield the files below a directory. Uses a loop, because directories may be nested deeper than Python's stack."""
    stack: list[_Entry] = [start]
    while stack:
        entry = stack.pop()
        key = entry.real if isinstance(entry, _Directory) else entry[0]
        if key in seen:
            continue
        seen.add(key)
        if not isinstance(entry, _Directory):
            yield entry[1]
            continue
        try:
            entries, skipped = _list_entries(entry, excluded)
        except OSError as error:
            yield FoundFile(entry.prefix or ".", entry.path, describe_failure(entry.path, error))
        else:
            yield from skipped
            stack += reversed(entries)


def _list_entries(directory: _Directory, excluded: PathMatcher | None) -> tuple[list[_Entry], list[SkippedDocuments]]:
    """Return the entries of a directory: the manifests and subdirectories, sorted by name, and the skipped entries."""
    entries: list[_Entry] = []
    skipped: list[SkippedDocuments] = []
    with os.scandir(directory.path) as listing:
        found = sorted(listing, key=lambda entry: entry.name)
    for entry in found:
        name, path, reason = entry.name, directory.prefix + entry.name, ""
        is_directory = entry.is_dir(follow_symlinks=False)
        if not is_directory and not name.lower().endswith(SUFFIXES):
            continue
        if excluded and excluded.matches(directory.relative + name):
            continue
        if is_directory:
            reason = HIDDEN if name.startswith(".") else INSTALLED if name == INSTALLED_DIRECTORY else ""
            if not reason:
                relative = directory.relative + name + "/"
                entries.append(_Directory(path + "/", path + "/", directory.real + name + "/", relative))
        elif not name.endswith(SUFFIXES):
            reason = _UPPER_CASE
        elif not entry.is_symlink():
            entries.append((directory.real + name, FoundFile(path, path)))
        elif not (os.path.isdir(path) or name.startswith(".#")):  # `.#FILE` is a link with which Emacs locks FILE
            entries.append((os.path.realpath(path), FoundFile(path, path)))
        if reason and name != ".git":
            skipped.append(SkippedDocuments(path, reason))
    return entries, skipped
