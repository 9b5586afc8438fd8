"""The rules about deleted levels, and about incorrect numbers that a server reports."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.doctor import metric_names
from apflint.doctor.evidence import MAX_NAMED, Diagnosis, about_level
from apflint.finding import Problem
from apflint.wording import join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.doctor.evidence import Evidence

MIN_PHANTOM_SECONDS = 20.0
"""Minimum time between two snapshots for comparing the demand of an idle level: two adjustment periods."""


def quiescing_level(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF814: report deleted levels that still have requests."""
    for level in evidence.state.levels:
        if level.is_quiescing:
            yield about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'"{level.name}" is deleted, and still has requests',
                    notes=(
                        (
                            f"Waiting requests: {level.waiting or 0}. Executing requests: {level.executing or 0}. The level keeps its"
                            " seats until these requests end."
                        ),
                        "New requests of the level's FlowSchemas go to the next FlowSchema that matches.",
                    ),
                    help="delete the FlowSchemas of the level, or create the level again if the deletion was a mistake",
                ),
            )


def stale_metrics(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF815: report metrics of deleted levels."""
    for level in evidence.state.levels:
        if level.is_deleted and level.nominal is not None:
            yield about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'the metrics still contain the level "{level.name}", but the server no longer has it',
                    notes=(
                        "A server keeps the metrics of a deleted level until the server restarts, but no longer updates their values.",
                    ),
                    help="ignore the metrics of this level",
                ),
            )


def phantom_demand(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF816: report levels with seat demand but without requests."""
    snapshots, seconds = evidence.state.server.snapshots, evidence.state.seconds
    if len(snapshots) < 2 or seconds is None or seconds < MIN_PHANTOM_SECONDS:
        return
    earlier_demand = evidence.state.earlier_demand()
    for level in evidence.limited:
        idle = not (level.waiting or level.executing or level.seats_in_use or level.dispatched)
        demand = level.demand_average
        if (
            idle
            and demand
            and demand == level.demand_high
            and {earlier[level.name] for earlier in earlier_demand} == {demand}
        ):
            yield about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'"{level.name}" is idle, but the server still reports a seat demand of {demand:g}',
                    notes=(
                        (
                            f"The level got no request in {seconds:.0f} s. Because of a defect in kube-apiserver, the demand of a level can stay too high after the"
                            " server lowers the final seats of a request (the seats that it holds while watchers are notified)."
                        ),
                        "The level borrows seats that it does not need, until the server restarts.",
                    ),
                    help=f'restart the API server if other levels need the seats that "{level.name}" borrows',
                ),
            )


def misleading_number(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF817: report that `TimedoutRequests` is 0 in a dump of levels although requests timed out or left.

    There is no report if the metrics of the server contain the numbers of rejected requests, because
    these numbers include the time-outs.
    """
    last = evidence.state.server.last
    if last.metrics is not None and last.metrics.has(metric_names.REJECTED):
        return
    wrong = [row for row in last.levels or () if row.timed_out == 0 and row.cancelled]
    # In releases that limit waits by a deadline, the counter of cancelled requests includes time-outs. In earlier
    # releases, time-outs have their own counter (`wait` in queueset.go).
    if wrong and evidence.release.limits_wait_by_deadline:
        count = sum(row.cancelled or 0 for row in wrong)
        names = join_some([f'"{row.level}"' for row in wrong], MAX_NAMED)
        yield about_level(
            wrong[0].level,
            Problem(
                evidence.line(wrong[0].line, "levels"),
                f"TimedoutRequests is 0, although {pluralize(count, 'request')} of {names} timed out or were cancelled",
                notes=("The server never counts TimedoutRequests. CancelledRequests includes time-outs.",),
                help='to count time-outs, use apiserver_flowcontrol_rejected_requests_total with reason="time-out" in the metrics',
            ),
        )
