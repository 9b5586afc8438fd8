"""Applies suppressions to problems. Reports suppressions without an effect (APF901) or without a reason (APF903)."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from itertools import pairwise
from typing import TYPE_CHECKING

from apflint.budgets import MAX_FINDINGS_PER_RULE, MAX_VIOLATIONS
from apflint.edit_operations import Edit, Fix, Remove
from apflint.finding import Problem
from apflint.named_tuple import NamedTuple
from apflint.suppressions import INVALID, SUPPRESSION_RULES, UNEXPLAINED, UNUSED
from apflint.suppressions.parser import parse_suppressions
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from apflint.load import Loaded
    from apflint.load.document import Document
    from apflint.load.source_text import Source
    from apflint.suppressions.parser import Ranges, Suppression, SuppressionComment

_REST_OF_LINE = re.compile(r"[ \t]*(\r\n|\r|\n|\Z)")


class SuppressionResult(NamedTuple):
    """The result of applying suppressions. Each problem is a pair (rule ID, `Problem`)."""

    kept: list[tuple[str, Problem]]
    """Problems that are not suppressed."""
    suppressed: int
    """Number of suppressed problems."""
    about: list[tuple[str, Problem]]
    """Problems with the suppressions themselves (APF901 to APF903)."""


def apply_suppressions(
    loaded: Iterable[Loaded],
    problems: Sequence[tuple[str, Problem]],
    complete: Collection[str],
    rules: Collection[str],
    max_findings_per_rule: int = MAX_FINDINGS_PER_RULE,
) -> SuppressionResult:
    """Remove suppressed problems, and report problems of the suppressions themselves.

    `rules` contains the rules that run. `complete` contains the rules that examined all objects. Only a
    suppression of a rule in `complete` can be reported as unused. Other rules may find a problem for
    the suppression in another run. The report shows at most `max_findings_per_rule` findings of each
    rule and file, so no fix is computed for unused suppressions above this limit.
    """
    about: list[tuple[str, Problem]] = []
    index = _Index(problems)
    suppressed: set[int] = set()
    unused: list[Suppression] = []
    has_effect: dict[tuple[object, ...], bool] = {}  # a cache: thousands of comments may apply to the same node
    for part in loaded:
        suppressions, invalid = parse_suppressions(part)
        about += ((INVALID, problem) for problem in invalid)
        for suppression in suppressions:
            rule, place = suppression.rule, suppression.place
            scope = (rule, place.source, place.document, suppression.ranges)
            if scope not in has_effect:
                positions = list(index.find(suppression))
                has_effect[scope] = bool(positions)
                suppressed.update(positions)
            if rule in complete and (rule, place.source) not in index.incomplete and not has_effect[scope]:
                unused.append(suppression)
            if not suppression.has_reason:
                message = f"suppression of {quote(suppression.written)} has no reason"
                help_ = "explain after the suppression why the finding is not a mistake"
                about.append((UNEXPLAINED, Problem(place, message, help=help_)))
    about += ((UNUSED, problem) for problem in _report_unused(unused, max_findings_per_rule))
    kept = [problem for position, problem in enumerate(problems) if position not in suppressed]
    return SuppressionResult(kept, len(suppressed), [(rule, problem) for rule, problem in about if rule in rules])


class _Index:
    """Finds the problems that a suppression applies to. A position is an index into the list of problems."""

    def __init__(self, problems: Sequence[tuple[str, Problem]]) -> None:
        self._problems = problems
        self._positions: defaultdict[tuple[str | None, Source | Document | None], list[int]] = defaultdict(list)
        self._offsets: dict[tuple[str | None, Source], list[tuple[int, int]]] = {}
        self.incomplete: set[tuple[str | None, Source]] = set()
        """Pairs of a rule and a file in which the rule may have stopped before it found all problems."""
        for position, (rule, problem) in enumerate(problems):
            source, document = problem.place.source, problem.place.document
            self._positions[rule, source].append(position)
            self._positions[rule, document].append(position)
            if document is not None and len(self._positions[rule, document]) >= MAX_VIOLATIONS:
                self.incomplete.add((rule, source))

    def find(self, suppression: Suppression) -> Iterator[int]:
        """Yield the index of each problem that a suppression applies to, in the list of all problems."""
        place, key = suppression.place, (suppression.rule, suppression.place.source)
        if place.document is not None:
            yield from self._positions.get((suppression.rule, place.document), ())
            return
        positions = self._positions.get(key, ())
        if suppression.ranges[0][0] == 0 and suppression.ranges[0][1] > len(place.source.text):
            yield from positions
            return
        if key not in self._offsets:
            self._offsets[key] = sorted((self._problems[at][1].place.offsets[0], at) for at in positions)
        offsets = self._offsets[key]
        for start, end in suppression.ranges:
            yield from (at for _, at in offsets[bisect_left(offsets, (start,)) : bisect_left(offsets, (end,))])


def _report_unused(suppressions: Iterable[Suppression], max_findings_per_rule: int) -> Iterator[Problem]:
    # Group the unused suppressions by comment, because one fix changes or removes the whole comment.
    together: defaultdict[tuple[Source, SuppressionComment | Suppression], list[Suppression]] = defaultdict(list)
    for suppression in suppressions:
        together[suppression.place.source, suppression.comment or suppression].append(suppression)
    counts: Counter[Source] = Counter()
    for (source, _), unused in together.items():
        counts[source] += 1
        fix = _remove(unused) if counts[source] <= max_findings_per_rule else None
        for suppression in unused:
            written = quote(suppression.written)
            scope = "on this object" if suppression.place.document is not None else "here"
            message, help_ = f"unused suppression: {written} is not found {scope}", "remove it"
            if suppression.rule in SUPPRESSION_RULES:
                message = f"{written} is about suppressions and cannot be suppressed"
                help_ = f"use `--ignore {suppression.rule}`"
            yield Problem(suppression.place, message, help=help_, fix=fix)


def _remove(suppressions: Sequence[Suppression]) -> Fix:
    """Return a fix that removes unused suppressions: an annotation, or the unused rules of a comment.

    If all rules of the comment are unused, the fix removes the whole comment.
    """
    place, comment = suppressions[0].place, suppressions[0].comment
    if comment is None:
        return Fix(f"remove the annotation {quote(place.path[-1])}", safe=True, operations=(Remove(place.path),))
    unused = {suppression.place.offsets for suppression in suppressions}
    if len(unused) == len(comment.rules):
        return Fix("remove the comment", safe=True, edits=(_remove_comment(place.source, comment.start, comment.end),))
    names = join_words((quote(suppression.written) for suppression in suppressions), "and")
    return Fix(f"remove {names} from the comment", safe=True, edits=tuple(_remove_rules(comment.rules, unused)))


def _remove_comment(source: Source, start: int, end: int) -> Edit:
    """Return the edit that removes the whole line of a comment.

    If the line contains other text, remove only the comment and the spaces before it.
    """
    text, line = source.text, source.line_starts[source.position(start)[0] - 1]
    before = text[line:start].rstrip(" \t")
    rest = _REST_OF_LINE.match(text, end)
    if rest is None:  # the line ends with a character that is a line end in YAML 1.1, but not in YAML 1.2
        return Edit(line + len(before), end, "")
    return Edit(line + len(before), rest.start(1), "") if before else Edit(line, rest.end(), "")


def _remove_rules(rules: Ranges, unused: Collection[tuple[int, int]]) -> Iterator[Edit]:
    """Yield edits that remove the unused rules and their commas from a comment.

    An edit removes the text from an unused rule to the start of the next rule. If all rules after the last used rule
    are unused, one edit removes all of them.
    """
    last = max(rule for rule in rules if rule not in unused)
    for rule, following in pairwise(rules):
        if rule in unused and rule < last:
            yield Edit(rule[0], following[0], "")
    if last != rules[-1]:
        yield Edit(last[1], rules[-1][1], "")
