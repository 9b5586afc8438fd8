"""Contradictions between a log and the configuration of a replay: rejections that the configuration does not explain."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.replay.statistics import ReplayReport


class Contradiction(NamedTuple):
    """A priority level whose requests were rejected although it had free seats in this configuration."""

    level: str
    rejected: int
    seats: int
    """The most seats that one API server had in use at the same time."""
    limit: int
    """The seats that the level never lends. It rejects requests only while all of them are in use."""


def find_contradictions(report: ReplayReport) -> Iterator[Contradiction]:
    """Yield the levels of a report that contradict the log, in the order of the report.

    A server rejects requests of a level only while the level uses its whole current limit, which is never below its min
    limit. Source: kube-apiserver's util/flowcontrol/fairqueuing/queueset/queueset.go (`StartRequest`). If the numbers of
    objects are unknown, each list may have used the maximum of seats.
    """
    for level in () if report.coverage.interrupted else report.levels:  # unread requests may use the seats
        if not level.rejected or level.limits.type == "Exempt":
            continue
        seats = max((peak.seats for peak in level.peaks), default=0)
        width = 1 if report.has_counts and not report.uncounted else level.limits.max_list_seats
        if seats * width < level.limits.min:
            yield Contradiction(level.name, level.rejected, seats, level.limits.min)
