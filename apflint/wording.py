"""Formats parts of messages: quoted values, lists of words, and counts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_QUOTE_LENGTH = 80
"""Maximum length in characters of a quoted value. Longer values are cut."""


def quote(value: object) -> str:
    """Return a value as JSON on one line, for a message. Text over MAX_QUOTE_LENGTH is cut and ends with `…`."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= MAX_QUOTE_LENGTH:
        return text
    return f'{text[: MAX_QUOTE_LENGTH - 2]}…"' if isinstance(value, str) else f"{text[: MAX_QUOTE_LENGTH - 1]}…"


def join_words(words: Iterable[str], conjunction: str = "or") -> str:
    """Return `a, b or c` for the words `a`, `b` and `c`."""
    *others, last = list(words) or [""]
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def join_some(words: Sequence[str], maximum: int) -> str:
    """Return a text such as `a, b and 7 more`, with at most `maximum` parts. If words are omitted, the last part is their number."""
    if len(words) > maximum:
        words = [*words[: maximum - 1], f"{len(words) - maximum + 1} more"]
    return join_words(words, "and")


def write_sentence(clause: str) -> str:
    """Return a clause as a sentence, with an initial capital and a final period."""
    return f"{clause[:1].upper()}{clause[1:]}."


def pluralize(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 seat` or `2 seats`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
