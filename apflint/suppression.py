"""Suppressions: comments and annotations that set findings aside, and what is wrong with them (APF901 to APF903).

    type: ByFoo  # apflint: ignore[APF203] reason      what starts on this line
    # apflint: ignore[APF207, APF208] reason           the next node, and all below it
    # apflint: file-ignore[APF603] reason              the whole file
    apflint/ignore.APF203: "reason"                    an annotation of the object: the object

Only a text that has the word `apflint` in it is ever looked at.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol

from apflint import catalogue
from apflint.budgets import MAX_FINDINGS_PER_RULE, MAX_SUPPRESSIONS, MAX_VIOLATIONS
from apflint.finding import Problem
from apflint.load.helm_output import find_helm_templates
from apflint.location import Place, TextRange

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from apflint.load import Loaded
    from apflint.load.document import Document
    from apflint.load.source import Source
    from apflint.location import Location

UNUSED, UNKNOWN, UNEXPLAINED = "APF901", "APF902", "APF903"
RULES = frozenset({UNUSED, UNKNOWN, UNEXPLAINED})
"""The rules about suppressions. No suppression sets them aside: `ignore` in the settings does."""

_ANNOTATION = "apflint/ignore"
_FORM = re.compile(r"(ignore|file-ignore)[ \t]*\[(?=[\s,]*[^\s,\]])([^\]]*)\](.*)")
"""It names a rule at least: more than blanks and commas."""
_SEPARATOR = " \t-:,."
_TOO_MANY = (
    f"this file has more suppressions than the {MAX_SUPPRESSIONS:,} that apflint reads of one: from here on they do nothing."
    " Set the rules aside with `file-ignore` or in the settings, or split the file"
)


class Listed(NamedTuple):
    """One of the rules that a comment names, by its number; all as offsets into the text."""

    comment: tuple[int, int]
    rules: tuple[tuple[int, int], ...]
    number: int


class Suppression(NamedTuple):
    """One rule set aside for `text[start:end]` of a source or, with `document`, for an object."""

    rule: str
    written: str
    """The rule as the user wrote it."""
    place: Location
    source: Source
    start: int
    end: int
    document: Document | None
    explained: bool
    listed: Listed | None = None
    """Where it stands, if in a comment."""
    also: tuple[tuple[int, int], ...] = ()
    """More of the text that it is about: the other documents of a template."""


class Read(NamedTuple):
    """The suppressions of one input, and problems with what was meant to be one (APF902)."""

    suppressions: tuple[Suppression, ...]
    problems: tuple[Problem, ...]


class Outcome(NamedTuple):
    """`kept` are the problems that stay, `suppressed` counts the others, `about` are those of 901 to 903; each with its rule."""

    kept: list[tuple[str, Problem]]
    suppressed: int
    about: list[tuple[str, Problem]]


def read(part: Loaded) -> Read:
    """The suppressions in one input."""
    suppressions: list[Suppression] = []
    problems: list[Problem] = []
    found = chain(_annotations(part.documents), _comments(part.source)) if "apflint" in part.source.text else ()
    for one in found:
        if len(suppressions) + len(problems) == MAX_SUPPRESSIONS:
            place = one.place if isinstance(one, Suppression) else one(hints=False).place
            problems.insert(0, Problem(place, _TOO_MANY))
            break
        if isinstance(one, Suppression):
            suppressions.append(one)
        else:
            # No more of one rule are told of a file: the others need no hint, which takes 0.1 ms.
            problems.append(one(hints=len(problems) < MAX_FINDINGS_PER_RULE))
    return Read(tuple(suppressions), tuple(problems))


def set_aside(
    loaded: Iterable[Loaded],
    found: Sequence[tuple[str, Problem]],
    judged: Collection[str],
    rules: Collection[str],
    most: int = MAX_FINDINGS_PER_RULE,
) -> Outcome:
    """Sets aside what is suppressed of problems, each with its rule. `rules` are those that run.

    `judged` are the rules whose suppressions can be called unused: not those of a rule that did not run, which another run
    may need. Of a file `most` findings of a rule will be told.
    """
    inputs = [read(part) for part in loaded]
    suppressions = [one for answer in inputs for one in answer.suppressions]
    about = [(UNKNOWN, problem) for answer in inputs for problem in answer.problems]
    aside: set[int] = set()
    places = _Places(found)
    unused: list[Suppression] = []
    hits: dict[tuple[str, int, int, int, int], bool] = {}  # a thousand comments before one node are looked at once
    for one in suppressions:
        scope = (one.rule, id(one.source), id(one.document), one.start, one.end)
        if scope not in hits:
            hit = list(places.covered(one))
            hits[scope] = bool(hit)
            aside.update(hit)
        if not hits[scope] and one.rule in judged and (one.rule, id(one.source)) not in places.incomplete:
            unused.append(one)
        if not one.explained:
            message = f'the suppression of "{one.written}" has no reason. Write after it why the finding is no mistake'
            about.append((UNEXPLAINED, Problem(one.place, message)))
    about += ((UNUSED, problem) for problem in _unused(unused, most))
    kept = [each for number, each in enumerate(found) if number not in aside]
    return Outcome(kept, len(aside), [(rule, problem) for rule, problem in about if rule in rules])


class _Places:
    """The numbers of problems, by rule and object, and by rule and text."""

    def __init__(self, found: Sequence[tuple[str, Problem]]) -> None:
        self._found = found
        self._of_object: dict[tuple[str, int], list[int]] = {}
        self._of_text: dict[tuple[str, int], list[int]] = {}
        self._sorted: dict[tuple[str, int], list[tuple[int, int]]] = {}
        self.incomplete: set[tuple[str, int]] = set()
        """Rule and text of which not all problems may have been found: nobody knows which suppressions do nothing there."""
        for number, (rule, problem) in enumerate(found):
            place = problem.place
            source = place.source
            self._of_text.setdefault((rule, id(source)), []).append(number)
            if place.document is not None:
                there = self._of_object.setdefault((rule, id(place.document)), [])
                there.append(number)
                if len(there) >= MAX_VIOLATIONS:
                    self.incomplete.add((rule, id(source)))

    def covered(self, one: Suppression) -> Iterator[int]:
        """The problems that a suppression is about."""
        if one.document is not None:
            yield from self._of_object.get((one.rule, id(one.document)), ())
            return
        key = one.rule, id(one.source)
        if one.start == 0 and one.end > len(one.source.text):
            yield from self._of_text.get(key, ())
            return
        if key not in self._sorted:
            numbers = self._of_text.get(key, ())
            self._sorted[key] = sorted((self._found[number][1].place.offsets[0], number) for number in numbers)
        entries = self._sorted[key]
        for start, end in ((one.start, one.end), *one.also):
            for at in range(bisect_left(entries, (start, -1)), len(entries)):
                if entries[at][0] >= end:
                    break
                yield entries[at][1]


def _unused(suppressions: Iterable[Suppression], most: int) -> Iterator[Problem]:
    gone: dict[tuple[int, tuple[int, int]], list[Suppression]] = {}
    for one in suppressions:
        # Rules of one comment go together, because the comment goes with the last of them.
        comment = (id(one.source), one.listed.comment) if one.listed else (id(one), (0, 0))
        gone.setdefault(comment, []).append(one)
    from apflint.suppression_removal import removal

    told: Counter[int] = Counter()
    for (source, _), together in gone.items():
        told[source] += 1
        fix = removal(together) if told[source] <= most else None
        for one in together:
            what = "on this object" if one.document is not None else "where this suppression applies"
            if one.rule in RULES:
                message = f'"{one.written}" is about suppressions, and no suppression sets it aside. Use `--ignore {one.rule}`'
            else:
                message = f'"{one.written}" is not found {what}, so the suppression does nothing. Remove it'
            yield Problem(one.place, message, fix=fix)


class _Mistake(Protocol):
    """What was meant to be a suppression, and is none."""

    def __call__(self, *, hints: bool) -> Problem:
        """What is wrong, with `hints` also how it was probably meant."""


def _annotations(documents: Iterable[Document]) -> Iterator[Suppression | _Mistake]:
    for document in documents:
        annotations = document.at("metadata", "annotations")
        for key, reason in annotations.items() if isinstance(annotations, dict) else ():
            if not isinstance(key, str) or not key.startswith(_ANNOTATION):
                continue
            place = Place(document, ("metadata", "annotations", key), key=True)
            written = key.removeprefix(_ANNOTATION).removeprefix(".")
            if key[len(_ANNOTATION) :][:1] != "." or not written:
                from apflint.suppression_mistakes import no_names

                yield partial(no_names, place, f'{_ANNOTATION}.APF203: "reason"')
            elif (rule := catalogue.find_id(written)) is None:
                from apflint.suppression_mistakes import no_rule

                yield partial(no_rule, written, place, f"{_ANNOTATION}.")
            else:
                explained = isinstance(reason, str) and bool(reason.strip())
                yield Suppression(rule, written, place, document.source, 0, 0, document, explained)


def _comments(source: Source) -> Iterator[Suppression | _Mistake]:
    if source.name.endswith(".json"):
        return  # JSON has no comments
    from apflint.load.comments import find_comments

    file: _File | None = None
    for comment in find_comments(source, "apflint:"):
        form = _FORM.match(comment.text)
        if form is None:
            from apflint.suppression_mistakes import no_suppression

            yield partial(no_suppression, source, comment, _FORM)
            continue
        scopes: tuple[tuple[int, int], ...] = (comment.scope,)
        if form[1] == "file-ignore":
            file = file or _File(source.text)
            scopes = file.scopes(comment.start)
        explained = bool(form[3].strip(_SEPARATOR))
        at = comment.text_start + form.start(2)
        rules = tuple(
            (at + found.start(), at + found.end()) for found in re.finditer(r"[^\s,](?:[^,]*[^\s,])?", form[2])
        )
        for number, (start, end) in enumerate(rules):
            written, here = source.text[start:end], TextRange(source, start, end)
            if (rule := catalogue.find_id(written)) is None:
                from apflint.suppression_mistakes import no_rule

                yield partial(no_rule, written, here, "")
            else:
                part = Listed((comment.start, comment.end), rules, number)
                yield Suppression(rule, written, here, source, *scopes[0], None, explained, part, scopes[1:])


class _File:
    """What `file-ignore` is about: a text as a whole, or each template in the output of `helm template`."""

    def __init__(self, text: str) -> None:
        parts = find_helm_templates(text) if "# Source: " in text else {}
        self._whole = ((0, len(text) + 1),)
        # What is missing at the very end is found behind it.
        ends = {len(text): len(text) + 1}
        scopes = [tuple((start, ends.get(end, end)) for start, end in part) for part in parts.values()]
        self._starts = sorted((start, number) for number, part in enumerate(scopes) for start, _ in part)
        self._scopes = scopes

    def scopes(self, offset: int) -> tuple[tuple[int, int], ...]:
        """Start and end of each stretch; above the first template it is the whole text."""
        at = bisect_left(self._starts, (offset, 0)) - 1
        return self._scopes[self._starts[at][1]] if at >= 0 else self._whole
