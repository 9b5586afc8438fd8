"""Proofs about a proposal: which requests move, new findings of `check`, and the limits of each priority level before and after.

Proofs about requests apply to all possible requests. `apflint diff` proves moves of requests in the same way.
"""

from __future__ import annotations

from itertools import islice
from math import ceil
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.budgets import MAX_MOVE_PROOFS, MAX_MOVES
from apflint.diff.objects import compare_levels
from apflint.engine import Options, find_problems, make_finding
from apflint.evaluate import system_request_rules
from apflint.evaluate.configuration import EXEMPT
from apflint.evaluate.limits import compute_limits
from apflint.named_tuple import NamedTuple
from apflint.proofs.two_configurations import ConfigurationComparison
from apflint.releases import SERVER_CONCURRENCY
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from apflint.diff.objects import LevelChange
    from apflint.effective_configuration import Effective
    from apflint.finding import Finding
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.proofs.two_configurations import Move
    from apflint.proofs.witness import Witness
    from apflint.releases import Release

_REPLACED = "the new FlowSchema captures all requests of the unreachable rules. After you apply the new FlowSchema, remove these rules"
UNAVOIDABLE = {
    "APF501": _REPLACED,
    "APF502": _REPLACED,
    "APF516": "the new FlowSchema also matches these requests, so you may remove the other FlowSchema",
    "APF603": "a level gets its seats from the other levels; the table shows how many",
}
"""Rules whose findings do not prevent a proposal, with the reason. See `_is_unavoidable`."""
_RETURNED = (
    "other FlowSchemas capture these requests after the change: then remove the rules that have no effect anymore"
)
RETURNED = {"APF501": _RETURNED, "APF502": _RETURNED}
"""Rules whose findings do not prevent a proposal that only gives a FlowSchema a later precedence, with the reason.

See `Intention.returns`.
"""
MEASURED = {
    "APF603": "the simulation shows what other clients lose",
    "APF605": "the simulation includes the queues of every flow",
    "APF606": "the simulation shows how long the clients of the level wait",
    "APF609": "the simulation includes the borrowed seats",
}
"""Rules that estimate capacity without a load, with the reason.

A proposal from a log may have their findings, because the simulation measures what these rules estimate.
"""
KEPT_FRACTION = 0.75
"""Proportion of the seats that a level of the system must keep if the peak of the level is unknown.

The proportion applies to the seats of a server with default flags. A server with more seats may give the additional
seats to other levels. If a level loses more, APF603 reports a warning, too.
"""


class Intention(NamedTuple):
    """The requests that should move, with their FlowSchemas in the old and the new configuration."""

    requests: PolicyRulesWithSubjects
    """Rule that matches all requests of the clients of the proposal."""
    sources: tuple[FlowSchema, ...]
    """FlowSchemas of the old configuration from which the requests move."""
    targets: tuple[FlowSchema, ...]
    """FlowSchemas of the new configuration to which the requests move."""
    returns: bool = False
    """Whether a FlowSchema gets a later precedence, so that requests of system components may return to built-in FlowSchemas.

    No request has to move then.
    """


class Loss(NamedTuple):
    """A level that Kubernetes reserves for the system, and whose nominal seats would fall below a minimum."""

    level: str
    before: int
    after: int
    kept: int
    """Minimum number of seats in one API server."""


