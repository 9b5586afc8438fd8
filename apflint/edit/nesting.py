"""Entries of a mapping that move into a mapping of their own beside them."""

from __future__ import annotations

import re
from itertools import takewhile
from typing import TYPE_CHECKING

from apflint.edit import CannotEditError
from apflint.edit.lines import above, begins_line, entry_end, following, line_end, line_start, next_line
from apflint.edit.places import entry, mapping
from apflint.fix import Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.load.tree import Node, Scalar
    from apflint.location import Path

    Entries = list[tuple[Scalar, Node]]

_LINE_BEGIN = re.compile(r"(?:\r\n|\r|\n)(?=[ \t]*[^\s])")
_COMMA = re.compile(r"\s*,\s*\Z")


def nested(text: str, root: Node, path: Path, names: tuple[str, ...]) -> tuple[Edit, ...]:
    """The entries `names` of the mapping that holds `path`, moved into a new mapping there, in the order of the text.

    What stands apart moves to the others, with the comments that are its own. CannotEditError where the text does not
    let us.
    """
    owner = mapping(root, path[:-1])
    moved = sorted((entry(root, (*path[:-1], name)) for name in names), key=lambda pair: pair[0].start)
    there = owner.pairs[owner.pairs.index(moved[0]) :] if moved[0] in owner.pairs else []
    run = [one for one, other in takewhile(lambda both: both[0] == both[1], zip(moved, there, strict=False))]
    if not run:
        raise CannotEditError("it comes from another place through a merge key", moved[0][0].start, moved[-1][1].end)
    name, apart = str(path[-1]), moved[len(run) :]
    return tuple(_in_flow(text, name, run, apart, there) if owner.flow else _in_lines(text, name, run, apart))


def _in_flow(text: str, name: str, run: Entries, apart: Entries, there: Entries) -> Iterator[Edit]:
    first, last = run[0][0], run[-1][1]
    quote = '"' if text[first.start : first.start + 1] == '"' else ""
    yield Edit(first.start, first.start, f"{quote}{name}{quote}: {{")
    more = ""
    for key, value in apart:
        previous = there[there.index((key, value)) - 1]
        start, end = entry_end(text, *previous), entry_end(text, key, value)
        if not _COMMA.match(text, start, key.start):
            raise CannotEditError("a comment stands between them", first.start, end)
        yield Edit(start, end, "")
        more += f", {text[key.start : end]}"
    yield Edit(last.end, last.end, f"{more}}}")


def _in_lines(text: str, name: str, run: Entries, apart: Entries) -> Iterator[Edit]:
    first, last = run[0][0], run[-1][1]
    column = len(begins_line(text, first))
    next_line(text, *run[-1])  # it is to be all of its lines
    yield Edit(first.start, first.start, f"{name}:{line_end(text)}{' ' * (column + 2)}")
    # All lines go in by as much, those of comments and of texts as well: only how far in they are means something.
    yield from (Edit(found.end(), found.end(), "  ") for found in _LINE_BEGIN.finditer(text, first.start, last.end))
    more = ""
    for key, value in apart:
        begins_line(text, key)
        begin = above(text, line_start(text, key.start), column)
        end = following(text, key, value, column)
        more += (
            "  " + _LINE_BEGIN.sub(lambda found: f"{found.group()}  ", text[begin:end].rstrip("\r\n")) + line_end(text)
        )
        yield Edit(begin, end, "")
    if more:
        at = following(text, *run[-1], column)
        yield Edit(at, at, more)
