"""Runs the checks and makes their problems into findings: rule, severity, line and column are added here and nowhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from apflint import catalogue
from apflint.budgets import MAX_FINDINGS_PER_RULE
from apflint.checks import CHECKS, SINGLE_VALUE, is_explained, rules_of
from apflint.effective import Assumptions, Effective
from apflint.finding import Finding, ObjectRef, Related, Report, Skipped
from apflint.load import helm_sources, load, load_text
from apflint.load.source import STDIN as STDIN  # noqa: PLC0414  # the command line has it from here
from apflint.location import clipped, field_path
from apflint.releases import NEWEST
from apflint.rule_selection import select_rules
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping

    from apflint.finding import Problem, Severity
    from apflint.load import Loaded
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.releases import Release
    from apflint.workspace import Workspace

T = TypeVar("T")


class Options(NamedTuple):
    """How to check manifests."""

    kubernetes: Release = NEWEST
    rules: tuple[str, ...] = select_rules()
    """Ids of the rules to run."""
    assumptions: Assumptions = Assumptions()
    suppressions: bool = True
    """Whether to respect suppressions in manifests."""
    adjust: Callable[[Finding], Finding | None] | None = None
    """Changes the severity of a finding, or leaves it out (None), as the settings of a project say."""
    helm: bool = True
    """Whether standard input may be the output of `helm template`: findings then name the templates."""
    max_findings_per_rule: int = MAX_FINDINGS_PER_RULE
    """Maximum number of findings to report for a rule, file and severity; further ones are only counted."""
    covered: bool = False
    """Whether to report also findings that another finding of the rule covers: each has its own fix."""


def check(
    inputs: Iterable[tuple[str, bytes]], options: Options | None = None, context: Iterable[tuple[str, bytes]] = ()
) -> Report:
    """Checks inputs, each a name and its bytes (`<stdin>` may be the output of `helm template`), as one configuration.

    `context` is read like them and never reported on.

    Never raises for an input.
    """
    options = options or Options()
    loaded = load_inputs(inputs, helm=options.helm)
    workspace = build_workspace(loaded, options.kubernetes, load_inputs(context))
    known = Effective(workspace, options.assumptions)
    answer = report(
        loaded,
        known,
        options.rules,
        suppressions=options.suppressions,
        max_findings_per_rule=options.max_findings_per_rule,
        covered=options.covered,
    )
    if options.adjust is None:
        return answer
    return answer._replace(findings=tuple(kept for found in answer.findings if (kept := options.adjust(found))))


def load_inputs(inputs: Iterable[tuple[str, bytes]], *, helm: bool = True) -> list[Loaded]:
    """Read inputs, each a name and its bytes; with `helm`, `<stdin>` may be the output of `helm template`."""
    return [part for name, data in inputs for part in _load(name, data, helm=helm)]


def _load(name: str, data: bytes, *, helm: bool) -> Iterator[Loaded]:
    sources = helm_sources(data.decode("utf-8", "replace")) if helm and name == STDIN else None
    if sources is None:
        yield load(name, data)
    else:
        yield from map(load_text, sources)


def report(
    loaded: Iterable[Loaded],
    known: Effective,
    rules: Collection[str],
    *,
    suppressions: bool = False,
    max_findings_per_rule: int = MAX_FINDINGS_PER_RULE,
    covered: bool = False,
) -> Report:
    """The findings of the rules on a workspace, sorted by place; those that the files suppress set aside if asked to.

    `max_findings_per_rule` and `covered` are those of `Options`.
    """
    loaded = list(loaded)
    follow_ups = _follow_ups(known.workspace)
    said = {rule: list(check.find(known)) for rule, check in CHECKS.items() if check.phase == "validation"}
    rejected = _rejected(said)
    accepted = known.without(rejected)

    def found_by(rule: str) -> Iterable[Problem]:
        if rule in said:
            return said[rule]
        check = CHECKS[rule]
        if rejected and SINGLE_VALUE in check.tags:
            return (problem for problem in check.find(known) if not _is_part_of_rejection(problem, rejected))
        return check.find(accepted if check.phase == "analysis" else known)

    problems = (
        (rule, problem)
        for rule in rules
        for problem in found_by(rule)
        if (covered or not problem.covered)
        and not (follow_ups and _is_follow_up(problem, follow_ups, known.release))
        and not is_explained(accepted, rule, problem, rules)
    )
    suppressed = 0
    if suppressions and any("apflint" in part.source.text for part in loaded):
        from apflint.suppression import set_aside

        # What is rejected was not analysed, so nobody knows what a suppression of such a rule would do there.
        judged = set(rules) - rules_of("analysis") if rejected else rules
        kept, suppressed, about = set_aside(loaded, list(problems), judged, rules, max_findings_per_rule)
        findings = [*_told(kept, max_findings_per_rule), *_told(about, max_findings_per_rule)]
    else:
        findings = _told(problems, max_findings_per_rule)
    findings.sort(key=lambda found: (found.file, found.span, found.rule, found.message))
    return Report(
        kubernetes=known.release.name,
        findings=tuple(findings),
        files=len(loaded),
        objects=len(known.workspace.manifests),
        skipped=tuple(_skipped(loaded)),
        suppressed=suppressed,
        sources={part.source.name: part.source for part in loaded},
    )


def limited(report: Report) -> Report:
    """A report with covered findings, or more than `MAX_FINDINGS_PER_RULE` of a rule, file and gravity, cut to what `check` reports."""
    findings = [finding for finding in report.findings if not finding.covered]
    kept, more = _first(
        findings, lambda one: (one.rule, one.file, one.severity, one.apiserver is None), MAX_FINDINGS_PER_RULE
    )
    return report._replace(findings=tuple(_closed(kept, more)))


def _told(problems: Iterable[tuple[str, Problem]], most: int) -> list[Finding]:
    """The findings that problems are: `most` of each rule, file and gravity, the last of which counts the others."""

    def kind(told: tuple[str, Problem]) -> Hashable:
        rule, problem = told
        return rule, problem.place.source.name, problem.severity, problem.apiserver is None

    kept, more = _first(problems, kind, most)
    return list(_closed((_finding(rule, problem) for rule, problem in kept), more))


def _first(items: Iterable[T], kind: Callable[[T], Hashable], most: int) -> tuple[list[T], dict[int, int]]:
    """The first `most` of each kind, and how many more there are, by the number of the last of those that are kept."""
    kept: list[T] = []
    counts: dict[Hashable, int] = {}
    last: dict[Hashable, int] = {}
    for item in items:
        of = kind(item)
        counts[of] = count = counts.get(of, 0) + 1
        if count <= most:
            last[of] = len(kept)
            kept.append(item)
    return kept, {last[of]: count - most for of, count in counts.items() if count > most}


def _closed(findings: Iterable[Finding], more: Mapping[int, int]) -> Iterator[Finding]:
    """Findings, some of which stand for others as well. Of one object not all may have been counted, so these are the least."""
    for at, found in enumerate(findings):
        if at not in more:
            yield found
            continue
        yield found._replace(more=found.more + more[at])


def _rejected(said: Mapping[str, list[Problem]]) -> dict[Document, list[Path]]:
    """The documents that the API server rejects, with the places of what it rejects."""
    rejected: dict[Document, list[Path]] = {}
    for problems in said.values():
        for problem in problems:
            if problem.apiserver is not None and problem.place.document is not None:
                rejected.setdefault(problem.place.document, []).append(problem.place.path)
    return rejected


def _is_part_of_rejection(problem: Problem, rejected: Mapping[Document, list[Path]]) -> bool:
    """Whether the API server rejects the value of a problem, a part of it, the list of strings it is in, or the whole object."""
    if problem.place.document is None:
        return False
    path = problem.place.path
    strings = path[:-1] if path and isinstance(path[-1], int) and path[-2] != "subjects" else path
    return any(
        len(place) < 2 or place[: len(path)] == path or strings in (place, place[:-1])
        for place in rejected.get(problem.place.document, ())
    )


def _skipped(loaded: Iterable[Loaded]) -> Iterator[Skipped]:
    """Yield what was not checked: objects of other kinds, then templates."""
    for part in loaded:
        for reason, count in part.skipped.items():
            yield Skipped(part.source.name, reason, count)
    for part in loaded:
        if count := sum(trouble.what == "template" for trouble in part.troubles):
            yield Skipped(part.source.name, "template or patch, not a manifest yet", count)


def _follow_ups(known: Workspace) -> dict[Document, set[Path]]:
    """The mappings with a misspelt or misplaced field, by document.

    What is missing beside such a field (`user` where `usr` was written) is the same mistake told twice, so that is left out.
    """
    return {
        manifest.document: {violation.path[:-1] for violation in manifest.violations}
        for manifest in known.manifests
        if manifest.violations
    }


def _is_follow_up(problem: Problem, follow_ups: dict[Document, set[Path]], release: Release) -> bool:
    place = problem.place
    if place.document is None:
        return False
    if problem.apiserver and (problem.apiserver.reason == "BadRequest" or not release.strict_decoding):
        return False  # a server that is not strict goes on, and says this one too
    mappings = follow_ups.get(place.document, ())
    return place.path in mappings or (place.path[:-1] in mappings and not place.document.has(*place.path))


def _finding(rule_id: str, problem: Problem) -> Finding:
    rule = catalogue.rule(rule_id)
    place = problem.place
    document = place.document
    default: Severity = rule.severity if rule.severity != "off" else "info"
    return Finding(
        rule=rule_id,
        name=rule.name,
        severity=problem.severity or default,
        message=problem.message.rstrip("."),  # one or several sentences; the last goes without its stop
        file=place.source.name,
        span=place.span,
        object=ObjectRef(clipped(document.api_version), document.kind, clipped(document.name)) if document else None,
        field=field_path(place.path),
        apiserver=problem.apiserver,
        related=tuple(
            Related(elsewhere.place.source.name, elsewhere.place.span, elsewhere.message)
            for elsewhere in problem.related
        ),
        fix=problem.fix,
        url=rule.url,
        document=document,
        covered=problem.covered,
        involves=problem.involves,
        notes=problem.notes,
        help=problem.help,
        example=problem.example,
    )
