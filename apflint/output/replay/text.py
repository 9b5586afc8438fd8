"""The report of a replay as text: what went wrong, tables of the priority levels, and what the numbers mean."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import count_cells, label_lines, render_prose, shorten
from apflint.output.replay.wording import (
    describe_contradictions,
    describe_coverage,
    describe_limits_of_log,
    describe_more_groups,
    describe_more_levels,
    find_peak,
    format_attainable,
    format_count,
    format_seat_seconds,
    format_share,
    is_overloaded,
    list_users,
    summarize,
    summarize_levels,
)
from apflint.output.sanitize import sanitize, sanitize_line
from apflint.output.sparkline import draw_sparkline
from apflint.output.tables import Text, render_table
from apflint.wording import format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.output.console import Style
    from apflint.replay.statistics import Breakdown, Distribution, LevelTraffic, ReplayReport

_SPARKLINE_CELLS = 20
_PIPE_LIST_CELLS = 200
"""Width of a list in cells if there is no terminal."""
_PIPE_CELLS = 100
"""Maximum width of a value of `--by` in cells if there is no terminal."""
_MIN_LIST_CELLS = 20
"""Minimum width of a list. If the terminal is too narrow for two lists, FlowSchemas are omitted."""
_MORE_CELLS = 6
_GAP = 2


def render(report: ReplayReport, style: Style) -> str:
    """Render the report for people."""
    parts = [
        render_prose(style, *describe_contradictions(report), color="error"),
        render_prose(style, *describe_coverage(report)),
    ]
    if report.levels:
        parts += (_summary(report, style), _traffic(report, style), _seats(report, style))
    if report.breakdown is not None:
        parts.append(_breakdown(report.breakdown, style))
    parts.append(render_prose(style, *describe_limits_of_log(report), color="dim"))
    return "\n".join(filter(None, parts))


def _summary(report: ReplayReport, style: Style) -> str:
    levels, others = summarize_levels(report)
    has_rejections = any(level.rejected for level in report.levels)
    text = render_prose(style, " ".join(summarize(report)), color="error" if has_rejections else "bold")
    cells = max((count_cells(sanitize(level.name)) for level in levels), default=0) + _GAP
    lines = [
        line for level in levels for line in label_lines(sanitize_line(level.name), str(level), cells, style, _GAP)
    ]
    if others:
        lines.append(f"  and {describe_more_levels(others)}")
    return text + "".join(f"{line}\n" for line in lines)


def _traffic(report: ReplayReport, style: Style) -> str:
    total = report.outcomes["classified"]
    rows: list[tuple[str | Text, ...]] = [
        (
            _name(level),
            format_count(level.requests),
            format_share(level.requests, total),
            Text(format_count(level.rejected), "bold red" if level.rejected else ""),
            *_cells(level.waits),
            *_cells(level.durations)[1:3],
            Text(draw_sparkline(level.series.requests, _SPARKLINE_CELLS), "green"),
        )
        for level in report.levels
    ]
    titles = ("PRIORITY LEVEL", "REQUESTS", "SHARE", "REJECTED", "WAITS", "WAIT P50", "WAIT P99", "WAIT MAX")
    return render_table((*titles, "TIME P50", "TIME P99", ""), rows, style, optional=("", "SHARE", "TIME P50"))


def _seats(report: ReplayReport, style: Style) -> str:
    titles = ["PRIORITY LEVEL", "SEAT-SECONDS", "PEAK", "NOMINAL", "ATTAINABLE"]
    rows: list[list[str | Text]] = []
    for level in report.levels:
        peak = find_peak(level)
        rows.append(
            [
                _name(level),
                format_seat_seconds(level.seat_microseconds),
                Text("-" if peak is None else format_count(peak), "bold red" if is_overloaded(level) else ""),
                format_count(level.limits.nominal),
                format_attainable(level),
            ]
        )
    lists = {
        "TOP USERS": [list_users(level.users, level.requests) for level in report.levels],
        "FLOWSCHEMAS": [[(name, "") for name, _ in level.flow_schemas] for level in report.levels],
    }
    used = sum(max(len(titles[at]), *(len(row[at]) for row in rows)) + _GAP for at in range(len(titles)))
    for title, cells in _divide(lists, None if style.width is None else style.width - used).items():
        titles.append(title)
        for row, items, level in zip(rows, lists[title], report.levels, strict=True):
            row.append(_fit(items, level.user_count if title == "TOP USERS" else len(items), cells))
    table = render_table(titles, rows, style, wrapped=tuple(lists))
    if "FLOWSCHEMAS" not in titles:
        table += render_prose(style, "For the FlowSchemas, use a wider terminal or --by flowSchema.", color="dim")
    return table


def _divide(lists: dict[str, list[list[tuple[str, str]]]], width: int | None) -> dict[str, int]:
    """Return the width of each list in cells. Each list gets the space that the other list does not need."""
    if width is None:
        return dict.fromkeys(lists, _PIPE_LIST_CELLS)
    first, second = lists
    if width < 2 * _MIN_LIST_CELLS + _GAP:
        return {first: max(width, _MIN_LIST_CELLS)}
    needed = {
        title: max(sum(count_cells(f"{name} {value}, ") for name, value in items) for items in column)
        for title, column in lists.items()
    }
    half = (width - _GAP) // 2
    other = min(needed[second], max(half, width - _GAP - needed[first]))
    return {first: width - _GAP - other, second: other}


def _fit(items: Sequence[tuple[str, str]], total: int, cells: int) -> str:
    """Return as many items as fit, and the number of omitted items.

    The first name is cut at its start if it is too long.

    `items` are the first of `total` items.
    """
    parts: list[str] = []
    for number, (name, value) in enumerate(items):
        suffix = f" {value}" if value else ""
        text = f"{sanitize(name)}{suffix}"
        reserved = _MORE_CELLS if number < total - 1 else 0
        if not parts:
            room = cells - len(suffix) - reserved - 1
            parts.append(shorten(sanitize(name)[::-1], room)[::-1] + suffix)
        elif count_cells(", ".join((*parts, text))) + reserved > cells:
            break
        else:
            parts.append(text)
    more = [f"+{total - len(parts)}"] if len(parts) < total else []
    return ", ".join((*parts, *more))


def _breakdown(breakdown: Breakdown, style: Style) -> str:
    rows: list[tuple[str | Text, ...]] = [
        (
            *(Text(_limit(sanitize_line(value), style) or "-") for value in group.values),
            format_count(group.requests),
            format_count(group.rejected),
            format_seat_seconds(group.seat_microseconds),
        )
        for group in breakdown.groups
    ]
    names = [name.upper() for name in breakdown.dimensions]
    table = render_table((*names, "REQUESTS", "REJECTED", "SEAT-SECONDS"), rows, style, wrapped=names, keys=len(names))
    more = describe_more_groups(breakdown)
    return table + (render_prose(style, more) if more else "")


def _limit(text: str, style: Style) -> str:
    """Shorten a text that would widen a table. On a terminal, tables wrap texts instead."""
    return shorten(text, _PIPE_CELLS) if style.width is None else text


def _name(level: LevelTraffic) -> Text:
    is_marked = level.rejected or is_overloaded(level)
    return Text(sanitize_line(level.name), "bold red" if is_marked else "bold")


def _cells(values: Distribution | None) -> tuple[str, ...]:
    if values is None:
        return "-", "-", "-", "-"
    return format_count(values.number), *map(format_duration, values[1:])
