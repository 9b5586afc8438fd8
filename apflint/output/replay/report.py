"""The report of `apflint replay`: a summary, tables and drawings of the priority levels, and explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.blocks import (
    DOCUMENTS,
    HTML,
    TEXT,
    Bullets,
    Column,
    Details,
    Facts,
    Figure,
    Group,
    Heading,
    Only,
    Prose,
    Table,
    Text,
    get_plain,
)
from apflint.output.console import count_cells, shorten
from apflint.output.replay.wording import (
    describe_contradictions,
    describe_coverage,
    describe_imbalance,
    describe_limits_of_log,
    describe_more_groups,
    describe_more_levels,
    format_attainable,
    format_clock,
    format_count,
    format_peak,
    format_seat_seconds,
    format_share,
    is_overloaded,
    list_users,
    mark_waits,
    summarize,
    summarize_levels,
)
from apflint.output.sanitize import sanitize
from apflint.output.sparkline import draw_sparkline
from apflint.wording import format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.output.blocks import Block
    from apflint.output.console import Style
    from apflint.replay.statistics import Breakdown, DurationPercentiles, Intervals, LevelTraffic, ReplayReport

TITLE = "Replay of audit logs"
_LEVEL = Column("Priority level", "name")
_TRAFFIC = (
    *(_LEVEL, Column("Requests"), Column("Share", is_optional=True), Column("Rejected")),
    *map(Column, ("Waits", "Wait p50", "Wait p99", "Wait max")),
    *(Column("Time p50", is_optional=True), Column("Time p99"), Column("Time max")),
)
_SEATS = (_LEVEL, *map(Column, ("Seat-seconds", "Peak", "Nominal", "Attainable")))
_USERS, _SCHEMAS = Column("Users by requests", "name"), Column("FlowSchemas", "name", is_optional=True)
_SPARKLINE_CELLS = 20
_PIPE_LIST_CELLS = 200
"""Width of a list in cells if there is no terminal."""
_PIPE_CELLS = 100
"""Maximum width of a value of `--by` in cells if there is no terminal."""
_MIN_LIST_CELLS = 20
"""Minimum width of a list. If the terminal is too narrow for two lists, FlowSchemas are in a second table."""
_MORE_CELLS = 6
_GAP = 2
_MAX_ROWS = 24
"""Maximum number of rows of the table that repeats the plots."""


def report_replay(report: ReplayReport, style: Style) -> Iterator[Block]:
    """Yield the report. In text, lists of users and FlowSchemas are cut to the width of the terminal."""
    sentences = list(describe_coverage(report))
    # If reading was interrupted, the report begins with a sentence about the interruption, because the complete log may
    # lead to another verdict.
    partial = int(report.coverage.interrupted)
    yield Only(DOCUMENTS, [Heading(TITLE, 1)])
    yield Prose(list(describe_contradictions(report)), "error")
    yield Only(TEXT, [Prose(sentences[:partial], "error")])
    if report.levels:
        yield _summarize(report)
    yield Only(TEXT, [Bullets(sentences[partial:], marker="")])
    yield Only(DOCUMENTS, [Bullets(sentences, marker="")])
    if report.levels:
        yield Only(TEXT, [_tabulate_traffic_over_time(report), _tabulate_seats_in(style, report)])
        yield Only(DOCUMENTS, [_tabulate_traffic(report), _tabulate_seats(report)])
    yield _tabulate_servers(report)
    if report.breakdown is not None:
        yield _tabulate_groups(report.breakdown, style)
    if report.intervals is not None:
        yield Only(HTML, _draw(report, report.intervals))
    yield from explain_numbers(list(describe_limits_of_log(report)))


def explain_numbers(sentences: Sequence[str]) -> Iterator[Block]:
    """Yield the last part of a report, which explains its numbers."""
    yield Only(HTML, [Heading("What the numbers mean")])
    yield Bullets(sentences, marker="", tone="dim")


def _summarize(report: ReplayReport) -> Group:
    levels, others = summarize_levels(report)
    has_rejections = any(level.rejected for level in report.levels)
    facts = [(Text(level.name, "name"), str(level)) for level in levels]
    return Group(
        [
            Prose([" ".join(summarize(report))], "error" if has_rejections else "bold"),
            Facts(facts, indent=_GAP, more=describe_more_levels(others) if others else ""),
            Prose(list(describe_imbalance(report))),
        ]
    )


def _name(level: LevelTraffic) -> Text:
    return Text(level.name, "error" if level.rejected or is_overloaded(level) else "bold")


def _tabulate_traffic(report: ReplayReport) -> Table:
    return Table(_TRAFFIC, [_list_traffic(level, report) for level in report.levels], "Requests")


def _list_traffic(level: LevelTraffic, report: ReplayReport) -> tuple[str | Text, ...]:
    return (
        _name(level),
        format_count(level.requests),
        format_share(level.requests, report.outcomes["classified"]),
        Text(format_count(level.rejected), "error" if level.rejected else ""),
        *_list_times(level.waits),
        *_list_times(level.durations)[1:],
    )


def _list_times(values: DurationPercentiles | None) -> tuple[str, ...]:
    if values is None:
        return "-", "-", "-", "-"
    return format_count(values.number), *map(format_duration, values[1:])


def _tabulate_traffic_over_time(report: ReplayReport) -> Table:
    """Return the table of traffic for a terminal. The last column is a sparkline instead of the longest duration."""
    rows = [
        (
            *_list_traffic(level, report)[:-1],
            Text(draw_sparkline(level.series.requests, _SPARKLINE_CELLS), "good"),
        )
        for level in report.levels
    ]
    return Table((*_TRAFFIC[:-1], Column("Over time", "bar", is_optional=True)), rows)


def _tabulate_seats(report: ReplayReport) -> Table:
    rows: list[tuple[str | Text, ...]] = []
    for level in report.levels:
        users = [f"{name} {share}" for name, share in list_users(level.users, level.requests)]
        if others := level.user_count - len(users):
            users.append(f"+{others}")
        schemas = [f"{name} {format_share(count, level.requests)}" for name, count in level.flow_schemas]
        rows.append((*_list_seats(level), ", ".join(users), ", ".join(schemas)))
    return Table((*_SEATS, _USERS, _SCHEMAS), rows, "Seats")


def _list_seats(level: LevelTraffic) -> tuple[str | Text, ...]:
    return (
        _name(level),
        f"{mark_waits(level)}{format_seat_seconds(level.seat_microseconds)}",
        Text(format_peak(level), "error" if is_overloaded(level) else ""),
        format_count(level.limits.nominal),
        format_attainable(level),
    )


def _tabulate_seats_in(style: Style, report: ReplayReport) -> Table:
    """Return the table of the seats of each level, with lists of its users and FlowSchemas, for a terminal.

    A list that is too long for the width of the terminal is cut after the last item that fits.
    """
    rows = [list(_list_seats(level)) for level in report.levels]
    lists = {
        _USERS: [list_users(level.users, level.requests) for level in report.levels],
        _SCHEMAS: [[(name, "") for name, _ in level.flow_schemas] for level in report.levels],
    }
    lines: list[list[str | Text]] = [[column.title for column in _SEATS], *rows]
    used = sum(max(len(get_plain(cell)) for cell in cells) + _GAP for cells in zip(*lines, strict=True))
    columns = list(_SEATS)
    names = max(count_cells(level.name) for level in report.levels)
    alone = (style.width or 0) - names - _GAP
    for column, cells in _divide(lists, None if style.width is None else style.width - used, alone).items():
        columns.append(column)
        for row, items, level in zip(rows, lists[column], report.levels, strict=True):
            row.append(_fit(items, level.user_count if column is _USERS else len(items), cells))
    return Table(columns, rows)


def _divide(lists: dict[Column, list[list[tuple[str, str]]]], width: int | None, alone: int) -> dict[Column, int]:
    """Return the width in cells of the two lists of a table, each of which is a column (users, FlowSchemas).

    `width` is the total width of both lists. If one list needs less than half of `width`, the other
    list gets the rest. If `width` is insufficient for both lists, the second list goes to a second
    table, and has the width `alone`. If `width` is None, both lists have the width for output to a
    pipe.
    """
    if width is None:
        return dict.fromkeys(lists, _PIPE_LIST_CELLS)
    first, second = lists
    if width < 2 * _MIN_LIST_CELLS + _GAP:
        return {first: max(width, _MIN_LIST_CELLS), second: alone}
    needed = {
        column: max(sum(count_cells(f"{name} {value}, ") for name, value in items) for items in items_of_levels)
        for column, items_of_levels in lists.items()
    }
    half = (width - _GAP) // 2
    other = min(needed[second], max(half, width - _GAP - needed[first]))
    return {first: width - _GAP - other, second: other}


def _fit(items: Sequence[tuple[str, str]], total: int, cells: int) -> str:
    """Return the first of `items`, as many as fit into `cells`, separated by commas.

    An item is a pair (name, value). `items` are the first items of a list that has `total` items. If
    items are omitted, the result ends with their number, such as `+3`. If the first item does not fit,
    the start of its name is cut off.
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


