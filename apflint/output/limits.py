"""Seats and queues of priority levels, as `apflint limits` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.blocks import Column, Group, Prose, Table, Text, get_plain
from apflint.output.configuration_line import report_configuration
from apflint.output.console import count_cells
from apflint.output.json_text import SCHEMA
from apflint.output.outcome_sentences import describe_starvation
from apflint.output.sanitize import sanitize_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.output.blocks import Block
    from apflint.output.console import Style

_MIN_BAR_CELLS, _MAX_BAR_CELLS = 8, 20
"""Minimum and maximum width of the longest bar in cells."""
_LEVEL = Column("Priority level", "name")
_QUEUES = {
    "Per list": "maxListSeats",
    "Per change": "maxMutatingSeats",
    "Queues": "queues",
    "Hand size": "handSize",
    "Length limit": "queueLengthLimit",
    "Queued": "maxQueued",
    "Queued per flow": "maxQueuedPerFlow",
}
"""Columns of the second table, each with its key in the result of `level_json`."""


def limits_json(limits: Limits) -> dict[str, object]:
    """Return the object that `limits --format json` prints. All numbers are for one API server."""
    return {
        "schema": SCHEMA,
        "serverConcurrency": limits.server_concurrency,
        "kubernetes": limits.release.name,
        "levels": [level_json(level) for level in limits.levels],
    }


def level_json(level: LevelLimits) -> dict[str, object]:
    """Return the limits of a priority level.

    `attainable` is None for exempt levels. The values about queues are None for levels without queues. `maxSeats` is
    the maximum number of seats that the level allows one request: 0 means no maximum, and None means that the release
    (up to 1.24) has no such limit. `maxListSeats` and `maxMutatingSeats` are the maximum seats of one list request and
    of one mutating request. Both follow from `maxSeats` and the release.
    """
    return {
        "name": level.name,
        "type": level.type,
        "limitResponse": level.response,
        "shares": level.shares,
        "nominal": level.nominal,
        "min": level.min,
        "max": level.max,
        "idle": level.idle,
        "attainable": level.attainable if level.type == "Limited" else None,
        "maxSeats": level.max_seats,
        "maxListSeats": level.max_list_seats,
        "maxMutatingSeats": level.max_mutating_seats,
        "queues": level.queues,
        "handSize": level.hand_size,
        "queueLengthLimit": level.queue_length_limit,
        "maxQueued": level.max_queued if level.queues else None,
        "maxQueuedPerFlow": level.max_queued_per_flow if level.queues else None,
        "flowSchemas": list(level.flow_schemas),
    }


def report_limits(limits: Limits, style: Style, configuration: str = "") -> Iterator[Block]:
    """Yield a table with the seats of each level, then problems and, if verbose, tables of queues and FlowSchemas."""
    release = f"Kubernetes {limits.release.name}"
    title = f"{release}, server concurrency limit {limits.server_concurrency:,} (seats of one API server)"
    yield Group([Prose([title], "bold"), *([report_configuration(configuration)] if configuration else [])])
    yield _tabulate_seats(limits, style)
    if style.verbose:
        yield _tabulate_queues(limits)
        rows = [(level.name, ", ".join(level.flow_schemas) or "none") for level in limits.levels]
        yield Table((_LEVEL, Column("FlowSchemas", "name")), rows)
    yield Prose(list(_problems(limits)))
    if not style.verbose:
        yield Prose(
            ["--verbose also shows the queues and FlowSchemas of each level, and the seats of one request"], "dim"
        )


def _tabulate_queues(limits: Limits) -> Table:
    notes = (
        "PER LIST and PER CHANGE: the maximum seats of one list, and of one create, update, patch or delete.",
        "QUEUED: QUEUES x LENGTH LIMIT. While a seat is free, a queue may exceed its length limit.",
        "QUEUED PER FLOW: HAND SIZE x LENGTH LIMIT, for the queues of one flow.",
    )
    rows = [_row(level, *_QUEUES.values()) for level in limits.levels]
    return Table((_LEVEL, *map(Column, _QUEUES)), rows, notes=notes)


def _row(level: LevelLimits, *fields: str) -> list[str | Text]:
    """Return a table row: the name of a level, and its values for the keys `fields` of `level_json`."""
    values = level_json(level)
    return [
        Text(level.name, "bold"),
        *("-" if values[key] is None else f"{values[key]:,}" for key in fields),
    ]


def _tabulate_seats(limits: Limits, style: Style) -> Table:
    titles = ["Shares", "Nominal"]
    seats = f"{limits.server_concurrency:,} x SHARES / {sum(level.shares for level in limits.levels)}, rounded up"
    notes = [
        f"NOMINAL: the seats of the level, {seats} (its assured concurrency value). Levels neither lend nor borrow before Kubernetes 1.26."
    ]
    if limits.release.has_borrowing:
        titles += ["Min", "Max", "Attainable"]
        notes = [
            f"NOMINAL: the seats of the level, {seats}.",
            "MIN: the seats that the level never lends. MAX: the upper limit of the level, as in the metrics of the server.",
            "ATTAINABLE: the seats that the level can reach while all other levels are idle.",
        ]
        if style.verbose:
            titles.append("Idle")
            notes.append("IDLE: the seats that the level has while no level gets requests.")
    columns = [_LEVEL, *map(Column, titles)]
    rows = [_row(level, *map(str.lower, titles)) for level in limits.levels]
    if size := _find_room(columns, rows, style):
        columns.append(Column("Seats", "bar"))
        notes.append(
            "SEATS: a bar that shows NOMINAL. The pale part of the bar shows the seats that the level can lend."
        )
        longest = max((level.nominal for level in limits.levels), default=0)
        for row, level in zip(rows, limits.levels, strict=True):
            row.append(Text(_bar(level, longest, size), "good"))
    return Table(columns, rows, notes=notes)


def _find_room(columns: Sequence[Column], rows: Sequence[Sequence[str | Text]], style: Style) -> int:
    """Return the width in cells that is left for a column of bars. Return 0 if bars do not fit, or if the output is a pipe."""
    lines = [[column.title for column in columns], *rows]
    used = sum(
        max(map(count_cells, map(sanitize_line, map(get_plain, cells)))) + 2 for cells in zip(*lines, strict=True)
    )
    room = (style.width or 0) - used
    return min(room, _MAX_BAR_CELLS) if room >= _MIN_BAR_CELLS else 0


def _bar(level: LevelLimits, longest: int, cells: int) -> str:
    """Return the nominal seats as a bar. The pale part stands for the seats that the level can lend.

    The bar of a level with `longest` seats has `cells` cells.
    """
    if not level.nominal:
        return ""
    size = max(1, round(level.nominal * cells / longest))
    kept = size if level.min == level.nominal else min(size - 1, round(level.min * cells / longest))
    return "█" * kept + "░" * (size - kept)


def _problems(limits: Limits) -> Iterator[str]:
    for level in limits.levels:
        if problem := describe_starvation(level):
            yield f'"{level.name}": {problem}'
        if not level.flow_schemas:
            yield f'"{level.name}": No FlowSchema references the level, so the level gets no requests.'
