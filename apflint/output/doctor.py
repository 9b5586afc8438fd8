"""The state of API servers as tables for people and as JSON, as `apflint doctor` prints it."""

from __future__ import annotations

from collections import Counter
from math import isinf
from typing import TYPE_CHECKING, NamedTuple

from apflint.output.console import render_prose
from apflint.output.sanitize import sanitize_line
from apflint.output.tables import Text, render_table
from apflint.wording import pluralize

if TYPE_CHECKING:
    from apflint.doctor.level_state import Flow, LevelState, ServerState
    from apflint.output.console import Style

_MAX_FLOWS = 3
"""Maximum number of flows of a level in the table."""
_SEATS = {
    "NOMINAL": "nominal",
    "MIN": "min",
    "MAX": "max",
    "CURRENT": "current",
    "IN USE": "seats_in_use",
    "DEMAND": "demand_high",
    "SMOOTHED": "demand_smoothed",
}
"""Titles of the first table, with the fields of `LevelState`."""
_OPTIONAL = ("USERS",)
_WRAPPED = ("FLOWSCHEMA", "FLOW", "USERS")
"""Titles of columns that may be left out or wrapped if the terminal is narrow."""
_REASONS = {"QUEUE FULL": "queue-full", "NO SEAT": "concurrency-limit", "TIME OUT": "time-out"}
"""Titles of rejections, with their reasons."""


def state_json(state: ServerState) -> dict[str, object]:
    """Return the state of a server. A value is None if the files do not show it; missing metrics are listed in `missing`."""
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
    """Return requests per second, or None without two snapshots."""
    return None if count is None or state.since_start or not state.seconds else count / state.seconds


def _bound(level: LevelState, proportion: float) -> float | str | None:
    bound = level.waits.quantile(proportion) if level.waits is not None else None
    return "Infinity" if bound is not None and isinf(bound) else bound


class Table(NamedTuple):
    """A table about a server: titles, rows of text, and sentences that explain the columns."""

    titles: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: tuple[str, ...]


def render_state(state: ServerState, style: Style) -> str:
    """Render the tables of a server as text."""
    parts = [render_prose(style, *describe_server(state))]
    for table in (seats_table(state), requests_table(state), flows_table(state)):
        if table.rows:
            rows: list[list[str | Text]] = [[Text(sanitize_line(name), "bold"), *cells] for name, *cells in table.rows]
            optional, wrapped = (
                tuple(title for title in table.titles if title in names) for names in (_OPTIONAL, _WRAPPED)
            )
            text = render_table(table.titles, rows, style, optional=optional, wrapped=wrapped)
            parts.append(text + (render_prose(style, *table.legend) if table.legend else ""))
    return "\n".join(parts)


def describe_server(state: ServerState) -> list[str]:
    """Return sentences about the server, its files, and metrics that are missing."""
    files = [source.name for snapshot in state.server.snapshots for source in snapshot.sources]
    seats = f", server concurrency limit {state.total}" if state.total is not None else ""
    return [f"API server{seats}: {', '.join(files)}", *describe_gaps(state)]


def describe_gaps(state: ServerState) -> list[str]:
    """Return sentences about metrics and values that are missing."""
    last = state.server.last
    metrics = last.metrics
    if metrics is None:
        return [f"{last.sources[0].name}: no metrics, so limits, reasons of rejections, and waits are unknown."]
    lines = []
    if missing := list(metrics.missing(state.release)):
        lines.append(f"{metrics.source.name}: not in the metrics: {', '.join(missing)}.")
    if state.release is not None and (unsupported := list(metrics.unsupported(state.release))):
        lines.append(
            f"{metrics.source.name}: Kubernetes {state.release.name} has no metrics of: {', '.join(unsupported)}."
        )
    if count := len(metrics.samples.not_finite):
        values = "1 value is" if count == 1 else f"{count} values are"
        lines.append(
            f"{metrics.source.name}: {values} NaN, infinite or impossible, and not used (line {metrics.samples.not_finite[0]})."
        )
    return lines


