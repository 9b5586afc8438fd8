"""Seats and queues of priority levels, as `apflint limits` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.outcomes import describe_starvation
from apflint.output.console import count_cells, render_prose
from apflint.output.json_text import SCHEMA
from apflint.output.sanitize import sanitize_line
from apflint.output.tables import Text, render_table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.output.console import Style

_MIN_BAR_CELLS, _MAX_BAR_CELLS = 8, 20
"""Minimum and maximum cells of the longest bar."""
_QUEUES = {
    "PER LIST": "maxListSeats",
    "PER CHANGE": "maxMutatingSeats",
    "QUEUES": "queues",
    "HAND SIZE": "handSize",
    "LENGTH LIMIT": "queueLengthLimit",
    "QUEUED": "maxQueued",
    "QUEUED PER FLOW": "maxQueuedPerFlow",
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

    `attainable` is None for exempt levels. The values about queues are None for levels without queues. `maxSeats` is the
    server's maximum for the seats of one request (0: no maximum; None: up to Kubernetes 1.24). `maxListSeats` and
    `maxMutatingSeats` are the maximum seats of one list and one mutating request, from `maxSeats` and the release.
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


def render_limits(limits: Limits, style: Style) -> str:
    """Render a table of the seats of each level, then problems. If verbose, also tables of queues and FlowSchemas."""
    title = f"Kubernetes {limits.release.name}, server concurrency limit {limits.server_concurrency} (seats of one API server)"
    parts = [render_prose(style, title), _seats(limits, style)]
    if style.verbose:
        parts += (_queues(limits, style), _flow_schemas(limits, style))
    parts.append(render_prose(style, *_problems(limits)))
    if not style.verbose:
        parts.append(render_prose(style, "Queues, the seats of one request, and FlowSchemas: --verbose"))
    return "\n".join(filter(None, parts))


def _queues(limits: Limits, style: Style) -> str:
    rows = [_row(level, *_QUEUES.values()) for level in limits.levels]
    return render_table(("PRIORITY LEVEL", *_QUEUES), rows, style) + render_prose(
        style,
        "PER LIST and PER CHANGE: the maximum seats of one list, and of one create, update, patch or delete.",
        "QUEUED: QUEUES x LENGTH LIMIT. A full queue accepts more requests only while a seat is free.",
        "QUEUED PER FLOW: HAND SIZE x LENGTH LIMIT, the same for the queues of one flow.",
    )


def _flow_schemas(limits: Limits, style: Style) -> str:
    rows = [(Text(sanitize_line(level.name)), ", ".join(level.flow_schemas) or "none") for level in limits.levels]
    return render_table(("PRIORITY LEVEL", "FLOWSCHEMAS"), rows, style, wrapped=("FLOWSCHEMAS",))


def _row(level: LevelLimits, *fields: str) -> list[str | Text]:
    """Return a table row: the name of a level, and the values of these keys of `level_json`."""
    values = level_json(level)
    return [
        Text(sanitize_line(level.name), "bold"),
        *("-" if values[key] is None else str(values[key]) for key in fields),
    ]


def _seats(limits: Limits, style: Style) -> str:
    titles = ["SHARES", "NOMINAL"]
    seats = f"{limits.server_concurrency} x SHARES / {sum(level.shares for level in limits.levels)}, rounded up"
    sentences = [
        f"NOMINAL: the seats of the level, {seats} (its ACV). Levels neither lend nor borrow before Kubernetes 1.26."
    ]
    if limits.release.has_borrowing:
        titles += ["MIN", "MAX", "ATTAINABLE"]
        sentences = [
            f"NOMINAL: the seats of the level, {seats}.",
            "MIN: the seats that it never lends. MAX: its upper limit, as in the server's metrics.",
            "ATTAINABLE: the seats that it can reach while all other levels are idle.",
        ]
        if style.verbose:
            titles.append("IDLE")
            sentences.append("IDLE: the seats that it has while no level gets requests.")
    rows = [_row(level, *map(str.lower, titles)) for level in limits.levels]
    if size := _find_room(("PRIORITY LEVEL", *titles), rows, style):
        titles.append("SEATS")
        sentences.append("SEATS: NOMINAL as a bar. The pale part stands for the seats that the level can lend.")
        longest = max((level.nominal for level in limits.levels), default=0)
        for row, level in zip(rows, limits.levels, strict=True):
            row.append(Text(_bar(level, longest, size), "green"))
    table = render_table(("PRIORITY LEVEL", *titles), rows, style, wrapped=("SEATS",))
    return table + render_prose(style, *sentences)


def _find_room(titles: Sequence[str], rows: Sequence[Sequence[str | Text]], style: Style) -> int:
    """Return the cells that a table leaves for a column of bars, or 0 if bars do not fit. A pipe gets no bars."""
    columns = zip(titles, *rows, strict=True)
    used = sum(
        max(count_cells(cell.plain if isinstance(cell, Text) else cell) for cell in column) + 2 for column in columns
    )
    room = (style.width or 0) - used
    return min(room, _MAX_BAR_CELLS) if room >= _MIN_BAR_CELLS else 0


def _bar(level: LevelLimits, longest: int, cells: int) -> str:
    """Return the nominal seats as a bar of at most `cells`. The pale part stands for the seats that the level can lend."""
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
            yield f'"{level.name}": No FlowSchema references it, so it gets no requests.'
