"""Parses suppressions, and reports comments and annotations that were meant as one (APF902)."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING

from apflint import catalogue
from apflint.budgets import MAX_FINDINGS_PER_RULE, MAX_SUPPRESSIONS
from apflint.finding import Problem
from apflint.fix import Edit, Fix, Rename
from apflint.fixes.suggestions import find_intended
from apflint.load.comments import find_comments
from apflint.load.helm_output import find_helm_templates
from apflint.location import Place, TextRange, clipped
from apflint.record import NamedTuple
from apflint.wording import did_you_mean, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.load import Loaded
    from apflint.load.comments import Comment
    from apflint.load.document import Document
    from apflint.load.source import Source
    from apflint.location import Location

    Ranges = tuple[tuple[int, int], ...]
    """Start and end of parts of a text."""

_ANNOTATION = "apflint/ignore"
_WORDS = ("ignore", "file-ignore")
_COMMENT = re.compile(r"(ignore|file-ignore)[ \t]*\[(?=[\s,]*[^\s,\]])([^\]]*)\](.*)")  # with at least one rule
_RULE = re.compile(r"[^\s,](?:[^,]*[^\s,])?")
_BEFORE_REASON = " \t-:,."
_ID = re.compile(r"[APFapf]{0,3}[-_ ]?([0-9]{3})")
_NO_EFFECT = ("The suppression has no effect.",)
_USAGE = "write `# apflint: ignore[APF203] reason`, or `file-ignore` for the whole file"


class SuppressionComment(NamedTuple):
    """A comment with suppressions, as offsets into its text."""

    start: int
    end: int
    rules: Ranges
    """Each rule in the brackets."""


class Suppression(NamedTuple):
    """A rule that is suppressed for an object (by an annotation) or in ranges of a text (by a comment)."""

    rule: str
    written: str
    """The rule as the user wrote it."""
    place: Location
    """The annotation, or the rule in the comment."""
    has_reason: bool
    ranges: Ranges = ()
    """Where in the text it applies; empty if it applies to an object."""
    comment: SuppressionComment | None = None
    number: int = 0
    """Position of the rule in `comment.rules`."""


class ParsedSuppressions(NamedTuple):
    """The suppressions of an input, and the problems of APF902."""

    suppressions: list[Suppression]
    problems: list[Problem]


def parse_suppressions(loaded: Loaded) -> ParsedSuppressions:
    """Return the suppressions of an input, at most `MAX_SUPPRESSIONS`."""
    parser = _Parser()
    if "apflint" in loaded.source.text:
        parser.parse(loaded)
    return ParsedSuppressions(parser.suppressions, parser.problems)


class _TooManyError(Exception):
    """There are more than `MAX_SUPPRESSIONS`."""


class _Parser:
    def __init__(self) -> None:
        self.suppressions: list[Suppression] = []
        self.problems: list[Problem] = []

    def parse(self, loaded: Loaded) -> None:
        try:
            self._parse_annotations(loaded.documents)
            if not loaded.source.name.endswith(".json"):  # JSON has no comments
                self._parse_comments(loaded.source)
        except _TooManyError:
            message = f"more than {MAX_SUPPRESSIONS:,} suppressions in one file"
            help_ = "use `file-ignore` or the settings, or split the file"
            notes = ("Further suppressions have no effect.",)
            self.problems.insert(0, Problem(self._place, message, notes=notes, help=help_))

    def _start(self, place: Location) -> None:
        """Start with the next suppression. Raises _TooManyError if there are too many."""
        self._place = place
        if len(self.suppressions) + len(self.problems) == MAX_SUPPRESSIONS:
            raise _TooManyError

    @property
    def _is_reported(self) -> bool:
        """Whether the next problem is reported, and not only counted. Others need no suggestion, which takes 0.1 ms."""
        return len(self.problems) < MAX_FINDINGS_PER_RULE

    def _parse_annotations(self, documents: Iterable[Document]) -> None:
        for document in documents:
            annotations = document.at("metadata", "annotations")
            for key, reason in annotations.items() if isinstance(annotations, dict) else ():
                if not isinstance(key, str) or not key.startswith(_ANNOTATION):
                    continue
                place = Place(document, ("metadata", "annotations", key), key=True)
                self._start(place)
                written = key.removeprefix(_ANNOTATION).removeprefix(".")
                if key[len(_ANNOTATION) :][:1] != "." or not written:
                    message = f"annotation {quote(key)} names no rule"
                    help_ = f'write `{_ANNOTATION}.APF203: "reason"`'
                    self.problems.append(Problem(place, message, notes=_NO_EFFECT, help=help_))
                elif (rule := catalogue.find_id(written)) is None:
                    self._add_unknown_rule(written, place, f"{_ANNOTATION}.")
                else:
                    has_reason = isinstance(reason, str) and bool(reason.strip())
                    self.suppressions.append(Suppression(rule, written, place, has_reason))

    def _parse_comments(self, source: Source) -> None:
        file_ranges: _FileRanges | None = None
        for comment in find_comments(source, "apflint:"):
            match = _COMMENT.match(comment.text)
            if match is None:
                self._start(TextRange(source, comment.start, comment.end))
                self._add_invalid_comment(source, comment)
                continue
            ranges: Ranges = (comment.scope,)
            if match[1] == "file-ignore":
                file_ranges = file_ranges or _FileRanges(source.text)
                ranges = file_ranges.find(comment.start)
            has_reason = bool(match[3].strip(_BEFORE_REASON))
            start = comment.text_start + match.start(2)
            rules = tuple((start + rule.start(), start + rule.end()) for rule in _RULE.finditer(match[2]))
            whole = SuppressionComment(comment.start, comment.end, rules)
            for number, offsets in enumerate(rules):
                place = TextRange(source, *offsets)
                self._start(place)
                written = source.text[slice(*offsets)]
                if (rule := catalogue.find_id(written)) is None:
                    self._add_unknown_rule(written, place, "")
                else:
                    self.suppressions.append(Suppression(rule, written, place, has_reason, ranges, whole, number))

    def _add_invalid_comment(self, source: Source, comment: Comment) -> None:
        """Report a comment for apflint that is not a suppression."""
        word = re.split(r"[\s\[]", comment.text, maxsplit=1)[0]
        if word in _WORDS:
            problem = Problem(self._place, "suppression names no rule", notes=_NO_EFFECT, help=_USAGE)
        else:
            question = did_you_mean(word, _WORDS) if self._is_reported else None
            fix = None
            intended = find_intended(word, _WORDS) if self._is_reported else None
            if intended and _COMMENT.match(f"{intended}{comment.text[len(word) :]}"):
                at = TextRange(source, comment.text_start, comment.text_start + len(word))
                fix = _replace(at, word, intended)
            message = f"{quote(clipped(word))} is not an apflint comment"
            notes = ("The comment has no effect.",)
            problem = Problem(self._place, message, notes=notes, help=question or _USAGE, fix=fix)
        self.problems.append(problem)

    def _add_unknown_rule(self, written: str, place: Location, prefix: str) -> None:
        """Report an unknown rule. `prefix` precedes it in the key of an annotation."""
        question, fix = None, None
        if self._is_reported:
            ids, names = catalogue.list_ids(), catalogue.ids_by_name()
            question = did_you_mean(written, ids, 2) or did_you_mean(written, names, 2)
            intended = _find_intended_rule(written)
            fix = _replace(place, written, intended, prefix) if intended else None
        message = f"unknown rule {quote(clipped(written))}"
        self.problems.append(Problem(place, message, notes=_NO_EFFECT, help=question, fix=fix))


def _find_intended_rule(written: str) -> str | None:
    """Return the rule that a misspelled one must be, or None. Only the letters of an id may be wrong: numbers differ by rule."""
    if match := _ID.fullmatch(written):
        return f"APF{match[1]}" if f"APF{match[1]}" in catalogue.list_ids() else None
    return find_intended(written, catalogue.ids_by_name())


def _replace(place: Location, old: str, new: str, prefix: str = "") -> Fix:
    title = f"change {quote(old)} to {quote(new)}"
    if place.document is not None:
        return Fix(title, safe=True, operations=(Rename(place.path, f"{prefix}{new}"),))
    start, end = place.offsets
    return Fix(title, safe=True, edits=(Edit(start, end, new),))


class _FileRanges:
    """The ranges of `file-ignore`: the whole text, or one template in the output of `helm template`."""

    def __init__(self, text: str) -> None:
        templates = find_helm_templates(text) if "# Source: " in text else {}
        self._whole = ((0, len(text) + 1),)
        # A missing value is reported after the end of the text.
        ends = {len(text): len(text) + 1}
        self._templates = [tuple((start, ends.get(end, end)) for start, end in parts) for parts in templates.values()]
        self._starts = sorted((start, index) for index, parts in enumerate(self._templates) for start, _ in parts)

    def find(self, offset: int) -> Ranges:
        """Return the ranges of the file that contains an offset; before the first template that is the whole text."""
        at = bisect_left(self._starts, (offset, 0)) - 1
        return self._templates[self._starts[at][1]] if at >= 0 else self._whole
