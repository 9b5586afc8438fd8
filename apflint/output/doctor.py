"""The report of `apflint doctor`: findings, and the state of API servers as tables, drawings and JSON."""

from __future__ import annotations

from collections import Counter
from math import isinf
from typing import TYPE_CHECKING

from apflint.doctor.rule_runner import list_unexplained
from apflint.finding import SEVERITIES
from apflint.output.blocks import (
    HTML,
    TEXT,
    Column,
    Details,
    Figure,
    Group,
    Heading,
    Only,
    Prose,
    Raw,
    Table,
    Text,
)
from apflint.output.doctor_causes import name_server, report_causes, report_closing
from apflint.output.findings import render as render_findings
from apflint.wording import count_noun, join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.doctor.causes import Conclusion
    from apflint.doctor.dumps import QueueRow
    from apflint.doctor.level_state import Flow, LevelState, ServerState
    from apflint.finding import Finding, Report
    from apflint.output.blocks import Block, Cell
    from apflint.output.console import Style
    from apflint.output.svg_chart import Bar

_MAX_MISSING = 6
"""Maximum number of missing metrics that are named. JSON names all of them."""
_MAX_FLOWS = 3
"""Maximum number of flows of a level in the table."""
MAX_DRAWN_QUEUES = 512
"""Maximum number of queues of a level that are drawn. A level with more queues is only described."""
_SEATS = {
    "Nominal": "nominal",
    "Min": "min",
    "Max": "max",
    "Current": "current",
    "In use": "seats_in_use",
    "Demand": "demand_high",
    "Smoothed": "demand_smoothed",
}
"""Fields of `LevelState` by title of a column about seats."""
_REASONS = {"Queue full": "queue-full", "No seat": "concurrency-limit", "Time out": "time-out"}
"""For each title of a column: the reason of the rejections that the column counts."""
_LEVEL = Column("Priority level", "name")


def state_json(state: ServerState) -> dict[str, object]:
    """Return the state of a server as JSON. A value is None if metrics and dumps do not contain it. `missing` lists absent metrics."""
    metrics = state.server.last.metrics
    return {
        "files": [source.name for snapshot in state.server.snapshots for source in snapshot.sources],
        "started": None if metrics is None else metrics.started,
        "kubernetes": state.release.name if state.release is not None else None,
        "serverConcurrency": state.total,
        "sinceStart": state.since_start,
        "seconds": state.seconds,
        "missing": [] if metrics is None else [*metrics.missing(state.release), *metrics.unsupported(state.release)],
        "levels": [_level_json(level, state) for level in state.levels],
    }


def _level_json(level: LevelState, state: ServerState) -> dict[str, object]:
    return {
        "name": level.name,
        "nominal": level.nominal,
        "min": level.min,
        "max": level.max,
        "current": level.current,
        "seatsInUse": level.seats_in_use,
        "demandHighWatermark": level.demand_high,
        "demandAverage": level.demand_average,
        "demandSmoothed": level.demand_smoothed,
        "waiting": level.waiting,
        "executing": level.executing,
        "dispatched": level.dispatched,
        "rejected": level.rejected,
        "rejections": [rejection._asdict() for rejection in level.rejections],
        "dispatchedPerSecond": _rate(level.dispatched, state),
        "rejectedPerSecond": _rate(level.rejected, state),
        "waits": {
            "requests": level.waits and level.waits.requests,
            "p50UpTo": _bound(level, 0.5),
            "p99UpTo": _bound(level, 0.99),
        },
        "queues": level.queues,
        "flows": [flow._asdict() for flow in level.flows],
        "quiescing": level.is_quiescing,
        "deleted": level.is_deleted,
    }


def _rate(count: int | None, state: ServerState) -> float | None:
    """Return `count` divided by the seconds between two snapshots of a server.

    Return None if `count` or the time is unknown, or if there is only one snapshot.
    """
    return None if count is None or state.since_start or not state.seconds else count / state.seconds


