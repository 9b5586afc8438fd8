"""Finds the levels and clients with different figures in two simulations of the same load with the same seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.simulate.histogram import TimePercentiles
    from apflint.simulate.simulation import SimulationResult
    from apflint.simulate.statistics import ClientResult, LevelResult


class Figures(NamedTuple):
    """The compared numbers of a level or a client. Times are in nanoseconds."""

    requests: int
    rejected: int
    failed: int
    wait_p99: int | None
    latency_p99: int | None


class FigureDifference(NamedTuple):
    """A level or a client whose figures differ.

    `old` or `new` is None if the level or client has no requests in the old or the new simulation.
    """

    name: str
    levels: tuple[str, str] | None
    """Priority levels of the client in both simulations, or None if the difference is about a level."""
    old: Figures | None
    new: Figures | None

    @property
    def is_effective(self) -> bool:
        """Return whether the two simulations differ in a number of the level or client, or in the levels of the client."""
        return self.old != self.new or (self.levels is not None and self.levels[0] != self.levels[1])


class SimulationComparison(NamedTuple):
    """Two simulations, and their differences: first the differences of clients, then of levels."""

    old: SimulationResult
    new: SimulationResult
    differences: tuple[FigureDifference, ...]
    is_equal: bool
    """Whether all results of all clients are equal, including results that `Figures` does not contain."""


def compare(old: SimulationResult, new: SimulationResult) -> SimulationComparison:
    """Return both simulations with the differences between the figures of their levels and clients."""
    sides = [
        {level.name: _find_figures(level, level.requests) for level in result.levels if level.attempts}
        for result in (old, new)
    ]
    clients = [_group_clients(result) for result in (old, new)]
    differences = []
    for name in dict.fromkeys((*clients[0], *clients[1])):
        rows = [side.get(name) for side in clients]
        old_levels, new_levels = (" + ".join(row.level for row in side_rows or ()) or "-" for side_rows in rows)
        figures = [None if side_rows is None else _join(side_rows) for side_rows in rows]
        differences.append(FigureDifference(name, (old_levels, new_levels), *figures))
    differences += [
        FigureDifference(name, None, sides[0].get(name), sides[1].get(name))
        for name in dict.fromkeys((*sides[0], *sides[1]))
    ]
    changed = tuple(difference for difference in differences if difference.is_effective)
    is_equal = [list(map(_omit_flow_schemas, rows.items())) for rows in clients]
    return SimulationComparison(old, new, changed, is_equal[0] == is_equal[1])


def _omit_flow_schemas(item: tuple[str, list[ClientResult]]) -> list[ClientResult]:
    return [row._replace(flow_schemas=()) for row in item[1]]


def _group_clients(result: SimulationResult) -> dict[str, list[ClientResult]]:
    groups: dict[str, list[ClientResult]] = {}
    for level in result.levels:
        for client in level.clients:
            groups.setdefault(client.name, []).append(client)
    return groups


def _join(rows: list[ClientResult]) -> Figures:
    """Return the figures of a client, added up over its levels. Percentiles are the maximum over the levels."""
    figures = [_find_figures(row, row.requests) for row in rows]
    return Figures(
        sum(item.requests for item in figures),
        sum(item.rejected for item in figures),
        sum(item.failed for item in figures),
        _largest(item.wait_p99 for item in figures),
        _largest(item.latency_p99 for item in figures),
    )


def _largest(values: Iterable[int | None]) -> int | None:
    return max((value for value in values if value is not None), default=None)


def _find_figures(row: LevelResult | ClientResult, requests: int) -> Figures:
    return Figures(requests, sum(row.rejected.values()), row.failed, _p99(row.waits), _p99(row.latencies))


def _p99(times: TimePercentiles | None) -> int | None:
    return None if times is None else times.p99
