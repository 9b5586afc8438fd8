"""Removes mapping entries and list items, but not their comments, because a comment may be about several lines."""

from __future__ import annotations

import re
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit.entry_locations import entry_end, find_alias, find_entry, line_end, line_start, next_line_start
from apflint.edit.text_edits import CannotEditError
from apflint.edit_operations import Edit
from apflint.load.comments import list_comments
from apflint.load.tree import Alias, Mapping, Sequence, resolve_alias, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.load.tree import Node
    from apflint.location import Path

_DASH = re.compile(r"[ ]*-[ ]+\Z")


class _MappingOrListPart(NamedTuple):
    """An entry of a mapping (two nodes: key and value) or an item of a list (one node)."""

    start: int
    end: int
    nodes: tuple[Node, ...]
    is_removed: bool


def remove_entries(text: str, root: Node, paths: Iterable[Path]) -> list[Edit]:
    """Return the edits that remove the mapping entries and list items at `paths`.

    In block style, whole lines are removed. In flow style, the text of the entry and a comma are removed. A mapping
    that would become empty is removed as well. Raises CannotEditError if a list would become empty.
    """
    removed: dict[Path, set[str | int]] = {}
    for path in sorted(set(paths), key=len, reverse=True):
        _collect(root, path, removed)
    edits: list[Edit] = []
    for path, steps in removed.items():
        owner = resolve_alias(walk(root, path)[2])
        if isinstance(owner, Sequence):
            parts = [
                _MappingOrListPart(item.start, item.end, (item,), index in steps)
                for index, item in enumerate(owner.items)
            ]
        else:
            assert isinstance(owner, Mapping), "only lists and mappings are collected"
            parts = _split_mapping(text, root, owner, [(*path, step) for step in steps])
        edits += (_remove_in_flow if owner.flow else _remove_lines)(text, parts)
    return edits


def _collect(root: Node, path: Path, removed: dict[Path, set[str | int]]) -> None:
    """Add the entry or item at `path` to `removed`.

    `removed` maps the path of a mapping or list to the keys or indices to remove. If a mapping would become empty, add
    the mapping instead of the entry.
    """
    owner_path, step = path[:-1], path[-1]
    owner = resolve_alias(walk(root, owner_path)[2])
    if isinstance(owner, Mapping):
        find_entry(root, path)
        steps = removed.setdefault(owner_path, set())
        steps.add(step)
        if len(steps) == len(owner.pairs) and not owner.merges and owner_path and isinstance(owner_path[-1], str):
            if isinstance(find_entry(root, owner_path)[1], Alias):
                raise CannotEditError("the mapping is shared through an alias", owner.start)
            del removed[owner_path]
            _collect(root, owner_path, removed)
    elif isinstance(owner, Sequence) and isinstance(step, int) and step < len(owner.items):
        removed.setdefault(owner_path, set()).add(step)
        if len(removed[owner_path]) == len(owner.items):
            raise CannotEditError("the list would be empty", owner.start)
    else:
        raise CannotEditError("there is no such list", owner.start)


def _split_mapping(text: str, root: Node, owner: Mapping, paths: list[Path]) -> list[_MappingOrListPart]:
    removed = {find_entry(root, path)[0].start: path for path in paths}
    own = {key.start for key, _ in owner.pairs}
    for start, path in removed.items():
        if start not in own:
            alias_start, _ = find_alias(root, path) or (owner.start, owner.end)
            raise CannotEditError(f"a YAML merge key takes `{path[-1]}` from another mapping", alias_start)
    pairs = [*owner.pairs, *((key, value) for _, key, value in owner.merges)]
    parts = [
        _MappingOrListPart(key.start, entry_end(text, key, value), (key, value), key.start in removed)
        for key, value in pairs
    ]
    return sorted(parts, key=lambda part: part.start)


def _remove_lines(text: str, parts: list[_MappingOrListPart]) -> Iterator[Edit]:
    """Yield edits that remove whole lines in block style. A list dash stays if other entries of the list item stay."""
    end = line_end(text)
    for index, part in enumerate(parts):
        if not part.is_removed:
            continue
        start, next_line = line_start(text, part.start), next_line_start(text, part.start, part.end)
        prefix = text[start : part.start]
        is_item, after_dash = len(part.nodes) == 1, _DASH.match(prefix)
        if after_dash if is_item else not prefix.strip(" "):
            comments = list_comments(text, part.nodes, part.start, next_line)
            lines = "".join(f"{prefix.partition('-')[0]}{comment}{end}" for comment in comments)
            yield Edit(start, next_line, lines if text[next_line - 1] in "\r\n" else lines.rstrip("\r\n"))
        elif after_dash and index + 1 < len(parts) and not parts[index + 1].is_removed:
            next_start = parts[index + 1].start
            comments = list_comments(text, part.nodes, part.start, next_start)
            yield Edit(part.start, next_start, "".join(f"{comment}{end}{' ' * len(prefix)}" for comment in comments))
        else:
            raise CannotEditError("the entry shares a line with other text", part.start)


def _remove_in_flow(text: str, parts: list[_MappingOrListPart]) -> Iterator[Edit]:
    """Yield edits that remove mapping entries or list items in flow style, with their commas.

    Each edit removes one series of adjacent parts (entries or items). If a part follows, the edit
    extends from the start of the series to the start of this part. Otherwise, the edit extends from the
    end of the previous part to the end of the series. Raises CannotEditError if no part would stay.
    """
    for is_removed, group in groupby(enumerate(parts), lambda entry: entry[1].is_removed):
        (first, _), *_ = run = list(group)
        last, _ = run[-1]
        if not is_removed:
            continue
        if last + 1 < len(parts):
            start, end = parts[first].start, parts[last + 1].start
        elif first:
            start, end = parts[first - 1].end, parts[last].end
        else:
            raise CannotEditError("the mapping or list would be empty", parts[0].start)
        comments = list_comments(text, [node for _, part in run for node in part.nodes], start, end)
        indent = " " * (start - line_start(text, start))
        lines = "".join(f"{comment}{line_end(text)}{indent}" for comment in comments)
        # A space must precede the `#` of a comment.
        needs_space = lines and text[start - 1 : start] not in (" ", "\t", "\n", "\r")
        yield Edit(start, end, f" {lines}" if needs_space else lines)
