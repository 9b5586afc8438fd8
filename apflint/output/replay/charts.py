"""Charts of replays: the seats in use of priority levels over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.blocks import Figure, Group, Heading, Prose, Text
from apflint.output.replay.wording import format_clock, format_count, format_peak
from apflint.output.svg_chart import Line, SeatsOverTime
from apflint.time_zones import name_zone
from apflint.wording import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from apflint.output.blocks import Block
    from apflint.replay.statistics import Intervals, LevelTraffic, ReplayReport

_TIMES = 5


def chart_seats(level: LevelTraffic, intervals: Intervals, zone: tzinfo) -> SeatsOverTime:
    """Return a chart with the seats in use, the nominal and the attainable seats of a level. Times are in `zone`."""
    limits = {} if level.limits.is_exempt else {"nominal": level.limits.nominal, "attainable": level.limits.attainable}
    duration = intervals.size * intervals.number
    facts = [f"Peak {format_peak(level)}" if level.peak is not None else "No request was executed"]
    facts += [f"{name} {format_count(seats)}" for name, seats in limits.items()] or ["no limit"]
    facts += [f"{format_count(level.rejected)} rejected requests"] if level.rejected else []
    times = [
        format_clock(intervals.start + number * duration // (_TIMES - 1), intervals.is_long, zone)
        for number in range(_TIMES)
    ]
    return SeatsOverTime(
        f"Seats in use of {level.name} over time",
        ", ".join(facts),
        level.series.seats,
        [Line(name, [seats]) for name, seats in limits.items()],
        level.series.rejected,
        times,
    )


def describe_charts(report: ReplayReport, intervals: Intervals) -> str:
    """Return sentences that explain the charts."""
    text = f"Times in {name_zone(intervals.start, report.zone)}. Each step shows the most seats in use within {format_duration(intervals.size)}"
    text += ", on the API server with the highest value." if len(report.servers) > 1 else "."
    return f"{text} A limit with an arrow is above the scale. Red marks show rejected requests."


def draw_sides(levels: Sequence[str], sides: Sequence[tuple[str, ReplayReport]]) -> Iterator[Block]:
    """Yield the charts of priority levels in two reports, one below the other. `sides` are pairs of title and report."""
    if not levels:
        return
    yield Heading("Seats in use over time")
    # The intervals of the two reports differ if the periods of the reports differ. The intervals can
    # also differ if only one of the two releases classifies watch requests, because the first or last
    # classified request may then differ.
    notes = {describe_charts(report, report.intervals): side for side, report in sides if report.intervals is not None}
    yield Prose([f"{side}: {note}" if len(notes) > 1 else note for note, side in notes.items()], "dim")
    for name in levels:
        yield Heading(Text(name, "name"), 3)
        charts = [(side, _chart_level(report, name)) for side, report in sides]
        if charts[0][1] == charts[1][1]:
            charts = [("Both sides", charts[0][1])]
        for side, chart in charts:
            yield Prose([side if chart else f"{side}: no requests"], "dim")
            yield Group([Figure(chart)] if chart else [])


def _chart_level(report: ReplayReport, name: str) -> SeatsOverTime | None:
    """Return a chart of the seats in use at a priority level over time.

    Return None if the level has no requests, or if the report is not divided into intervals.
    """
    level = next((level for level in report.levels if level.name == name), None)
    return None if level is None or report.intervals is None else chart_seats(level, report.intervals, report.zone)
