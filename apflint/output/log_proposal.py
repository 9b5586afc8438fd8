"""Proposals from an audit log as text, Markdown, HTML and JSON."""

from __future__ import annotations

import json
import shlex
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from apflint.model import shares_field
from apflint.output.blocks import DOCUMENTS, TEXT, Bullets, Facts, Heading, Only, Prose, Text
from apflint.output.json_text import SCHEMA
from apflint.output.proposal import TITLE
from apflint.output.proposal_files import files_json, list_checks, report_files, report_steps
from apflint.output.wanted_seats import levels_json, tabulate_seats
from apflint.propose.candidates import SHARES
from apflint.propose.changes import FlowSchemaFieldChange, NewFlowSchema, NewLevel
from apflint.propose.goals import write_subject
from apflint.propose.proof import MEASURED, RETURNED, UNAVOIDABLE
from apflint.simulate.field_overrides import LevelFieldChange
from apflint.simulate.load import SECOND
from apflint.simulate.verdict_sentences import format_time
from apflint.wording import count_noun, join_words, pluralize, quote, write_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from apflint.output.blocks import Block, Inline
    from apflint.output.proposal_files import ProposalFiles
    from apflint.propose.changes import Change
    from apflint.propose.effects import ClientEffect
    from apflint.propose.incidents import Incident
    from apflint.propose.log_causes import LogCause
    from apflint.propose.log_proposal import LoadEffect, LogAnswer, LogEvidence, LogProposal
    from apflint.propose.search import Searched
    from apflint.simulate.back_test import LevelFigures

_LABEL_CELLS = 10
_MAX_EFFECTS = 8
_MAX_REJECTED = 8
_MICROSECONDS = 1_000_000


def report_log_answer(answer: LogAnswer, files: ProposalFiles | None, configuration: str) -> Iterator[Block]:
    """Yield the evidence, the cause, the proposal or the reason why there is none, rejected alternatives, files, and commands."""
    yield Only(DOCUMENTS, [Heading(TITLE, 1)])
    yield Only(TEXT, [Prose([f"Configuration: {configuration}"], "dim")])
    yield Only(DOCUMENTS, [Prose([f"Configuration: {configuration}"])])
    yield Facts([*_list_facts(answer)], _LABEL_CELLS)
    proposal = answer.proposal
    if proposal is None or files is None:
        yield Prose([Text(f"No proposal: {answer.reason}.", "bold" if answer.is_usable else "error")])
        if not answer.is_usable and answer.evidence.back_test is not None:
            yield Bullets([*answer.evidence.back_test.reasons])
        if answer.advice:
            yield Prose([write_sentence(answer.advice)])
        return
    if any(change.is_changed for change in proposal.proof.levels):
        yield Only(TEXT, [Heading("Seats in each API server")])
        yield tabulate_seats(
            proposal.proof.levels,
            ["All levels share the seats of a server: if one level gets more seats, other levels get fewer."],
        )
    yield from report_files(files, proposal.manifests, proposal.policy_test)
    yield from report_steps(list_log_steps(proposal, files))


def _list_facts(answer: LogAnswer) -> Iterator[tuple[str, Inline]]:
    yield from _label("Evidence", _describe_evidence(answer.evidence, is_searched=answer.searched is not None))
    yield from _label("Cause", _describe_cause(answer))
    proposal = answer.proposal
    if answer.client_fix:
        other = "" if proposal is None else ". Change objects only if the change of the client takes too long"
        yield from _label("First", [f"{answer.client_fix}{other}"])
    if proposal is not None:
        yield from _label("Proposal", [join_words(map(_describe_change, proposal.candidate.changes), "and")])
        yield from _label("  change", list_edits(proposal))
        yield from _label("  seats", _describe_new_seats(proposal, answer.evidence.servers))
        yield from _label("  moves", _describe_moves(proposal))
        yield from _label("  costs", [_describe_cost(proposal)])
        yield from _label("  effect", _describe_effects(answer, proposal))
        yield from _label("  needed", [f"{need.change}, {need.misses[0]}" for need in proposal.needs])
        yield from _label("  check", [_describe_findings(proposal)])
    yield from _label("Rejected", [*answer.rejected[:_MAX_REJECTED]])


