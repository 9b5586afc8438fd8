"""What is at the cursor in a document that is being typed: a field, a value, a priority level, a comment, or a gap."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit.lines import line_start
from apflint.load.document import GROUP, KINDS
from apflint.lsp.partial_yaml import DASHES, KEY, FlowScan, document_at, read_entries, scalars_by_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.location import Path
    from apflint.lsp.partial_yaml import DocumentExtent, Entry

LEVEL_REFERENCE = ("spec", "priorityLevelConfiguration", "name")
"""Path of the name of the priority level that a FlowSchema references."""
LEVEL_NAME = ("metadata", "name")

_PLACEHOLDER = "\ufdd0"  # a noncharacter, which no manifest contains
_WORD = re.compile(r"[^\s:#,{}\[\]'\"]*")
_COMMENT = re.compile(r"(?:^|(?<=\s))#")
_RULE_LIST = re.compile(r"#+[ \t]*apflint:[ \t]*(?:file-)?ignore[ \t]*\[(?P<rules>[^\]\r\n]*)(?P<closed>\]?)")
_COMMENT_PREFIX = re.compile(r"#+[ \t]*(?P<word>apf[a-z]*:?[ \t]*[\w-]*)$")
_RULE = re.compile(r"[^\s,\[\]]+")
_LISTS = {f"{kind}List": kind for kind in KINDS}


class EnclosingObject(NamedTuple):
    """The object that a field belongs to: its path in the document, and its kind and API version as far as written."""

    prefix: Path
    kind: str
    """FlowSchema or PriorityLevelConfiguration, or an empty string if it is not written yet."""
    api_version: str

    @property
    def version(self) -> str:
        """The version without its group, or an empty string if it is not written yet."""
        group, _, version = self.api_version.rpartition("/")
        return version if group == GROUP else ""


class InsertionPoint(NamedTuple):
    """A place for a new key or value, which replaces `text[start:end]`."""

    path: Path
    """Path of the mapping that gets a key, or of the value."""
    is_key: bool
    start: int
    end: int
    entries: tuple[Entry, ...]
    """The values of the document without the one that is being typed."""
    lead: str = ""
    """Text to insert before the new text: a space if there is none behind the colon."""
    quote: str = ""
    """The quote that is open, or an empty string."""
    has_colon: bool = False
    """Whether a colon follows."""
    is_line_empty: bool = False
    """Whether the line contains nothing else: an item of a list needs a dash there."""
    in_flow: bool = False
    """Whether it is in braces or brackets."""


class RuleReference(NamedTuple):
    """The id or name of a rule in a suppression comment, at `text[start:end]`."""

    selector: str
    start: int
    end: int


class CommentInsertionPoint(NamedTuple):
    """A place in a suppression comment; the next word replaces `text[start:end]`."""

    start: int
    end: int
    rules: tuple[str, ...] | None
    """The other rules of the list, or None before the list."""
    is_closed: bool
    """Whether the list has its closing bracket."""


def enclosing_object(entries: Sequence[Entry], path: Path) -> EnclosingObject | None:
    """Return the object at or above `path`, or None if it is of another API group or kind.

    An object without a kind counts as long as it has no field that FlowSchema and PriorityLevelConfiguration lack.
    """
    scalars = scalars_by_path(entries)
    for depth in range(len(path), -1, -1):
        prefix = path[:depth]
        kind, version = scalars.get((*prefix, "kind"), ""), scalars.get((*prefix, "apiVersion"), "")
        if kind in KINDS and (not version or version.rpartition("/")[0] == GROUP or GROUP.startswith(version)):
            return EnclosingObject(prefix, kind, version)
        if kind in _LISTS and path[depth : depth + 1] == ("items",) and len(path) >= depth + 2:
            return EnclosingObject(path[: depth + 2], _LISTS[kind], version)
    prefix = path[:2] if path[:1] == ("items",) and scalars.get(("kind",)) == "List" else ()
    if (path[:1] == ("items",) and len(prefix) < 2) or not _may_become_apf(scalars, entries, prefix):
        return None
    return EnclosingObject(prefix, "", scalars.get((*prefix, "apiVersion"), ""))


def _may_become_apf(scalars: dict[Path, str], entries: Sequence[Entry], prefix: Path) -> bool:
    """Return whether an object without a kind may become a FlowSchema or PriorityLevelConfiguration."""
    kind, version = scalars.get((*prefix, "kind"), ""), scalars.get((*prefix, "apiVersion"), "")
    depth = len(prefix)
    keys = {entry.path[depth] for entry in entries if len(entry.path) > depth and entry.path[:depth] == prefix}
    return (
        keys <= {"apiVersion", "kind", "metadata", "spec", ""}
        and (version.startswith(f"{GROUP}/") or GROUP.startswith(version))
        and any(known.startswith(kind) for known in KINDS)
    )


def entry_at(entries: Sequence[Entry], offset: int) -> tuple[Entry, bool] | None:
    """Return the entry at an offset, and whether the offset is in its key (True) or its scalar (False)."""
    for entry in entries:
        if entry.key[0] <= offset <= entry.key[1] and entry.path and isinstance(entry.path[-1], str):
            return entry, True
        if entry.text and entry.value[0] <= offset <= entry.value[1]:
            return entry, False
    return None


def level_at(text: str, offset: int, *, json: bool = False) -> str | None:
    """Return the name of the priority level that is referenced or defined at an offset, or None."""
    document = document_at(text, offset, json=json)
    if document is None:
        return None
    entries = read_entries(text, document)
    at = entry_at(entries, offset)
    owner = enclosing_object(entries, at[0].path) if at is not None else None
    if at is None or owner is None or at[1] or not at[0].text:
        return None
    path = at[0].path[len(owner.prefix) :]
    is_level = (owner.kind, path) in ((KINDS[0], LEVEL_REFERENCE), (KINDS[1], LEVEL_NAME))
    return at[0].text if is_level else None


def _is_in_comment(text: str, document: DocumentExtent, offset: int) -> bool:
    """Return whether an offset is in a comment. In a scalar of several lines, a `#` does not start a comment."""
    line = line_start(text, offset)
    for entry in read_entries(text, document):
        if entry.text is not None and entry.value[0] <= offset <= entry.value[1] and entry.value[1] > line:
            return False
    return _COMMENT.search(text[line:offset]) is not None


def insertion_point(text: str, offset: int, *, json: bool = False) -> InsertionPoint | None:
    """Return what can be inserted at an offset, or None in comments, in block scalars and in documents that are too long."""
    document = document_at(text, offset, json=json)
    if document is None:
        return None
    entries = read_entries(text, document)
    for entry in entries:
        if entry.text is None and text[entry.value[0] : entry.value[0] + 1] in ("{", "["):
            if entry.value[0] < offset <= entry.value[1]:
                return _in_flow(text, offset, entry, entries)
        elif text[entry.value[0] : entry.value[0] + 1] in ("|", ">") and entry.value[0] < offset <= entry.value[1]:
            return None  # a block scalar
    if json or _is_in_comment(text, document, offset):
        return None
    return _in_block(text, offset, document, entries)


def _in_flow(text: str, offset: int, collection: Entry, entries: tuple[Entry, ...]) -> InsertionPoint | None:
    unclosed = FlowScan(text, collection.value[0], offset, collection.path).unclosed
    if unclosed is None:
        return None
    end = offset + len(_word(text, offset))
    rest = text[end:].removeprefix(unclosed.quote).lstrip(" \t") if end < len(text) else ""
    others = tuple(
        entry
        for entry in entries
        if (not entry.key[0] <= unclosed.start <= entry.key[1] if unclosed.is_key else entry.path != unclosed.path)
    )
    return InsertionPoint(
        unclosed.path,
        unclosed.is_key,
        unclosed.start + len(unclosed.quote),
        end,
        others,
        quote=unclosed.quote,
        has_colon=rest[:1] == ":",
        in_flow=True,
    )


def _in_block(text: str, offset: int, document: DocumentExtent, entries: tuple[Entry, ...]) -> InsertionPoint | None:
    line = max(line_start(text, offset), document.start)
    line_end = _line_end(text, offset)
    dashes = DASHES.match(text, line, line_end)
    body = dashes.end() if dashes is not None else line
    if text[line:offset] == "---"[: offset - line] and offset > line:
        return None
    key = KEY.match(text, body, line_end)
    if key is not None and offset >= key.end():
        return _value_point(text, offset, key.end(), entries)
    if offset < body:
        if text[line:line_end].strip():
            return None
        body = offset
    if key is None and re.search(r"\s", text[body:offset]):
        return None
    end = offset + len(_word(text, offset))
    if key is not None:
        at = entry_at(entries, body)
        parent = at[0].path[:-1] if at is not None and at[1] else None
        others = tuple(entry for entry in entries if entry.key[0] != body)
    else:
        completed = f"{text[:body]}{_PLACEHOLDER}:{text[line_end:]}"
        longer = document._replace(end=document.end + len(completed) - len(text))
        again = read_entries(completed, longer)
        parent = next((entry.path[:-1] for entry in again if entry.path[-1:] == (_PLACEHOLDER,)), None)
        others = tuple(entry for entry in again if entry.path[-1:] != (_PLACEHOLDER,))
    if parent is None:
        return None
    quote = text[body : body + 1] if offset > body and text[body] in "'\"" else ""
    return InsertionPoint(
        parent,
        True,
        body + len(quote),
        end,
        others,
        quote=quote,
        has_colon=key is not None,
        is_line_empty=not text[line:body].strip(),
    )


def _value_point(text: str, offset: int, after: int, entries: tuple[Entry, ...]) -> InsertionPoint | None:
    """Return the value of a key on the same line; `after` is the offset behind the colon."""
    for entry in entries:
        is_on_line = entry.key[1] <= after <= entry.value[0] and not text[entry.key[1] : after].strip(" \t:")
        if is_on_line and entry.text is not None:
            break
    else:
        return None
    lead = " " if text[after:offset] == "" and text[after - 1] == ":" else ""
    start, end = entry.value
    if not start <= offset <= end:
        start = end = offset
    quote = text[start : start + 1]
    if quote in ("'", '"') and offset > start:
        end = offset + len(_word(text, offset))
        return InsertionPoint(entry.path, False, start + 1, end, entries, lead=lead, quote=quote)
    return InsertionPoint(entry.path, False, start, end, entries, lead=lead)


def _word(text: str, offset: int) -> str:
    match = _WORD.match(text, offset)
    return match.group() if match is not None else ""


def rule_reference_at(text: str, offset: int) -> RuleReference | None:
    """Return the rule id or name at an offset in a suppression comment, or None."""
    for comment in _RULE_LIST.finditer(text, line_start(text, offset), _line_end(text, offset)):
        for rule in _RULE.finditer(text, *comment.span("rules")):
            if rule.start() <= offset <= rule.end() and _is_comment_at(text, offset):
                return RuleReference(rule.group(), rule.start(), rule.end())
    return None


def comment_insertion_point(text: str, offset: int) -> CommentInsertionPoint | None:
    """Return what can be inserted at an offset in a suppression comment, or None elsewhere."""
    line = line_start(text, offset)
    for comment in _RULE_LIST.finditer(text, line, _line_end(text, offset)):
        start, end = comment.span("rules")
        if start <= offset <= end and _is_comment_at(text, offset):
            rules = list(_RULE.finditer(text, start, end))
            here = next((rule.span() for rule in rules if rule.start() <= offset <= rule.end()), (offset, offset))
            others = tuple(rule.group() for rule in rules if rule.span() != here)
            return CommentInsertionPoint(*here, others, bool(comment["closed"]))
    prefix = _COMMENT_PREFIX.search(text[line:offset])
    if prefix is not None and _is_comment_at(text, offset):
        return CommentInsertionPoint(line + prefix.start("word"), offset, None, is_closed=False)
    return None


def _is_comment_at(text: str, offset: int) -> bool:
    document = document_at(text, offset)
    return document is not None and _is_in_comment(text, document, offset)


def _line_end(text: str, offset: int) -> int:
    return min((at for end in "\r\n" if (at := text.find(end, offset)) >= 0), default=len(text))
