"""Compares words: suggests known words for an unknown word, and finds the known word that a misspelled word stands for."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING

from apflint.budgets import MAX_COMPARISON_WORK
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

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


_COMPARISON_COST = 10
"""Cost of a comparison of short words, in units of `MAX_COMPARISON_WORK`."""
_LETTERS_PER_UNIT = 50
"""Number of pairs of letters whose comparison costs a unit."""
_spent: ContextVar[list[int] | None] = ContextVar("_spent", default=None)
"""The cost of all comparisons of the current run, in a list of one item, or None outside of `limit_comparisons`."""


class TooManyComparisonsError(Exception):
    """Raised instead of comparing words if the comparisons of the run would exceed `MAX_COMPARISON_WORK`.

    The cached functions do not return an empty result in this case, because `lru_cache` would store the
    result and return it in later runs, too.
    """


@contextmanager
def limit_comparisons() -> Iterator[None]:
    """Limit the cost of all comparisons of words in the block to `MAX_COMPARISON_WORK`.

    Nested blocks share one limit. If two words are compared again, the comparison costs nothing.
    """
    token = _spent.set(_spent.get() or [0])
    try:
        yield
    finally:
        _spent.reset(token)


def spend_comparisons(word: str, known: Collection[str]) -> None:
    """Add the cost of comparing a word with all known words to the cost of the run.

    Raises TooManyComparisonsError if the cost of the run exceeds `MAX_COMPARISON_WORK`.
    """
    spent = _spent.get()
    if spent is not None:
        spent[0] += _COMPARISON_COST * len(known) + len(word) * sum(map(len, known)) // _LETTERS_PER_UNIT
        if spent[0] > MAX_COMPARISON_WORK:
            raise TooManyComparisonsError


def _is_comparable(word: str) -> bool:
    """Return whether `word` may be compared with known words.

    Return False if the word is too long, or if the comparisons of the run have already exceeded
    `MAX_COMPARISON_WORK`. Callers check this before they prepare a comparison. So a run with thousands
    of unknown words remains fast after its comparisons have exceeded the maximum.
    """
    spent = _spent.get()
    return len(word) <= _MAX_WORD_LENGTH and (spent is None or spent[0] <= MAX_COMPARISON_WORK)


def find_similar(word: str, known: Iterable[str], maximum: int = 1) -> tuple[str, ...]:
    """Return at most `maximum` known words that resemble `word`, most similar first. Ignores case, and treats `_` as `-`."""
    try:
        return _find_similar(word, tuple(known), maximum) if _is_comparable(word) else ()
    except TooManyComparisonsError:
        return ()


@lru_cache(maxsize=4096)
def _find_similar(word: str, known: tuple[str, ...], maximum: int) -> tuple[str, ...]:
    spend_comparisons(word, known)
    from difflib import get_close_matches  # imported here, because the import takes 5 ms

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
    from difflib import SequenceMatcher  # imported here, because a run without unknown words does not need it

    return SequenceMatcher(None, word, other).ratio()


def is_within_distance(word: str, other: str, maximum: int) -> bool:
    """Return whether at most `maximum` edits turn `word` into `other` (optimal string alignment distance).

    An edit inserts, removes or replaces a letter, or swaps two adjacent letters. The computation time is proportional
    to 4^maximum.
    """
    if abs(len(word) - len(other)) > maximum:
        return False
    at = next((index for index, (one, two) in enumerate(zip(word, other, strict=False)) if one != two), None)
    if at is None:
        return True  # one word is a prefix of the other, which has at most `maximum` more letters
    if maximum == 0:
        return False
    word, other, left = word[at:], other[at:], maximum - 1
    return (
        is_within_distance(word[1:], other[1:], left)
        or is_within_distance(word[1:], other, left)
        or is_within_distance(word, other[1:], left)
        or (word[:2] == other[1::-1] and is_within_distance(word[2:], other[2:], left))
    )


def did_you_mean(word: str, known: Iterable[str], maximum: int = 1) -> str | None:
    """Return `did you mean "x" or "y"?` with at most `maximum` known words, or None if no known word resembles `word`.

    If `word` is a word of another tool, and a known word has the same meaning in apflint, only this known word is
    suggested. For example, `lint` suggests `check`, although `limits` is more similar.
    """
    from apflint.terms_of_other_tools import translate  # imported here, because only unknown words need it

    known = tuple(known)
    if translated := translate(word, known):
        return f"did you mean {quote(translated)}?"
    similar = [quote(other) for other in find_similar(word, known, maximum) if other != word]
    return f"did you mean {join_words(similar)}?" if similar else None


def suggest(word: str, known: Iterable[str], maximum: int = 1) -> str:
    """Return the sentence ` Did you mean "x"?` for the end of a message, or "" if no known word resembles `word`."""
    question = did_you_mean(word, known, maximum)
    return f" D{question[1:]}" if question else ""


def find_intended(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that `word` equals or clearly misspells, or None if there is no such word.

    This function is stricter than `find_similar`: it returns either None or the first result of `find_similar`.
    """
    try:
        return _find_intended(word, tuple(known)) if _is_comparable(word) else None
    except TooManyComparisonsError:
        return None


@lru_cache(maxsize=4096)  # cached, because several rules look up the same misspelled field
def _find_intended(word: str, known: tuple[str, ...]) -> str | None:
    spend_comparisons(word, known)
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
        return False  # a prefix changes the meaning: Unlimited is not a misspelling of Limited
    is_anagram = len(word) > 3 and sorted(word) == sorted(known)
    return is_anagram or (
        _limit_similarity(word, known) >= _MIN_MISSPELLING_SIMILARITY
        and measure_similarity(word, known) >= _MIN_MISSPELLING_SIMILARITY
    )


def _limit_similarity(word: str, other: str) -> float:
    """Return a number that is not less than the similarity of two words.

    The computation takes a tenth of the time of `measure_similarity`, so words can be excluded quickly.
    """
    common = min(sum(map(other.__contains__, word)), sum(map(word.__contains__, other)))
    return 2 * common / (len(word) + len(other))


def _is_part(word: str, known: str) -> bool:
    return len(word) > 3 and (known.endswith(word) or known.startswith(word))
