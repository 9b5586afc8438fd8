"""The report of a replay, or the comparison of two, as an HTML page: a summary, plots of the priority levels, and tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.html_page import render_page, render_records
from apflint.output.replay import comparison as compared
from apflint.output.replay.plot import STYLE, render_plot
from apflint.output.replay.wording import (
    describe_contradictions,
    describe_coverage,
    describe_limits_of_log,
    describe_more_groups,
    describe_more_levels,
    format_clock,
    format_count,
    list_groups,
    list_seats,
    list_traffic,
    summarize,
    summarize_levels,
)
from apflint.output.sanitize import escape_xml, sanitize
from apflint.wording import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.output.configuration import Sides
    from apflint.replay.comparison import ReplayComparison
    from apflint.replay.statistics import Intervals, ReplayReport

_TITLE = "Replay of audit logs"
_MAX_ROWS = 24
"""Maximum number of rows of the table that repeats the plots."""
_STYLE = """\
h1{font-size:22px;margin:24px 0 8px}
h3{font-size:15px;margin:20px 0 4px}
.summary{font-weight:600}
.note{color:#57606a;font-size:13px}
li{overflow-wrap:anywhere}
@media (prefers-color-scheme:dark){
.note{color:#a3adb8}
}
"""


def render(report: ReplayReport) -> str:
    """Render a self-contained page."""
    return render_page(_TITLE, f"<main>\n{''.join(_parts(report))}</main>\n", _STYLE + STYLE)


def render_comparison(comparison: ReplayComparison, sides: Sides) -> str:
    """Render a self-contained page with the plots of both sides."""
    body = "".join(_comparison_parts(comparison, sides))
    return render_page(compared.TITLE, f"<main>\n{body}</main>\n", _STYLE + STYLE)


def _comparison_parts(comparison: ReplayComparison, sides: Sides) -> Iterator[str]:
    yield f"<h1>{compared.TITLE}</h1>\n"
    yield f'<p class="summary">{escape_xml(compared.summarize(comparison))}</p>\n'
    yield _list(compared.describe_sides(comparison, sides))
    if comparison.moves:
        yield _table("Requests that move", compared.list_moves(comparison))
        more = compared.describe_more_moves(comparison)
        yield f"<p>{more}</p>\n" if more else ""
    if comparison.levels:
        yield _table("Priority levels", compared.list_levels(comparison))
        yield "<h2>Seats in use over time</h2>\n"
        # The sides have different times if only one release classifies the first or the last requests.
        notes = {
            _describe_plots(report, report.intervals): side
            for side, report in zip((sides.old, sides.new), (comparison.old, comparison.new), strict=True)
            if report.intervals is not None
        }
        for note, side in notes.items():
            text = f"{side}: {note}" if len(notes) > 1 else note
            yield f'<p class="note">{escape_xml(sanitize(text))}</p>\n'
        for number, name in enumerate(comparison.levels):
            yield f"<h3><code>{escape_xml(sanitize(name))}</code></h3>\n"
            yield from _side_plots(comparison, sides, name, 2 * number)
    yield f"<h2>What the numbers mean</h2>\n{_list(compared.describe_limits(comparison))}"


def _side_plots(comparison: ReplayComparison, sides: Sides, name: str, number: int) -> Iterator[str]:
    """Yield the plots of a priority level on both sides, or one plot if they are equal."""
    old, new = (_plot(report, name, number) for report in (comparison.old, comparison.new))
    if old == new:
        plots = [("Both sides", old)]
    else:
        plots = [(sides.old, old), (sides.new, _plot(comparison.new, name, number + 1))]
    for side, plot in plots:
        yield f'<p class="note">{escape_xml(sanitize(side))}{"" if plot else ": no requests"}</p>\n{plot}'


def _plot(report: ReplayReport, name: str, number: int) -> str:
    """Render the plot of a priority level, or return an empty string if the level has no requests."""
    level = next((level for level in report.levels if level.name == name), None)
    if level is None or report.intervals is None:
        return ""
    return f'<div class="drawing">\n{render_plot(level, report.intervals, number)}</div>\n'


def _parts(report: ReplayReport) -> Iterator[str]:
    yield f"<h1>{_TITLE}</h1>\n"
    for sentence in describe_contradictions(report):
        yield f'<p class="summary">{escape_xml(sanitize(sentence))}</p>\n'
    if report.levels:
        yield from _summary(report)
    yield _list(describe_coverage(report))
    if report.levels:
        yield _table("Requests", list_traffic(report))
        yield _table("Seats", list_seats(report))
    if report.breakdown is not None:
        yield _table(f"By {', '.join(report.breakdown.dimensions)}", list_groups(report.breakdown))
        more = describe_more_groups(report.breakdown)
        yield f"<p>{more}</p>\n" if more else ""
    if report.intervals is not None:
        yield "<h2>Seats in use over time</h2>\n"
        yield f'<p class="note">{escape_xml(_describe_plots(report, report.intervals))}</p>\n'
        for number, level in enumerate(report.levels):
            yield f"<h3><code>{escape_xml(sanitize(level.name))}</code></h3>\n{_plot(report, level.name, number)}"
        yield f"<details>\n<summary>The same as tables</summary>\n{_series(report, report.intervals)}</details>\n"
    yield f"<h2>What the numbers mean</h2>\n{_list(describe_limits_of_log(report))}"


def _summary(report: ReplayReport) -> Iterator[str]:
    yield f'<p class="summary">{escape_xml(" ".join(summarize(report)))}</p>\n'
    levels, others = summarize_levels(report)
    items = [
        f"<li><code>{escape_xml(sanitize(level.name))}</code>: {escape_xml(sanitize(str(level)))}</li>\n"
        for level in levels
    ]
    items += [f"<li>{describe_more_levels(others)}</li>\n"] if others else []
    yield f"<ul>\n{''.join(items)}</ul>\n" if items else ""


def _table(caption: str, rows: Iterable[dict[str, str]]) -> str:
    return render_records(caption, ({sanitize(title): sanitize(value) for title, value in row.items()} for row in rows))


def _list(sentences: Iterable[str]) -> str:
    items = "".join(f"<li>{escape_xml(sanitize(sentence))}</li>\n" for sentence in sentences)
    return f"<ul>\n{items}</ul>\n" if items else ""


def _describe_plots(report: ReplayReport, intervals: Intervals) -> str:
    text = f"Times in UTC. Each step is the most seats in use within {format_duration(intervals.size)}"
    text += ", on the API server that had the most." if len(report.servers) > 1 else "."
    return f"{text} A limit with an arrow is above the scale. Red marks show rejected requests."


def _series(report: ReplayReport, intervals: Intervals) -> str:
    """Render the plots as two tables, with intervals joined so that there are few rows."""
    step = -(-intervals.number // _MAX_ROWS)
    is_long = intervals.size * intervals.number > 86_400_000_000
    seats: list[dict[str, str]] = []
    rejected: list[dict[str, str]] = []
    for start in range(0, intervals.number, step):
        part = slice(start, start + step)
        time = {"From": format_clock(intervals.start + start * intervals.size, is_long)}
        seats.append(time | {level.name: format_count(max(level.series.seats[part])) for level in report.levels})
        rejected.append(
            time
            | {level.name: format_count(sum(level.series.rejected[part])) for level in report.levels if level.rejected}
        )
    text = _table("Most seats in use", seats)
    return text + (_table("Rejected requests", rejected) if any(level.rejected for level in report.levels) else "")