def seats_table(state: ServerState) -> Table:
    """Return the limits, the seats in use, and the demand of each level. The table has no rows without metrics."""
    levels = state.levels if state.server.last.metrics is not None else ()
    rows = tuple((_name(level), *(_number(getattr(level, field)) for field in _SEATS.values())) for level in levels)
    return Table(
        ("PRIORITY LEVEL", *_SEATS),
        rows,
        (
            "CURRENT: the limit now, between MIN and MAX. IN USE: the seats of executing requests.",
            (
                "DEMAND: the highest number of seats in use or waited for in the last completed adjustment period (10 s)."
                " SMOOTHED: what the server borrows for."
            ),
        ),
    )


def requests_table(state: ServerState) -> Table:
    """Return the requests of each level: waiting, executing, dispatched, rejected, and how long they waited."""
    if state.since_start:
        span = "since the start of the server"
    else:
        span = f"in {state.seconds:.0f} seconds, and per second (/s)" if state.seconds else "between the snapshots"
    return Table(
        ("PRIORITY LEVEL", "WAITING", "EXECUTING", "DISPATCHED", *_REASONS, "WAIT P50", "WAIT P99"),
        tuple(_request_cells(level, state) for level in state.levels),
        (
            f"DISPATCHED and the columns after it count requests {span}. QUEUE FULL, NO SEAT and TIME OUT: rejected requests.",
            "WAIT: half of the requests (P50), and 99 of 100 (P99), waited at most this long in a queue.",
        ),
    )


def _request_cells(level: LevelState, state: ServerState) -> tuple[str, ...]:
    by_reason = Counter[str]()
    for rejection in level.rejections:
        by_reason[rejection.reason] += rejection.requests
    is_known = sum(by_reason.values()) == level.rejected  # the dump of levels has only the sum
    return (
        _name(level),
        _number(level.waiting),
        _number(level.executing),
        _count(level.dispatched, state),
        *(_count(by_reason[reason] if is_known else None, state) for reason in _REASONS.values()),
        _wait(level, 0.5),
        _wait(level, 0.99),
    )


def flows_table(state: ServerState) -> Table:
    """Return the busiest flows of each level. The table has no rows without dumps."""
    rows = tuple(row for level in state.levels for row in _flow_rows(level))
    return Table(("PRIORITY LEVEL", "FLOWSCHEMA", "FLOW", "WAITING", "EXECUTING", "QUEUES", "USERS"), rows, ())


def _name(level: LevelState) -> str:
    return level.name + (" (quiescing)" if level.is_quiescing else " (deleted)" if level.is_deleted else "")


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return str(round(value)) if value == round(value) else f"{value:.1f}"


def _count(requests: int | None, state: ServerState) -> str:
    """Return a number of requests, with the rate if two snapshots show it."""
    rate = _rate(requests, state)
    if not rate:
        return _number(requests)
    return f"{requests} ({'<0.1' if rate < 0.05 else f'{rate:.1f}'}/s)"


def _wait(level: LevelState, proportion: float) -> str:
    bound = level.waits.quantile(proportion) if level.waits is not None else None
    if bound is None:
        return "-"
    return "> 30 s" if isinf(bound) else f"{bound:g} s"


def _flow_rows(level: LevelState) -> list[tuple[str, ...]]:
    rows = [_flow_row(level, flow) for flow in level.flows[:_MAX_FLOWS]]
    more = len(level.flows) - _MAX_FLOWS
    if more > 0:
        rows.append((_name(level), pluralize(more, "more flow"), *[""] * 5))
    return rows


def _flow_row(level: LevelState, flow: Flow) -> tuple[str, ...]:
    return (
        _name(level),
        flow.schema,
        flow.distinguisher or "-",
        str(flow.waiting),
        str(flow.executing),
        str(flow.queues),
        ", ".join(flow.users) or "-",
    )
