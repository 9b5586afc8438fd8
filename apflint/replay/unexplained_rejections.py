"""Finds contradictions between a log and a configuration: rejections that the configuration does not explain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.replay.statistics import ReplayReport


class Contradiction(NamedTuple):
    """A priority level with rejected requests, although the level has free seats under this configuration."""

    level: str
    rejected: int
    seats: int
    """Maximum number of seats that were in use at the same time at one API server."""
    limit: int
    """Seats that the level never lends. A server rejects requests only while all of these seats are in use."""


def find_contradictions(report: ReplayReport) -> Iterator[Contradiction]:
    """Yield the levels of a report that contradict the log, in the order of the report.

    A server rejects requests only while the level uses its whole current limit, which is never below its min limit. Source:
    kube-apiserver's util/flowcontrol/fairqueuing/queueset/queueset.go (`StartRequest`). If the number of objects is
    unknown, the level may have used more seats: each list may have taken the maximum.
    """
    for level in () if report.coverage.interrupted else report.levels:  # requests that were not read may use the seats
        if not level.rejected or level.limits.type == "Exempt":
            continue
        seats = max((peak.seats for peak in level.peaks), default=0)
        width = 1 if report.has_counts and not report.uncounted else level.limits.max_list_seats
        if seats * width < level.limits.min:
            yield Contradiction(level.name, level.rejected, seats, level.limits.min)
