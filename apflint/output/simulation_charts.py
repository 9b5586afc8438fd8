"""Charts of a simulation: the seats of a level, and the waiting requests in its queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.svg_chart import HeatMap, Line, SeatsOverTime
from apflint.simulate.verdict_sentences import format_clock

if TYPE_CHECKING:
    from apflint.simulate.simulation import SimulationResult
    from apflint.simulate.statistics import LevelResult

_TICKS = 6


def chart_seats(level: LevelResult, result: SimulationResult) -> SeatsOverTime:
    """Return a chart with the average seats in use, the limits, and the rejections of a level, summed over all API servers."""
    samples, servers = level.samples, result.load.servers
    lines = [
        Line("current limit", [sample.limit for sample in samples]),
        Line("nominal", [level.limits.nominal * servers]),
    ]
    return SeatsOverTime(
        f"Seats of {level.name} over time",
        f"At most {level.peak:,} seats in use",
        [sample.seats for sample in samples],
        () if level.limits.is_exempt else lines,
        [sample.rejected for sample in samples],
        _list_times(result),
    )


def chart_queues(level: LevelResult, result: SimulationResult) -> HeatMap | None:
    """Return a heat map of the waiting requests in each queue, or None if no request waited in a queue."""
    numbers = sorted({queue for sample in level.samples for queue in sample.queues})
    if not numbers:
        return None
    rows = []
    for number in numbers:
        waiting = (sample.queues.get(number) for sample in level.samples)
        rows.append([None if found is None else (found[0], level.flows[found[1]].is_elephant) for found in waiting])
    most = max(count for sample in level.samples for count, _ in sample.queues.values())
    servers = result.load.servers
    if servers == 1:
        names = {0: str(numbers[0]), len(numbers) - 1: str(numbers[-1])}
    else:
        places = [number // (level.limits.queues or 1) for number in numbers]
        names = {places.index(place): f"server {place + 1}" for place in sorted(set(places))}
    label = f"Waiting requests in the queues of {level.name}, at most {most:,} in one queue"
    return HeatMap(label, rows, [*names.items()], servers > 1, _list_times(result))


def _list_times(result: SimulationResult) -> list[str]:
    return [format_clock(result.load.duration * tick // _TICKS) for tick in range(_TICKS + 1)]