class Proof(NamedTuple):
    """The results of all proofs about a proposal. `failures` describes what is wrong."""

    moves: tuple[Move, ...]
    """A move for each pair of FlowSchemas between which requests move, with an example."""
    is_complete: bool
    """False if the search for moves ended early. The proposal is then not proven."""
    unintended: tuple[Move, ...]
    """Moves that are not intended."""
    missed: Witness | None
    """A request that is intended to move and does not, or None if all intended requests move."""
    system: Witness | None
    """A request of a system component that moves, or None if no such request moves."""
    findings: tuple[Finding, ...]
    """New findings of `check` that do not prevent the proposal."""
    mistakes: tuple[Finding, ...]
    """All other new findings of `check`."""
    levels: tuple[LevelChange, ...]
    """The limits of every priority level before and after."""
    losses: tuple[Loss, ...]
    """Levels of the system that lose too many seats."""

    @property
    def failures(self) -> tuple[str, ...]:
        """Return a clause for each thing that is wrong with the proposal. The result is empty if everything is proven."""
        return tuple(self._list_failures())

    def _list_failures(self) -> Iterator[str]:
        if not self.is_complete:
            yield "the proof ended early, because too many FlowSchemas lose requests"
        for move in self.unintended[:1]:
            yield (
                f"requests of other clients would move from {quote(move.from_schema.name)} to {quote(move.to_schema.name)}, such as"
                f" `{move.witness.command}`"
            )
        if self.missed is not None:
            yield f"a request would not move: `{self.missed.command}`"
        if self.system is not None:
            yield f"a request of a system component would go to another FlowSchema: `{self.system.command}`"
        for finding in self.mistakes:
            yield f"`apflint check` would find {finding.rule}: {finding.message}"
        if self.losses:
            seats = (
                f"{quote(loss.level)} would have {loss.after} instead of {loss.before} (it needs at least {loss.kept})"
                for loss in self.losses
            )
            yield (
                f"priority levels of Kubernetes components would have too few seats: {join_words(seats, 'and')}. If the peak of a level is"
                f" unknown, the minimum is {KEPT_FRACTION:.0%} of the seats that the level has if only built-in levels exist"
            )


