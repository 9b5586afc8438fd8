"""New keys in a tree: where those who write manifests would put them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit import CannotEditError
from apflint.edit.lines import above, begins_line, body, entry_end, following, line_end, line_start, next_line
from apflint.edit.places import literal, word
from apflint.fix import Edit
from apflint.load.tree import Mapping, Node, Scalar, behind, walk

if TYPE_CHECKING:
    from apflint.location import Path

_ORDER = (
    *("kind", "type", "namespace", "name", "labels", "annotations"),
    *("matchingPrecedence", "priorityLevelConfiguration", "distinguisherMethod", "rules"),
    *("verbs", "apiGroups", "resources", "clusterScope", "namespaces"),
    *("nominalConcurrencyShares", "assuredConcurrencyShares", "limitResponse", "queuing"),
)
"""Fields in the order of the types of Kubernetes, which its examples keep; those of several mappings together."""
_COMMENT_AFTER_LAST = re.compile(r"[ \t]*(,?)[ \t]*(?<=[ \t,])#[^\r\n]*")


class _Entry(NamedTuple):
    """A new entry: its key, or those of new mappings down to it, and the value."""

    names: tuple[str, ...]
    value: object
    quote: str
    """That of the keys beside it, where JSON may be wanted."""

    def lines(self, column: int, end: str) -> str:
        """In block style, indented, without the end of the last line."""
        shown = word(self.value) if isinstance(self.value, str) and not self.quote else literal(self.value)
        keys = [f"{' ' * (column + 2 * depth)}{self.quote}{name}{self.quote}:" for depth, name in enumerate(self.names)]
        return f"{end.join(keys)} {shown}"

    def flow(self) -> str:
        """In flow style."""
        keys = ": {".join(f"{self.quote}{name}{self.quote}" for name in self.names)
        return f"{keys}: {literal(self.value)}" + "}" * (len(self.names) - 1)


def inserted(text: str, root: Node, path: Path, value: object) -> tuple[Edit, ...]:
    """A new key in its mapping, within new mappings where those above it are missing.

    It goes behind the fields that by custom stand before it, and behind all where there is no custom. CannotEditError
    where the lowest value that is there is no mapping, or the text does not let us.
    """
    depth, key, node = walk(root, path[:-1])
    owner = behind(node)
    entry = _Entry(tuple(map(str, path[depth:])), value, "")
    if isinstance(owner, Scalar) and owner.value is None and owner is node and key is not None:
        return (_filled(text, key, owner, entry),)
    if not isinstance(owner, Mapping):
        raise CannotEditError("there is no such mapping", node.start, node.end)
    pairs = sorted((*owner.pairs, *((key, value) for _, key, value in owner.merges)), key=lambda pair: pair[0].start)
    if not pairs:
        at = text.find("{", owner.start, owner.end) + 1
        if not at:
            raise CannotEditError(f"there is no place for `{path[-1]}`", owner.start, owner.end)
        return (Edit(at, at, entry._replace(quote='"').flow()),)
    entry = entry._replace(quote='"' if text[pairs[0][0].start] == '"' else "")
    place = _place(entry.names[0], pairs)
    return _in_flow(text, pairs, place, entry) if owner.flow else (_in_lines(text, pairs, place, entry),)


def _place(name: str, pairs: list[tuple[Scalar, Node]]) -> int:
    """How many entries stand before a new key."""
    if name not in _ORDER:
        return len(pairs)
    earlier = _ORDER[: _ORDER.index(name)]
    return max((number for number, (key, _) in enumerate(pairs, 1) if key.value in earlier), default=0)


def _filled(text: str, key: Scalar, null: Scalar, entry: _Entry) -> Edit:
    """A mapping of the entry in place of a null."""
    start = body(text, null)
    if start < null.end:
        quoted = entry._replace(quote='"' if text[key.start] == '"' else "")
        return Edit(start, null.end, f"{{{quoted.flow()}}}")
    column = len(begins_line(text, key)) + 2
    return _line(text, next_line(text, key, null), entry, column)


def _in_lines(text: str, pairs: list[tuple[Scalar, Node]], place: int, entry: _Entry) -> Edit:
    """On lines of its own."""
    key, value = pairs[max(place - 1, 0)]
    lead = begins_line(text, key)
    if place:
        return _line(text, following(text, key, value, len(lead)), entry, len(lead))
    if not lead.strip(" "):
        return _line(text, above(text, key.start - len(lead), len(lead)), entry, len(lead))
    # The first key of a list's item shares its line with the dash.
    end = line_end(text)
    return Edit(key.start, key.start, f"{entry.lines(len(lead), end).lstrip(' ')}{end}{' ' * len(lead)}")


def _line(text: str, at: int, entry: _Entry, column: int) -> Edit:
    """The entry where a line begins, or at the end of a text that ends in mid-line."""
    end = line_end(text)
    lines = entry.lines(column, end)
    return Edit(at, at, f"{lines}{end}" if line_start(text, at) == at else f"{end}{lines}")


def _in_flow(text: str, pairs: list[tuple[Scalar, Node]], place: int, entry: _Entry) -> tuple[Edit, ...]:
    """Between commas: before the next entry, or behind the last one."""
    key, value = pairs[min(place, len(pairs) - 1)]
    line = line_start(text, key.start)
    lead = text[line : key.start]
    own_line = not lead.strip()
    if place < len(pairs):
        at = above(text, line, len(lead)) if own_line else key.start
        return (Edit(at, at, f"{lead}{entry.flow()},{line_end(text)}" if own_line else f"{entry.flow()}, "),)
    at = entry_end(text, key, value)
    comment = _COMMENT_AFTER_LAST.match(text, at)
    if comment is None:
        return (Edit(at, at, f",{line_end(text)}{lead}{entry.flow()}" if own_line else f", {entry.flow()}"),)
    comma = comment[1]
    shown = Edit(comment.end(), comment.end(), f"{line_end(text)}{' ' * len(lead)}{entry.flow()}{comma}")
    return (shown,) if comma else (Edit(at, at, ","), shown)
