"""The findings of `apflint check` compared with what the enumeration says, in both directions."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from apflint.effective import Assumptions
from apflint.engine import Options, check
from apflint.releases import parse_release

from . import server
from .claims import UNPROTECTED, Claims, claims, is_covered, matches_nothing, names_of_built_in, rules_of_part
from .configurations import built_in
from .examples import examples

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.finding import Finding

    from .configurations import Configuration
    from .server import Manifest

RULES = ("APF501", "APF502", "APF503", "APF504", "APF506", "APF507")
PROVEN = ("APF501", "APF502", "APF503", "APF507")
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
    """Return what `apflint check` reports about the manifests, each in a separate file, with everything in `message`."""
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
    """The differences between the findings of these rules and what is true."""
    return tuple(
        difference
        for difference in differences(configuration, claims(configuration), run_check(configuration))
        if difference.rule in rules
    )


def differences(configuration: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    for compared in (_unreachable, _ties, _captures):
        yield from compared(configuration, true, findings)


def _unreachable(configuration: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    """APF501 and APF502: the same parts, unless APF504 or APF506 says why a part matches nothing at all."""
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
        if finding.rule == "APF501" and finding.severity != ("error" if configuration.complete else "warning"):
            yield Difference(finding.rule, "false claim", f"{name}: severity {finding.severity}")


def _blockers(configuration: Configuration, finding: Finding) -> Iterator[Difference]:
    """What a finding names as the reason covers the part, and none of it could be left out."""
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
    if not is_covered(rules, [rule for blocker in named for rule in blocker]):
        yield Difference(finding.rule, "false claim", f"{name}: more is needed to cover {field}: {finding.message}")
    for at in range(len(named)):
        if is_covered(rules, [rule for blocker in (*named[:at], *named[at + 1 :]) for rule in blocker]):
            yield Difference(finding.rule, "false claim", f"{name}: less is needed to cover {field}: {finding.message}")


def flow_schemas(configuration: Configuration) -> dict[str, Manifest]:
    """All FlowSchemas by name: the built-in ones and, in place of those of the same name, the user's."""
    objects = (*built_in(configuration.kubernetes), *configuration.objects)
    return {server.name_of(manifest): manifest for manifest in objects if manifest["kind"] == "FlowSchema"}


def _rule_of(field: str | None) -> str:
    return "APF501" if field == "metadata.name" else "APF502"


def _is_explained(configuration: Configuration, part: tuple[str, str], findings: Sequence[Finding]) -> bool:
    name, field = part
    inside = [finding for finding in findings if finding.rule in EXPLAINING and name_of(finding) == name]
    if field != "metadata.name":
        inside = [finding for finding in inside if (finding.field or "").startswith(f"{field}.")]
    return bool(inside) and matches_nothing(flow_schemas(configuration)[name], field)


def _ties(configuration: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    """APF503: one finding for each precedence, which names the tied FlowSchemas and no others.

    Harmless ties are reported as information if there are no others of this precedence. The tie of an unreachable FlowSchema
    is left to APF501, and a copy of a FlowSchema to APF516.
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
    """A value whose lists are sets: neither the order nor the repetition of rules and their items has an effect."""
    if isinstance(value, dict):
        return frozenset((key, _without_order(item)) for key, item in value.items())
    return frozenset(map(_without_order, value)) if isinstance(value, list) else value


def _captures(configuration: Configuration, true: Claims, findings: Sequence[Finding]) -> Iterator[Difference]:
    """APF507: the same pairs of a FlowSchema of the user's and a protected FlowSchema."""
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


def involved(finding: Finding, configuration: Configuration) -> frozenset[str]:
    """The FlowSchemas that a finding names: its object, those of related places, and names in quotes.

    A tie is between FlowSchemas of finding precedence: other names in quotes are those of priority levels.
    """
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
    """The name of the object that a finding is about."""
    assert finding.object is not None
    return finding.object.name or ""


def _file_name(configuration: Configuration, file: str) -> str:
    """The name of the object in a file."""
    kind, _, number = file.removesuffix(".json").partition("-")
    manifests = configuration.context if kind == "context" else configuration.manifests
    return server.name_of(manifests[int(number)])