def prove(
    before: Effective,
    after: Effective,
    intention: Intention,
    kept_seats: Mapping[str, int] | None = None,
    measured: Collection[str] = (),
) -> Proof:
    """Compare the configurations `before` and `after`, and return what the change does and what is wrong with it.

    `intention` has the requests that should move. `kept_seats` maps the names of levels to the numbers
    of seats that they must keep. If `kept_seats` is None, `list_kept_seats` computes these numbers from
    the release. A new finding of a rule in `measured` does not count as a failure of the proposal.
    """
    system = system_request_rules.list_rules(before.release)
    comparison = ConfigurationComparison(
        before.configuration, after.configuration, more_rules=(*system, intention.requests)
    )
    # As `apflint diff` does, limit the number of proofs by the number of FlowSchemas, because a proof takes longer if
    # there are more FlowSchemas.
    size = len(before.configuration.order) + len(after.configuration.order)
    moves = tuple(
        sorted(
            islice(comparison.find_moves(max_proofs=MAX_MOVE_PROOFS // size), MAX_MOVES + 1),
            key=lambda move: comparison.positions(move.witness.point),
        )
    )
    found = find_new_findings(before, after)
    unavoidable = tuple(finding for finding in found if finding.rule in measured or _is_unavoidable(finding, intention))
    levels = compare_levels(before.limits, after.limits)
    others = [schema for schema in after.configuration.order if schema not in intention.targets]
    must_move = intention.targets and not intention.returns
    missed = comparison.find_passage(intention.sources, others, [intention.requests]) if must_move else None
    protected = builtin.list_protected_flow_schemas(before.release)
    away = [move for move in moves if not (intention.returns and move.to_schema.name in protected)]
    return Proof(
        moves,
        comparison.is_complete and len(moves) <= MAX_MOVES,
        tuple(move for move in moves if not _is_intended(move, intention)),
        missed,
        _find_system_move(comparison, away, _list_system_rules(before.release)),
        unavoidable,
        tuple(finding for finding in found if finding not in unavoidable),
        levels,
        tuple(_find_losses(levels, list_kept_seats(before) if kept_seats is None else kept_seats)),
    )


def _is_intended(move: Move, intention: Intention) -> bool:
    return move.from_schema in intention.sources and move.to_schema in intention.targets


def _is_unavoidable(finding: Finding, intention: Intention) -> bool:
    """Return whether a new finding is acceptable, because it is a necessary effect of the proposed change.

    A finding is acceptable in three cases. It reports that a FlowSchema in `intention.sources` loses
    its requests. It reports that a FlowSchema has no effect whose level a FlowSchema in
    `intention.targets` also references. Or it has the severity info, and its rule is in `UNAVOIDABLE`.
    """
    if finding.rule in ("APF501", "APF502"):
        document = finding.document
        names = {schema.name for schema in intention.sources} if intention.returns else set()
        is_later = document is not None and document.kind == "FlowSchema" and document.name in names
        return is_later or any(document is schema.document for schema in intention.sources)
    if finding.rule == "APF516":
        levels = {schema.spec.priority_level_configuration for schema in intention.targets}
        document = finding.document
        return document is not None and document.at("spec", "priorityLevelConfiguration", "name") in levels
    return finding.rule in UNAVOIDABLE and finding.severity == "info"


def _list_system_rules(release: Release) -> tuple[PolicyRulesWithSubjects, ...]:
    """Return rules that match all requests of system components, which a proposal must not move.

    These rules are those of the built-in FlowSchemas that reserve capacity or exempt requests. Such FlowSchemas are for
    administrators in an emergency, probes, leases and heartbeats, kubelets, and the control plane.
    """
    names = {EXEMPT, *builtin.list_protected_flow_schemas(release)}
    schemas = builtin.load_objects(release).flow_schemas
    return tuple(rule for schema in schemas if schema.name in names for rule in schema.spec.rules)


def _find_system_move(
    comparison: ConfigurationComparison, moves: Collection[Move], rules: tuple[PolicyRulesWithSubjects, ...]
) -> Witness | None:
    """Return a request that one of `rules` matches, and that goes to a different FlowSchema after the changes.

    Only the FlowSchemas in `moves` are searched. Return None if there is no such request.
    """
    sources: dict[str, list[FlowSchema]] = {}
    targets = {move.to_schema.name: move.to_schema for move in moves}
    for move in moves:
        sources.setdefault(move.to_schema.name, []).append(move.from_schema)
    found = (comparison.find_passage(sources[name], [target], rules) for name, target in targets.items())
    return next((witness for witness in found if witness is not None), None)


def find_new_findings(before: Effective, after: Effective) -> tuple[Finding, ...]:
    """Return the findings of `check` for the configuration `after` that do not exist for `before`.

    A finding of `after` also exists for `before` if `before` has a finding of the same rule and the
    same severity about the same field of the same object.
    """
    old, new = (
        [make_finding(*problem) for problem in find_problems(side, Options()).problems] for side in (before, after)
    )
    known = {*map(_identify, old)}
    return tuple(finding for finding in new if _identify(finding) not in known)


def _identify(finding: Finding) -> object:
    key = finding.object or (finding.file, finding.span)
    return finding.rule, finding.severity, key, finding.field


def list_kept_seats(effective: Effective) -> dict[str, int]:
    """Return the nominal seats that each level of the system must keep if its peak is unknown.

    The keys are the names of the levels. The number of seats is `KEPT_FRACTION` of the seats that the
    level has in a server with only built-in levels.
    """
    release, total = effective.release, effective.limits.server_concurrency
    levels = builtin.load_objects(release).priority_levels
    default = compute_limits(levels, (), min(total, SERVER_CONCURRENCY), release)
    reserved = system_request_rules.list_levels(release)
    return {level.name: ceil(KEPT_FRACTION * level.nominal) for level in default.levels if level.name in reserved}


def _find_losses(levels: Collection[LevelChange], kept: Mapping[str, int]) -> Iterator[Loss]:
    for change in levels:
        if change.gain < 0 and change.old is not None and change.name in kept:
            after = 0 if change.new is None else change.new.nominal
            if after < kept[change.name]:
                yield Loss(change.name, change.old.nominal, after, kept[change.name])
