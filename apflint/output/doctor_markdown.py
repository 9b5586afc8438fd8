"""The state of API servers and the findings as Markdown: for an issue, a chat, or the summary of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import Style
from apflint.output.doctor import describe_server, flows_table, requests_table, seats_table
from apflint.output.findings import render
from apflint.output.markdown import format_code, format_prose

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.doctor.level_state import ServerState
    from apflint.finding import Report
    from apflint.output.doctor import Table

_NAMES = ("PRIORITY LEVEL", "FLOWSCHEMA", "FLOW", "USERS")
"""Titles of columns whose cells are names."""


def render_markdown(states: Sequence[ServerState], report: Report, configuration: str | None = None) -> str:
    """Render the findings, and the tables of each server. `configuration` describes the manifests, if there are any."""
    line = [] if configuration is None else [f"{format_prose(f'Configuration: {configuration}')}\n"]
    return "\n".join((*line, render(report, "markdown", Style()), *(_server(state) for state in states)))


def _server(state: ServerState) -> str:
    first, *others = describe_server(state)
    parts = [f"### {format_prose(first)}", *map(format_prose, others)]
    for title, table in (
        ("Seats", seats_table(state)),
        ("Requests", requests_table(state)),
        ("Busiest flows", flows_table(state)),
    ):
        if table.rows:
            parts += [f"#### {title}", "\n".join(_table(table)), *table.legend]
    return "\n\n".join(parts) + "\n"


def _table(table: Table) -> Iterator[str]:
    is_name = [title in _NAMES for title in table.titles]
    yield f"| {' | '.join(table.titles)} |"
    yield f"|{'|'.join('---' if named else '--:' for named in is_name)}|"
    for row in table.rows:
        cells = [
            format_code(cell) if named and cell not in ("-", "") else cell
            for cell, named in zip(row, is_name, strict=True)
        ]
        yield f"| {' | '.join(cells)} |"
