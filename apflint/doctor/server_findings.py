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
                    f'the metrics have the level "{level.name}", which the server does not have',
                    notes=(
                        "A server keeps the metrics of a deleted level until the server restarts. The gauges and counters do not change.",
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
                    f'"{level.name}" is idle, and its seat demand stays at {demand:g}',
                    notes=(
                        (
                            f"The level got no request in {seconds:.0f} s. This is a defect of the flow-control code of kube-apiserver: after the"
                            " final seats of a request are reduced, the demand of its level can stay too high."
                        ),
                        "The level borrows seats that it does not need, until the server restarts.",
                    ),
                    help="restart the API server if other levels need the seats",
                ),
            )


def misleading_number(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF817: report a wrong counter in the dump of levels, unless the metrics show the correct value."""
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
                f"TimedoutRequests is 0, although {pluralize(count, 'request')} timed out or left at {names}",
                notes=("The server never counts TimedoutRequests. CancelledRequests includes time-outs.",),
                help="use the rejections with the reason time-out in the metrics",
            ),
        )
