"""Seats and queues of priority levels, as `apflint limits` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from apflint.evaluate.outcomes import describe_starvation
from apflint.output.console import render_prose
from apflint.output.sanitize import sanitize_line
from apflint.output.tables import render_table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.output.console import Style

_MAX_BAR_CELLS = 20
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
    """Render tables of the seats, queues and FlowSchemas of each level, with explanations. Problems come last."""
    queues = [_row(level, *_QUEUES.values()) for level in limits.levels]
    schemas = [(Text(sanitize_line(level.name)), ", ".join(level.flow_schemas) or "none") for level in limits.levels]
    title = f"Kubernetes {limits.release.name}, server concurrency limit {limits.server_concurrency} (seats of one API server)"
    parts = [
        render_prose(style, title),
        _seats(limits, style),
        render_table(("PRIORITY LEVEL", *_QUEUES), queues, style)
        + render_prose(
            style,
            "PER LIST and PER CHANGE: the maximum seats of one list, and of one create, update, patch or delete.",
            "QUEUED: QUEUES x LENGTH LIMIT. A full queue accepts more requests only while a seat is free.",
            "QUEUED PER FLOW: HAND SIZE x LENGTH LIMIT, the same for the queues of one flow.",
        ),
        render_table(("PRIORITY LEVEL", "FLOWSCHEMAS"), schemas, style, wrapped=("FLOWSCHEMAS",)),
        render_prose(style, *_problems(limits)),
    ]
    return "\n".join(filter(None, parts))


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
        titles += ["MIN", "MAX", "ATTAINABLE", "IDLE"]
        sentences = [
            f"NOMINAL: the seats of the level, {seats}.",
            "MIN: the seats that it never lends. MAX: its upper limit, as in the server's metrics.",
            "ATTAINABLE: the seats that it can reach while all other levels are idle. IDLE: its seats while all levels are idle.",
        ]
    rows = [_row(level, *map(str.lower, titles)) for level in limits.levels]
    if style.width is not None:  # no bars in a pipe
        titles.insert(0, "")
        longest = max((level.nominal for level in limits.levels), default=0)
        for row, level in zip(rows, limits.levels, strict=True):
            row.insert(1, Text(_bar(level, longest), "green"))
    table = render_table(("PRIORITY LEVEL", *titles), rows, style, optional=("", "IDLE"))
    return table + render_prose(style, *sentences)


def _bar(level: LevelLimits, longest: int) -> str:
    """Return the nominal seats as a bar. The pale part stands for the seats that the level can lend."""
    if not level.nominal:
        return ""
    size = max(1, round(level.nominal * _MAX_BAR_CELLS / longest))
    kept = size if level.min == level.nominal else min(size - 1, round(level.min * _MAX_BAR_CELLS / longest))
    return "█" * kept + "░" * (size - kept)


def _problems(limits: Limits) -> Iterator[str]:
    for level in limits.levels:
        if problem := describe_starvation(level):
            yield f'"{level.name}": {problem}'
        if not level.flow_schemas:
            yield f'"{level.name}": No FlowSchema references it, so it gets no requests.'
