"""The comments by which findings are set aside, as they look while they are typed."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.edit.lines import line_start
from apflint.lsp.outline import piece
from apflint.lsp.spot import comment_start

if TYPE_CHECKING:
    from collections.abc import Collection

_LIST = re.compile(r"#+[ \t]*apflint:[ \t]*(?:file-)?ignore[ \t]*\[(?P<ids>[^\]\r\n]*)(?P<closed>\]?)")
_WORD = re.compile(r"#+[ \t]*(?P<word>apf[a-z]*:?[ \t]*[\w-]*)$")
_ID = re.compile(r"[^\s,\[\]]+")
FORMS = ("apflint: ignore[", "apflint: file-ignore[")


class Named(NamedTuple):
    """A rule that a comment names, as it is written in `text[start:end]`."""

    written: str
    start: int
    end: int


class Typing(NamedTuple):
    """A comment that is being typed: `text[start:end]` is what the next word replaces."""

    start: int
    end: int
    ids: tuple[str, ...] | None
    """The ids that the list has besides; None where it has not begun."""
    closed: bool


def named(text: str, offset: int) -> Named | None:
    """The rule id or name at an offset inside of a comment that sets findings aside."""
    line, line_end = _line(text, offset)
    for comment in _LIST.finditer(text, line, line_end):
        for one in _ID.finditer(text, *comment.span("ids")):
            if one.start() <= offset <= one.end() and _is_comment(text, offset):
                return Named(one.group(), one.start(), one.end())
    return None


def typing(text: str, offset: int) -> Typing | None:
    """The comment of ours that an offset is in, and what can be typed there."""
    line, line_end = _line(text, offset)
    for comment in _LIST.finditer(text, line, line_end):
        start, end = comment.span("ids")
        if start <= offset <= end and _is_comment(text, offset):
            here = next(
                (one.span() for one in _ID.finditer(text, start, end) if one.start() <= offset <= one.end()), None
            )
            others = tuple(one.group() for one in _ID.finditer(text, start, end) if one.span() != here)
            return Typing(*(here or (offset, offset)), others, bool(comment["closed"]))
    begun = _WORD.search(text[line:offset])
    if begun is not None and _is_comment(text, offset):
        return Typing(line + begun.start("word"), offset, None, closed=False)
    return None


def ordered(ids: Collection[str], first: Collection[str]) -> list[str]:
    """Ids in order, those in `first` before the others."""
    return sorted(ids, key=lambda rule: (rule not in first, rule))


def _line(text: str, offset: int) -> tuple[int, int]:
    return line_start(text, offset), min(
        (at for mark in "\r\n" if (at := text.find(mark, offset)) >= 0), default=len(text)
    )


def _is_comment(text: str, offset: int) -> bool:
    part = piece(text, offset)
    return part is not None and comment_start(text, part, offset) is not None
