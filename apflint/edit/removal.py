"""Removes entries and items. Comments stay, because they may be about more than one line."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit.lines import entry_end, line_end, line_start
from apflint.edit.lookup import find_alias, find_entry
from apflint.edit.text_edits import CannotEditError
from apflint.fix import Edit
from apflint.load.comments import list_comments
from apflint.load.tree import Alias, Mapping, Sequence, resolve_alias, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.load.tree import Node
    from apflint.location import Path

_REST_OF_LINE = re.compile(r"[ \t]*(?:\r\n|\r|\n|\Z)")
_COMMENT = re.compile(r"[ \t]+#[^\r\n]*")
_DASH = re.compile(r"[ ]*-[ ]+\Z")


def remove_entries(text: str, root: Node, paths: Iterable[Path]) -> tuple[Edit, ...]:
    """Remove the entries and items at the paths: their lines in block style, their text and commas in flow style.

    A mapping that would be empty is removed, too. Raises CannotEditError if a list would be empty.
    """
    removed: dict[Path, set[str | int]] = {}
    for path in sorted(set(paths), key=len, reverse=True):
        _collect(root, path, removed)
    return tuple(edit for path, steps in removed.items() for edit in _remove_from(text, root, path, steps))


def _collect(root: Node, path: Path, removed: dict[Path, set[str | int]]) -> None:
    """Add a path to those that are removed, by owner; or add the owner, if it would be empty."""
    owner_path, step = path[:-1], path[-1]
    owner = resolve_alias(walk(root, owner_path)[2])
    if isinstance(owner, Mapping):
        find_entry(root, path)
        steps = removed.setdefault(owner_path, set())
        steps.add(step)
        if len(steps) == len(owner.pairs) and not owner.merges and owner_path and isinstance(owner_path[-1], str):
            if isinstance(find_entry(root, owner_path)[1], Alias):
                raise CannotEditError("it is shared through an alias", owner.start)
            del removed[owner_path]
            _collect(root, owner_path, removed)
    elif isinstance(owner, Sequence) and isinstance(step, int) and step < len(owner.items):
        removed.setdefault(owner_path, set()).add(step)
        if len(removed[owner_path]) == len(owner.items):
            raise CannotEditError("the list would be empty", owner.start)
    else:
        raise CannotEditError("there is no such list", owner.start)


class _Part(NamedTuple):
    """An entry of a mapping (key and value) or an item of a list."""

    start: int
    end: int
    nodes: tuple[Node, ...]
    is_removed: bool


def _remove_from(text: str, root: Node, path: Path, steps: set[str | int]) -> Iterator[Edit]:
    owner = resolve_alias(walk(root, path)[2])
    if isinstance(owner, Sequence):
        parts = [_Part(item.start, item.end, (item,), index in steps) for index, item in enumerate(owner.items)]
    else:
        assert isinstance(owner, Mapping), "only lists and mappings are collected"
        parts = _split_mapping(text, root, owner, [(*path, step) for step in steps])
    yield from (_remove_in_flow if owner.flow else _remove_lines)(text, parts)


def _split_mapping(text: str, root: Node, owner: Mapping, paths: list[Path]) -> list[_Part]:
    removed = {find_entry(root, path)[0].start: path for path in paths}
    own = {key.start for key, _ in owner.pairs}
    for start, path in removed.items():
        if start not in own:
            alias_start, _ = find_alias(root, path) or (owner.start, owner.end)
            raise CannotEditError(f"`{path[-1]}` comes from another place through a merge key", alias_start)
    pairs = [*owner.pairs, *((key, value) for _, key, value in owner.merges)]
    parts = [_Part(key.start, entry_end(text, key, value), (key, value), key.start in removed) for key, value in pairs]
    return sorted(parts, key=lambda part: part.start)


def _remove_lines(text: str, parts: list[_Part]) -> Iterator[Edit]:
    """Remove whole lines in block style. The first entry of a list item shares its line with the dash, which stays."""
    for index, part in enumerate(parts):
        if not part.is_removed:
            continue
        start = line_start(text, part.start)
        prefix = text[start : part.start]
        comments = list(list_comments(text, part.nodes, part.start, part.end))
        trailing = _COMMENT.match(text, part.end)
        if trailing:
            comments.append(trailing.group().strip())
        rest = _REST_OF_LINE.match(text, trailing.end() if trailing else part.end)
        is_item = len(part.nodes) == 1
        if rest and (_DASH.match(prefix) if is_item else not prefix.strip(" ")):
            lines = "".join(f"{prefix.partition('-')[0]}{comment}{line_end(text)}" for comment in comments)
            yield Edit(start, rest.end(), lines if rest.group().strip(" \t") else lines.rstrip("\r\n"))
        elif (
            rest and not is_item and _DASH.match(prefix) and index + 1 < len(parts) and not parts[index + 1].is_removed
        ):
            next_start = parts[index + 1].start
            comments += list_comments(text, (), rest.end(), next_start)
            lines = "".join(f"{comment}{line_end(text)}{' ' * len(prefix)}" for comment in comments)
            yield Edit(part.start, next_start, lines)
        else:
            raise CannotEditError("it shares a line with something else", part.start)


def _remove_in_flow(text: str, parts: list[_Part]) -> Iterator[Edit]:
    """Remove runs of parts in flow style: up to the next part that stays, or from the end of the last one that stays."""
    index = 0
    while index < len(parts):
        first = index
        while index < len(parts) and parts[index].is_removed:
            index += 1
        if first == index:
            index += 1
            continue
        if index < len(parts):
            start, end = parts[first].start, parts[index].start
        elif first:
            start, end = parts[first - 1].end, parts[index - 1].end
        else:
            raise CannotEditError("nothing would be left", parts[0].start)
        nodes = tuple(node for part in parts[first:index] for node in part.nodes)
        yield Edit(start, end, _write_comments(text, start, list_comments(text, nodes, start, end)))


def _write_comments(text: str, start: int, comments: Iterable[str]) -> str:
    """Write comments between brackets, each with a line end, and with the space before the first that makes it a comment."""
    indent = " " * (start - line_start(text, start))
    lines = "".join(f"{comment}{line_end(text)}{indent}" for comment in comments)
    return f" {lines}" if lines and text[start - 1 : start] not in (" ", "\t", "\n", "\r") else lines
