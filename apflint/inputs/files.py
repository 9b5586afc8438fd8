"""Finding and reading the input files: the only place that opens manifests.

`discover` names the files, `read` gives the bytes of one, `may_hold_apf` tells from the raw bytes whether parsing is
worth it. None of them raises for anything a file system can do: what cannot be read is a value with the reason.
"""
# os rather than pathlib: that costs 10 ms to import, and for every file several times what os does.

from __future__ import annotations

import os
import re
import stat
import sys
from typing import TYPE_CHECKING

from apflint.budgets import MAX_FILE_BYTES, MAX_SEARCHED_BYTES
from apflint.record import NamedTuple
from apflint.settings.patterns import PathMatcher, Patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from apflint.finding import Skipped

SUFFIXES = (".yaml", ".yml", ".json")
"""What is read of a directory. A file that is named on the command line is read whatever its name."""


_CHUNK = 1024 * 1024
_OVERLAP = 64  # more than twice the longest sign, so that none is missed between two pieces

_SIGNS = (b"flowcontrol", b"FlowSchema", b"PriorityLevelConfiguration")
_SIGNS_BY_BOM = {
    b"\xff\xfe": tuple(sign.decode().encode("utf-16-le") for sign in _SIGNS),
    b"\xfe\xff": tuple(sign.decode().encode("utf-16-be") for sign in _SIGNS),
}
# A letter may be written as an escape in a quoted string. Go's JSON writes \u003c, \u003e and \u0026 for < > &
# everywhere, and those are no letters.
_ESCAPED_LETTER = re.compile(rb"\\(?:u00|x|U000000)[4-7]")

_OPEN_FLAGS = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOCTTY", 0)
# Without this, opening a pipe that replaced a file meanwhile would wait for a writer for ever.
_AT_ONCE = getattr(os, "O_NONBLOCK", 0)


class Found(NamedTuple):
    """One input, in the order in which it is to be read."""

    name: str
    """As findings show it: the path as the user would type it, without a leading `./`; `<stdin>` for `-`."""
    path: str
    """What to open; `-` is standard input."""
    problem: str = ""
    """Why it cannot be read, where that is known already: a sentence. `read` answers with it."""


class Unreadable(NamedTuple):
    """An input that was not read. The run goes on with the others and ends with exit status 2."""

    reason: str
    """Sentences for people, without the name of the file."""


def discover(
    paths: Iterable[str],
    exclude: Patterns = Patterns(),  # noqa: B008  # a frozen value
    force_exclude: bool = False,
    skipped: list[Skipped] | None = None,
) -> Iterator[Found]:
    """The files that `paths` stand for, each once: in the order of `paths`, and sorted by name in each directory.

    A file is taken whatever its name. A directory stands for the `SUFFIXES` files in it and below; hidden directories
    and `node_modules` are left out, and links to directories are not followed (as in `kubectl apply -R`, `grep -r`
    and git), so that a loop of links cannot trap the walk. `-` is standard input.

    `exclude` applies to what is found in directories, and with `force_exclude` also to `paths`. It may exclude the current
    directory as a whole, because nobody names that.

    What does not exist or cannot be listed comes as a `Found` with a `problem`. Directories and files that are left out
    because of their names are appended to `skipped`.
    """
    excluded = PathMatcher(exclude) if exclude.globs else None
    parents: dict[str, str] = {}  # real paths of the folders of named files: pre-commit names thousands
    seen: set[str] = set()
    for path in paths:
        if path == "-" or _is_stream(path):
            key = "-" if path in ("-", "/dev/stdin") else path
            if key not in seen:
                seen.add(key)
                yield Found("<stdin>" if path == "-" else path, key)
            continue
        shown = _shown(path)
        try:
            if excluded and (force_exclude or shown == ".") and excluded.matches_or_parent(path):
                continue
            status = os.stat(path)
            if not stat.S_ISDIR(status.st_mode):
                key = _real_path(path, parents)
                if key not in seen:
                    seen.add(key)
                    yield Found(shown, path)
                continue
            real = os.path.realpath(path)
            relative = os.path.relpath(path)
        except (OSError, ValueError) as error:
            yield Found(shown, path, failed(path, error).reason)
            continue
        prefix = "" if shown == "." else shown.rstrip("/") + "/"
        from apflint.inputs.walk import Directory, walk  # a hook names its files

        start = Directory(path, prefix, real.rstrip("/") + "/", "" if relative == "." else relative + "/")
        yield from walk(start, excluded.matches if excluded else None, seen, skipped)


