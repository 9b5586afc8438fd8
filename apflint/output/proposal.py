"""Proposals as text, Markdown, HTML and JSON."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from apflint.model import shares_field
from apflint.output.blocks import DOCUMENTS, TEXT, Bullets, Command, Facts, Group, Heading, Only, Prose, Text
from apflint.output.json_text import SCHEMA
from apflint.output.proposal_files import files_json, list_checks, report_files, report_steps
from apflint.output.wanted_seats import levels_json, tabulate_seats
from apflint.propose.changes import NewFlowSchema, NewLevel
from apflint.propose.goals import write_subject
from apflint.propose.isolation import describe_tenant
from apflint.propose.proof import KEPT_FRACTION, UNAVOIDABLE, list_kept_seats
from apflint.wording import join_words, pluralize, quote, write_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.evaluate.limits import LevelLimits
    from apflint.output.blocks import Block, Inline
    from apflint.output.proposal_files import ProposalFiles
    from apflint.proofs.two_configurations import Move
    from apflint.propose.goals import Isolation
    from apflint.propose.isolation import NoProposal
    from apflint.propose.proposal import ProvenProposal
    from apflint.simulate.field_overrides import LevelFieldChange

TITLE = "Proposal for API Priority and Fairness"
_LABEL_CELLS = 10
_MAX_LOSERS = 4


def report_proposal(
    found: ProvenProposal, files: ProposalFiles, configuration: str, servers: int | None = None
) -> Iterator[Block]:
    """Yield the proposed changes, the proofs, the seats of each level, the files, and the commands.

    `servers` is the number of API servers, or None if unknown.
    """
    yield Only(DOCUMENTS, [Heading(TITLE, 1)])
    yield Only(TEXT, [Prose([f"Configuration: {configuration}"], "dim")])
    yield Only(DOCUMENTS, [Prose([f"Configuration: {configuration}"])])
    yield Facts([*_list_facts(found, servers)], _LABEL_CELLS)
    if examples := _list_examples(found):
        yield Group([Heading("Requests that move, for example"), *examples])
    yield Only(TEXT, [Heading("Seats in each API server")])
    yield tabulate_seats(found.proof.levels, [_explain_kept_seats(found)])
    if (change := found.isolation.shares_change) is not None:
        yield Group([Heading("Change in your manifests"), Bullets([_describe_edit(found, change)])])
    yield from report_files(files, found.manifests, found.policy_test)
    yield from report_steps(list_steps(found, files))


def report_no_proposal(reason: NoProposal, configuration: str) -> Iterator[Block]:
    """Yield the reason why there is no proposal."""
    yield Only(DOCUMENTS, [Heading(TITLE, 1)])
    yield Prose([f"Configuration: {configuration}"])
    sentences: list[Inline] = [Text(f"No proposal: {reason.reason}.", "bold")]
    yield Prose([*sentences, *([write_sentence(reason.advice)] if reason.advice else [])])


def _list_facts(found: ProvenProposal, servers: int | None) -> Iterator[tuple[str, Inline]]:
    isolation = found.isolation
    level = _find_level(found)
    kind = "new" if isolation.new_level else "existing"
    figures = f"{level.shares} shares, {level.nominal} seats in each API server"
    if servers is not None and servers > 1:
        figures += f" ({servers * level.nominal:,} in all {servers:,} API servers)"
    seats = f"{kind} priority level {quote(isolation.level)} with {figures}"
    schema = isolation.flow_schema
    if schema is None:
        tenant = describe_tenant(isolation.goal)
        yield "Proposal", f"{figures}, for the priority level {quote(isolation.level)} that {tenant} already has"
        yield "Moves", "no request; proven for all requests"
    else:
        yield "Proposal", f"FlowSchema {quote(schema.name)} ({schema.matching_precedence}) -> {seats}"
        names = dict.fromkeys(move.from_schema.name for move in found.proof.moves)
        sources = join_words(map(quote, names), "and")
        verb = "captures" if len(names) == 1 else "capture"
        yield (
            "Moves",
            f"exactly the requests of {describe_tenant(isolation.goal)} that {sources} {verb} now; proven for all requests",
        )
        yield (
            "",
            "no request of a system component (leases, heartbeats, kubelets, control plane) moves; proven for all requests",
        )
        if isolation.staying:
            names = dict.fromkeys(captor.flow_schema.name for captor in isolation.staying)
            earlier = join_words(map(quote, names), "and")
            yield (
                "Stays",
                f"requests that earlier FlowSchemas capture: {earlier}, and earlier FlowSchemas for other clients",
            )
    yield "Costs", _describe_losses(found)
    yield "Check", _describe_findings(found)


def _find_level(found: ProvenProposal) -> LevelLimits:
    """Return the limits of the client's level with the proposal."""
    level = next(change.new for change in found.proof.levels if change.name == found.isolation.level)
    assert level is not None, "the configuration has the level"
    return level


