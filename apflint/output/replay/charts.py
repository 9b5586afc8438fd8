"""Charts of a replay: the seats in use of a priority level over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.replay.wording import find_peak, format_clock, format_count
from apflint.output.svg_chart import Line, SeatsOverTime
from apflint.time_zones import name_zone
from apflint.wording import format_duration

if TYPE_CHECKING:
    from datetime import tzinfo

    from apflint.replay.statistics import Intervals, LevelTraffic, ReplayReport

_TIMES = 5


def chart_seats(level: LevelTraffic, intervals: Intervals, zone: tzinfo) -> SeatsOverTime:
    """Return a chart with the seats in use, the nominal and the attainable seats of a level. Times are in `zone`."""
    limits = {} if level.limits.is_exempt else {"nominal": level.limits.nominal, "attainable": level.limits.attainable}
    peak, duration = find_peak(level), intervals.size * intervals.number
    facts = [f"Peak {format_count(peak)}" if peak is not None else "No request was executed"]
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
    text += ", on the API server that had the most." if len(report.servers) > 1 else "."
    return f"{text} A limit with an arrow is above the scale. Red marks show rejected requests."
