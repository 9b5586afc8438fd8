"""Finds what is at the cursor while the user types: a field, a priority level, a suppression, or a place for new text."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit.entry_locations import line_start
from apflint.load.document import GROUP, KINDS, LISTS
from apflint.lsp.partial_yaml import CURSOR, document_at, match_text, read_entries, scalars_by_path

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from apflint.location import Path
    from apflint.lsp.partial_yaml import PartialEntry

LEVEL_FIELDS: dict[str, Path] = {
    "FlowSchema": ("spec", "priorityLevelConfiguration", "name"),
    "PriorityLevelConfiguration": ("metadata", "name"),
}
"""For each kind of object that references or defines a priority level: the path of the name of this level."""

_WORD = re.compile(r"[^\s:#,{}\[\]'\"]*")
_REST_OF_LINE = re.compile(r"[^\r\n]*")
_COMMENT = re.compile(r"(?<!\S)#")
_RULE_LIST = re.compile(r"(?<!#)#+[ \t]*apflint:[ \t]*(?:file-)?ignore[ \t]*\[(?P<rules>[^\]\r\n]*)(?P<closed>\]?)")
_COMMENT_PREFIX = re.compile(r"(?<!#)#+[ \t]*(?P<word>apf[a-z]*:?[ \t]*[\w-]*)$")
_RULE = re.compile(r"[^\s,\[\]]+")


class EnclosingObject(NamedTuple):
    """The object that contains a field."""

    prefix: Path
    """Path of the object in the document: empty, or the path of an item in a list of objects."""
    kind: str
    """FlowSchema or PriorityLevelConfiguration, or an empty string if the kind is not typed yet."""
    api_version: str

    @property
    def version(self) -> str:
        """The version in `api_version`, such as `v1`, or "" if the group is not that of the flowcontrol API."""
        group, _, version = self.api_version.rpartition("/")
        return version if group == GROUP else ""


class FieldAtCursor(NamedTuple):
    """A field whose key or scalar contains the cursor. The key or scalar is `text[start:end]`."""

    owner: EnclosingObject
    path: Path
    """Path of the field in the object."""
    start: int
    end: int
    level: str | None
    """The value if it is the name of a priority level. None for other values and for keys."""


class InsertionPoint(NamedTuple):
    """A place at which a new key or value replaces `text[start:end]`."""

    path: Path
    """Path of the mapping to which a key is added, or path of the value."""
    is_key: bool
    start: int
    end: int
    entries: tuple[PartialEntry, ...]
    """The entries of the document, except the incomplete entry at the cursor."""
    lead: str = ""
    """Text to insert before the new text: a space if the colon has no space behind it, or an empty string."""
    quote: str = ""
    """The open quote before the new text, or an empty string."""
    has_colon: bool = False
    """Whether a colon follows the key."""
    is_line_empty: bool = False
    """Whether only spaces precede the place on the line. If so, a new list item needs a dash."""
    in_flow: bool = False
    """Whether the place is inside braces or brackets (flow style)."""


class SuppressionAtCursor(NamedTuple):
    """A suppression comment at the cursor. The cursor is in the word `text[start:end]`."""

    start: int
    end: int
    rules: tuple[str, ...] | None
    """The rules in the brackets, without the rule at the cursor, or None if the cursor is before the brackets."""
    is_closed: bool
    """Whether the closing bracket exists."""


def enclosing_object(entries: Sequence[PartialEntry], path: Path) -> EnclosingObject | None:
    """Return the innermost object that contains `path` if it is or may become an APF object, else None.

    An object without a complete kind may become an APF object if it has no other fields than apiVersion, kind, metadata
    and spec, and if its kind and its apiVersion begin like those of APF objects.
    """
    scalars = scalars_by_path(entries)
    for depth in range(len(path), -1, -1):
        prefix = path[:depth]
        kind, version = scalars.get((*prefix, "kind"), ""), scalars.get((*prefix, "apiVersion"), "")
        if kind in KINDS and (not version or version.rpartition("/")[0] == GROUP or GROUP.startswith(version)):
            return EnclosingObject(prefix, kind, version)
        if kind in LISTS and path[depth : depth + 1] == ("items",) and len(path) >= depth + 2:
            return EnclosingObject(path[: depth + 2], LISTS[kind], version)
    prefix = path[:2] if path[:1] == ("items",) and scalars.get(("kind",)) == "List" else ()
    if (path[:1] == ("items",) and len(prefix) < 2) or not _may_become_apf(scalars, entries, prefix):
        return None
    return EnclosingObject(prefix, "", scalars.get((*prefix, "apiVersion"), ""))


def _may_become_apf(scalars: dict[Path, str], entries: Sequence[PartialEntry], prefix: Path) -> bool:
    """Return whether an object without a complete kind may become a FlowSchema or PriorityLevelConfiguration."""
    kind, version = scalars.get((*prefix, "kind"), ""), scalars.get((*prefix, "apiVersion"), "")
    depth = len(prefix)
    keys = {entry.path[depth] for entry in entries if len(entry.path) > depth and entry.path[:depth] == prefix}
    return (
        keys <= {"apiVersion", "kind", "metadata", "spec", ""}
        and (version.startswith(f"{GROUP}/") or GROUP.startswith(version))
        and any(known.startswith(kind) for known in KINDS)
    )


def field_at(text: str, offset: int, *, json: bool = False) -> FieldAtCursor | None:
    """Return the field of an APF object whose key or scalar is at an offset, or None if there is no such field."""
    entries = read_entries(text, offset, json=json)
    for entry in entries:
        is_key = entry.is_field and entry.key[0] <= offset <= entry.key[1]
        if is_key or (entry.text and entry.value[0] <= offset <= entry.value[1]):
            owner = enclosing_object(entries, entry.path)
            if owner is None:
                break
            path = entry.path[len(owner.prefix) :]
            level = entry.text if not is_key and path == LEVEL_FIELDS.get(owner.kind) else None
            return FieldAtCursor(owner, path, *(entry.key if is_key else entry.value), level)
    return None


def insertion_point(text: str, offset: int, *, json: bool = False) -> InsertionPoint | None:
    """Return the field, item or value of the document to which text belongs that is inserted at `offset`.

    Return None if the offset is in a comment or in a block scalar, or if the document is too long.
    """
    lead = " " if text[offset - 1 : offset] == ":" and not json else ""
    typed = f"{text[:offset]}{lead}{CURSOR}{text[offset:]}"
    entries = read_entries(typed, offset, json=json)
    word = _find_cursor(entries)
    if word is None:
        return None
    is_key = CURSOR in word.name
    start, end = word.key if is_key else word.value
    start, end = min(start, offset), end - len(lead) - len(CURSOR)
    first = text[start:offset][:1]
    quote = first if first in ("'", '"') else ""
    containers = (entry for entry in entries if entry.path == word.path[:-1] and entry.text is None)
    in_flow = any(typed[entry.value[0] : entry.value[0] + 1] in ("{", "[") for entry in containers)
    is_plain_text = is_key and not quote and re.search(r"\s", word.name) is not None
    if is_plain_text or (json and not in_flow) or first in ("|", ">"):  # `|` and `>` start a block scalar
        return None
    if is_key or in_flow or quote:
        end = offset + len(match_text(_WORD, text, offset))
    return InsertionPoint(
        word.path[:-1] if is_key else word.path,
        is_key,
        start + len(quote),
        end,
        tuple(entry for entry in entries if entry is not word and CURSOR not in "".join(map(str, entry.path))),
        lead="" if quote or is_key else lead,
        quote=quote,
        has_colon=is_key and text[end:].removeprefix(quote).lstrip(" \t").startswith(":"),
        is_line_empty=not text[line_start(text, offset) : start].strip(),
        in_flow=in_flow,
    )


def _find_cursor(entries: Iterable[PartialEntry]) -> PartialEntry | None:
    """Return the entry whose key or value contains the cursor, or None if the cursor is in a comment."""
    return next((entry for entry in entries if CURSOR in f"{entry.name}{entry.text}"), None)


def suppression_at(text: str, offset: int) -> SuppressionAtCursor | None:
    """Return the suppression comment (complete or not) at an offset, or None if there is no such comment."""
    line = line_start(text, offset)
    line_end = offset + len(match_text(_REST_OF_LINE, text, offset))
    if document_at(text, offset) is None or not _is_in_comment(text, line, offset):
        return None
    for comment in _RULE_LIST.finditer(text, line, line_end):
        start, end = comment.span("rules")
        if start <= offset <= end:
            rules = list(_RULE.finditer(text, start, end))
            word = next((rule.span() for rule in rules if rule.start() <= offset <= rule.end()), (offset, offset))
            others = tuple(rule.group() for rule in rules if rule.span() != word)
            return SuppressionAtCursor(*word, others, bool(comment["closed"]))
    prefix = _COMMENT_PREFIX.search(text[line:offset])
    return SuppressionAtCursor(line + prefix.start("word"), offset, None, is_closed=False) if prefix else None


def _is_in_comment(text: str, line: int, offset: int) -> bool:
    """Return whether an offset is in a comment. A `#` in a scalar of several lines does not start a comment."""
    if _COMMENT.search(text, line, offset) is None:
        return False
    return _find_cursor(read_entries(f"{text[:offset]}{CURSOR}{text[offset:]}", offset)) is None