def read(found: Found) -> bytes | Unreadable:
    """The bytes of one input, or why they cannot be had.

    Regular files only: a pipe, a socket or a device is refused unless it is standard input (`-`, `/dev/stdin`) or
    another stream that the shell has opened (`/dev/fd/63`, from `<(helm template .)`).

    A file above `MAX_FILE_BYTES` bytes is not read as a whole. It is looked through for signs of APF; where there are
    none the answer is empty, which `may_hold_apf` sorts out as it would have done with the whole.
    """
    if found.problem:
        return Unreadable(found.problem)
    try:
        if found.path == "-":
            return _read_standard_input()
        if _is_stream(found.path):
            with open(found.path, "rb", buffering=0) as stream:
                return _read_stream(stream.read)
        mode = os.stat(found.path).st_mode  # before opening: a mere opening does things to some devices
        if not stat.S_ISREG(mode):
            return _refused(mode)
        descriptor = os.open(found.path, _OPEN_FLAGS | _AT_ONCE)
        try:
            return _read_regular(descriptor)
        finally:
            os.close(descriptor)
    except (OSError, ValueError) as error:
        return failed(found.path, error)


def may_hold_apf(data: bytes) -> bool:
    """Whether a text may hold an APF object, from its raw bytes: `False` means that parsing it would find none.

    It looks for the API group or one of the two kinds, in UTF-8, or in UTF-16 after a byte order mark, which is what
    Kubernetes' YAML parser reads. A quoted string with letters written as escapes counts as a sign too.
    """
    return _shows_signs(data, _SIGNS_BY_BOM.get(data[:2], _SIGNS))


def _shows_signs(data: bytes, signs: tuple[bytes, ...]) -> bool:
    first, second, third = signs
    return (
        first in data or second in data or third in data or (b"\\" in data and _ESCAPED_LETTER.search(data) is not None)
    )


def _read_regular(descriptor: int) -> bytes | Unreadable:
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        return _refused(status.st_mode)
    size = status.st_size
    if size > MAX_FILE_BYTES:
        return _look_through(descriptor, size)
    data = os.read(descriptor, size + 1)
    if len(data) == size:
        return data
    # It has grown since, a network file system answers in pieces, or it is a file of /proc, whose size is said to be 0.
    pieces = [data]
    length = len(data)
    while data and length <= MAX_FILE_BYTES:
        data = os.read(descriptor, _CHUNK)
        pieces.append(data)
        length += len(data)
    return b"".join(pieces) if length <= MAX_FILE_BYTES else _too_large(length)


def _look_through(descriptor: int, size: int) -> bytes | Unreadable:
    """Empty if nothing in a large file looks like APF, else the refusal. Never holds more than a piece of it."""
    if size > MAX_SEARCHED_BYTES:
        return _too_large(size)
    data = b""
    signs: tuple[bytes, ...] | None = None
    for _ in range(size // _CHUNK + 1):
        piece = os.read(descriptor, _CHUNK)
        if not piece:
            break
        signs = signs or _SIGNS_BY_BOM.get(piece[:2], _SIGNS)
        data = data[-_OVERLAP:] + piece
        if _shows_signs(data, signs):
            return _too_large(size)
    return b""


def _read_standard_input() -> bytes | Unreadable:
    # Not descriptor 0: where standard input was closed, that number may belong to some other file by now.
    buffer = getattr(sys.stdin, "buffer", None)
    if buffer is None:
        return Unreadable("Standard input is closed. Connect it to a pipe or a file.")
    # What is there, rather than all of a piece: Ctrl-C is heeded between one and the next.
    return _read_stream(buffer.read1)


def _read_stream(read_some: Callable[[int], bytes | None]) -> bytes | Unreadable:
    pieces: list[bytes] = []
    length = 0
    while piece := read_some(_CHUNK):
        pieces.append(piece)
        length += len(piece)
        if length > MAX_FILE_BYTES:
            from apflint.inputs import refusals

            return Unreadable(refusals.too_long(MAX_FILE_BYTES))
    return b"".join(pieces)


def _is_stream(path: str) -> bool:
    return path == "/dev/stdin" or path.startswith(("/dev/fd/", "/proc/self/fd/"))


def _shown(path: str) -> str:
    """A path as findings show it: without the `./` that a directory walk or a shell's completion puts before it."""
    while path.startswith("./"):
        path = path[2:].lstrip("/") or "."
    return path


def _real_path(path: str, parents: dict[str, str]) -> str:
    if stat.S_ISLNK(os.lstat(path).st_mode):
        return os.path.realpath(path)
    folder, name = os.path.split(path)
    if folder not in parents:
        parents[folder] = os.path.realpath(folder or ".").rstrip("/")
    return f"{parents[folder]}/{name}"


def is_dangling(path: str) -> bool:
    """Whether a path is a symbolic link to something that does not exist."""
    return os.path.islink(path) and not os.path.exists(path)


def _too_large(size: int) -> Unreadable:
    from apflint.inputs import refusals  # few runs refuse anything

    return Unreadable(refusals.too_large(size, MAX_FILE_BYTES))


def _refused(mode: int) -> Unreadable:
    from apflint.inputs import refusals

    return Unreadable(refusals.no_regular_file(mode))


def failed(path: str, error: OSError | ValueError) -> Unreadable:
    """Why an input cannot be had, from what the system said."""
    from apflint.inputs import refusals

    return Unreadable(refusals.failure(path, error))