def _bound(level: LevelState, proportion: float) -> float | str | None:
    bound = level.waits.quantile(proportion) if level.waits is not None else None
    return "Infinity" if bound is not None and isinf(bound) else bound


def report_doctor(
    states: Sequence[ServerState],
    report: Report,
    conclusion: Conclusion,
    style: Style,
    configuration: str | None = None,
    more: Iterable[Block] = (),
    *,
    is_selected: bool = False,
) -> Iterator[Block]:
    """Yield the verdict, the causes, the findings, and the state of each server.

    `configuration` describes the manifests, or is None. `more` are blocks to show below the causes. Text shows tables only
    if the style is verbose. Text shows findings about load only if the style is verbose or the user selected rules,
    because the causes explain these findings.
    """
    counts = [pluralize(count, severity) for severity in SEVERITIES for count in [report.count(severity)] if count]
    yield from report_causes(states, conclusion, configuration)
    yield from more
    yield Only(HTML, _draw_levels(states, conclusion))
    yield Only(("markdown",), _embed_findings(report, "markdown", style))
    number = count_noun(len(report.findings) + report.left_out, "finding")
    title = f"{number}: {', '.join(counts)}" if counts else "No findings"
    yield Only(HTML, [Details(title, map(_report_finding, report.findings)) if report.findings else Prose([title])])
    for state in states:
        yield from _report_server(state, is_verbose=style.verbose)
    shown = report if style.verbose or is_selected else list_unexplained(report)
    yield Only(TEXT, _embed_findings(shown, "text", style))
    yield Only(TEXT, [report_closing(conclusion, report, is_verbose=style.verbose)])


def _embed_findings(report: Report, name: str, style: Style) -> Iterator[Block]:
    yield Raw(render_findings(report, name, style))


def _report_finding(finding: Finding) -> Details:
    rule = Text(finding.rule, url=finding.url)
    help_text = [(Text("help", "bold"), f": {finding.help}")] if finding.help else []
    place = Text(f"{finding.file}:{finding.span.line}", "name")
    title = (Text(finding.severity, finding.severity), " ", rule, f" {finding.message}")
    return Details(title, [Prose([*finding.notes, *help_text, (place,)])])


def _report_server(state: ServerState, *, is_verbose: bool) -> Iterator[Block]:
    files = [source.name for snapshot in state.server.snapshots for source in snapshot.sources]
    seats = f", server concurrency limit {state.total}" if state.total is not None else ""
    title, gaps = f"API server{seats}: {', '.join(files)}", describe_gaps(state)
    tables = (_tabulate_seats(state), _tabulate_requests(state), _tabulate_flows(state))
    yield Only(TEXT, [Prose([*([title] if is_verbose else []), *gaps]), *(tables if is_verbose else ())])
    yield Only(("markdown",), [Heading(title, 1), Prose(gaps), *tables])
    yield Only(
        HTML,
        [
            Details(
                ("All priority levels of ", Text(name_server(state), "name")),
                [Prose(gaps), *_draw_server(state), *tables],
            )
        ],
    )


def _draw_levels(states: Sequence[ServerState], conclusion: Conclusion) -> Iterator[Block]:
    """Yield a picture of each level that a cause names, for each server."""
    from apflint.output.level_history import LEGEND, MAX_PICTURES, Gallery, LevelHistory, list_affected, list_moments

    for state in states:
        name = name_server(state)
        levels = list_affected(state, conclusion)
        if not levels:
            continue
        title = "Seats and waiting requests"
        yield Heading(title if len(states) == 1 else (f"{title} at ", Text(name, "name")))
        histories = list_moments(state, levels[:MAX_PICTURES])
        yield Figure(Gallery([LevelHistory(level, moments) for level, moments in histories.items()]), LEGEND)
        if (more := len(levels) - MAX_PICTURES) > 0:
            yield Prose([f"{count_noun(more, 'further level')}: see the table of all priority levels."], "dim")


