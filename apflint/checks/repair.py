"""Fixes as several checks make them: a word that is misspelt, a field that is missing, a list with entries that are wrong."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from apflint.fix import Fix, Insert, Operation, Remove, Set
from apflint.wording import MAX_WORD_LENGTH, measure_similarity, nearest, quote, several

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from apflint.load.document import Document
    from apflint.location import Path

_CLOSE = 0.82
"""How alike two words must be for one to be the other misspelt: `deleteall` (0.8) is not `delete`."""
_LEAD = 0.08
"""How much more alike than any other: `nonResourceRule` is 0.97 of `nonResourceRules` and 0.86 of `resourceRules`."""
_SHOWN = 4
"""How many changes a title tells one by one."""


def meant(word: str, known: Iterable[str]) -> str | None:
    """The one known word that `word` can be, misspelt; None where there is none, or more than one.

    More cautious than the question "did you mean", which it never contradicts.
    """
    return _meant(word, tuple(known)) if len(word) <= MAX_WORD_LENGTH else None


@lru_cache(
    maxsize=4096
)  # a misspelt field is asked about by itself, and when its mapping is looked through for others like it
def _meant(word: str, words: tuple[str, ...]) -> str | None:
    lower = word.strip().lower()
    for alike in (str.__eq__, _is_close, _is_part):
        if found := [one for one in words if alike(lower, one.lower())]:
            best, *others = sorted(found, key=lambda one: -_likeness(lower, one.lower()))
            leads = not others or _likeness(lower, best.lower()) >= _likeness(lower, others[0].lower()) + _LEAD
            return best if leads and nearest(word, words) == best else None
    return None


def _is_close(word: str, known: str) -> bool:
    if word.endswith(known):
        return False  # Unlimited is not Limited
    return _likeness(word, known) >= _CLOSE or (len(word) > 3 and sorted(word) == sorted(known))


def _likeness(word: str, known: str) -> float:
    return measure_similarity(word, known)


def _is_part(word: str, known: str) -> bool:
    return len(word) > 3 and (known.endswith(word) or known.startswith(word))


def spelled(path: Path, word: str, known: Iterable[str], *, safe: bool = True) -> Fix | None:
    """Writes the word at `path` as it is meant, where that is plain."""
    new = meant(word, known)
    return changed(path, word, new, safe=safe) if new and new != word else None


def changed(path: Path, old: str, new: str, *, safe: bool) -> Fix:
    """Writes another text at `path`."""
    return Fix(f"change {quote(old)} to {quote(new)}", safe, (Set(path, new),))


def given(document: Document, path: Path, value: str | int | bool | tuple[str, ...], title: str, *, safe: bool) -> Fix:
    """Gives the field at `path` a value: anew where it is missing."""
    return Fix(title, safe, (Set(path, value) if document.has(*path) else Insert(path, value),))


def relisted(path: Path, items: Sequence[str], new: Mapping[int, str], *, safe: bool) -> Fix:
    """Writes other items into the list at `path`, by position; one that is in the list already takes no second place."""
    there = {item for number, item in enumerate(items) if number not in new}
    steps: list[tuple[str, Operation]] = []
    for number, item in sorted(new.items()):
        steps.append(_replacement((*path, number), items[number], item, there))
        there.add(item)
    return Fix(several([said for said, _ in steps], _SHOWN), safe, tuple(operation for _, operation in steps))


def replaced(path: Path, old: str, new: str, there: Collection[str], *, safe: bool) -> Fix:
    """Writes another item at `path`, into a list that has the items `there`; the same as `relisted` does with one.

    `there` is a set, made once for a list: thousands of its items may have a fix of their own.
    """
    said, operation = _replacement(path, old, new, there)
    return Fix(said, safe, (operation,))


def _replacement(path: Path, old: str, new: str, there: Collection[str]) -> tuple[str, Operation]:
    if new in there:
        return f"remove {quote(old)} beside {quote(new)}", Remove(path)
    return f"change {quote(old)} to {quote(new)}", Set(path, new)


def without(path: Path, items: Sequence[str], gone: Sequence[int], why: str, *, safe: bool) -> Fix:
    """Takes items out of the list at `path`, by position."""
    said = list(dict.fromkeys(quote(items[number]) for number in gone))
    operations = tuple(Remove((*path, number)) for number in gone)
    return Fix(f"remove {several(said, _SHOWN)} {why}", safe, operations)
