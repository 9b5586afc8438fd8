"""What an offset in a half-typed document is about: which field, and what of it could be written there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit.lines import line_start
from apflint.load.document import GROUP, KINDS
from apflint.lsp.flow import Scan
from apflint.lsp.outline import DASHES, KEY, outline, piece, texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.finding import Path
    from apflint.lsp.flow import Entry
    from apflint.lsp.outline import Piece

_MARK = "\ufdd0"  # no character, so that no text of a manifest has it
_WORD = re.compile(r"[^\s:#,{}\[\]'\"]*")
_COMMENT = re.compile(r"(?:^|(?<=\s))#")
_LISTS = {f"{kind}List": kind for kind in KINDS}


class Manifest(NamedTuple):
    """The object that a field belongs to: where it is in its document, and its kind and API version as far as written."""

    prefix: Path
    kind: str
    """FlowSchema or PriorityLevelConfiguration; "" where nobody has said it."""
    api_version: str

    @property
    def version(self) -> str:
        """`v1`, or "" where nobody has said it."""
        group, _, version = self.api_version.rpartition("/")
        return version if group == GROUP else ""


class Spot(NamedTuple):
    """A place for something new. `text[start:end]` is what it replaces."""

    path: Path
    """Of the mapping that gets a key, or of the value."""
    is_key: bool
    start: int
    end: int
    lead: str
    """What has to stand before the new text: a blank where there is none behind the colon."""
    quote: str
    """The quote that is open already, or nothing."""
    has_colon: bool
    fresh: bool
    """On a line with nothing else, not even a dash: a list needs one there."""
    flow: bool
    """Inside braces or brackets."""
    entries: tuple[Entry, ...]
    """The values of the document without what is being typed."""


def manifest(entries: Sequence[Entry], path: Path) -> Manifest | None:
    """The object at or above `path` that is ours, or may become it; None for other people's documents."""
    written = texts(entries)
    for depth in range(len(path), -1, -1):
        prefix = path[:depth]
        kind, version = written.get((*prefix, "kind"), ""), written.get((*prefix, "apiVersion"), "")
        if kind in KINDS and (not version or version.rpartition("/")[0] == GROUP or GROUP.startswith(version)):
            return Manifest(prefix, kind, version)
        if kind in _LISTS and path[depth : depth + 1] == ("items",) and len(path) >= depth + 2:
            return Manifest(path[: depth + 2], _LISTS[kind], version)
    prefix = path[:2] if path[:1] == ("items",) and written.get(("kind",)) == "List" else ()
    if (path[:1] == ("items",) and len(prefix) < 2) or not _may_become_ours(written, entries, prefix):
        return None
    return Manifest(prefix, "", written.get((*prefix, "apiVersion"), ""))


def _may_become_ours(written: dict[Path, str], entries: Sequence[Entry], prefix: Path) -> bool:
    """Whether an object that does not say its kind yet has nothing in it that says otherwise."""
    kind, version = written.get((*prefix, "kind"), ""), written.get((*prefix, "apiVersion"), "")
    depth = len(prefix)
    keys = {entry.path[depth] for entry in entries if len(entry.path) > depth and entry.path[:depth] == prefix}
    return (
        keys <= {"apiVersion", "kind", "metadata", "spec", ""}
        and (version.startswith(f"{GROUP}/") or GROUP.startswith(version))
        and any(known.startswith(kind) for known in KINDS)
    )


def entry_at(entries: Sequence[Entry], offset: int) -> tuple[Entry, bool] | None:
    """The entry whose key (True) or scalar (False) is at an offset."""
    for entry in entries:
        if entry.key[0] <= offset <= entry.key[1] and entry.path and isinstance(entry.path[-1], str):
            return entry, True
        if entry.text and entry.value[0] <= offset <= entry.value[1]:
            return entry, False
    return None


def comment_start(text: str, part: Piece, offset: int) -> int | None:
    """Where the comment starts that an offset is in, or None. A text of several lines may look as if it had one."""
    line = line_start(text, offset)
    for entry in outline(text, part):
        if entry.text is not None and entry.value[0] <= offset <= entry.value[1] and entry.value[1] > line:
            return None
    found = _COMMENT.search(text[line:offset])
    return line + found.start() if found is not None else None