def _describe_losses(found: ProvenProposal) -> str:
    losers = sorted((change for change in found.proof.levels if change.gain < 0), key=lambda change: change.gain)
    if not losers:
        return "no other level has fewer seats"
    parts = [
        f"{change.name} {change.old.nominal} -> {change.new.nominal}"
        for change in losers[:_MAX_LOSERS]
        if change.old is not None and change.new is not None
    ]
    more = len(losers) - len(parts)
    others = f", and {pluralize(more, 'other level')} less" if more else ""
    return f"{', '.join(parts)}{others} (nominal seats)"


def _describe_findings(found: ProvenProposal) -> str:
    if not found.proof.findings:
        return "`apflint check` has no new finding"
    parts = (
        f"{finding.rule} ({finding.severity}: {finding.message}), because {UNAVOIDABLE[finding.rule]}"
        for finding in found.proof.findings
    )
    return f"`apflint check` has no new finding, except {'; '.join(parts)}"


def _list_examples(found: ProvenProposal) -> list[Block]:
    blocks: list[Block] = []
    for move in found.proof.moves:
        old, new = _get_levels(move)
        blocks.append(Bullets([f"{move.from_schema.name} -> {move.to_schema.name} (level {old} -> {new})"], "  "))
        blocks.append(Command("apflint explain", shlex.join(move.witness.words or ()), 4))
    return blocks


def _get_levels(move: Move) -> tuple[str, str]:
    return move.from_schema.spec.priority_level_configuration, move.to_schema.spec.priority_level_configuration


def _explain_kept_seats(found: ProvenProposal) -> str:
    kept = join_words((f"{name} {seats}" for name, seats in sorted(list_kept_seats(found.before).items())), "and")
    return (
        "Shares are relative: a seat of one level is a seat that the others do not have. If the peaks are unknown, levels"
        f" of Kubernetes components keep at least {KEPT_FRACTION:.0%} of the seats that they have if only built-in levels exist: {kept}."
    )


def _describe_edit(found: ProvenProposal, change: LevelFieldChange) -> str:
    place = _field_json(found, change)
    where = f"{place['file']}:{place['line']}" if place["file"] else f"PriorityLevelConfiguration {change.level}"
    return f"{where}: {place['field']} {place['before']} -> {place['after']}"


def list_steps(found: ProvenProposal, files: ProposalFiles) -> dict[str, list[str]]:
    """Return the command lines that verify a proposal, apply it, and roll it back."""
    isolation = found.isolation
    change = isolation.shares_change
    steps = {
        "verify": list_checks(files, found.manifests, found.policy_test),
        "apply": [] if change is None else [_apply_shares(found, change, files.kubectl)],
        "rollBack": [],
    }
    if found.manifests:
        steps["apply"].append(f"{files.kubectl} apply -f {shlex.quote(files.manifests)}")
    # Delete the FlowSchema before the level. The requests of the FlowSchema then match their former FlowSchemas, so no
    # request uses the level when the level is deleted.
    if (schema := isolation.flow_schema) is not None:
        steps["rollBack"].append(f"{files.kubectl} delete flowschema {schema.name}")
    if (level := isolation.new_level) is not None:
        steps["rollBack"].append(f"{files.kubectl} delete prioritylevelconfiguration {level.name}")
    if change is not None:
        before = next(side.old for side in found.proof.levels if side.name == change.level)
        wanted = f"apflint limits --want {change.level}={isolation.goal.seats} {files.options}"
        steps["verify"].append(wanted.rstrip())
        steps["rollBack"].append(_patch_shares(found, change, before.shares if before else 0, files.kubectl))
    return steps