def _label(label: str, lines: Sequence[str]) -> Iterator[tuple[str, Inline]]:
    for number, line in enumerate(lines):
        yield ("" if number else label), line


def _format_moment(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / _MICROSECONDS, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _describe_evidence(evidence: LogEvidence, *, is_searched: bool) -> list[str]:
    lines = [
        f"{count_noun(evidence.requests, 'request')} in {evidence.seconds:,.0f} s, {count_noun(evidence.servers, 'API server')}"
    ]
    test = evidence.back_test
    if test is not None:
        logged, simulated = test.logged, test.simulated
        verdict = "usable" if test.is_usable else "not usable"
        lines.append(
            f"back-test: {simulated.rejected:,} rejections simulated, {logged.rejected:,} logged; P99 wait"
            f" {_format_wait(simulated)} simulated, {_format_wait(logged)} logged; the simulation is {verdict}"
        )
    if evidence.split is not None:
        lines.append(
            f"the search used the requests before {_format_moment(evidence.split)[11:]} only, and the effects are computed from the later requests"
        )
    elif is_searched:
        lines.append(
            "the incident is too short to be divided: the effects are computed from the same requests that the search used"
        )
    return [*lines, *evidence.notes]


def _format_wait(figures: LevelFigures) -> str:
    return "at most 500 ms" if figures.wait_p99 is None else format_time(figures.wait_p99)


def _describe_cause(answer: LogAnswer) -> list[str]:
    lines = []
    cause, observed = answer.cause, answer.observed
    if cause is not None and not answer.is_usable:
        lines.append("uncertain, because the simulation does not reproduce the log:")
    if cause is not None and answer.evidence.incidents:
        lines.append(f"{answer.evidence.incidents[0].describe()}: {cause.message}")
        lines += cause.evidence
    if observed is not None:
        lines.append(f"metrics ({observed.cause}): {observed.message}")
    lines += [_describe_other(*other) for other in answer.others]
    if (more := len(answer.evidence.incidents) - len(answer.others) - 1) > 0:
        lines.append(f"{count_noun(more, 'other incident')} in the log: not examined")
    return lines


def _describe_other(incident: Incident, cause: LogCause | None) -> str:
    """Return a sentence about an incident for which the report has no proposal."""
    found = "no priority level is overloaded" if cause is None else f"{cause.cause}: {cause.message}"
    helps = cause is not None and cause.is_configuration and not cause.is_contained
    advice = (
        f"; to get a proposal, add --since {_iso(incident.start)} --until {_iso(incident.end)}"
        if helps
        else "; no proposal"
    )
    return f"{incident.describe()}: {found}{advice}"


def _describe_change(change: Change) -> str:
    match change:
        case NewLevel():
            borrowing = (
                ""
                if change.borrowing_limit_percent is None
                else f", borrowingLimitPercent {change.borrowing_limit_percent}"
            )
            queuing = change.queuing
            queues = "" if queuing is None else f", {count_noun(queuing.queues, 'queue')}, hand {queuing.hand_size}"
            return f"new priority level {quote(change.name)}: {count_noun(change.shares, 'share')}{queues}{borrowing}"
        case NewFlowSchema():
            return f"new FlowSchema {quote(change.name)} ({change.matching_precedence}) -> level {quote(change.level)}"
        case FlowSchemaFieldChange():
            return f"FlowSchema {quote(change.flow_schema)}: {change.field} {change.value}"
    value = "absent" if change.value is None else change.value
    return f"priority level {quote(change.level)}: {change.field} {value}"


def list_edits(proposal: LogProposal) -> list[str]:
    """Return the changed fields with their file and line in the manifests of the user."""
    edits = []
    for change in proposal.candidate.changes:
        if isinstance(change, LevelFieldChange):
            document = proposal.before.configuration.levels[change.level].document
            name = shares_field(document.version) if change.field == SHARES else change.field
            path = find_field(document.value, name)
        elif isinstance(change, FlowSchemaFieldChange):
            order = proposal.before.configuration.order
            document = next(schema for schema in order if schema.name == change.flow_schema).document
            name, path = change.field, ("spec", change.field)
        else:
            continue
        if not document.source.is_live:
            line = document.span(path if path is not None else ("spec",)).line
            edits.append(f"{document.source.name}:{line}: {name}: {'remove' if change.value is None else change.value}")
    return edits


def find_field(value: Mapping[str, object], name: str) -> tuple[str, ...] | None:
    """Return the path of the field `name` in the object of a priority level, or None if the field is absent."""
    for path in (("spec", "limited"), ("spec", "limited", "limitResponse", "queuing")):
        found: Any = value
        for step in path:
            found = found.get(step) if isinstance(found, dict) else None
        if isinstance(found, dict) and name in found:
            return (*path, name)
    return None


def _describe_new_seats(proposal: LogProposal, servers: int) -> list[str]:
    """Return the nominal seats of new levels in each API server, and in all API servers whose requests the log has."""
    new = [change.new for change in proposal.proof.levels if change.old is None and change.new is not None]
    return [
        f"{pluralize(limits.nominal, 'nominal seat')} in each API server"
        + (f"; with the {servers} API servers of the log, {servers * limits.nominal:,} in all" if servers > 1 else "")
        for limits in new
    ]


def _describe_moves(proposal: LogProposal) -> list[str]:
    isolation, moves = proposal.candidate.isolation, proposal.proof.moves
    share = f"{proposal.moved_share:.1%} of the simulated requests"
    if not moves:
        return ["no request moves to another FlowSchema; proven for all requests"]
    if isolation is not None:
        who = join_words(map(write_subject, isolation.goal.subjects), "and")
        return [
            f"exactly the requests of {who}; proven for all requests; {share}",
            "no request of a system component moves; proven for all requests",
        ]
    names = join_words(dict.fromkeys(quote(move.to_schema.name) for move in moves), "and")
    return [
        f"requests of the FlowSchema {quote(proposal.candidate.schema)} go back to {names}, and no other requests move; proven for all requests; {share}"
    ]


def _describe_cost(proposal: LogProposal) -> str:
    losers = sorted((change for change in proposal.proof.levels if change.gain < 0), key=lambda change: change.gain)
    if not losers:
        return "no level has fewer seats"
    return (
        join_words(
            [
                f"{change.name} {change.old.nominal} -> {change.new.nominal}"
                for change in losers
                if change.old and change.new
            ],
            "and",
        )
        + " nominal seats"
    )


def _describe_effects(answer: LogAnswer, proposal: LogProposal) -> list[str]:
    effects = proposal.effects
    lines = [*map(_describe_effect, effects[:_MAX_EFFECTS])]
    if more := len(effects) - len(lines):
        lines.append(f"{count_noun(more, 'other client')}: JSON has their figures")
    if not effects:
        lines.append("the waits and rejections of all clients stay the same")
    if answer.evidence.period is not None:
        lines.append(
            "waits in the first 10 s, before the server adjusts limits, do not count, but rejections in this time count"
        )
    lines += [
        f"at {load.scale:g} times the load {load.misses[0] if load.misses else 'the goals are met, too'}"
        for load in proposal.loads
    ]
    return [*lines, *(f"not predicted: {sentence}" for sentence in proposal.unpredictable)]


def _describe_effect(effect: ClientEffect) -> str:
    before, after = effect.before, effect.after
    parts = []
    if before.wait_p99 != after.wait_p99:
        parts.append(f"P99 wait {format_time(before.wait_p99)} -> {format_time(after.wait_p99)}")
    if before.rejected != after.rejected:
        parts.append(
            f"{before.rejected:,} -> {after.rejected:,} rejections of {before.requests:,} requests and their retries"
        )
    return f"{effect.client.user} ({effect.client.level}): {', '.join(parts)}"


def _describe_findings(proposal: LogProposal) -> str:
    findings = proposal.proof.findings
    if not findings:
        return "`apflint check` has no new finding"
    known = _list_reasons(proposal)
    parts = [f"{finding.rule} ({known[finding.rule]})" for finding in findings]
    return f"`apflint check` has no new finding, except {join_words(parts, 'and')}"


def _list_reasons(proposal: LogProposal) -> dict[str, str]:
    """Return a mapping from rule IDs to the reasons why new findings of the rules do not prevent a proposal."""
    return {**UNAVOIDABLE, **(RETURNED if proposal.candidate.isolation is None else {}), **MEASURED}


def list_log_steps(proposal: LogProposal, files: ProposalFiles) -> dict[str, list[str]]:
    """Return the command lines that verify a proposal, apply it, and roll it back."""
    # Delete FlowSchemas before levels. When a FlowSchema is deleted, its requests go to their former FlowSchemas. So no request
    # uses a new level when the level is deleted.
    changes = sorted(proposal.candidate.changes, key=lambda change: isinstance(change, NewLevel))
    back = [_roll_back(proposal, change, files.kubectl) for change in changes]
    return {
        "verify": list_checks(files, proposal.manifests, proposal.policy_test),
        "apply": [f"{files.kubectl} apply -f {shlex.quote(files.manifests)}"],
        "rollBack": back,
    }


def _roll_back(proposal: LogProposal, change: Change, kubectl: str) -> str:
    match change:
        case NewLevel():
            return f"{kubectl} delete prioritylevelconfiguration {change.name}"
        case NewFlowSchema():
            return f"{kubectl} delete flowschema {change.name}"
        case FlowSchemaFieldChange():
            schema = next(schema for schema in proposal.before.configuration.order if schema.name == change.flow_schema)
            stored: dict[str, Any] = schema.document.value
            value = stored["spec"].get(change.field)
            return _patch(kubectl, "flowschema", change.flow_schema, {change.field: value})
    document = proposal.before.configuration.levels[change.level].document
    manifest: dict[str, Any] = document.value
    limited: dict[str, Any] = manifest["spec"].get("limited") or {}
    if change.field not in ("queues", "handSize", "queueLengthLimit"):
        spec: dict[str, Any] = {"limited": {change.field: limited.get(change.field)}}
    else:
        queuing = (limited.get("limitResponse") or {}).get("queuing") or {}
        spec = {"limited": {"limitResponse": {"queuing": {change.field: queuing.get(change.field)}}}}
    return _patch(kubectl, "prioritylevelconfiguration", change.level, spec)


def _patch(kubectl: str, kind: str, name: str, spec: Mapping[str, object]) -> str:
    patch = json.dumps({"spec": spec}, separators=(",", ":"))
    return f"{kubectl} patch {kind} {name} --type merge -p {shlex.quote(patch)}"


def log_answer_json(answer: LogAnswer, files: ProposalFiles | None) -> dict[str, object]:
    """Return the object that `propose LOG --format json` prints. Times are in seconds."""
    proposal = answer.proposal
    return {
        "schema": SCHEMA,
        "proposal": proposal is not None,
        "reason": answer.reason or None,
        "advice": answer.advice or None,
        "evidence": _evidence_json(answer.evidence, answer.others),
        "cause": None
        if answer.cause is None
        else {
            "cause": answer.cause.cause,
            "message": answer.cause.message,
            "priorityLevel": answer.cause.level or None,
            "flowSchema": answer.cause.schema or None,
            "users": [*answer.cause.users],
            "evidence": [*answer.cause.evidence],
        },
        "clientFix": answer.client_fix or None,
        "observedCause": None
        if answer.observed is None
        else {"cause": answer.observed.cause, "message": answer.observed.message},
        "search": None if answer.searched is None else _search_json(answer.searched),
        "rejected": [*answer.rejected],
        "change": None if proposal is None or files is None else _proposal_json(proposal, files),
    }


def _evidence_json(evidence: LogEvidence, others: Sequence[tuple[Incident, LogCause | None]]) -> dict[str, object]:
    test = evidence.back_test
    causes = {incident: None if cause is None else cause.cause for incident, cause in others}
    return {
        "requests": evidence.requests,
        "servers": evidence.servers,
        "seconds": evidence.seconds,
        "incidents": [
            {
                "start": _iso(incident.start),
                "end": _iso(incident.end),
                "harmed": incident.harmed,
                **({"cause": causes[incident]} if incident in causes else {}),
            }
            for incident in evidence.incidents
        ],
        "backtest": None
        if test is None
        else {
            "usable": test.is_usable,
            "logged": _figures_json(test.logged),
            "simulated": _figures_json(test.simulated),
            "reasons": [*test.reasons],
        },
        "heldOutFrom": None if evidence.split is None else _iso(evidence.split),
        "metrics": [
            {
                "file": time.file,
                "from": None if time.period is None else _iso(round(time.period[0] * _MICROSECONDS)),
                "to": None if time.period is None else _iso(round(time.period[1] * _MICROSECONDS)),
                "relation": time.relation,
                "counts": time.counts,
            }
            for time in evidence.metrics
        ],
        "notes": [*evidence.notes],
    }


def _iso(microseconds: int) -> str:
    return datetime.fromtimestamp(microseconds / _MICROSECONDS, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _figures_json(figures: LevelFigures) -> dict[str, object]:
    return {"rejected": figures.rejected, "waitP99": None if figures.wait_p99 is None else figures.wait_p99 / SECOND}


def _search_json(searched: Searched) -> dict[str, object]:
    return {
        "tried": [
            {
                "changes": [*map(_describe_change, entry.candidate.changes)],
                "cost": _cost_json(entry.candidate.cost),
                "misses": [*entry.misses],
            }
            for entry in searched.tried
        ],
        "ended": searched.ended or None,
    }


def _cost_json(cost: Sequence[int]) -> dict[str, int]:
    return dict(zip(("objects", "fields", "seats"), cost, strict=True))


def _proposal_json(proposal: LogProposal, files: ProposalFiles) -> dict[str, object]:
    known = _list_reasons(proposal)
    return {
        "changes": [*map(_describe_change, proposal.candidate.changes)],
        "cost": _cost_json(proposal.candidate.cost),
        "moves": [
            {
                "from": move.from_schema.name,
                "to": move.to_schema.name,
                "example": move.witness.command,
            }
            for move in proposal.proof.moves
        ],
        "movedShare": proposal.moved_share,
        "effects": [*map(_effect_json, proposal.effects)],
        "loads": [*map(_load_json, proposal.loads)],
        "needed": [{"field": need.field, "change": need.change, "misses": [*need.misses]} for need in proposal.needs],
        "unpredictable": [*proposal.unpredictable],
        "findings": [
            {"rule": finding.rule, "severity": finding.severity, "message": finding.message, "why": known[finding.rule]}
            for finding in proposal.proof.findings
        ],
        "levels": levels_json(proposal.proof.levels),
        "files": files_json(files, proposal.manifests, proposal.policy_test),
        "commands": list_log_steps(proposal, files),
    }


def _effect_json(effect: ClientEffect) -> dict[str, object]:
    return {
        "user": effect.client.user,
        "priorityLevel": effect.client.level,
        "requests": effect.before.requests,
        "rejectedBefore": effect.before.rejected,
        "rejectedAfter": effect.after.rejected,
        "waitP99Before": effect.before.wait_p99 / SECOND,
        "waitP99After": effect.after.wait_p99 / SECOND,
        "earlyWaitP99Before": effect.before.early_wait_p99 / SECOND,
        "earlyWaitP99After": effect.after.early_wait_p99 / SECOND,
    }


def _load_json(load: LoadEffect) -> dict[str, object]:
    return {"scale": load.scale, "misses": [*load.misses], "effects": [*map(_effect_json, load.effects)]}