def describe_gaps(state: ServerState) -> list[str]:
    """Return sentences about metrics and values that the files of a server do not contain."""
    last = state.server.last
    metrics = last.metrics
    if metrics is None:
        return [f"{last.sources[0].name}: no metrics, so limits, reasons of rejections, and waits are unknown."]
    lines = []
    if missing := list(metrics.missing(state.release, with_unusable=False)):
        lines.append(f"{metrics.source.name}: not in the metrics: {join_some(missing, _MAX_MISSING)}.")
    if state.release is not None and (unsupported := list(metrics.unsupported(state.release))):
        lines.append(
            f"{metrics.source.name}: Kubernetes {state.release.name} has no metrics of: {', '.join(unsupported)}."
        )
    if unusable := metrics.samples.unusable:
        line, name = unusable[0]
        values = "1 value is" if len(unusable) == 1 else f"{len(unusable):,} values are"
        lines.append(
            f"{metrics.source.name}: {values} negative, NaN, infinite or too large. apflint ignores such values. First: {name} (line {line})."
        )
    return lines


def _tabulate_seats(state: ServerState) -> Table:
    """Return a table with the limits, the seats in use, and the demand of each level.

    Without metrics, the table has no rows.
    """
    levels = state.levels if state.server.last.metrics is not None else ()
    rows: list[tuple[Cell, ...]] = [
        (_name(level), *(_number(getattr(level, field)) for field in _SEATS.values())) for level in levels
    ]
    notes = (
        "CURRENT: the limit now, between MIN and MAX. IN USE: the seats of executing requests.",
        (
            "DEMAND: the highest number of seats in use or waited for in the last completed adjustment period (10 s)."
            " SMOOTHED: the demand for which a level tries to borrow seats. It falls slowly after a burst."
        ),
    )
    return Table((_LEVEL, *map(Column, _SEATS)), rows, "Seats", notes)


def _tabulate_requests(state: ServerState) -> Table:
    """Return a table with the requests of each level: waiting, executing, dispatched, rejected, and their waits."""
    if state.since_start:
        span = "since the start of the server"
    else:
        span = f"in {state.seconds:.0f} seconds, and per second (/s)" if state.seconds else "between the snapshots"
    titles = ("Waiting", "Executing", "Dispatched", *_REASONS, "Wait p50", "Wait p99")
    notes = (
        f"DISPATCHED and the columns after it count requests {span}. QUEUE FULL, NO SEAT and TIME OUT: rejected requests.",
        "WAIT: half of the requests (P50), and 99 of 100 (P99), waited at most this long in a queue.",
    )
    rows = [_request_cells(level, state) for level in state.levels]
    return Table((_LEVEL, *map(Column, titles)), rows, "Requests", notes)


def _request_cells(level: LevelState, state: ServerState) -> tuple[str | Text, ...]:
    by_reason = Counter[str]()
    for rejection in level.rejections:
        by_reason[rejection.reason] += rejection.requests
    # If only a dump of levels was read, the total number of rejections is known, but not the numbers by reason.
    is_known = sum(by_reason.values()) == level.rejected
    return (
        _name(level),
        _number(level.waiting),
        _number(level.executing),
        _count(level.dispatched, state),
        *(_count(by_reason[reason] if is_known else None, state) for reason in _REASONS.values()),
        _wait(level, 0.5),
        _wait(level, 0.99),
    )


def _tabulate_flows(state: ServerState) -> Table:
    """Return a table with the busiest flows of each level. Without dumps, the table has no rows."""
    columns = (
        _LEVEL,
        *(
            Column("FlowSchema", "name"),
            Column("Flow", "name"),
            Column("Waiting"),
            Column("Executing"),
            Column("Queues"),
        ),
        Column("Users", "name", is_optional=True),
    )
    return Table(columns, [row for level in state.levels for row in _flow_rows(level)], "Busiest flows")


