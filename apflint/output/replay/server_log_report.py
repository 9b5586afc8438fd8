"""The report about kube-apiserver's own log, for people and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.blocks import DOCUMENTS, TEXT, Bullets, Column, Heading, Only, Prose, Table
from apflint.output.json_text import SCHEMA
from apflint.output.server_log_comparison import NO_USER
from apflint.requests.server_log import LOGGED_WAIT_SECONDS
from apflint.wording import count_noun, format_duration, quote, write_sentence

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.output.blocks import Block
    from apflint.replay.server_decisions import LoggedTraffic, ServerLogReport

_MAX_DISAGREEMENTS = 10
_MAX_ROWS = 1_000
TITLE = "Log of kube-apiserver"
_COLUMNS = (
    *(Column("FlowSchema", "name"), Column("Priority level", "name")),
    *map(Column, ("Requests", "Rejected", "Waited", "P99 wait", "Max wait", "Seats")),
)


def report_server_log(report: ServerLogReport) -> Iterator[Block]:
    """Yield the report as blocks."""
    table = Table(_COLUMNS, [_list_cells(row) for row in report.traffic[:_MAX_ROWS]], keys=2)
    facts, comparison, columns = list(_describe(report)), list(_describe_comparison(report)), list(_explain_columns())
    yield Only(TEXT, [Prose(facts), table, Prose(comparison), Prose(columns, "dim")])
    yield Only(DOCUMENTS, [Heading(TITLE, 1), table, Bullets([*facts, *comparison, *columns])])


def report_json(report: ServerLogReport) -> dict[str, object]:
    """Return the object that `replay --format json` prints for the log of kube-apiserver."""
    return {
        "schema": SCHEMA,
        "configuration": report.configuration,
        "kubernetes": report.known.release.name,
        "serverConcurrency": report.known.limits.server_concurrency,
        "source": "server-log",
        "files": report.files,
        "requests": report.requests,
        "otherLines": report.other_lines,
        "start": report.start or None,
        "end": report.end or None,
        "logged": [
            {
                "flowSchema": row.flow_schema,
                "priorityLevel": row.priority_level,
                "requests": row.requests,
                "rejected": row.rejected,
                "waited": row.waited,
                "p99Wait": row.p99_wait,
                "maxWait": row.max_wait,
                "maxSeats": row.max_seats,
            }
            for row in report.traffic
        ],
        "disagreeing": report.disagreeing,
        "disagreements": [
            {
                "message": disagreement.clause,
                "requests": disagreement.requests,
                "file": disagreement.file,
                "line": disagreement.line,
            }
            for disagreement in report.disagreements
        ],
    }


def _list_cells(row: LoggedTraffic) -> tuple[str, ...]:
    return (
        row.flow_schema or "(not classified)",
        row.priority_level or "-",
        f"{row.requests:,}",
        f"{row.rejected:,}",
        f"{row.waited:,}",
        _format(row.p99_wait),
        _format(row.max_wait),
        "-" if row.max_seats is None else str(row.max_seats),
    )


def _describe(report: ServerLogReport) -> Iterator[str]:
    period = f", {report.start} to {report.end}" if report.start else ""
    others = f", and {count_noun(report.other_lines, 'other line')}" if report.other_lines else ""
    yield (
        f"kube-apiserver's own log: {count_noun(report.requests, 'request')}{others}"
        f" in {count_noun(report.files, 'file')}{period}."
    )
    yield (
        f"{NO_USER} So the requests cannot be classified again: the table shows what the server did. For a replay, use an"
        " audit log."
    )
    for place in report.damaged:
        yield f"{place.file}:{place.line}: {write_sentence(place.reason)}"


def _describe_comparison(report: ServerLogReport) -> Iterator[str]:
    name = f"Compared with {report.configuration}"
    if not report.disagreements:
        yield f"{name}: no disagreement in FlowSchemas, priority levels and seats. The comparison is incomplete, because the log does not show users."
        return
    yield f"{name}: for {count_noun(report.disagreeing, 'request')} of {report.requests:,}, the log contradicts this configuration."
    for disagreement in report.disagreements[:_MAX_DISAGREEMENTS]:
        place = quote(f"{disagreement.file}:{disagreement.line}")
        yield f"{write_sentence(disagreement.clause)} {count_noun(disagreement.requests, 'request')}, the first at {place}."
    if len(report.disagreements) > _MAX_DISAGREEMENTS:
        yield f"And {len(report.disagreements) - _MAX_DISAGREEMENTS:,} more kinds of disagreement; see --format json."


def _explain_columns() -> Iterator[str]:
    shortest = format_duration(LOGGED_WAIT_SECONDS * 1e6)
    yield (
        f"REJECTED: status 429 by API Priority and Fairness. WAITED: requests that waited more than {shortest}; shorter waits"
        " are not logged. SEATS: the maximum number of seats that one request holds while it executes."
    )


def _format(seconds: float | None) -> str:
    return "-" if seconds is None else format_duration(seconds * 1e6)
