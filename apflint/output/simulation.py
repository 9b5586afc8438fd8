"""Results of simulations as text and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import hang, render_prose
from apflint.output.json_text import SCHEMA
from apflint.output.limits import level_json
from apflint.output.sanitize import sanitize, sanitize_line
from apflint.output.sparkline import draw_sparkline
from apflint.output.tables import Text, render_table
from apflint.simulate.load import SECOND
from apflint.simulate.routes import find_uncounted_lists
from apflint.simulate.verdict import format_share, format_time, list_verdicts
from apflint.wording import count_noun, format_duration, join_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.output.console import Style
    from apflint.simulate.comparison import Comparison, Difference, Figures
    from apflint.simulate.histogram import Distribution
    from apflint.simulate.simulation import Result
    from apflint.simulate.statistics import ClientResult, FlowResult, LevelResult

_SPARKLINE_CELLS = 24
MAX_CLIENTS = 20
"""Maximum number of clients in text and Markdown. JSON has all clients."""


def simulation_json(result: Result) -> dict[str, object]:
    """Return the object that `simulate --format json` prints. Times are in seconds, seats are of all API servers."""
    load = result.load
    verdicts = dict(list_verdicts(result))
    return {
        "schema": SCHEMA,
        "configuration": result.configuration,
        "kubernetes": result.limits.release.name,
        "serverConcurrency": result.limits.server_concurrency,
        "servers": load.servers,
        "seed": result.seed,
        "duration": load.duration / SECOND,
        "requests": sum(level.requests for level in result.levels),
        "attempts": sum(level.attempts for level in result.levels),
        "notes": list(list_notes(result)),
        "levels": [_level_json(level, verdicts.get(level.name)) for level in result.levels],
    }


def _level_json(level: LevelResult, verdict: str | None) -> dict[str, object]:
    return {
        "name": level.name,
        "verdict": verdict,
        **_counts_json(level),
        "seats": {
            "average": _round(level.seats),
            "peak": level.peak,
            "borrowed": _round(level.borrowed),
            "lent": _round(level.lent),
        },
        "fairness": None if level.fairness is None else _round(level.fairness),
        "clients": [_client_json(client) for client in level.clients],
        "flows": [_flow_json(flow) for flow in level.flows],
        "overTime": {
            "seats": [_round(sample.seats) for sample in level.samples],
            "limit": [sample.limit for sample in level.samples],
            "waiting": [sample.waiting for sample in level.samples],
            "rejected": [sample.rejected for sample in level.samples],
        },
        "limits": level_json(level.limits),
    }


def _counts_json(row: LevelResult | ClientResult) -> dict[str, object]:
    return {
        "requests": row.requests,
        "attempts": row.attempts,
        "executed": row.executed,
        "rejected": {reason: row.rejected.get(reason, 0) for reason in ("queue-full", "concurrency-limit", "time-out")},
        "expired": row.expired,
        "failed": row.failed,
        "waited": row.waited,
        "waits": _distribution_json(row.waits),
        "latencies": _distribution_json(row.latencies),
    }


def _client_json(client: ClientResult) -> dict[str, object]:
    return {
        "name": client.name,
        "verb": client.verb,
        "flowSchemas": list(client.flow_schemas),
        **_counts_json(client),
        "unfinished": client.unfinished,
        "firstRejection": _seconds(client.first_rejection),
        "lastRejection": _seconds(client.last_rejection),
    }


def _flow_json(flow: FlowResult) -> dict[str, object]:
    return {
        "flowSchema": flow.flow_schema,
        "distinguisher": flow.distinguisher,
        "client": flow.client,
        "attempts": flow.attempts,
        "rejected": flow.rejected,
        "demand": _round(flow.demand),
        "service": _round(flow.service),
        "elephant": flow.is_elephant,
    }


def _distribution_json(times: Distribution | None) -> dict[str, object] | None:
    if times is None:
        return None
    return {"count": times.number, **{key: _seconds(getattr(times, key)) for key in ("p50", "p90", "p99", "max")}}


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / SECOND


def _round(value: float) -> float:
    return round(value, 6)


def list_notes(result: Result) -> Iterator[str]:
    """Yield sentences about assumptions of the simulation."""
    yield from result.notes
    uncounted = [f"{resource}.{group}" if group else resource for group, resource in find_uncounted_lists(result.load)]
    if uncounted:
        yield (
            f"The load does not state how many objects of {join_words(uncounted, 'and')} are stored, so each list takes 1"
            " seat: add `objects`."
        )
    unfinished = sum(client.unfinished for level in result.levels for client in level.clients)
    if unfinished:
        yield f"After the end of the simulation, {unfinished:,} retries were due. They did not happen."


def render_simulation(result: Result, style: Style) -> str:
    """Render a result for people: verdicts and a table of the levels. If verbose, also tables of seats and clients."""
    parts = [render_prose(style, *describe_run(result)), _render_verdicts(result, style)]
    levels = [level for level in result.levels if level.attempts]
    if levels and style.verbose:
        parts += (_levels(levels, style), _seats(levels, style), _clients(levels, style))
    elif levels:
        parts.append(_summary(levels, style))
    idle = [level.name for level in result.levels if not level.attempts]
    notes = list(list_notes(result))
    if idle:
        notes.insert(0, f"No requests: {join_words(map(sanitize, idle), 'and')}.")
    if levels and not style.verbose:
        notes.append("Seats over time, clients, and all percentiles: --verbose")
    parts.append(render_prose(style, *notes))
    return "\n".join(filter(None, parts))


def describe_run(result: Result) -> Iterator[str]:
    """Yield sentences about the load, the servers and the release that were simulated."""
    load, limits = result.load, result.limits
    servers = count_noun(load.servers, "API server")
    each = "" if load.servers == 1 else " each"
    requests = sum(level.requests for level in result.levels)
    attempts = sum(level.attempts for level in result.levels)
    retries = f" and {count_noun(attempts - requests, 'retry', 'retries')}" if attempts > requests else ""
    yield (
        f"{servers} with {count_noun(limits.server_concurrency, 'seat')}{each}, Kubernetes {limits.release.name}, seed {result.seed}:"
        f" {count_noun(requests, 'request')}{retries} in {format_duration(load.duration / 1000)}"
    )
    yield f"Configuration: {result.configuration}"


def _render_verdicts(result: Result, style: Style) -> str:
    lines: list[str] = []
    for _, verdict in list_verdicts(result):
        lines += hang("- ", sanitize(verdict), style.prose_width, 2)
    return "".join(f"{line}\n" for line in lines)


def _titles(noun: str) -> tuple[str, ...]:
    return tuple(f"{noun} {name}" for name in ("P50", "P90", "P99", "MAX"))


LEVEL_TITLES = ("PRIORITY LEVEL", "REQUESTS", "RETRIES", "REJECTED", "WAITED", *_titles("WAIT"), *_titles("TIME"))
SEAT_TITLES = ("PRIORITY LEVEL", "SEATS", "PEAK", "NOMINAL", "BORROWED", "LENT", "FAIRNESS")
CLIENT_TITLES = (
    "CLIENT",
    "PRIORITY LEVEL",
    "REQUESTS",
    "RETRIES",
    "REJECTED",
    "FAILED",
    *_titles("WAIT"),
    *_titles("TIME"),
)
DIFFERENCE_TITLES = ("DIFFERENT", "PRIORITY LEVEL", "REQUESTS", "REJECTED", "FAILED", "WAIT P99", "TIME P99")
_OVER_TIME = ("SEATS OVER TIME", "WAITING OVER TIME")
_SUMMARY_TITLES = ("REQUESTS", "REJECTED", "WAITED", "WAIT P50", "WAIT P99", "TIME P99", "PEAK", "NOMINAL")
"""The columns of `LEVEL_TITLES` and `SEAT_TITLES` that fit into 80 cells."""


def level_cells(level: LevelResult) -> tuple[str, ...]:
    """Return the cells of a level below `LEVEL_TITLES`."""
    return (
        level.name,
        f"{level.requests:,}",
        f"{level.attempts - level.requests:,}",
        f"{sum(level.rejected.values()):,}",
        format_share(level.waited, level.attempts),
        *_percentiles(level.waits),
        *_percentiles(level.latencies),
    )


def seat_cells(level: LevelResult) -> tuple[str, ...]:
    """Return the cells of a level below `SEAT_TITLES`."""
    return (
        level.name,
        f"{level.seats:,.1f}",
        f"{level.peak:,}",
        f"{level.limits.nominal:,}",
        f"{level.borrowed:,.1f}",
        f"{level.lent:,.1f}",
        "-" if level.fairness is None else f"{level.fairness:.2f}",
    )


def client_cells(client: ClientResult) -> tuple[str, ...]:
    """Return the cells of a client below `CLIENT_TITLES`."""
    return (
        client.name,
        client.level,
        f"{client.requests:,}",
        f"{client.attempts - client.requests:,}",
        f"{sum(client.rejected.values()):,}",
        f"{client.failed:,}",
        *_percentiles(client.waits),
        *_percentiles(client.latencies),
    )


def difference_cells(difference: Difference) -> tuple[str, ...]:
    """Return the cells of a difference below `DIFFERENCE_TITLES`. A figure has two values if the sides differ."""
    sides = [_format_figures(figures) for figures in (difference.old, difference.new)]
    steps = (old if old == new else f"{old} -> {new}" for old, new in zip(*sides, strict=True))
    return f"{'level' if difference.level is None else 'client'} {difference.name}", difference.level or "", *steps


def _summary(levels: Sequence[LevelResult], style: Style) -> str:
    titles = (LEVEL_TITLES[0], *_SUMMARY_TITLES)
    rows: list[tuple[str, ...]] = []
    for level in levels:
        cells = dict(zip((*LEVEL_TITLES, *SEAT_TITLES), (*level_cells(level), *seat_cells(level)), strict=True))
        rows.append(tuple(cells[title] for title in titles))
    return render_table(titles, _paint(rows, titles), style)


def _levels(levels: Sequence[LevelResult], style: Style) -> str:
    return render_table(LEVEL_TITLES, _paint(map(level_cells, levels), LEVEL_TITLES), style)


def _seats(levels: Sequence[LevelResult], style: Style) -> str:
    rows: list[tuple[str | Text, ...]] = []
    for level, cells in zip(levels, _paint(map(seat_cells, levels), SEAT_TITLES), strict=True):
        limits = [sample.limit for sample in level.samples if not level.limits.is_exempt]
        top = max(*limits, *(sample.seats for sample in level.samples))
        seats = draw_sparkline([sample.seats for sample in level.samples], _SPARKLINE_CELLS, top)
        waiting = draw_sparkline([sample.waiting for sample in level.samples], _SPARKLINE_CELLS)
        rows.append((*cells, Text(seats.rstrip(), "green"), Text(waiting.rstrip(), "red")))
    return render_table((*SEAT_TITLES, *_OVER_TIME), rows, style, wrapped=_OVER_TIME)


def _clients(levels: Sequence[LevelResult], style: Style) -> str:
    clients = [client for level in levels for client in level.clients]
    if len(clients) > MAX_CLIENTS:
        clients.sort(key=lambda client: -client.requests)
    rows = _paint(map(client_cells, clients[:MAX_CLIENTS]), CLIENT_TITLES)
    table = render_table(CLIENT_TITLES, rows, style, wrapped=("PRIORITY LEVEL",))
    if len(clients) > MAX_CLIENTS:
        table += render_prose(style, f"{len(clients) - MAX_CLIENTS} more: see --format json.")
    return table


def _paint(rows: Iterable[tuple[str, ...]], titles: Sequence[str]) -> Iterator[tuple[str | Text, ...]]:
    """Yield rows with a bold name, and with red numbers of rejected and failed requests."""
    alarming = [number for number, title in enumerate(titles) if title in ("REJECTED", "FAILED")]
    for name, *cells in rows:
        row: list[str | Text] = [Text(sanitize_line(name), "bold"), *map(sanitize, cells)]
        for number in alarming:
            if cells[number - 1] != "0":
                row[number] = Text(cells[number - 1], "bold red")
        yield tuple(row)


def _percentiles(times: Distribution | None) -> tuple[str, ...]:
    return ("-",) * 4 if times is None else tuple(map(format_time, times[1:]))


def comparison_json(comparison: Comparison) -> dict[str, object]:
    """Return the object that `simulate --compare --format json` prints."""
    return {
        "schema": SCHEMA,
        "configuration": f"{comparison.old.configuration} -> {comparison.new.configuration}",
        "differences": [
            {
                "name": difference.name,
                "priorityLevel": difference.level,
                "old": _figures_json(difference.old),
                "new": _figures_json(difference.new),
            }
            for difference in comparison.differences
        ],
        "old": simulation_json(comparison.old),
        "new": simulation_json(comparison.new),
    }


def _figures_json(figures: Figures | None) -> dict[str, object] | None:
    if figures is None:
        return None
    return {
        "requests": figures.requests,
        "rejected": figures.rejected,
        "failed": figures.failed,
        "waitP99": _seconds(figures.wait_p99),
        "latencyP99": _seconds(figures.latency_p99),
    }


def describe_likeness(comparison: Comparison) -> str:
    """Return a sentence about a comparison without differences of clients or levels."""
    if comparison.is_equal:
        return "Both configurations serve this load alike."
    return (
        "Both configurations reject the same number of requests, and their 99th percentiles are equal. Other figures differ:"
        " see --format json."
    )


def describe_other_seats(comparison: Comparison) -> Iterator[str]:
    """Yield a sentence about the old side, and another one if the sides do not have the same seats or the same release."""
    yield f"The old side has the configuration: {comparison.old.configuration}"
    old, new = comparison.old.limits, comparison.new.limits
    if (old.server_concurrency, old.release) != (new.server_concurrency, new.release):
        seats = count_noun(old.server_concurrency, "seat")
        yield f"The old side has {seats} on each API server, and Kubernetes {old.release.name}."


def render_comparison(comparison: Comparison, style: Style) -> str:
    """Render the differences of two simulations, then the new simulation."""
    return f"{_render_differences(comparison, style)}\n{render_simulation(comparison.new, style)}"


def _render_differences(comparison: Comparison, style: Style) -> str:
    differences = comparison.differences
    if not differences:
        return render_prose(style, describe_likeness(comparison), color="bold")
    rows = _paint(map(difference_cells, differences[:MAX_CLIENTS]), ())
    table = render_table(DIFFERENCE_TITLES, rows, style, wrapped=("PRIORITY LEVEL",))
    if len(differences) > MAX_CLIENTS:
        table += render_prose(style, f"{len(differences) - MAX_CLIENTS} more: see --format json.")
    return table + render_prose(style, *describe_other_seats(comparison))


def _format_figures(figures: Figures | None) -> tuple[str, ...]:
    if figures is None:
        return ("-",) * 5
    counts = (f"{count:,}" for count in figures[:3])
    return *counts, *("-" if time is None else format_time(time) for time in figures[3:])