def _name(level: LevelState) -> Text:
    state = " (quiescing)" if level.is_quiescing else " (deleted)" if level.is_deleted else ""
    return Text(f"{level.name}{state}", "bold")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{round(value):,}" if value == round(value) else f"{value:,.1f}"


def _count(requests: int | None, state: ServerState) -> str:
    """Return a number of requests as text, such as `120 (2.0/s)` if two snapshots show the rate."""
    rate = _rate(requests, state)
    if not rate:
        return _number(requests)
    return f"{requests:,} ({'<0.1' if rate < 0.05 else f'{rate:.1f}'}/s)"


def _wait(level: LevelState, proportion: float) -> str:
    bound = level.waits.quantile(proportion) if level.waits is not None else None
    if bound is None:
        return "-"
    return "> 30 s" if isinf(bound) else f"{bound:g} s"


def _flow_rows(level: LevelState) -> Iterator[tuple[str | Text, ...]]:
    for flow in level.flows[:_MAX_FLOWS]:
        yield _flow_row(level, flow)
    if (more := len(level.flows) - _MAX_FLOWS) > 0:
        yield (_name(level), pluralize(more, "more flow"), *[""] * 5)


def _flow_row(level: LevelState, flow: Flow) -> tuple[str | Text, ...]:
    return (
        _name(level),
        flow.schema,
        flow.distinguisher or "-",
        str(flow.waiting),
        str(flow.executing),
        str(flow.queues),
        ", ".join(flow.users) or "-",
    )


def _draw_server(state: ServerState) -> Iterator[Block]:
    from apflint.output.svg_chart import Bars  # imported on demand: only the HTML format needs it

    if state.server.last.metrics is not None:
        legend = (
            ("use", "seats in use"),
            ("wait", "demand above the current limit (highest demand in a period of 10 s)"),
            ("track", "current limit"),
            ("mark", "nominal limit"),
        )
        yield Figure(Bars("Seats of each priority level", [_to_bar(level) for level in state.levels]), legend)
    if state.server.last.queues is not None:
        yield Heading("Queues with requests")
        figures = [block for level in state.levels for block in _draw_queues(level, state.server.last.queues)]
        yield Group(figures or [Prose(["All queues are empty."])])


def _to_bar(level: LevelState) -> Bar:
    from apflint.output.svg_chart import Bar

    figures = {
        "in use": level.seats_in_use,
        "demand": level.demand_high,
        "current": level.current,
        "nominal": level.nominal,
    }
    numbers = ", ".join(f"{label} {value:g}" for label, value in figures.items() if value is not None)
    wanted = None if level.is_exempt else level.demand_high  # an exempt level has no limit that demand could exceed
    return Bar(level.name, level.seats_in_use, wanted, level.current, level.nominal, numbers)


def _draw_queues(level: LevelState, queues: Sequence[QueueRow]) -> Iterator[Block]:
    """Yield a sentence about the queues of a level and a drawing of them, or nothing if all queues are empty."""
    from apflint.output.svg_chart import Queues

    rows = [queue for queue in queues if queue.level == level.name]
    waiting, executing = sum(queue.waiting for queue in rows), sum(queue.executing for queue in rows)
    if not waiting and not executing:
        return
    waits = f"{pluralize(waiting, 'request')} in {sum(queue.waiting > 0 for queue in rows)} of {len(rows)} queues"
    waits += " waits" if waiting == 1 else " wait"
    executes = f"{pluralize(executing, 'request')} {'executes' if executing == 1 else 'execute'}"
    yield Prose([(Text(level.name, "name"), f": {waits}, {executes}")])
    if len(rows) <= MAX_DRAWN_QUEUES:
        columns = [(queue.number, queue.waiting, queue.executing) for queue in rows]
        legend = (("wait", "waiting"), ("use", "executing"))
        yield Figure(Queues(f"Queues of {level.name}", columns), legend)