def _apply_shares(found: ProvenProposal, change: LevelFieldChange, kubectl: str) -> str:
    document = found.before.configuration.levels[change.level].document
    if document.source.is_live:
        return _patch_shares(found, change, change.value or 0, kubectl)
    return f"{kubectl} apply -f {shlex.quote(document.source.name)}"


def _patch_shares(found: ProvenProposal, change: LevelFieldChange, shares: int, kubectl: str) -> str:
    field = shares_field(found.before.release.newest_version)
    patch = f'{{"spec":{{"limited":{{"{field}":{shares}}}}}}}'
    return f"{kubectl} patch prioritylevelconfiguration {change.level} --type merge -p {shlex.quote(patch)}"


def proposal_json(found: ProvenProposal, files: ProposalFiles, servers: int | None = None) -> dict[str, object]:
    """Return the object that `propose --format json` prints for a proposal.

    `servers` is the number of API servers, or None if unknown.
    """
    isolation, proof = found.isolation, found.proof
    level = _find_level(found)
    return {
        **_goal_json(isolation.goal),
        "proposal": True,
        "reason": None,
        "advice": None,
        "priorityLevel": isolation.level,
        "servers": servers,
        "seatsInAllServers": None if servers is None else servers * level.nominal,
        "objects": [
            {
                "kind": "FlowSchema" if isinstance(change, NewFlowSchema) else "PriorityLevelConfiguration",
                "name": change.name,
            }
            for change in isolation.changes
            if isinstance(change, NewFlowSchema | NewLevel)
        ],
        "fields": [_field_json(found, change) for change in (isolation.shares_change,) if change is not None],
        "cost": dict(zip(("objects", "fields", "seats"), found.cost, strict=True)),
        "moves": [_move_json(move) for move in proof.moves],
        "stays": [captor.flow_schema.name for captor in isolation.staying],
        "proofs": {"onlyIntendedRequestsMove": True, "noSystemRequestMoves": True, "noNewFindings": not proof.findings},
        "findings": [
            {
                "rule": finding.rule,
                "severity": finding.severity,
                "message": finding.message,
                "why": UNAVOIDABLE[finding.rule],
            }
            for finding in proof.findings
        ],
        "levels": levels_json(proof.levels),
        "files": files_json(files, found.manifests, found.policy_test),
        "commands": list_steps(found, files),
    }


def no_proposal_json(goal: Isolation, reason: NoProposal) -> dict[str, object]:
    """Return the object that `propose --format json` prints if there is no proposal."""
    return {**_goal_json(goal), "proposal": False, "reason": reason.reason, "advice": reason.advice or None}


def _goal_json(goal: Isolation) -> dict[str, object]:
    return {"schema": SCHEMA, "isolate": [*map(write_subject, goal.subjects)], "seats": goal.seats}


def _field_json(found: ProvenProposal, change: LevelFieldChange) -> dict[str, object]:
    level = found.before.configuration.levels[change.level]
    before = next(side.old for side in found.proof.levels if side.name == change.level)
    field, is_file = shares_field(level.document.version), not level.document.source.is_live
    return {
        "priorityLevel": change.level,
        "field": field,
        "before": before.shares if before else None,
        "after": change.value,
        "file": level.document.source.name if is_file else None,
        "line": level.document.span(("spec", "limited", field)).line if is_file else None,
    }


def _move_json(move: Move) -> dict[str, object]:
    old, new = _get_levels(move)
    return {
        "from": {"flowSchema": move.from_schema.name, "priorityLevel": old},
        "to": {"flowSchema": move.to_schema.name, "priorityLevel": new},
        "example": move.witness.command,
    }
