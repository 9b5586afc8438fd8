"""Formats parts of messages: quoted values, lists of words, counts and durations."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MAX_QUOTE_LENGTH = 80
"""Maximum length in characters of a quoted value. Longer values are cut."""


def quote(value: object) -> str:
    """Return a value as JSON on one line, for a message.

    If the JSON is longer than `_MAX_QUOTE_LENGTH` characters, it is cut and ends with `…`.
    """
    import json

    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _MAX_QUOTE_LENGTH:
        return text
    return f'{text[: _MAX_QUOTE_LENGTH - 2]}…"' if isinstance(value, str) else f"{text[: _MAX_QUOTE_LENGTH - 1]}…"


def join_words(words: Iterable[str], conjunction: str = "or") -> str:
    """Return `a, b or c` for the words `a`, `b` and `c`."""
    *others, last = list(words) or [""]
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def join_some(words: Sequence[str], maximum: int) -> str:
    """Return a text such as `a, b and 7 more`, with at most `maximum` parts.

    If words are omitted, the last part is the number of omitted words.
    """
    if len(words) > maximum:
        words = [*words[: maximum - 1], f"{len(words) - maximum + 1} more"]
    return join_words(words, "and")


def quote_some(values: Sequence[object], maximum: int) -> str:
    """Return the values as `join_some` does, each quoted with `quote`. Omitted values are not quoted, to save time."""
    return join_some([*map(quote, values[:maximum]), *map(str, values[maximum:])], maximum)


def write_sentence(clause: str) -> str:
    """Return a clause as a sentence, with an initial capital and a final period."""
    return f"{clause[:1].upper()}{clause[1:]}."


def pluralize(count: int, noun: str) -> str:
    """Return a number and a noun, such as `1 seat` or `2 seats`. The plural is the noun with an `s`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def count_noun(number: int, singular: str, plural: str = "") -> str:
    """Return a number and a noun, such as `1 seat` or `1,200 seats`.

    The default of `plural` is `singular` with an `s`.
    """
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def format_duration(microseconds: float) -> str:
    """Return a duration in a form for messages, such as `43 ms`, `2.7 s` or `3h 20m`."""
    seconds = microseconds / 1e6
    for limit, factor, unit in ((0.001, 1e6, "µs"), (1, 1e3, "ms"), (60, 1, "s")):
        if seconds < limit:
            return f"{seconds * factor:.{0 if seconds * factor >= 10 or unit == 'µs' else 1}f} {unit}"
    minutes, hours, days = seconds / 60, seconds / 3600, seconds / 86400
    if hours < 1:
        rest = int(seconds % 60)
        return f"{int(minutes)}m {rest}s" if rest else f"{int(minutes)}m"
    return f"{int(hours)}h {int(minutes % 60)}m" if days < 2 else f"{int(days)}d {int(hours % 24)}h"
