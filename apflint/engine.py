"""Runs the checks, and turns the problems that they yield into findings with rule, severity, line and column."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from apflint import rule_catalogue
from apflint.budgets import MAX_EXAMPLE_CHARACTERS, MAX_FINDINGS_PER_RULE
from apflint.checks import ABOUT_CAPTURED_REQUESTS, ABOUT_TAKEN_SEATS, CHECKS, SINGLE_VALUE, rules_of
from apflint.effective_configuration import Assumptions, Effective
from apflint.finding import Finding, ObjectRef, Related, Report, SkippedDocuments
from apflint.load import load, load_text
from apflint.load.helm_output import split_helm_output
from apflint.load.source_text import STDIN
from apflint.location import clipped, field_path
from apflint.named_tuple import NamedTuple
from apflint.releases import NEWEST
from apflint.rule_selection import select_rules
from apflint.spelling import limit_comparisons
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence

    from apflint.finding import Problem
    from apflint.load import Loaded
    from apflint.load.document import Document
    from apflint.location import Path, Span
    from apflint.releases import Release

T = TypeVar("T")


class Options(NamedTuple):
    """Options of a check of manifests."""

    kubernetes: Release = NEWEST
    rules: tuple[str, ...] = select_rules()
    """IDs of the rules to run."""
    assumptions: Assumptions = Assumptions()
    suppressions: bool = True
    """Whether to respect suppressions in manifests."""
    adjust: Callable[[Finding], Finding | None] | None = None
    """Function that applies the settings of a project to a finding. The function may change the severity, or return
    None to omit the finding."""
    helm: bool = True
    """Whether to recognize the output of `helm template` on standard input. Findings then name the template files."""
    max_findings_per_rule: int = MAX_FINDINGS_PER_RULE
    """Maximum number of findings to report for a rule, file and severity. Further findings are only counted."""
    covered: bool = False
    """Whether to include covered findings. A covered finding repeats another finding of its rule, but at a different place, with its own
    fix."""


def check(
    inputs: Iterable[tuple[str, str | bytes]],
    options: Options = Options(),  # noqa: B008  # immutable
    context: Iterable[tuple[str, str | bytes]] = (),
) -> Report:
    """Check inputs as one configuration, and return the report.

    An input is (name, text or bytes). Inputs in `context` are read, but get no findings.
    """
    return check_loaded(load_inputs(inputs, helm=options.helm), load_inputs(context), options)


def check_loaded(loaded: Sequence[Loaded], context: Iterable[Loaded], options: Options) -> Report:
    """Check loaded files as one configuration, and return the report. Report no findings in the files of `context`."""

    # This code is in a nested function, so that Python frees the memory of the configuration when the function returns.
    # `build_report` needs this memory, because it parses documents again to find the positions of findings.
    def find() -> Found:
        workspace = build_workspace(loaded, options.kubernetes, context)
        return find_problems(Effective(workspace, options.assumptions), options)

    return build_report(loaded, find(), options, options.kubernetes.name)


def load_inputs(inputs: Iterable[tuple[str, str | bytes]], *, helm: bool = True) -> list[Loaded]:
    """Load inputs, given as (name, text or bytes). Return the loaded parts of all inputs.

    If `helm` is true and standard input is the output of `helm template`, each template in this output is one part.
    Every other input is one part.
    """
    loaded: list[Loaded] = []
    for name, content in inputs:
        sources = None
        if helm and name == STDIN:
            sources = split_helm_output(content if isinstance(content, str) else content.decode("utf-8", "replace"))
        loaded += [load(name, content)] if sources is None else map(load_text, sources)
    return loaded


def report(loaded: Sequence[Loaded], effective: Effective, options: Options) -> Report:
    """Return the report about the loaded files, with findings sorted by place.

    `effective` must be derived from the same files. The release and the assumptions of `effective` replace those in
    `options`.
    """
    found = find_problems(effective, options)
    return build_report(loaded, found, options, effective.release.name)


class Found(NamedTuple):
    """The problems that the checks find in a configuration."""

    problems: list[tuple[str, Problem]]
    """Pairs of a rule ID and a problem, before suppressions are applied."""
    is_complete: bool
    """Whether the analysis rules saw all objects. Analysis rules do not see objects that the API server rejects."""


def find_problems(
    effective: Effective, options: Options, validate: Callable[[str], list[Problem]] | None = None
) -> Found:
    """Run the rules of `options`, and return their problems. The problems include those that suppressions hide.

    `validate` takes the ID of a validation rule, and returns the problems of this rule. A caller that has already
    computed these problems passes `validate`. If `validate` is None, the validation rules run.
    """
    with limit_comparisons():
        run = _CheckRun(effective, validate or (lambda rule: list(CHECKS[rule].find(effective))))
        return Found(list(run.find(options.rules, covered=options.covered)), not run.rejected)


def build_report(loaded: Sequence[Loaded], found: Found, options: Options, kubernetes: str) -> Report:
    """Return the report about the loaded files, with findings sorted by place.

    Problems in `found` that comments or annotations suppress are left out, unless `options.suppressions` is false.
    `kubernetes` is the release in the report.
    """
    problems: Iterable[tuple[str, Problem]] = found.problems
    suppressed = 0
    if options.suppressions and any("apflint" in part.source.text for part in loaded):
        from apflint.suppressions.matching import apply_suppressions

        # Analysis rules ignore objects that the API server rejects. So a suppression of an analysis rule may look
        # unused only because its object is rejected. If there are rejected objects, no suppression of an analysis rule
        # counts as unused.
        complete = options.rules if found.is_complete else set(options.rules) - rules_of("analysis")
        with limit_comparisons():
            kept, suppressed, about = apply_suppressions(
                loaded, found.problems, complete, options.rules, options.max_findings_per_rule
            )
        problems = (*kept, *about)

    def kind(found: tuple[str, Problem]) -> Hashable:
        rule, problem = found
        return rule, problem.place.source.name, problem.severity, problem.apiserver is None

    findings = [
        make_finding(rule, problem)._replace(more=left_out)
        for (rule, problem), left_out in _limit(problems, kind, options.max_findings_per_rule)
    ]
    if options.adjust is not None:
        findings = [adjusted for finding in findings if (adjusted := options.adjust(finding)) is not None]
    findings.sort(key=_order)
    return Report(
        kubernetes=kubernetes,
        findings=tuple(findings),
        files=len(loaded),
        objects=sum(len(part.documents) for part in loaded),
        skipped=tuple(_skipped(loaded)),
        suppressed=suppressed,
        sources={part.source.name: part.source for part in loaded},
        files_with_objects=frozenset(part.source.name for part in loaded if part.documents),
    )


class _CheckRun:
    """Runs checks on one configuration, and selects the problems to report."""

    def __init__(self, effective: Effective, validate: Callable[[str], list[Problem]]) -> None:
        self._effective = effective
        self._validation = {rule: validate(rule) for rule, check in CHECKS.items() if check.phase == "validation"}
        self.rejected: dict[Document, list[Path]] = {}
        """The documents that the API server rejects, with the paths of the rejected values."""
        for problem in chain.from_iterable(self._validation.values()):
            if problem.apiserver is not None and problem.place.document is not None:
                self.rejected.setdefault(problem.place.document, []).append(problem.place.path)
        self._accepted = effective.without(self.rejected)
        self._misspelled = {
            manifest.document: {violation.path[:-1] for violation in manifest.violations}
            for manifest in effective.workspace.manifests
            if manifest.violations
        }
        """Maps documents to the paths of mappings with a schema violation, such as an unknown field."""

    def find(self, rules: Collection[str], *, covered: bool) -> Iterator[tuple[str, Problem]]:
        """Yield (rule ID, problem) for each problem of `rules`, except problems that another problem explains.

        Omit problems that result from a cause that another problem reports, such as a misspelled field.
        Also omit problems that another problem of the same rule covers (`Problem.covered`), unless
        `covered` is true.
        """
        for rule in rules:
            for problem in self._find(rule):
                if (
                    (covered or not problem.covered)
                    and not self._is_caused_by_misspelling(problem)
                    and not ("APF501" in rules and self._is_about_unreachable(rule, problem))
                    and not ("APF403" in rules and self._is_about_unused(rule, problem))
                ):
                    yield rule, problem

    def _find(self, rule: str) -> Iterable[Problem]:
        check = CHECKS[rule]
        if check.phase == "validation":
            return self._validation[rule]
        if check.phase == "consistency":
            return check.find(self._effective)
        if self.rejected and SINGLE_VALUE in check.tags:
            return (problem for problem in check.find(self._effective) if not self._is_part_of_rejection(problem))
        return check.find(self._accepted)

    def _is_part_of_rejection(self, problem: Problem) -> bool:
        """Return whether the API server rejects the object because of the value that causes the problem.

        Let V be the value that causes the problem. The result is True if the server rejects V, a value
        inside of V, or the whole object. If V is an item of a list of strings, the result is also True if
        the server rejects the list or another item of the list.
        """
        document, path = problem.place.document, problem.place.path
        strings = path[:-1] if path and isinstance(path[-1], int) and path[-2] != "subjects" else path
        return document is not None and any(
            len(rejected) < 2 or rejected[: len(path)] == path or strings in (rejected, rejected[:-1])
            for rejected in self.rejected.get(document, ())
        )

    def _is_caused_by_misspelling(self, problem: Problem) -> bool:
        """Return whether to omit a problem, because another finding already reports its cause: a misspelled field.

        For example, a required field is missing because the name of the field is misspelled. The result is False if the
        server has no strict decoding and rejects the object for the problem: such a server ignores the misspelled
        field, so only the problem shows why the object is rejected.
        """
        place = problem.place
        if place.document is None or place.document not in self._misspelled:
            return False
        if problem.apiserver and (
            problem.apiserver.reason == "BadRequest" or not self._effective.release.strict_decoding
        ):
            return False
        mappings = self._misspelled[place.document]
        return place.path in mappings or (place.path[:-1] in mappings and not place.document.has(*place.path))

    def _is_about_unreachable(self, rule: str, problem: Problem) -> bool:
        """Return whether to omit a problem about requests that a FlowSchema captures, because it captures none.

        APF501 already reports that the FlowSchema captures no requests.
        """
        document = problem.place.document
        return (
            ABOUT_CAPTURED_REQUESTS in CHECKS[rule].tags
            and document is not None
            and document.kind == "FlowSchema"
            and document in self._accepted.unreachable_documents
        )

    def _is_about_unused(self, rule: str, problem: Problem) -> bool:
        """Return whether a problem of `rule` is only about seats of priority levels that APF403 reports as unused."""
        return ABOUT_TAKEN_SEATS in CHECKS[rule].tags and all(
            place.document in self._unused_documents for place in problem.places
        )

    @cached_property
    def _unused_documents(self) -> frozenset[Document | None]:
        return frozenset(problem.place.document for problem in self._find("APF403"))


def _limit(items: Iterable[T], kind: Callable[[T], Hashable], maximum: int) -> Iterator[tuple[T, int]]:
    """Yield (item, number) for the first `maximum` items of each kind. `kind` returns the kind of an item.

    For the last yielded item of a kind, `number` is the number of items of this kind that are not yielded. For all
    other items, `number` is 0.
    """
    groups: dict[Hashable, list[T]] = {}
    counts: Counter[Hashable] = Counter()
    for item in items:
        key = kind(item)
        counts[key] += 1
        if counts[key] <= maximum:
            groups.setdefault(key, []).append(item)
    for key, (*first, last) in groups.items():
        yield from ((item, 0) for item in first)
        yield last, counts[key] - len(first) - 1


def _order(finding: Finding) -> tuple[str, Span, str, str]:
    return finding.file, finding.span, finding.rule, finding.message


def limit_findings(report: Report) -> Report:
    """Return a report with fewer findings, as `check` prints it by default.

    Findings that another finding already reports (`Finding.covered`) are omitted. Of the other findings with the same
    rule, file and severity, at most MAX_FINDINGS_PER_RULE remain.
    """
    findings = (finding for finding in report.findings if not finding.covered)
    limited = _limit(
        findings, lambda item: (item.rule, item.file, item.severity, item.apiserver is None), MAX_FINDINGS_PER_RULE
    )
    kept = (finding._replace(more=finding.more + left_out) for finding, left_out in limited)
    return report._replace(findings=tuple(sorted(kept, key=_order)))


def _skipped(loaded: Iterable[Loaded]) -> Iterator[SkippedDocuments]:
    """Yield the number of documents that were not checked, for each file and each reason.

    Documents that are not APF objects come first, and templates come last.
    """
    for part in loaded:
        for reason, count in part.skipped.items():
            yield SkippedDocuments(part.source.name, reason, count)
    for part in loaded:
        if count := sum(problem.kind == "template" for problem in part.problems):
            yield SkippedDocuments(part.source.name, "template or patch, not a manifest yet", count)


def make_finding(rule_id: str, problem: Problem) -> Finding:
    """Turn a problem into a finding, with the place of the problem as lines and columns."""
    rule = rule_catalogue.read_rule(rule_id)
    place = problem.place
    document = place.document
    return Finding(
        rule=rule_id,
        name=rule.name,
        severity=problem.severity or ("info" if rule.severity == "off" else rule.severity),
        message=problem.message.rstrip("."),
        file=place.source.name,
        span=place.span,
        object=ObjectRef(clipped(document.api_version), document.kind, clipped(document.name)) if document else None,
        field=field_path(place.path),
        apiserver=problem.apiserver,
        related=tuple(Related(other.place.source.name, other.place.span, other.message) for other in problem.related),
        fix=problem.fix,
        url=rule.url,
        document=document,
        covered=problem.covered,
        involves=problem.involves,
        notes=problem.notes,
        help=problem.help,
        example=problem.example if len(problem.example or "") <= MAX_EXAMPLE_CHARACTERS else None,
        is_template=problem.is_template,
        clusters=problem.clusters,
    )
