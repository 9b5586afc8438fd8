"""Results of a simulation as Markdown, for a comment on a pull request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.markdown import format_code, format_prose
from apflint.output.simulation import (
    CLIENT_TITLES,
    DIFFERENCE_TITLES,
    LEVEL_TITLES,
    MAX_CLIENTS,
    SEAT_TITLES,
    client_cells,
    describe_likeness,
    describe_other_seats,
    describe_run,
    difference_cells,
    level_cells,
    list_notes,
    seat_cells,
)
from apflint.simulate.verdict import list_verdicts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.simulate.comparison import Comparison
    from apflint.simulate.simulation import Result

MAX_LEVELS = 40
"""Maximum number of levels and differences. JSON has all of them."""


def render_markdown(result: Result, comparison: Comparison | None = None) -> str:
    """Render the verdicts and the tables. If there is a comparison, begin with its differences."""
    return "\n".join((*_list_differences(comparison), *_list_lines(result))) + "\n"


def _list_differences(comparison: Comparison | None) -> Iterator[str]:
    if comparison is None:
        return
    if not comparison.differences:
        yield f"**{format_prose(describe_likeness(comparison))}**"
    else:
        yield from _table(DIFFERENCE_TITLES, [difference_cells(item) for item in comparison.differences], MAX_LEVELS)
    yield ""
    for sentence in describe_other_seats(comparison):
        yield from (format_prose(sentence), "")


def _list_lines(result: Result) -> Iterator[str]:
    yield from map(format_prose, describe_run(result))
    yield ""
    yield from (f"- {format_prose(verdict)}" for _, verdict in list_verdicts(result))
    yield ""
    levels = [level for level in result.levels if level.attempts]
    yield from _table(LEVEL_TITLES, [level_cells(level) for level in levels], MAX_LEVELS)
    yield ""
    yield from _table(SEAT_TITLES, [seat_cells(level) for level in levels], MAX_LEVELS)
    yield ""
    clients = [client_cells(client) for level in levels for client in level.clients]
    yield from _table(CLIENT_TITLES, clients, MAX_CLIENTS)
    for note in list_notes(result):
        yield ""
        yield format_prose(note)


def _table(titles: Sequence[str], rows: Sequence[Sequence[str]], maximum: int) -> Iterator[str]:
    yield f"| {' | '.join(title.capitalize() for title in titles)} |"
    yield f"|---|{'---:|' * (len(titles) - 1)}"
    for name, *cells in rows[:maximum]:
        yield f"| {format_code(name)} | {' | '.join(map(_cell, cells))} |"
    if len(rows) > maximum:
        yield ""
        yield f"{len(rows) - maximum} more: see `--format json`."


def _cell(text: str) -> str:
    return " → ".join(format_prose(part) for part in text.split(" -> ")) if text else ""
