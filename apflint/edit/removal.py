"""Removes entries and items, and leaves every comment: what somebody wrote down may be true of more than one line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit import CannotEditError
from apflint.edit.lines import entry_end, line_end, line_start
from apflint.edit.places import entry, shared
from apflint.fix import Edit
from apflint.load.comments import within
from apflint.load.tree import Alias, Mapping, Sequence, behind, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.load.tree import Node
    from apflint.location import Path

_REST_OF_LINE = re.compile(r"[ \t]*(?:\r\n|\r|\n|\Z)")
_COMMENT = re.compile(r"[ \t]+#[^\r\n]*")
_DASH = re.compile(r"[ ]*-[ ]+\Z")


def removed(text: str, root: Node, paths: Iterable[Path]) -> tuple[Edit, ...]:
    """Without the entries and items at the paths: in block style their lines, in flow style with their commas.

    A mapping that loses its last entry goes as well. CannotEditError where the text does not let us, or a list would
    lose its last item.
    """
    gone: dict[Path, set[str | int]] = {}
    for path in sorted(set(paths), key=len, reverse=True):
        _mark(root, path, gone)
    return tuple(edit for path, steps in gone.items() for edit in _from(text, root, path, steps))


def _mark(root: Node, path: Path, gone: dict[Path, set[str | int]]) -> None:
    """Notes what goes, by its owner; the owner itself where nothing would be left of it."""
    owner_path, step = path[:-1], path[-1]
    owner = behind(walk(root, owner_path)[2])
    if isinstance(owner, Mapping):
        entry(root, path)
        steps = gone.setdefault(owner_path, set())
        steps.add(step)
        if len(steps) == len(owner.pairs) and not owner.merges and owner_path and isinstance(owner_path[-1], str):
            if isinstance(entry(root, owner_path)[1], Alias):
                raise CannotEditError("it is shared through an alias", owner.start, owner.end)
            del gone[owner_path]
            _mark(root, owner_path, gone)
    elif isinstance(owner, Sequence) and isinstance(step, int) and step < len(owner.items):
        gone.setdefault(owner_path, set()).add(step)
        if len(gone[owner_path]) == len(owner.items):
            raise CannotEditError("the list would be empty", owner.start, owner.end)
    else:
        raise CannotEditError("there is no such list", owner.start, owner.end)


class _Part(NamedTuple):
    """An entry of a mapping or an item of a list, and whether it goes."""

    start: int
    end: int
    nodes: tuple[Node, ...]
    gone: bool


def _from(text: str, root: Node, path: Path, steps: set[str | int]) -> Iterator[Edit]:
    owner = behind(walk(root, path)[2])
    if isinstance(owner, Sequence):
        parts = [_Part(item.start, item.end, (item,), number in steps) for number, item in enumerate(owner.items)]
    else:
        assert isinstance(owner, Mapping)
        parts = _entries(text, root, owner, [(*path, step) for step in steps])
    how = _commas if owner.flow else _lines
    yield from how(text, parts)


def _entries(text: str, root: Node, owner: Mapping, paths: list[Path]) -> list[_Part]:
    gone = {entry(root, path)[0].start: path for path in paths}
    own = {key.start for key, _ in owner.pairs}
    for start, path in gone.items():
        if start not in own:
            place = shared(root, path) or (owner.start, owner.end)
            raise CannotEditError(f"`{path[-1]}` comes from another place through a merge key", *place)
    pairs = [*owner.pairs, *((key, value) for _, key, value in owner.merges)]
    parts = [_Part(key.start, entry_end(text, key, value), (key, value), key.start in gone) for key, value in pairs]
    return sorted(parts, key=lambda part: part.start)


def _lines(text: str, parts: list[_Part]) -> Iterator[Edit]:
    """In block style: whole lines. The first entry of a list's item shares its line with the dash, which stays."""
    for number, part in enumerate(parts):
        if not part.gone:
            continue
        begin = line_start(text, part.start)
        before = text[begin : part.start]
        comments = list(within(text, part.nodes, part.start, part.end))
        tail = _COMMENT.match(text, part.end)
        if tail:
            comments.append(tail.group().strip())
        rest = _REST_OF_LINE.match(text, tail.end() if tail else part.end)
        if rest is None:
            raise CannotEditError("it shares a line with something else", part.start, part.end)
        item = len(part.nodes) == 1
        if _DASH.match(before) if item else not before.strip(" "):
            lines = "".join(f"{before.partition('-')[0]}{comment}{line_end(text)}" for comment in comments)
            yield Edit(begin, rest.end(), lines if rest.group().strip(" \t") else lines.rstrip("\r\n"))
        elif not item and _DASH.match(before) and number + 1 < len(parts) and not parts[number + 1].gone:
            following = parts[number + 1].start
            comments += within(text, (), rest.end(), following)
            lines = "".join(f"{comment}{line_end(text)}{' ' * len(before)}" for comment in comments)
            yield Edit(part.start, following, lines)
        else:
            raise CannotEditError("it shares a line with something else", part.start, part.end)


def _commas(text: str, parts: list[_Part]) -> Iterator[Edit]:
    """In flow style: from the part to the next one that stays; at the end from the last one that stays."""
    number = 0
    while number < len(parts):
        first = number
        while number < len(parts) and parts[number].gone:
            number += 1
        if first == number:
            number += 1
            continue
        if number < len(parts):
            start, end = parts[first].start, parts[number].start
        elif first:
            start, end = parts[first - 1].end, parts[number - 1].end
        else:
            raise CannotEditError("nothing would be left", parts[0].start, parts[-1].end)
        nodes = tuple(node for part in parts[first:number] for node in part.nodes)
        yield Edit(start, end, _kept(text, start, within(text, nodes, start, end)))


def _kept(text: str, start: int, comments: Iterable[str]) -> str:
    """Comments between brackets, each with the end of its line, and the blank before it that makes it one."""
    indent = " " * (start - line_start(text, start))
    lines = "".join(f"{comment}{line_end(text)}{indent}" for comment in comments)
    return f" {lines}" if lines and text[start - 1 : start] not in (" ", "\t", "\n", "\r") else lines
