"""Moves entries of a mapping into a new nested mapping."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from apflint.edit.entry_locations import (
    comments_start,
    entry_end,
    entry_lines_end,
    find_entry,
    find_mapping,
    key_quote,
    line_end,
    line_prefix,
    line_start,
)
from apflint.edit.text_edits import CannotEditError
from apflint.edit_operations import Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.load.tree import Node, Scalar
    from apflint.location import Path

    Entries = list[tuple[Scalar, Node]]

_NEXT_LINE = re.compile(r"(?:\r\n|\r|\n)(?=[ \t]*[^\s])")
_COMMA = re.compile(r"\s*,\s*\Z")


def nest_entries(text: str, root: Node, path: Path, names: tuple[str, ...]) -> tuple[Edit, ...]:
    """Return the edits that move the entries `names` into a new mapping at `path`, in their current order.

    The entries are siblings of `path`. The new mapping replaces the first of these entries. If some of these entries do
    not directly follow the first entry, they move up to it, together with their comments. Raises CannotEditError if an
    entry does not exist or cannot be moved.
    """
    owner = find_mapping(root, path[:-1])
    entries = sorted((find_entry(root, (*path[:-1], name)) for name in names), key=lambda entry: entry[0].start)
    following = owner.pairs[owner.pairs.index(entries[0]) :] if entries[0] in owner.pairs else []
    adjacent = [entry for entry, _ in takewhile(lambda pair: pair[0] == pair[1], zip(entries, following, strict=False))]
    if not adjacent:
        raise CannotEditError("the value comes from another place through a merge key", entries[0][0].start)
    name, apart = str(path[-1]), entries[len(adjacent) :]
    if owner.flow:
        return tuple(_nest_in_flow(text, name, adjacent, apart, following))
    return tuple(_nest_lines(text, name, adjacent, apart))


def _nest_in_flow(text: str, name: str, adjacent: Entries, apart: Entries, following: Entries) -> Iterator[Edit]:
    first, last = adjacent[0][0], adjacent[-1][1]
    quote = key_quote(text, first)
    yield Edit(first.start, first.start, f"{quote}{name}{quote}: {{")
    moved = ""
    for key, value in apart:
        previous = following[following.index((key, value)) - 1]
        start, end = entry_end(text, *previous), entry_end(text, key, value)
        if not _COMMA.match(text, start, key.start):
            raise CannotEditError("a comment stands between the entries to move", first.start)
        yield Edit(start, end, "")
        moved += f", {text[key.start : end]}"
    yield Edit(last.end, last.end, f"{moved}}}")


def _nest_lines(text: str, name: str, adjacent: Entries, apart: Entries) -> Iterator[Edit]:
    first, last = adjacent[0][0], adjacent[-1][1]
    column = len(line_prefix(text, first))
    at = entry_lines_end(text, *adjacent[-1], column)  # fails if text other than a comment follows on the same line
    yield Edit(first.start, first.start, f"{name}:{line_end(text)}{' ' * (column + 2)}")
    # Indent all lines by two more spaces, even lines of comments and block scalars. This keeps the text of block
    # scalars, because YAML removes the common indentation.
    yield from (Edit(line.end(), line.end(), "  ") for line in _NEXT_LINE.finditer(text, first.start, last.end))
    moved = ""
    for key, value in apart:
        line_prefix(text, key)
        start = comments_start(text, line_start(text, key.start), column)
        end = entry_lines_end(text, key, value, column)
        lines = _NEXT_LINE.sub(lambda line: f"{line.group()}  ", text[start:end].rstrip("\r\n"))
        moved += f"  {lines}{line_end(text)}"
        yield Edit(start, end, "")
    if moved:
        yield Edit(at, at, moved)