def _tabulate_servers(report: ReplayReport) -> Table:
    """Return the table of API servers. The table is empty if there is only one server."""
    total = sum(server.requests for server in report.by_server)
    rows = [
        (
            server.server,
            format_count(server.requests),
            format_share(server.requests, total),
            Text(format_count(server.rejected), "error" if server.rejected else ""),
            format_count(server.waits),
            format_seat_seconds(server.seat_microseconds),
        )
        for server in report.by_server
    ]
    titles = ("Requests", "Share", "Rejected", "Waits", "Seat-seconds")
    return Table((Column("API server", "name"), *map(Column, titles)), rows, "API servers")


def _tabulate_groups(breakdown: Breakdown, style: Style) -> Table:
    rows = [
        (
            *(shorten(value, _PIPE_CELLS) if style.width is None and value else value or "-" for value in group.values),
            format_count(group.requests),
            format_count(group.rejected),
            format_seat_seconds(group.seat_microseconds),
        )
        for group in breakdown.groups
    ]
    columns = [Column(name, "name") for name in breakdown.dimensions]
    more = describe_more_groups(breakdown)
    return Table(
        (*columns, *map(Column, ("Requests", "Rejected", "Seat-seconds"))),
        rows,
        f"By {', '.join(breakdown.dimensions)}",
        [more] if more else [],
        keys=len(columns),
    )


