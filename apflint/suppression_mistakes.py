"""What is wrong with a comment or an annotation that was meant as a suppression, and how it was probably meant (APF902).

Only files with such a mistake need this. Of a thousand of them nobody is told more, so the later ones come without a hint.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint import catalogue
from apflint.finding import Problem
from apflint.fix import Edit, Fix, Rename
from apflint.fixes import suggestions
from apflint.location import TextRange, clipped
from apflint.wording import quote, suggest

if TYPE_CHECKING:
    from apflint.load.comments import Comment
    from apflint.load.source import Source
    from apflint.location import Location, Place

_WORDS = ("ignore", "file-ignore")
_HOW = "Write `# apflint: ignore[APF203] reason`, or `file-ignore` for the whole file"
_NOTHING = "This suppression does nothing"


def no_suppression(source: Source, comment: Comment, is_one: re.Pattern[str], *, hints: bool) -> Problem:
    """A comment that is for apflint and is no suppression; `is_one` matches the text of those that are."""
    word = re.split(r"[\s\[]", comment.text, maxsplit=1)[0]
    place = TextRange(source, comment.start, comment.end)
    if word in _WORDS:
        return Problem(place, f"the suppression names no rule, so it does nothing. {_HOW}")
    hint = suggest(word, _WORDS) if hints else ""
    message = f'"{clipped(word)}" is nothing that apflint knows, so this comment does nothing.{hint} {_HOW}'
    meant = suggestions.find_intended(word, _WORDS) if hints else None
    form = is_one.match(f"{meant}{comment.text[len(word) :]}") if meant else None
    if not meant or form is None:
        return Problem(place, message)
    at = TextRange(source, comment.text_start, comment.text_start + len(word))
    return Problem(place, message, fix=_replaced(at, word, meant))


def no_rule(written: str, place: Location, prefix: str, *, hints: bool) -> Problem:
    """A rule that there is none of; `prefix` is what stands before it in the key of an annotation."""
    if not hints:
        return Problem(place, f'Unknown rule "{clipped(written)}". {_NOTHING}')
    try:
        catalogue.find_rule(written)
    except ValueError as error:
        said = str(error).removesuffix(" `apflint rule` lists them all.")
        near = _meant(written)
        return Problem(place, f"{said} {_NOTHING}", fix=_replaced(place, written, near, prefix) if near else None)
    raise AssertionError(f"{written} is known")


def no_names(place: Place, form: str, *, hints: bool) -> Problem:  # noqa: ARG001  # what it says is known anyway
    """An annotation of ours without a rule."""
    return Problem(place, f'the annotation "{place.path[-1]}" names no rule, so it does nothing. Write `{form}`')


def _meant(written: str) -> str | None:
    """The rule that a misspelt one must be. Of ids only the letters may be wrong: any other number is another rule."""
    if number := re.fullmatch(r"[APFapf]{0,3}[-_ ]?([0-9]{3})", written):
        return f"APF{number[1]}" if f"APF{number[1]}" in catalogue.list_ids() else None
    return suggestions.find_intended(written, catalogue.ids_by_name())


def _replaced(place: Location, old: str, new: str, prefix: str = "") -> Fix:
    title = f"change {quote(old)} to {quote(new)}"
    if place.document is not None:
        return Fix(title, True, (Rename(place.path, f"{prefix}{new}"),))
    start, end = place.offsets
    return Fix(title, safe=True, edits=(Edit(start, end, new),))
