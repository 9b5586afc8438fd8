"""Similar words, for "did you mean". Both words may be text of a hostile file, so their length is bounded first."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_WORD_LENGTH = 400
"""Characters of a word that is compared: the longest key that a server takes has 317. The time grows with the square."""


def find_similar(word: str, known: Iterable[str], count: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return at most `count` known words whose similarity is at least `cutoff`, the most similar first."""
    if len(word) > MAX_WORD_LENGTH:
        return []
    from difflib import get_close_matches  # 5 ms, and only a mistake needs it

    return get_close_matches(word, [other for other in known if len(other) <= MAX_WORD_LENGTH], count, cutoff)


def rate_similarity(word: str, other: str) -> float:
    """Return how similar two words are: 1 if they are the same, 0 if they have nothing in common or are too long."""
    if max(len(word), len(other)) > MAX_WORD_LENGTH:
        return float(word == other)
    from difflib import SequenceMatcher  # only a mistake needs it

    return SequenceMatcher(None, word, other).ratio()
