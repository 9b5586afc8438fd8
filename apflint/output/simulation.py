"""The report of `apflint simulate`, as text, as a document, and as JSON.

The report contains assumptions, verdicts on clients, tables and drawings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.blocks import (
    DOCUMENTS,
    HTML,
    TEXT,
    Bullets,
    Column,
    Figure,
    Group,
    Heading,
    Only,
    Prose,
    Table,
    Text,
)
from apflint.output.configuration_line import report_configuration
from apflint.output.json_text import SCHEMA
from apflint.output.limits import level_json
from apflint.output.sparkline import draw_sparkline
from apflint.simulate.client_verdicts import give_client_verdicts, join_clients
from apflint.simulate.load import DEFAULT_WARMUP, SECOND
from apflint.simulate.routes import find_uncounted_lists
from apflint.simulate.verdict_sentences import format_share, format_time, list_verdicts
from apflint.wording import count_noun, format_duration, join_some, join_words, pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.output.blocks import Block, Cell
    from apflint.simulate.comparison import FigureDifference, Figures, SimulationComparison
    from apflint.simulate.histogram import TimePercentiles
    from apflint.simulate.simulation import SimulationResult
    from apflint.simulate.statistics import ClientResult, FlowResult, LevelResult

TITLE = "Simulation of API Priority and Fairness"
_SPARKLINE_CELLS = 24
_MAX_CLIENTS = 20
"""Maximum number of clients in text and Markdown. JSON contains all clients."""
_MAX_LEVELS = 40
"""Maximum number of levels and differences in Markdown. JSON contains all of them."""
_MAX_NAMES = 7
"""Maximum number of busy flows in a legend."""


def simulation_json(result: SimulationResult, failures: Sequence[tuple[str, str]] = ()) -> dict[str, object]:
    """Return the object that `simulate --format json` prints. Times are in seconds. Seats are summed over all API servers.

    `failures` has (condition, sentence about it) for each condition of `--fail-if` that is true.
    """
    load = result.load
    verdicts = dict(list_verdicts(result))
    return {
        "schema": SCHEMA,
        "configuration": result.configuration,
        "kubernetes": result.limits.release.name,
        "serverConcurrency": result.limits.server_concurrency,
        "servers": load.servers,
        "seed": result.seed,
        "load": result.load_name,
        "warmup": load.warmup / SECOND,
        "duration": load.duration / SECOND,
        "requests": sum(level.requests for level in result.levels),
        "attempts": sum(level.attempts for level in result.levels),
        "assumptions": list(list_assumptions(result)),
        "failures": [{"condition": condition, "message": message} for condition, message in failures],
        "verdicts": _verdicts_json(result),
        "notes": list(list_notes(result)),
        "levels": [_level_json(level, verdicts.get(level.name)) for level in result.levels],
    }


def _verdicts_json(result: SimulationResult) -> dict[str, object]:
    verdicts = give_client_verdicts(result)
    clients = [{"client": name, "verdict": verdict} for name, verdict in verdicts.clients]
    return {"clients": clients, "others": verdicts.others or None}


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
        "user": client.user,
        "resource": client.resource,
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


def _distribution_json(times: TimePercentiles | None) -> dict[str, object] | None:
    if times is None:
        return None
    return {"count": times.number, **{key: _seconds(getattr(times, key)) for key in ("p50", "p90", "p99", "max")}}


def _seconds(nanoseconds: int | None) -> float | None:
    return None if nanoseconds is None else nanoseconds / SECOND


def _round(value: float) -> float:
    return round(value, 6)


def list_notes(result: SimulationResult) -> Iterator[str]:
    """Yield sentences about requests that the simulation omits, and about its assumptions.

    The sentences that `list_assumptions` yields are not included.
    """
    yield from result.notes
    if not result.load.warmup and _has_early_rejections(result):
        yield (
            "Requests were rejected in the first 30 s. The simulation begins with idle priority levels, which lend their"
            " seats. With --warmup 30s, these requests do not count."
        )
    unfinished = sum(client.unfinished for level in result.levels for client in level.clients)
    if unfinished:
        yield f"The simulation ends before {unfinished:,} retries are due, so it does not include these retries."


def _has_early_rejections(result: SimulationResult) -> bool:
    return any(
        client.first_rejection is not None and client.first_rejection < DEFAULT_WARMUP
        for client in join_clients(result)
    )


def list_assumptions(result: SimulationResult) -> Iterator[str]:
    """Yield sentences about assumptions. If one of them is wrong, the verdicts may be wrong, so the report begins with them."""
    yield from result.assumptions
    uncounted = [f"{resource}.{group}" if group else resource for group, resource in find_uncounted_lists(result.load)]
    most = max((level.limits.max_list_seats for level in result.levels if level.attempts), default=0)
    if uncounted and most > 1:
        names = join_some(uncounted, _MAX_NAMES)
        yield (
            f"The simulation assumes that each list of {names} takes 1 seat, because the load does not state how many objects are stored:"
            f" a list of many objects takes up to {most} seats. Add the numbers: `objects` in a load file, or --objects."
        )


def describe_load(description: str, changes: Sequence[str]) -> str:
    """Return the description of a load and of the options that change it."""
    return f"{description} with {join_words(changes, 'and')}" if changes else description


def report_simulation(
    result: SimulationResult,
    comparison: SimulationComparison | None = None,
    lead: Iterable[Block] = (),
    failures: Sequence[tuple[str, str]] = (),
    *,
    is_verbose: bool = False,
) -> Iterator[Block]:
    """Yield the blocks of the report about a simulation.

    The report consists of `lead`, warnings about assumptions, `failures`, the differences of
    `comparison`, sentences that judge the clients, and tables of the levels. In a comparison, `result`
    is the new simulation.

    `failures` has (condition, sentence about it) for each condition of `--fail-if` that is true.

    If `is_verbose` is false, the text output has no seats over time, no clients, and not all
    percentiles. Other formats do not depend on `is_verbose`.
    """
    levels = [level for level in result.levels if level.attempts]
    yield Only(HTML, [Heading(TITLE, 1)])
    yield from lead
    if assumptions := list(list_assumptions(result)):
        yield Prose(assumptions, "warning")
    if failures:
        yield Bullets([f"{sentence} (--fail-if {quote(condition)})" for condition, sentence in failures], tone="error")
    if comparison is not None:
        yield from _report_differences(comparison)
    yield Bullets(give_client_verdicts(result).sentences)
    yield report_configuration(*_describe_run(result), result.configuration)
    if levels:
        yield Only(TEXT, _tabulate_all(levels) if is_verbose else [_summarize(levels)])
    yield Only(DOCUMENTS, [_tabulate_levels(levels), _tabulate_seats(levels)])
    yield Only(("markdown",), [_tabulate_clients([client for level in levels for client in level.clients])])
    order = [name for name, _ in list_verdicts(result)]
    yield Only(HTML, _draw_levels(sorted(levels, key=lambda level: order.index(level.name)), result))
    notes = list(list_notes(result))
    yield Only(DOCUMENTS, [Prose(tuple(notes))])
    idle = [level.name for level in result.levels if not level.attempts]
    if idle:
        notes.insert(0, f"No requests: {join_words(idle, 'and')}.")
    if levels and not is_verbose:
        notes.append("Seats over time, clients, and all percentiles: --verbose")
    yield Only(TEXT, [Prose(notes, "dim")])


def _describe_run(result: SimulationResult) -> Iterator[str]:
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
    warmup = f", after a warm-up of {format_duration(load.warmup / 1000)} that does not count" if load.warmup else ""
    yield f"Load: {result.load_name}{warmup}"


def _percentile_columns(noun: str) -> tuple[Column, ...]:
    return tuple(Column(f"{noun} {name}") for name in ("p50", "p90", "p99", "max"))


_TIMES = (*_percentile_columns("Wait"), *_percentile_columns("Time"))
_LEVEL = Column("Priority level", "name")
_LEVEL_COLUMNS = (_LEVEL, *map(Column, ("Requests", "Retries", "Rejected", "Waited")), *_TIMES)
_SEAT_COLUMNS = (_LEVEL, *map(Column, ("Seats", "Peak", "Nominal", "Borrowed", "Lent", "Fairness")))
_CLIENT_COLUMNS = (
    *(Column("Client", "name"), _LEVEL, *map(Column, ("Requests", "Retries", "Rejected", "Failed"))),
    *_TIMES,
)
_DIFFERENCE_COLUMNS = (
    *(Column("Different", "name"), _LEVEL),
    *map(Column, ("Requests", "Rejected", "Failed", "Wait p99", "Time p99")),
)
_SUMMARY_TITLES = ("Requests", "Rejected", "Waited", "Wait p50", "Wait p99", "Time p99", "Peak", "Nominal")
"""Titles of the columns about requests and seats that together fit into 80 cells."""


def _level_cells(level: LevelResult) -> tuple[str | Text, ...]:
    return (
        Text(level.name, "bold"),
        f"{level.requests:,}",
        f"{level.attempts - level.requests:,}",
        _alarm(sum(level.rejected.values())),
        format_share(level.waited, level.attempts),
        *_percentiles(level.waits),
        *_percentiles(level.latencies),
    )


def _seat_cells(level: LevelResult) -> tuple[str | Text, ...]:
    return (
        Text(level.name, "bold"),
        f"{level.seats:,.1f}",
        f"{level.peak:,}",
        f"{level.limits.nominal:,}",
        f"{level.borrowed:,.1f}",
        f"{level.lent:,.1f}",
        "-" if level.fairness is None else f"{level.fairness:.2f}",
    )


def _client_cells(client: ClientResult) -> tuple[str | Text, ...]:
    return (
        Text(client.name, "bold"),
        client.level,
        f"{client.requests:,}",
        f"{client.attempts - client.requests:,}",
        _alarm(sum(client.rejected.values())),
        _alarm(client.failed),
        *_percentiles(client.waits),
        *_percentiles(client.latencies),
    )


def _difference_cells(difference: FigureDifference) -> tuple[Cell, ...]:
    """Return the table cells for a client or level. A figure that differs is shown as `old -> new`."""
    sides = [_format_figures(figures) for figures in (difference.old, difference.new)]
    steps = (_format_step(*pair) for pair in zip(*sides, strict=True))
    name = Text(f"{'level' if difference.levels is None else 'client'} {difference.name}", "bold")
    old, new = difference.levels or ("", "")
    level = Text(old, "name") if old == new else (Text(old, "name"), " -> ", Text(new, "name"))
    return name, level, *steps


def _format_step(old: str, new: str) -> str:
    return old if old == new else f"{old} -> {new}"


def _alarm(count: int) -> Text:
    """Return a number of rejected or failed requests, in red unless it is 0."""
    return Text(f"{count:,}", "error" if count else "")


def _percentiles(times: TimePercentiles | None) -> tuple[str, ...]:
    return ("-",) * 4 if times is None else tuple(map(format_time, times[1:]))


def _summarize(levels: Sequence[LevelResult]) -> Table:
    titles = [column.title for column in (*_LEVEL_COLUMNS, *_SEAT_COLUMNS)]
    rows = []
    for level in levels:
        cells = dict(zip(titles, (*_level_cells(level), *_seat_cells(level)), strict=True))
        rows.append([cells[title] for title in (_LEVEL.title, *_SUMMARY_TITLES)])
    return Table((_LEVEL, *map(Column, _SUMMARY_TITLES)), rows)


def _tabulate_all(levels: Sequence[LevelResult]) -> Iterator[Table]:
    """Yield the tables of verbose text, which include seats over time."""
    yield _tabulate_levels(levels)
    over_time = (Column("Seats over time", "bar"), Column("Waiting over time", "bar"))
    rows = [(*_seat_cells(level), *_draw_sparklines(level)) for level in levels]
    yield Table((*_SEAT_COLUMNS, *over_time), rows)
    clients = [client for level in levels for client in level.clients]
    if (more := len(clients) - _MAX_CLIENTS) > 0:
        clients.sort(key=lambda client: -client.requests)
    notes = [f"{more} more: see --format json."] if more > 0 else []
    yield _tabulate_clients(clients[:_MAX_CLIENTS])._replace(notes=notes)


def _draw_sparklines(level: LevelResult) -> tuple[Text, Text]:
    limits = [sample.limit for sample in level.samples if not level.limits.is_exempt]
    top = max(*limits, *(sample.seats for sample in level.samples))
    seats = draw_sparkline([sample.seats for sample in level.samples], _SPARKLINE_CELLS, top)
    waiting = draw_sparkline([sample.waiting for sample in level.samples], _SPARKLINE_CELLS)
    return Text(seats.rstrip(), "good"), Text(waiting.rstrip(), "bad")


def _tabulate_levels(levels: Sequence[LevelResult]) -> Table:
    return Table(_LEVEL_COLUMNS, list(map(_level_cells, levels)), max_markdown_rows=_MAX_LEVELS)


def _tabulate_seats(levels: Sequence[LevelResult]) -> Table:
    return Table(_SEAT_COLUMNS, list(map(_seat_cells, levels)), max_markdown_rows=_MAX_LEVELS)


def _tabulate_clients(clients: Sequence[ClientResult]) -> Table:
    return Table(_CLIENT_COLUMNS, list(map(_client_cells, clients)), max_markdown_rows=_MAX_CLIENTS)


def _draw_levels(levels: Sequence[LevelResult], result: SimulationResult) -> Iterator[Block]:
    from apflint.output.simulation_charts import chart_queues, chart_seats  # imported for HTML only

    servers = result.load.servers
    title = "Seats over time" if servers == 1 else f"Seats over time, sum of {servers} API servers"
    for level in levels:
        yield Heading(Text(level.name, "name"))
        yield Heading(title, 3)
        yield Figure(chart_seats(level, result), (("use", "seats in use"),))
        if heat_map := chart_queues(level, result):
            yield Heading("Waiting requests of each queue", 3)
            yield Figure(heat_map, list(_list_flows(level)))
        table = _tabulate_clients(level.clients)  # the heading names the level, so omit its column
        yield table._replace(
            columns=[column for column in table.columns if column is not _LEVEL],
            rows=[(name, *cells) for name, _, *cells in table.rows],
        )


def _list_flows(level: LevelResult) -> Iterator[tuple[str, str]]:
    elephants = [flow for flow in level.flows if flow.is_elephant]
    if elephants:
        names = [f"{flow.client} ({flow.distinguisher or flow.flow_schema})" for flow in elephants]
        yield "busy", f"mostly busy flows: {join_some(names, _MAX_NAMES)}"
    yield "use", pluralize(len(level.flows) - len(elephants), "other flow" if elephants else "flow")


def comparison_json(comparison: SimulationComparison, failures: Sequence[tuple[str, str]] = ()) -> dict[str, object]:
    """Return the object that `simulate --compare --format json` prints.

    `failures` has (condition, sentence about it) for each condition of `--fail-if` that is true.
    """
    return {
        "schema": SCHEMA,
        "configuration": f"{comparison.old.configuration} -> {comparison.new.configuration}",
        "differences": [
            {
                "name": difference.name,
                "priorityLevel": None if difference.levels is None else _format_step(*difference.levels),
                "old": _figures_json(difference.old),
                "new": _figures_json(difference.new),
            }
            for difference in comparison.differences
        ],
        "old": simulation_json(comparison.old),
        "new": simulation_json(comparison.new, failures),
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


def describe_likeness(comparison: SimulationComparison) -> str:
    """Return the sentence that replaces the table of differences if no figure in the table would differ.

    The sentence states whether the configurations differ in figures that the table does not show.
    """
    if comparison.is_equal:
        return "Both configurations serve this load alike."
    return (
        "Both configurations reject the same number of requests, and their 99th percentiles are equal. Other figures differ:"
        " see --format json."
    )


def _describe_other_seats(comparison: SimulationComparison) -> Iterator[str]:
    """Yield a sentence about the sources of the old configuration.

    If the old configuration has another number of seats or another release than the new configuration,
    yield a second sentence with the seats and the release of the old configuration.
    """
    yield f"The old side has the configuration: {comparison.old.configuration}"
    old, new = comparison.old.limits, comparison.new.limits
    if (old.server_concurrency, old.release) != (new.server_concurrency, new.release):
        seats = count_noun(old.server_concurrency, "seat")
        yield f"The old side has {seats} on each API server, and Kubernetes {old.release.name}."


def _report_differences(comparison: SimulationComparison) -> Iterator[Block]:
    differences, sides = comparison.differences, Prose(list(_describe_other_seats(comparison)))
    if not differences:
        likeness = Prose([describe_likeness(comparison)], "bold")
        yield Only(TEXT, [likeness])
        yield Only(DOCUMENTS, [likeness, sides])
        return
    rows = list(map(_difference_cells, differences))
    more = len(rows) - _MAX_CLIENTS
    notes = [f"{more} more: see --format json."] if more > 0 else []
    table = Table(_DIFFERENCE_COLUMNS, rows, max_markdown_rows=_MAX_LEVELS)
    yield Only(TEXT, [Group([table._replace(rows=rows[:_MAX_CLIENTS], notes=notes), sides])])
    yield Only(DOCUMENTS, [table, sides])


def _format_figures(figures: Figures | None) -> tuple[str, ...]:
    if figures is None:
        return ("-",) * 5
    counts = (f"{count:,}" for count in figures[:3])
    return *counts, *("-" if time is None else format_time(time) for time in figures[3:])
