"""Compares words: suggests known words for an unknown word, and finds the known word that a misspelled word stands for."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

_MAX_WORD_LENGTH = 400
"""Maximum length in characters of a word that is compared. The longest key that a server accepts has 317 characters.

The time for a comparison grows with the square of the length, and both words may come from a hostile file.
"""
_MIN_SIMILARITY = 0.65
"""Minimum similarity of a suggestion. `batch` resembles `batch-jobs` (0.67), but `read` does not resemble `create` (0.6)."""
_MIN_MISSPELLING_SIMILARITY = 0.82
"""Minimum similarity of a misspelled word to the intended word. `deleteall` (0.8) is not a misspelling of `delete`."""
_MIN_LEAD = 0.08
"""Minimum difference in similarity between the intended word and the second most similar word.

`nonResourceRule`, for example, has a similarity of 0.97 to `nonResourceRules`, and of 0.86 to `resourceRules`.
"""


def find_similar(word: str, known: Iterable[str], maximum: int = 1) -> tuple[str, ...]:
    """Return at most `maximum` known words that resemble `word`, most similar first. Ignores case, and treats `_` as `-`."""
    return _find_similar(word, tuple(known), maximum) if len(word) <= _MAX_WORD_LENGTH else ()


@lru_cache(maxsize=4096)
def _find_similar(word: str, known: tuple[str, ...], maximum: int) -> tuple[str, ...]:
    from difflib import get_close_matches  # the import takes 5 ms, and only mistakes need it

    folded = {_fold(other): other for other in reversed(known) if len(other) <= _MAX_WORD_LENGTH}
    return tuple(folded[other] for other in get_close_matches(_fold(word), folded, maximum, _MIN_SIMILARITY))


def _fold(word: str) -> str:
    return word.lower().replace("_", "-")


def measure_similarity(word: str, other: str) -> float:
    """Return the similarity of two words: from 0 (nothing in common) to 1 (equal).

    If a word is longer than `_MAX_WORD_LENGTH`, the words are only tested for equality.
    """
    if max(len(word), len(other)) > _MAX_WORD_LENGTH:
        return float(word == other)
    from difflib import SequenceMatcher  # only mistakes need it

    return SequenceMatcher(None, word, other).ratio()


@lru_cache(maxsize=4096)  # clusters that share FlowSchemas compare the same names
def measure_distance(word: str, other: str) -> int:
    """Return the minimum number of edits that turn `word` into `other` (optimal string alignment distance).

    An edit inserts, removes or replaces a letter, or swaps two adjacent letters.
    """
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
    """Return `did you mean "x" or "y"?` with at most `maximum` known words, or None if no known word resembles `word`."""
    similar = [quote(other) for other in find_similar(word, known, maximum) if other != word]
    return f"did you mean {join_words(similar)}?" if similar else None


def suggest(word: str, known: Iterable[str], maximum: int = 1) -> str:
    """Return the sentence ` Did you mean "x"?` for the end of a message, or "" if no known word resembles `word`."""
    question = did_you_mean(word, known, maximum)
    return f" D{question[1:]}" if question else ""


def find_intended(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that `word` equals or clearly misspells, or None if no known word is clearly intended.

    `find_similar` accepts more words than this function, and always returns the intended word first.
    """
    return _find_intended(word, tuple(known)) if len(word) <= _MAX_WORD_LENGTH else None


@lru_cache(maxsize=4096)  # rules look up a misspelled field several times
def _find_intended(word: str, known: tuple[str, ...]) -> str | None:
    lower = word.strip().lower()
    for is_alike in (str.__eq__, _is_misspelling, _is_part):
        if alike := [other for other in known if is_alike(lower, other.lower())]:
            best, *others = sorted(alike, key=lambda other: -measure_similarity(lower, other.lower()))
            lead = measure_similarity(lower, best.lower()) - _MIN_LEAD
            is_clear = all(measure_similarity(lower, other.lower()) <= lead for other in others[:1])
            return best if is_clear and find_similar(word, known) == (best,) else None
    return None


def _is_misspelling(word: str, known: str) -> bool:
    if word.endswith(known):
        return False  # Unlimited is not a misspelling of Limited
    is_anagram = len(word) > 3 and sorted(word) == sorted(known)
    return is_anagram or measure_similarity(word, known) >= _MIN_MISSPELLING_SIMILARITY


def _is_part(word: str, known: str) -> bool:
    return len(word) > 3 and (known.endswith(word) or known.startswith(word))
