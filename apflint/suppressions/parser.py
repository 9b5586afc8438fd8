"""Parses suppressions, and reports invalid suppression comments and annotations (APF902)."""

from __future__ import annotations

import re
from bisect import bisect_left
from itertools import chain
from typing import TYPE_CHECKING

from apflint import rule_catalogue
from apflint.budgets import MAX_FINDINGS_PER_RULE, MAX_SUPPRESSIONS
from apflint.edit_operations import Edit, Fix, Rename
from apflint.finding import Problem
from apflint.load.comments import find_comments
from apflint.load.helm_output import find_helm_templates
from apflint.location import Place, TextRange, clipped
from apflint.named_tuple import NamedTuple
from apflint.spelling import did_you_mean, find_intended
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.load import Loaded
    from apflint.load.document import Document
    from apflint.load.source_text import Source
    from apflint.location import Location

    Ranges = tuple[tuple[int, int], ...]
    """Start and end offsets of parts of a text."""

_ANNOTATION = "apflint/ignore"
_WORDS = ("ignore", "file-ignore")
# The brackets of a suppression comment contain at least one rule.
_COMMENT = re.compile(r"(ignore|file-ignore)[ \t]*\[(?=[\s,]*[^\s,\]])([^\]]*)\](.*)")
_RULE = re.compile(r"[^\s,](?:[^,]*[^\s,])?")
_BEFORE_REASON = " \t-:,."
_ID = re.compile(r"[APFapf]{0,3}[-_ ]?([0-9]{3})")
_NO_EFFECT = ("The suppression has no effect.",)
_USAGE = "write `# apflint: ignore[APF203] reason`, or `file-ignore` for the whole file"


class SuppressionComment(NamedTuple):
    """A comment that suppresses rules. Positions of the comment and of the rules are offsets into the file."""

    start: int
    end: int
    rules: Ranges
    """Start and end of each rule in the brackets."""


class Suppression(NamedTuple):
    """The suppression of a rule for an object (by an annotation) or for ranges of a text (by a comment)."""

    rule: str | None
    """ID of the rule, or None if the suppression is invalid."""
    written: str
    """The rule as the user wrote it, or the text of an invalid comment. Empty for an annotation without a rule."""
    place: Location
    """Position of the annotation, of the rule in a comment, or of an invalid comment."""
    has_reason: bool = False
    ranges: Ranges = ()
    """Ranges of the text in which the suppression applies, or an empty tuple if the suppression applies to an object."""
    comment: SuppressionComment | None = None


def parse_suppressions(loaded: Loaded) -> tuple[list[Suppression], list[Problem]]:
    """Return the valid suppressions of an input, and a problem (APF902) for each invalid suppression.

    Suppressions after the first `MAX_SUPPRESSIONS` suppressions are ignored, which is reported as a problem.
    """
    suppressions: list[Suppression] = []
    problems: list[Problem] = []
    if "apflint" not in loaded.source.text:
        return suppressions, problems
    is_json = loaded.source.name.endswith(".json")  # JSON has no comments
    comments = () if is_json else _parse_comments(loaded.source)
    for suppression in chain(_parse_annotations(loaded.documents), comments):
        if len(suppressions) + len(problems) == MAX_SUPPRESSIONS:
            message = f"more than {MAX_SUPPRESSIONS:,} suppressions in one file"
            help_ = "use `file-ignore` comments or the settings instead, or split the file"
            notes = ("Further suppressions have no effect.",)
            problems.insert(0, Problem(suppression.place, message, notes=notes, help=help_))
            break
        if suppression.rule is not None:
            suppressions.append(suppression)
        else:  # the report only counts problems beyond the limit, so save the 0.1 ms for a suggestion
            problems.append(_describe_invalid(suppression, suggest=len(problems) < MAX_FINDINGS_PER_RULE))
    return suppressions, problems


def _parse_annotations(documents: Iterable[Document]) -> Iterator[Suppression]:
    for document in documents:
        annotations = document.at("metadata", "annotations")
        for key, reason in annotations.items() if isinstance(annotations, dict) else ():
            if isinstance(key, str) and key.startswith(_ANNOTATION):
                place = Place(document, ("metadata", "annotations", key), key=True)
                prefix, _, written = key.partition(".")
                written = written if prefix == _ANNOTATION else ""
                has_reason = isinstance(reason, str) and bool(reason.strip())
                yield Suppression(rule_catalogue.find_id(written) if written else None, written, place, has_reason)


