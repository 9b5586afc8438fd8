"""What `apflint limits` prints: text for people, JSON for machines. Nothing here reads or writes files.

`width` is the terminal's, in cells; None stands for a pipe: every column, no bars, no line breaks in sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.diff.levels import compare_levels
from apflint.evaluate.outcomes import describe_starvation
from apflint.output.console import Painter, wrap
from apflint.output.sanitize import sanitize, sanitize_line
from apflint.output.table import Cell, Column, table
from apflint.wording import pluralize

if TYPE_CHECKING:
    from apflint.diff.levels import LevelChange
    from apflint.evaluate.limits import LevelLimits, Limits

_BAR = 20
"""The longest bar, in cells."""


def limits_json(limits: Limits) -> dict[str, object]:
    """The object that `limits --format json` prints. Seats and requests, per API server."""
    return {
        "serverConcurrency": limits.server_concurrency,
        "kubernetes": limits.release.name,
        "levels": [level_json(level, limits) for level in limits.levels],
    }


def level_json(level: LevelLimits, limits: Limits) -> dict[str, object]:
    """One level. `acv` is null where limits are nominal ones; `queues` and its kin are null where there are no queues.

    `maxSeats` is the level's own bound on the seats of one request, as the server keeps it (0: none; null: up to 1.24);
    `maxListSeats` and `maxMutatingSeats` are what one list and one change can take, by that bound and the release's.
    """
    limited = level.type == "Limited"
    return {
        "name": level.name,
        "type": level.type,
        "limitResponse": level.response,
        "shares": level.shares,
        "nominal": level.nominal,
        "min": level.min,
        "max": level.max,
        "acv": level.nominal if limited and not limits.release.has_borrowing else None,
        "idle": level.idle,
        "attainable": level.attainable,
        "maxSeats": level.max_seats,
        "maxListSeats": level.max_list_seats,
        "maxMutatingSeats": level.max_mutating_seats,
        "queues": level.queues,
        "handSize": level.hand_size,
        "queueLengthLimit": level.queue_length_limit,
        "maxQueued": level.max_queued,
        "maxQueuedPerFlow": level.max_queued_per_flow,
        "flowSchemas": list(level.flow_schemas),
    }


def comparison_json(old: Limits, new: Limits) -> dict[str, object]:
    """The object that `limits --compare --format json` prints; `change` is added, removed, changed or same."""
    return {
        "old": {"serverConcurrency": old.server_concurrency, "kubernetes": old.release.name},
        "new": {"serverConcurrency": new.server_concurrency, "kubernetes": new.release.name},
        "levels": [
            {
                "name": change.name,
                "change": _kind(change),
                "gain": change.gain,
                "old": None if change.old is None else level_json(change.old, old),
                "new": None if change.new is None else level_json(change.new, new),
            }
            for change in compare_levels(old, new)
        ],
    }


def render(limits: Limits, *, width: int | None = None, paint: Painter | None = None, unicode: bool = True) -> str:
    """The limits as a table with an explanation, ending in a newline. `unicode` is whether block characters can be shown."""
    paint = paint or Painter()
    columns = _columns(limits, bars=width is not None)
    rows: list[list[Cell | str]] = []
    longest = max((level.nominal for level in limits.levels), default=0)
    for level in limits.levels:
        cells: dict[str, Cell | str] = {
            "PRIORITY LEVEL": Cell(level.name, "bold"),
            "BAR": Cell(_bar(level, longest, unicode=unicode), "good"),
            "SHARES": str(level.shares),
            "NOMINAL": str(level.nominal),
            "ACV": str(level.nominal) if level.type == "Limited" else "-",
            "MIN": str(level.min),
            "MAX": str(level.max),
            "REACH": str(level.attainable) if level.type == "Limited" else "-",
            "IDLE": str(level.idle),
            "PER REQUEST": str(level.max_list_seats),
            "PER LIST": str(level.max_list_seats),
            "PER CHANGE": str(level.max_mutating_seats),
            "QUEUES": _number(level.queues),
            "HAND": _number(level.hand_size),
            "LENGTH": _number(level.queue_length_limit),
            "WAITING": str(level.max_queued),
            "PER FLOW": str(level.max_queued_per_flow),
        }
        rows.append([cells[column.title or "BAR"] for column in columns])
    drawn = table(columns, rows, width, paint)
    title = f"Kubernetes {limits.release.name}, server concurrency limit {limits.server_concurrency} (seats of one API server)"
    parts = [wrap(title, width), drawn.lines]
    parts += [
        _sentences(
            _legend(limits, [each.title for each in columns if each.title not in drawn.left_out], drawn.left_out), width
        )
    ]
    parts += [_sentences([*_oddities(limits)], width)]
    parts += [_flow_schemas(limits, width)]
    return "\n\n".join("\n".join(part) for part in parts if part) + "\n"


def _columns(limits: Limits, *, bars: bool) -> list[Column]:
    borrowing = limits.release.has_borrowing
    return [
        Column("PRIORITY LEVEL", left=True),
        *([Column("", rank=4, left=True)] if bars else []),
        Column("SHARES", rank=2),
        *([Column("NOMINAL"), Column("MIN"), Column("MAX"), Column("REACH", rank=1)] if borrowing else [Column("ACV")]),
        *([Column("IDLE", rank=8)] if borrowing else []),
        *_columns_of_one_request(limits),
        Column("QUEUES", rank=5),
        Column("HAND", rank=6),
        Column("LENGTH", rank=6),
        Column("WAITING", rank=3),
        Column("PER FLOW", rank=7),
    ]


def _columns_of_one_request(limits: Limits) -> list[Column]:
    if all(level.max_list_seats == level.max_mutating_seats for level in limits.levels):
        # Up to 1.22 every request takes 1 seat, which needs no column.
        return [Column("PER REQUEST", rank=9)] if any(level.max_list_seats > 1 for level in limits.levels) else []
    return [Column("PER LIST", rank=9), Column("PER CHANGE", rank=9)]


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _bar(level: LevelLimits, longest: int, *, unicode: bool) -> str:
    if not level.nominal:
        return ""
    kept, lent = "█░" if unicode else "#-"
    size = max(1, round(level.nominal * _BAR / longest))
    full = size if level.min == level.nominal else min(size - 1, round(level.min * _BAR / longest))
    return kept * full + lent * (size - full)


def _legend(limits: Limits, shown: list[str], left_out: list[str]) -> list[str]:
    shares = sum(level.shares for level in limits.levels)
    meanings = {
        "": "Bars: the nominal limit; the pale part is what the level may lend."
        if limits.release.has_borrowing
        else "Bars: the ACV.",
        "ACV": f"ACV: the seats of the level, {limits.server_concurrency} x shares / {shares}, rounded up."
        " Nothing is borrowed before Kubernetes 1.26.",
        "NOMINAL": f"NOMINAL: the level's own seats, {limits.server_concurrency} x shares / {shares}, rounded up.",
        "MIN": "MIN: the seats that it never lends.",
        "MAX": "MAX: the upper limit, as the server's metrics show it.",
        "REACH": "REACH: the seats that it really comes to while all others are idle.",
        "IDLE": "IDLE: its seats while nobody has anything to do.",
        "PER REQUEST": "PER REQUEST: the maximum seats of one request.",
        "PER LIST": "PER LIST: the maximum seats of one list.",
        "PER CHANGE": "PER CHANGE: the maximum seats of one create, update, patch or delete.",
        "WAITING": "WAITING: QUEUES x LENGTH. A queue with LENGTH requests waiting takes more only while a seat is free.",
        "PER FLOW": "PER FLOW: HAND x LENGTH, the same for the queues of one flow.",
    }
    said = [meaning for title, meaning in meanings.items() if title in shown]
    named = [title.lower() or "bars" for title in left_out]
    if named:
        said.append(f"No room here for: {', '.join(named)}. A wider terminal or --format json has them.")
    return said


def _oddities(limits: Limits) -> list[str]:
    found = []
    for level in limits.levels:
        trouble = describe_starvation(level)
        if trouble:
            found.append(f'"{sanitize(level.name)}": {trouble}')
        if not level.flow_schemas:
            found.append(f'"{sanitize(level.name)}": No FlowSchema names it, so no request gets there.')
    return found


def _sentences(sentences: list[str], width: int | None) -> list[str]:
    return [line for sentence in sentences for line in wrap(sentence, width)]


def _flow_schemas(limits: Limits, width: int | None) -> list[str]:
    named = [level for level in limits.levels if level.flow_schemas]
    if not named:
        return []
    lines = wrap("FlowSchemas of each level, in matching order:", width)
    for level in named:
        start = f"  {sanitize_line(level.name)}: "
        first, *others = wrap(", ".join(map(sanitize, level.flow_schemas)), width, len(start), 4)
        lines += [start + first, *(f"    {line}" for line in others)]
    return lines


def render_comparison(old: Limits, new: Limits, *, width: int | None = None, paint: Painter | None = None) -> str:
    """What each level gains and loses from `old` to `new`, ending in a newline."""
    paint = paint or Painter()
    changes = compare_levels(old, new)
    moved = [change for change in changes if _kind(change) != "same"]
    title = (
        f"Kubernetes {_step(old.release.name, new.release.name)}, server concurrency limit "
        f"{_step(old.server_concurrency, new.server_concurrency)} (seats of one API server)"
    )
    parts = [wrap(title, width)]
    if moved:
        drawn = table(_COMPARISON, [_comparison_row(change) for change in moved], width, paint)
        parts.append(drawn.lines)
        if drawn.left_out:
            named = ", ".join(name.lower() for name in drawn.left_out)
            parts.append(wrap(f"No room here for: {named}. A wider terminal or --format json has them.", width))
        gained, lost = sum(change.gain > 0 for change in moved), sum(change.gain < 0 for change in moved)
        said = "No level gains or loses seats of its own."
        if gained or lost:
            said = f"Levels that gain seats of their own: {gained}. Levels that lose some: {lost}."
        parts.append(wrap(said, width))
    same = len(changes) - len(moved)
    if same:
        verb = "keeps its limits" if same == 1 else "keep their limits"
        parts.append(wrap(f"{pluralize(same, 'level')} {verb}.", width))
    return "\n\n".join("\n".join(part) for part in parts) + "\n"


_COMPARISON = (
    Column("PRIORITY LEVEL", left=True),
    Column("CHANGE"),
    Column("NOMINAL"),
    Column("SHARES", rank=5),
    Column("MIN", rank=1),
    Column("MAX", rank=3),
    Column("REACH", rank=2),
    Column("WAITING", rank=4),
)


def _comparison_row(change: LevelChange) -> list[Cell | str]:
    old, new = change.old, change.new
    gain = Cell(
        f"{change.gain:+}" if change.gain else "0", "good" if change.gain > 0 else "error" if change.gain < 0 else ""
    )
    name = change.name if old and new else f"{change.name} ({_kind(change)})"
    return [
        Cell(name, "bold"),
        gain,
        *(
            _step(getattr(old, field, None), getattr(new, field, None))
            for field in ("nominal", "shares", "min", "max", "attainable", "max_queued")
        ),
    ]


def _step(old: object, new: object) -> str:
    before, after = ("-" if value is None else str(value) for value in (old, new))
    return before if before == after else f"{before} -> {after}"


def _kind(change: LevelChange) -> str:
    if change.old is None:
        return "added"
    if change.new is None:
        return "removed"
    return "same" if change.old.figures == change.new.figures else "changed"
