"""Words in messages: quoted values, lists, counts, and suggestions for misspelled words."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_QUOTE_LENGTH = 80
"""Characters of a quoted value; longer ones are cut."""
MAX_WORD_LENGTH = 400
"""Characters of a word to compare; the longest key that a server accepts has 317. The time grows with the square, and
both words may be text of a hostile file."""
MIN_SIMILARITY = 0.65
"""Similarity of a suggestion. `batch` resembles `batch-jobs` (0.67); `read` does not resemble `create` (0.6)."""


def quote(value: object) -> str:
    """Return a value as messages show it: on one line, strings in double quotes, cut if it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= MAX_QUOTE_LENGTH:
        return text
    return f'{text[: MAX_QUOTE_LENGTH - 2]}…"' if isinstance(value, str) else f"{text[: MAX_QUOTE_LENGTH - 1]}…"


def join_words(words: Iterable[str], conjunction: str = "or") -> str:
    """Return `a, b or c`."""
    *others, last = list(words) or [""]
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def join_some(words: Sequence[str], maximum: int) -> str:
    """Return `a, b and 7 more`: at most `maximum` parts, the last of which counts the words that are left out."""
    if len(words) > maximum:
        words = [*words[: maximum - 1], f"{len(words) - maximum + 1} more"]
    return join_words(words, "and")


def write_sentence(clause: str) -> str:
    """Return a clause as a sentence: with a capital and a final period."""
    return f"{clause[:1].upper()}{clause[1:]}."


def pluralize(count: int, noun: str) -> str:
    """Return `1 seat` or `2 seats`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def find_similar(word: str, known: Iterable[str], maximum: int = 1) -> tuple[str, ...]:
    """Return at most `maximum` of the known words that resemble `word`, the most similar first. Ignores case, and `_` for `-`."""
    return _find_similar(word, tuple(known), maximum) if len(word) <= MAX_WORD_LENGTH else ()


@lru_cache(maxsize=4096)
def _find_similar(word: str, known: tuple[str, ...], maximum: int) -> tuple[str, ...]:
    from difflib import get_close_matches  # 5 ms, and only a mistake needs it

    folded = {_fold(other): other for other in reversed(known) if len(other) <= MAX_WORD_LENGTH}
    return tuple(folded[other] for other in get_close_matches(_fold(word), folded, maximum, MIN_SIMILARITY))


def _fold(word: str) -> str:
    return word.lower().replace("_", "-")


def measure_similarity(word: str, other: str) -> float:
    """Return how similar two words are: 1 if they are the same, 0 if they have nothing in common or are too long."""
    if max(len(word), len(other)) > MAX_WORD_LENGTH:
        return float(word == other)
    from difflib import SequenceMatcher  # only a mistake needs it

    return SequenceMatcher(None, word, other).ratio()


def measure_distance(word: str, other: str) -> int:
    """Return how many letters to insert, remove, replace or swap with their neighbor (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


def did_you_mean(word: str, known: Iterable[str], maximum: int = 1) -> str | None:
    """Return `did you mean "x" or "y"?`, or None if no known word resembles `word`."""
    similar = [quote(other) for other in find_similar(word, known, maximum) if other != word]
    return f"did you mean {join_words(similar)}?" if similar else None


def suggest(word: str, known: Iterable[str], maximum: int = 1) -> str:
    """Return ` Did you mean "x"?`, a sentence to append to the message of a user error, or an empty string."""
    question = did_you_mean(word, known, maximum)
    return f" D{question[1:]}" if question else ""