def _parse_comments(source: Source) -> Iterator[Suppression]:
    files: list[tuple[int, Ranges]] = []
    for comment in find_comments(source, "apflint:"):
        match = _COMMENT.match(comment.text)
        if match is None:
            yield Suppression(None, comment.text, TextRange(source, comment.start, comment.end))
            continue
        ranges: Ranges = (comment.scope,)
        if match[1] == "file-ignore":
            files = files or _find_files(source.text)
            ranges = files[bisect_left(files, (comment.start,)) - 1][1]
        has_reason = bool(match[3].strip(_BEFORE_REASON))
        start = comment.text_start + match.start(2)
        rules = tuple((start + rule.start(), start + rule.end()) for rule in _RULE.finditer(match[2]))
        whole = SuppressionComment(comment.start, comment.end, rules)
        for start, end in rules:
            written, place = source.text[start:end], TextRange(source, start, end)
            yield Suppression(rule_catalogue.find_id(written), written, place, has_reason, ranges, whole)


def _find_files(text: str) -> list[tuple[int, Ranges]]:
    """Return (start offset, ranges of offsets) of each file in a text, sorted by start.

    The whole text counts as a file. Its start is -1, so that this file comes first. In the output of `helm template`,
    each template also counts as a file, which can have several ranges.
    """
    files: list[tuple[int, Ranges]] = [(-1, ((0, len(text) + 1),))]
    templates = find_helm_templates(text) if "# Source: " in text else {}
    for parts in templates.values():
        # A missing value can be at the end offset of the text. So a range up to the end of the text includes this
        # offset.
        ranges = tuple((start, end + (end == len(text))) for start, end in parts)
        files += ((start, ranges) for start, _ in parts)
    return sorted(files)


def _describe_invalid(suppression: Suppression, *, suggest: bool) -> Problem:
    """Return the problem of an invalid suppression: an annotation without a rule, an invalid comment, or an unknown rule."""
    _, written, place, *_ = suppression
    if place.document is not None and not written:
        help_ = f'write `{_ANNOTATION}.APF203: "reason"`'
        return Problem(place, f"annotation {quote(place.path[-1])} does not name a rule", notes=_NO_EFFECT, help=help_)
    if place.document is None and suppression.comment is None:
        return _describe_invalid_comment(written, place, suggest=suggest)
    question, fix = None, None
    if suggest:
        ids, names = rule_catalogue.list_ids(), rule_catalogue.ids_by_name()
        question = did_you_mean(written, ids, 2) or did_you_mean(written, names, 2)
        intended = _find_intended_rule(written)
        fix = _replace(place, written, intended) if intended else None
    return Problem(place, f"unknown rule {quote(clipped(written))}", notes=_NO_EFFECT, help=question, fix=fix)


def _describe_invalid_comment(text: str, place: Location, *, suggest: bool) -> Problem:
    """Return the problem of an invalid comment. `text` is the text of the comment after `apflint:`."""
    word = re.split(r"[\s\[]", text, maxsplit=1)[0]
    if word in _WORDS:
        return Problem(place, "suppression does not name a rule", notes=_NO_EFFECT, help=_USAGE)
    question = did_you_mean(word, _WORDS) if suggest else None
    intended = find_intended(word, _WORDS) if suggest else None
    fix = None
    if intended and _COMMENT.match(f"{intended}{text[len(word) :]}"):
        _, end = place.offsets
        start = end - len(text)
        fix = _replace(TextRange(place.source, start, start + len(word)), word, intended)
    message = f"{quote(clipped(word))} is not an apflint comment"
    return Problem(place, message, notes=("The comment has no effect.",), help=question or _USAGE, fix=fix)


def _find_intended_rule(written: str) -> str | None:
    """Return the ID or name that was certainly intended instead of `written`, or None if the intention is not certain.

    In an ID, only the letters may be misspelled, because an ID with a wrong number may be the ID of another rule.
    """
    if match := _ID.fullmatch(written):
        return f"APF{match[1]}" if f"APF{match[1]}" in rule_catalogue.list_ids() else None
    return find_intended(written, rule_catalogue.ids_by_name())


def _replace(place: Location, old: str, new: str) -> Fix:
    title = f"change {quote(old)} to {quote(new)}"
    if place.document is not None:
        return Fix(title, safe=True, operations=(Rename(place.path, f"{_ANNOTATION}.{new}"),))
    return Fix(title, safe=True, edits=(Edit(*place.offsets, new),))
