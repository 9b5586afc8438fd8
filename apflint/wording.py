"""How messages speak: quoting, lists, near misses."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING

from apflint.load import templates
from apflint.similarity import MAX_WORD_LENGTH, find_similar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LONGEST = 80


def quote(value: object) -> str:
    """A value as a message shows it: texts in double quotes, all on one line, cut where it is long."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _LONGEST:
        return text
    return f'{text[: _LONGEST - 2]}…"' if isinstance(value, str) else f"{text[: _LONGEST - 1]}…"


def listed(words: Iterable[str], last: str = "or") -> str:
    """`a, b or c`."""
    all_words = list(words)
    if len(all_words) < 2:
        return "".join(all_words)
    return f"{', '.join(all_words[:-1])} {last} {all_words[-1]}"


def several(words: Sequence[str], most: int) -> str:
    """`a, b and 7 more`: so many words at most, the last of which counts those that are left out."""
    if len(words) > most:
        words = [*words[: most - 1], f"{len(words) - most + 1} more"]
    return listed(words, "and")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that `word` was probably meant to be: another case, or a letter or two off."""
    return _nearest(word, tuple(known)) if len(word) <= MAX_WORD_LENGTH else None


@lru_cache(maxsize=4096)
def _nearest(word: str, words: tuple[str, ...]) -> str | None:
    folded = {candidate.lower(): candidate for candidate in words}
    if word.lower() in folded:
        return folded[word.lower()]
    close = find_similar(word.lower(), list(folded), 1, 0.72)
    return folded[close[0]] if close else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence with the nearest word, with a blank before it; empty where nothing is near."""
    near = nearest(word, known)
    return f" Did you mean {quote(near)}?" if near and near != word else ""


def placeholder_hint(value: str) -> str:
    """A sentence, with a blank before it, for a value that a template should have filled in."""
    found = templates.in_name(value)
    return (
        f" {quote(found)} looks like a placeholder: render the file before it is checked or applied." if found else ""
    )