def spot(text: str, offset: int, *, json: bool = False) -> Spot | None:
    """What can be written at an offset; None inside of comments, of texts of several lines, and of huge documents."""
    part = piece(text, offset, json=json)
    if part is None:
        return None
    entries = outline(text, part)
    for entry in entries:
        if entry.text is None and text[entry.value[0] : entry.value[0] + 1] in ("{", "["):
            if entry.value[0] < offset <= entry.value[1]:
                return _in_flow(text, offset, entry, entries)
        elif text[entry.value[0] : entry.value[0] + 1] in ("|", ">") and entry.value[0] < offset <= entry.value[1]:
            return None  # a text of several lines
    if json or comment_start(text, part, offset) is not None:
        return None
    return _in_block(text, offset, part, entries)


def _in_flow(text: str, offset: int, whole: Entry, entries: tuple[Entry, ...]) -> Spot | None:
    inside = Scan(text, whole.value[0], offset, whole.path).inside
    if inside is None:
        return None
    end = offset + len(_word(text, offset))
    rest = text[end:].removeprefix(inside.quote).lstrip(" \t") if end < len(text) else ""
    kept = tuple(
        entry
        for entry in entries
        if (not entry.key[0] <= inside.start <= entry.key[1] if inside.is_key else entry.path != inside.path)
    )
    return Spot(
        inside.path, inside.is_key, inside.start + len(inside.quote), end, "", inside.quote, rest[:1] == ":", False, True, kept
    )  # fmt: skip


def _in_block(text: str, offset: int, part: Piece, entries: tuple[Entry, ...]) -> Spot | None:
    line = max(line_start(text, offset), part.start)
    line_end = min((at for mark in "\r\n" if (at := text.find(mark, offset)) >= 0), default=len(text))
    dashes = DASHES.match(text, line, line_end)
    body = dashes.end() if dashes is not None else line
    if text[line:offset] == "---"[: offset - line] and offset > line:
        return None
    key = KEY.match(text, body, line_end)
    if key is not None and offset >= key.end():
        return _value(text, offset, key.end(), entries)
    if offset < body:
        if text[line:line_end].strip():
            return None
        body = offset
    if key is None and re.search(r"\s", text[body:offset]):
        return None
    end = offset + len(_word(text, offset))
    if key is not None:
        found = entry_at(entries, body)
        parent = found[0].path[:-1] if found is not None and found[1] else None
        rest = tuple(entry for entry in entries if entry.key[0] != body)
    else:
        marked = f"{text[:body]}{_MARK}:{text[line_end:]}"
        again = outline(marked, part._replace(end=part.end + len(marked) - len(text)))
        parent = next((entry.path[:-1] for entry in again if entry.path[-1:] == (_MARK,)), None)
        rest = tuple(entry for entry in again if entry.path[-1:] != (_MARK,))
    if parent is None:
        return None
    fresh = not text[line:body].strip()
    quote = text[body : body + 1] if offset > body and text[body] in "'\"" else ""
    return Spot(parent, True, body + len(quote), end, "", quote, key is not None, fresh, False, rest)


def _value(text: str, offset: int, after: int, entries: tuple[Entry, ...]) -> Spot | None:
    """The value behind a key on the same line; `after` is behind its colon."""
    entry = next((entry for entry in entries if entry.key[1] <= after and entry.value[0] >= after and entry.text is not None
                  and not text[entry.key[1] : after].strip(" \t:")), None)  # fmt: skip
    if entry is None:
        return None
    lead = " " if text[after:offset] == "" and text[after - 1] == ":" else ""
    start, end = entry.value
    if not start <= offset <= end:
        start = end = offset
    quote = text[start : start + 1]
    if quote in ("'", '"') and offset > start:
        return Spot(
            entry.path, False, start + 1, offset + len(_word(text, offset)), lead, quote, False, False, False, entries
        )
    return Spot(entry.path, False, start, end, lead, "", False, False, False, entries)


def _word(text: str, offset: int) -> str:
    found = _WORD.match(text, offset)
    return found.group() if found is not None else ""
