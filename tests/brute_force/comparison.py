"""Comparison of the findings of `apflint check` with the enumeration: false claims and missed cases."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from apflint.effective_configuration import Assumptions
from apflint.engine import Options, check
from apflint.releases import parse_release

from . import server
from .claims import (
    UNPROTECTED,
    Claims,
    assumed_levels,
    claims,
    is_covered,
    matches_nothing,
    names_of_built_in,
    rules_of_part,
)
from .configurations import built_in
from .examples import examples
from .losses import captured_methods, losses, missed_paths
from .outsider_comparison import outsider_differences

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.finding import Finding

    from .configurations import Configuration
    from .server import Manifest

RULES = ("APF501", "APF502", "APF503", "APF504", "APF506", "APF507", "APF508", "APF514", "APF517", "APF518", "APF601")
PROVEN = ("APF501", "APF502", "APF503", "APF507", "APF508", "APF514", "APF517", "APF518", "APF601")
EXPLAINING = ("APF504", "APF506")
PART = re.compile(r"spec\.rules\[\d+\](?:\.\w+\[\d+\])?")
BLOCKER = re.compile(r'"([^"]+)" \((?:precedence )?\d+\)')
QUOTED = re.compile(r'"([^"]+)"')


class Difference(NamedTuple):
    """A false claim of a rule, or a case that the rule misses."""

    rule: str
    kind: str
    """`miss` or `false claim`."""
    detail: str


def run_check(configuration: Configuration) -> tuple[Finding, ...]:
    """Return the findings of `apflint check` in the manifests, which are checked in one file each.

    The field `message` of the returned findings also contains the notes and the help.
    """
    options = Options(
        parse_release(configuration.kubernetes), RULES, assumptions=Assumptions(complete=configuration.complete)
    )
    inputs, context = (
        [(f"{name}-{number}.json", json.dumps(manifest).encode()) for number, manifest in enumerate(manifests)]
        for name, manifests in (("input", configuration.manifests), ("context", configuration.context))
    )
    return tuple(
        finding._replace(message="\n".join((finding.message, *finding.notes, f"`{finding.example}`")))
        for finding in check(inputs, options, context).findings
    )


def compare(configuration: Configuration, rules: Sequence[str] = PROVEN) -> tuple[Difference, ...]:
    """Return the differences between the findings of these rules and the claims of the enumeration."""
    return tuple(
        difference
        for difference in differences(configuration, claims(configuration), run_check(configuration))
        if difference.rule in rules
    )


def differences(configuration: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    for compared in (_unreachable, _ties, _captures, _losses, _captured_methods, _missed_paths):
        yield from compared(configuration, true, findings)
    for difference in outsider_differences(configuration, true, findings):
        yield Difference(*difference)


def _unreachable(configuration: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    """Yield differences of APF501 and APF502.

    The rules must report all unreachable parts, except parts for which APF504 or APF506 reports why they match nothing.
    """
    reported = {
        (name_of(finding), finding.field): finding for finding in findings if finding.rule in ("APF501", "APF502")
    }
    for name, field in true.unreachable:
        if (name, field) not in reported and not _is_explained(configuration, (name, field), findings):
            yield Difference(_rule_of(field), "miss", f"{name}: {field} decides about no request")
    for (name, field), finding in reported.items():
        if (name, field) not in true.unreachable:
            yield Difference(finding.rule, "false claim", f"{name}: {field} decides about a request: {finding.message}")
        elif finding.rule != _rule_of(field):
            yield Difference(finding.rule, "false claim", f"{name}: {field} is reported by the wrong rule")
        else:
            yield from _blockers(configuration, finding)
        if finding.rule == "APF501":
            yield from _severity(configuration, name, finding)


def _severity(configuration: Configuration, name: str, finding: Finding) -> Iterator[Difference]:
    """Yield a difference if a finding does not have the expected severity.

    The expected severity is `error` if the finding is also true without the levels that no file defines, else
    `warning`.
    """
    has_assumed = not configuration.complete and bool(assumed_levels(configuration))
    if finding.severity == "error":
        without = claims(configuration._replace(complete=True)).unreachable if has_assumed else ()
        if has_assumed and (name, finding.field) not in without and name_of(finding) not in _skipped(configuration):
            yield Difference("APF501", "false claim", f"{name}: an error that an assumed level refutes")
    elif finding.severity != "warning" or not has_assumed:
        yield Difference("APF501", "false claim", f"{name}: severity {finding.severity}")


def _skipped(configuration: Configuration) -> set[str]:
    """Return the names of the FlowSchemas that are skipped if their assumed level does not exist."""
    stored = {server.name_of(manifest) for manifest in built_in(configuration.kubernetes)}
    assumed = {server.name_of(level) for level in assumed_levels(configuration)} - stored
    return {name for name, schema in flow_schemas(configuration).items() if server.level_of(schema) in assumed}


def _blockers(configuration: Configuration, finding: Finding) -> Iterator[Difference]:
    """Yield differences between the shadowing parts that a finding names and the enumeration.

    The named FlowSchemas and rules together must match all requests of the unreachable part, and none may be
    superfluous.
    """
    name, field = name_of(finding), str(finding.field)
    schemas = flow_schemas(configuration)
    own = schemas[name]
    others = [schemas[other] for other in sorted(set(BLOCKER.findall(finding.message)))]
    parts = sorted(set(PART.findall(finding.message)) - {field})
    if (
        any(server.matching_order(other) > server.matching_order(own) for other in others)
        or max(parts, default="") > field
    ):
        yield Difference(finding.rule, "false claim", f"{name}: something named comes later: {finding.message}")
    named = [*map(server.rules_of, others), *(rules_of_part(own, part) for part in parts)]
    rules = rules_of_part(own, field)
    if not is_covered(rules, [rule for blocker in named for rule in blocker], watches=configuration.watches):
        yield Difference(finding.rule, "false claim", f"{name}: more is needed to cover {field}: {finding.message}")
    for at in range(len(named)):
        fewer = [rule for blocker in (*named[:at], *named[at + 1 :]) for rule in blocker]
        if is_covered(rules, fewer, watches=configuration.watches):
            yield Difference(finding.rule, "false claim", f"{name}: less is needed to cover {field}: {finding.message}")


def flow_schemas(configuration: Configuration) -> dict[str, Manifest]:
    """Return all FlowSchemas by name. A FlowSchema of the user replaces the built-in one of the same name."""
    objects = (*built_in(configuration.kubernetes), *configuration.objects)
    return {server.name_of(manifest): manifest for manifest in objects if manifest["kind"] == "FlowSchema"}


def _rule_of(field: str | None) -> str:
    return "APF501" if field == "metadata.name" else "APF502"


def _is_explained(configuration: Configuration, part: tuple[str, str], findings: Sequence[Finding]) -> bool:
    name, field = part
    inside = [finding for finding in findings if finding.rule in EXPLAINING and name_of(finding) == name]
    if field != "metadata.name":
        inside = [finding for finding in inside if (finding.field or "").startswith(f"{field}.")]
    return bool(inside) and matches_nothing(flow_schemas(configuration)[name], field, watches=configuration.watches)


def _ties(configuration: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    """Yield the differences between the findings of APF503 and the ties that the enumeration found.

    APF503 must report one finding for each precedence, with exactly the tied FlowSchemas. If a
    precedence has harmful ties, the finding has the severity warning and contains the FlowSchemas of
    these ties. If all ties of a precedence are harmless, the finding has the severity info. Ties of
    unreachable FlowSchemas do not count, because APF501 reports these FlowSchemas. A harmless tie of
    two FlowSchemas with equal rules may be missing, because APF516 reports copies.
    """
    schemas = flow_schemas(configuration)
    unreachable = {name for name, field in true.unreachable if field == "metadata.name"}
    ties = {frozenset(pair): str(witness) for pair, witness in true.ties.items() if not unreachable & {*pair}}
    harmful = {pair for pair in ties if pair not in set(map(frozenset, true.harmless))}
    reported = [(finding, involved(finding, configuration)) for finding in findings if finding.rule == "APF503"]
    numbers = Counter(server.precedence_of(schemas[name_of(finding)]) for finding, _ in reported)
    decisive = {server.precedence_of(schemas[name]) for pair in harmful for name in pair}
    for pair, witness in ties.items():
        a, b = (schemas[name] for name in pair)
        is_copy = _without_order(server.rules_of(a)) == _without_order(server.rules_of(b))
        if pair in harmful or not (is_copy or server.precedence_of(a) in decisive):
            severity = "warning" if pair in harmful else "info"
            if not any(pair <= names and finding.severity == severity for finding, names in reported):
                yield Difference("APF503", "miss", f"{sorted(pair)} ({severity}): {witness}")
    for finding, names in reported:
        counted = set(ties) if finding.severity == "info" else harmful
        if unrelated := names.difference(*(pair for pair in counted if pair <= names)):
            detail = f"{sorted(unrelated)} tied with nothing (severity {finding.severity}): {finding.message}"
            yield Difference("APF503", "false claim", detail)
        for example in examples(finding.message):
            first, *others = example.path_through(true.order)
            if not any({first, other} <= names and frozenset({first, other}) in counted for other in others):
                yield Difference("APF503", "false claim", f"the example is not of the tie: {finding.message}")
    for number, count in numbers.items():
        if count > 1:
            yield Difference("APF503", "false claim", f"{count} findings about matchingPrecedence {number}")


def _without_order(value: object) -> object:
    """Convert the lists of a value to sets, because the order and the repetition of rules and their items have no
    effect."""
    if isinstance(value, dict):
        return frozenset((key, _without_order(item)) for key, item in value.items())
    return frozenset(map(_without_order, value)) if isinstance(value, list) else value


def _captures(configuration: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    """Yield differences of APF507, which must report all pairs (FlowSchema of the user, protected FlowSchema) and no others."""
    protected = names_of_built_in(configuration.kubernetes).difference(UNPROTECTED)
    reported = {
        (name_of(finding), name): finding
        for finding in findings
        if finding.rule == "APF507"
        for name in _quoted(finding) & protected
    }
    for pair, witness in true.captures.items():
        if pair not in reported:
            yield Difference("APF507", "miss", f"{pair}: {witness}")
    for pair, finding in reported.items():
        if pair not in true.captures:
            yield Difference("APF507", "false claim", f"{pair}: {finding.message}")
    for finding in {id(finding): finding for finding in reported.values()}.values():
        shown = {
            (example.path_through(true.order)[0], example.path_through(true.order_without_own)[0])
            for example in examples(finding.message)
        }
        if missing := {pair for pair, other in reported.items() if other is finding} - shown:
            yield Difference("APF507", "false claim", f"no example of {missing}: {finding.message}")


def _losses(configuration: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    """Yield differences of APF517.

    APF517 must report the same redefined FlowSchemas, each with a request that the original definition would capture.
    """
    reported = {name_of(finding): finding for finding in findings if finding.rule == "APF517"}
    lost = losses(configuration)
    for name, loss in lost.items():
        if name not in reported:
            yield Difference("APF517", "miss", f"{name}: {loss.witness}")
    schemas = {server.name_of(schema): schema for schema in true.order}
    for name, finding in reported.items():
        if name not in lost or finding.severity != lost[name].severity:
            yield Difference("APF517", "false claim", f"{name}: {finding.severity} {finding.message}")
            continue
        shown = [
            (example.path_through(lost[name].order_before)[0], example.path_through(true.order)[0])
            for example in examples(finding.message)
        ]
        if not shown or any(
            before != name or after == name or server.level_of(schemas[after]) in lost[name].kept_levels
            for before, after in shown
        ):
            yield Difference("APF517", "false claim", f"{name}: the example is not lost: {finding.message}")


def _captured_methods(configuration: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    """Yield differences of APF514, which must report all entries except those in unreachable parts (APF501, APF502)."""
    captured = {
        (name, field): captor
        for (name, field), captor in captured_methods(configuration).items()
        if not any(
            name == other and (part == "metadata.name" or f"{field}.".startswith(f"{part}."))
            for other, part in true.unreachable
        )
    }
    effective = {server.name_of(schema) for schema in true.order}
    reported = {
        (name_of(finding), finding.field or ""): finding
        for finding in findings
        if finding.rule == "APF514" and name_of(finding) in effective
    }
    for key, captor in captured.items():
        if key not in reported or captor not in _quoted(reported[key]):
            yield Difference("APF514", "miss", f"{key}: captured by {captor}")
    for key, finding in reported.items():
        if key not in captured:
            yield Difference("APF514", "false claim", f"{key}: {finding.message}")


def _missed_paths(configuration: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    """Yield differences of APF508, which must report all FlowSchemas with their rule, except unreachable FlowSchemas."""
    unreachable = {name for name, field in true.unreachable if field == "metadata.name"}
    missed = {item for item in missed_paths(configuration).items() if item[0] not in unreachable}
    reported = {(name_of(finding), finding.field): finding for finding in findings if finding.rule == "APF508"}
    for item in missed - reported.keys():
        yield Difference("APF508", "miss", f"{item}")
    for item in reported.keys() - missed:
        yield Difference("APF508", "false claim", f"{item}: {reported[item].message}")


def involved(finding: Finding, configuration: Configuration) -> frozenset[str]:
    """Return the FlowSchemas that a finding names: its object, the objects of related places, and names in quotes.

    A finding about a tie names only FlowSchemas of one precedence. All other quoted names are names of priority levels."""
    schemas = flow_schemas(configuration)
    related = {_file_name(configuration, place.file) for place in finding.related}
    quoted = {name for name in _quoted(finding) if name in schemas}
    if finding.rule == "APF503":
        number = server.precedence_of(schemas[name_of(finding)])
        quoted = {name for name in quoted if server.precedence_of(schemas[name]) == number}
    return frozenset({name_of(finding)} | related | quoted)


def _quoted(finding: Finding) -> set[str]:
    return set(QUOTED.findall(finding.message))


def name_of(finding: Finding) -> str:
    """Return the name of the object of a finding."""
    assert finding.object is not None
    return finding.object.name or ""


def _file_name(configuration: Configuration, file: str) -> str:
    """Return the name of the object in a file."""
    kind, _, number = file.removesuffix(".json").partition("-")
    manifests = configuration.context if kind == "context" else configuration.manifests
    return server.name_of(manifests[int(number)])
