"""New keys in a tree, and entries that move into a mapping of their own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from apflint.edit import CannotEditError
from apflint.edit.places import entry, line_end, line_start, literal, mapping, word
from apflint.finding import Edit
from apflint.load.node import Mapping, Node, behind, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Path

_LINE_BEGIN = re.compile(r"(?:\r\n|\r|\n)(?=[ \t]*[^\s])")
_REST_OF_LINE = re.compile(r"[ \t]*(?:[ \t]#[^\r\n]*)?(?=[\r\n]|\Z)")


def inserted(text: str, root: Node, path: Path, value: Any) -> Edit:
    """A new key before the others of its mapping, within new mappings where those above it are missing.

    CannotEditError where the lowest mapping that is there has no keys and is no `{}`.
    """
    depth, _, node = walk(root, path[:-1])
    owner = behind(node)
    name, *inner = map(str, path[depth:])
    if not isinstance(owner, Mapping):
        raise CannotEditError("there is no such mapping", node.start, node.end)
    if not owner.pairs:
        at = text.find("{", owner.start, owner.end) + 1
        if not owner.flow or not at or owner.merges:
            raise CannotEditError(f"there is no place for `{name}`", owner.start, owner.end)
        return Edit(at, at, _in_flow([name, *inner], value, '"'))
    first = owner.pairs[0][0]
    if owner.merges and owner.merges[0][0] == 0:
        first = min(first, owner.merges[0][1], key=lambda key: key.start)
    quote = '"' if text[first.start : first.start + 1] == '"' else ""
    if owner.flow:
        entry_text = _in_flow([name, *inner], value, quote)
        return Edit(first.start, first.start, f"{entry_text},{_gap(text, first.start)}")
    line = line_start(text, first.start)
    before = text[line : first.start]
    if before.strip(" -"):
        raise CannotEditError("its first key does not begin a line", first.start, first.end)
    end = line_end(text)
    lines = "".join(f"{quote}{key}{quote}:{end}{' ' * (len(before) + 2 * i)}" for i, key in _opened([name, *inner]))
    shown = word(value) if isinstance(value, str) and not quote else literal(value)
    return Edit(first.start, first.start, f"{lines}{quote}{(name, *inner)[-1]}{quote}: {shown}{end}{' ' * len(before)}")


def nested(text: str, root: Node, path: Path, names: tuple[str, ...]) -> tuple[Edit, ...]:
    """The entries `names` of the mapping that holds `path`, moved into a new mapping there, in the order of the text.

    CannotEditError where they do not stand together, or not on lines of their own.
    """
    owner = mapping(root, path[:-1])
    moved = sorted((entry(root, (*path[:-1], name)) for name in names), key=lambda pair: pair[0].start)
    if [pair for pair in owner.pairs if pair[0].start >= moved[0][0].start][: len(moved)] != moved:
        raise CannotEditError("other fields stand between them", moved[0][0].start, moved[-1][1].end)
    first, last = moved[0][0], moved[-1][1]
    name = str(path[-1])
    if owner.flow:
        quote = '"' if text[first.start : first.start + 1] == '"' else ""
        return Edit(first.start, first.start, f"{quote}{name}{quote}: {{"), Edit(last.end, last.end, "}")
    line = line_start(text, first.start)
    column = first.start - line
    if text[line : first.start].strip(" -") or _REST_OF_LINE.match(text, last.end) is None:
        raise CannotEditError("it shares a line with something else", first.start, last.end)
    edits = [Edit(first.start, first.start, f"{name}:{line_end(text)}{' ' * (column + 2)}")]
    # All lines go in by as much, those of comments and of texts as well: only how far in they are means something.
    edits += (Edit(at, at, "  ") for at in _later_lines(text, first.start, last.end))
    return tuple(edits)


def _later_lines(text: str, start: int, end: int) -> Iterator[int]:
    """Where the lines begin that follow the first one, empty ones left out."""
    return (found.end() for found in _LINE_BEGIN.finditer(text, start, end))


def _opened(names: list[str]) -> list[tuple[int, str]]:
    """The new mappings, each with the depth of what stands in it."""
    return [(depth + 1, name) for depth, name in enumerate(names[:-1])]


def _in_flow(names: list[str], value: Any, quote: str) -> str:
    inner = ": {".join(f"{quote}{name}{quote}" for name in names)
    return f"{inner}: {literal(value)}" + "}" * (len(names) - 1)


def _gap(text: str, at: int) -> str:
    """What stands before the first key of a flow mapping: a new line with its indentation, or one blank."""
    before = text[line_start(text, at) : at]
    return " " if before.strip() else line_end(text) + before
