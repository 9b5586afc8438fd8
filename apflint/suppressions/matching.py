"""Applies suppressions to problems, and reports suppressions without effect (APF901) or reason (APF903)."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from typing import TYPE_CHECKING

from apflint.budgets import MAX_FINDINGS_PER_RULE, MAX_VIOLATIONS
from apflint.finding import Problem
from apflint.record import NamedTuple
from apflint.suppressions import INVALID, SUPPRESSION_RULES, UNEXPLAINED, UNUSED
from apflint.suppressions.parser import parse_suppressions
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from apflint.load import Loaded
    from apflint.load.document import Document
    from apflint.load.source import Source
    from apflint.suppressions.parser import Suppression, SuppressionComment


class Outcome(NamedTuple):
    """What suppressions do. Problems have their rule before them."""

    kept: list[tuple[str, Problem]]
    suppressed: int
    """Number of the other problems."""
    about: list[tuple[str, Problem]]
    """Problems of the suppressions themselves: APF901 to APF903."""


def apply_suppressions(
    loaded: Iterable[Loaded],
    problems: Sequence[tuple[str, Problem]],
    complete: Collection[str],
    rules: Collection[str],
    max_findings_per_rule: int = MAX_FINDINGS_PER_RULE,
) -> Outcome:
    """Separate suppressed problems. `rules` are those that run, `complete` those that found all of their problems.

    Suppressions of other rules are never unused: another run may need them. The report has at most `max_findings_per_rule`
    findings of a rule and file, and further ones need no fix.
    """
    parsed = [parse_suppressions(part) for part in loaded]
    about = [(INVALID, problem) for part in parsed for problem in part.problems]
    index = _Index(problems)
    suppressed: set[int] = set()
    unused: list[Suppression] = []
    has_effect: dict[tuple[object, ...], bool] = {}  # thousands of comments may precede one node
    for suppression in (suppression for part in parsed for suppression in part.suppressions):
        place = suppression.place
        scope = (suppression.rule, place.source, place.document, suppression.ranges)
        if scope not in has_effect:
            positions = list(index.find(suppression))
            has_effect[scope] = bool(positions)
            suppressed.update(positions)
        is_known = suppression.rule in complete and (suppression.rule, place.source) not in index.incomplete
        if is_known and not has_effect[scope]:
            unused.append(suppression)
        if not suppression.has_reason:
            message = f"suppression of {quote(suppression.written)} has no reason"
            help_ = "write after it why the finding is not a mistake"
            about.append((UNEXPLAINED, Problem(place, message, help=help_)))
    about += ((UNUSED, problem) for problem in _report_unused(unused, max_findings_per_rule))
    kept = [problem for position, problem in enumerate(problems) if position not in suppressed]
    return Outcome(kept, len(suppressed), [(rule, problem) for rule, problem in about if rule in rules])


class _Index:
    """Positions of problems by rule and object, and by rule and text."""

    def __init__(self, problems: Sequence[tuple[str, Problem]]) -> None:
        self._problems = problems
        self._by_document: dict[tuple[str, Document], list[int]] = {}
        self._by_source: dict[tuple[str, Source], list[int]] = {}
        self._by_offset: dict[tuple[str, Source], list[tuple[int, int]]] = {}
        self.incomplete: set[tuple[str, Source]] = set()
        """Rules and texts of which not all problems may have been found."""
        for position, (rule, problem) in enumerate(problems):
            source, document = problem.place.source, problem.place.document
            self._by_source.setdefault((rule, source), []).append(position)
            if document is not None:
                of_document = self._by_document.setdefault((rule, document), [])
                of_document.append(position)
                if len(of_document) >= MAX_VIOLATIONS:
                    self.incomplete.add((rule, source))

    def find(self, suppression: Suppression) -> Iterator[int]:
        """Yield the positions of the problems that a suppression applies to."""
        place = suppression.place
        if place.document is not None:
            yield from self._by_document.get((suppression.rule, place.document), ())
            return
        key = suppression.rule, place.source
        if suppression.ranges[0][0] == 0 and suppression.ranges[0][1] > len(place.source.text):
            yield from self._by_source.get(key, ())
            return
        if key not in self._by_offset:
            positions = self._by_source.get(key, ())
            self._by_offset[key] = sorted((self._problems[at][1].place.offsets[0], at) for at in positions)
        entries = self._by_offset[key]
        for start, end in suppression.ranges:
            for at in range(bisect_left(entries, (start, -1)), len(entries)):
                if entries[at][0] >= end:
                    break
                yield entries[at][1]


def _report_unused(suppressions: Iterable[Suppression], max_findings_per_rule: int) -> Iterator[Problem]:
    # The rules of a comment together, because the comment is removed with the last of them.
    together: dict[tuple[Source, SuppressionComment | Suppression], list[Suppression]] = {}
    for suppression in suppressions:
        key = suppression.place.source, suppression.comment or suppression
        together.setdefault(key, []).append(suppression)
    from apflint.suppressions.removal import remove_suppressions  # few suppressions are unused

    counts: Counter[Source] = Counter()
    for (source, _), unused in together.items():
        counts[source] += 1
        fix = remove_suppressions(unused) if counts[source] <= max_findings_per_rule else None
        for suppression in unused:
            if suppression.rule in SUPPRESSION_RULES:
                message = f"{quote(suppression.written)} is about suppressions and cannot be suppressed"
                help_ = f"use `--ignore {suppression.rule}`"
            else:
                scope = "on this object" if suppression.place.document is not None else "here"
                message, help_ = f"unused suppression: {quote(suppression.written)} is not found {scope}", "remove it"
            yield Problem(suppression.place, message, help=help_, fix=fix)