def _draw(report: ReplayReport, intervals: Intervals) -> Iterator[Block]:
    """Yield the plots of the levels, and tables with the same numbers."""
    from apflint.output.replay.charts import chart_seats, describe_charts  # imported for HTML only

    yield Heading("Seats in use over time")
    yield Prose([describe_charts(report, intervals)], "dim")
    for level in report.levels:
        figure = Figure(chart_seats(level, intervals, report.zone))
        if level.rejected:
            yield Heading(Text(level.name, "name"), 3)
            yield figure
        else:
            yield Details((Text(level.name, "name"), f" {_describe_folded(level)}"), [figure])
    yield Details(Text("The same as tables", "bold"), _tabulate_series(report, intervals))


def _describe_folded(level: LevelTraffic) -> str:
    """Return a remark for the title of a folded plot, such as `(no rejections, peak 5 of 10 seats)`."""
    limit = "" if level.limits.is_exempt else f" of {format_attainable(level)}"
    seats = "no request executed" if level.peak is None else f"peak {format_peak(level)}{limit} seats"
    return f"(no rejections, {seats})"


def _tabulate_series(report: ReplayReport, intervals: Intervals) -> Iterator[Table]:
    """Yield a table of the most seats in use and a table of the rejected requests, as in the plots over time.

    Each row is an interval. Neighboring intervals are joined, so that a table has at most `_MAX_ROWS`
    rows. A joined interval has the maximum of the seats, and the sum of the rejections.
    """
    step = -(-intervals.number // _MAX_ROWS)
    parts = [slice(start, start + step) for start in range(0, intervals.number, step)]
    times = [
        format_clock(intervals.start + part.start * intervals.size, intervals.is_long, report.zone) for part in parts
    ]
    rejecting = [level for level in report.levels if level.rejected]
    seats = [[max(level.series.seats[part]) for level in report.levels] for part in parts]
    rejected = [[sum(level.series.rejected[part]) for level in rejecting] for part in parts]
    for title, levels, numbers in (
        ("Most seats in use", report.levels, seats),
        ("Rejected requests", rejecting, rejected),
    ):
        columns = (Column("From", "name"), *(Column(level.name) for level in levels))
        rows = [(time, *map(format_count, values)) for time, values in zip(times, numbers, strict=True)]
        yield Table(columns, rows if levels else [], title)
