"""The comparison of two configurations on a log, as text, Markdown and JSON. Also sentences for the HTML page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.console import count_cells, label_lines, render_prose, wrap
from apflint.output.json_text import SCHEMA
from apflint.output.markdown import format_prose
from apflint.output.replay import markdown
from apflint.output.replay.json import replay_json
from apflint.output.replay.wording import (
    describe_coverage,
    describe_limits_of_log,
    find_peak,
    format_attainable,
    format_count,
    format_seat_seconds,
    format_second,
    format_share,
    format_time,
    is_overloaded,
)
from apflint.output.sanitize import sanitize_line
from apflint.output.tables import Text, render_table
from apflint.replay.comparison import MOVE_TYPES
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.output.configuration import Sides
    from apflint.output.console import Style
    from apflint.replay.comparison import Destination, Move, MovedRequest, MoveType, ReplayComparison
    from apflint.replay.statistics import LevelTraffic, ReplayReport

MAX_MOVES = 20
"""Maximum number of moves in text, Markdown and HTML. Further moves are only counted. JSON has all moves."""
TITLE = "Replay under two configurations"
"""Title of the documents."""
_TITLES: dict[MoveType, str] = {
    "classification": "only one release classifies the requests",
    "priorityLevel": "another priority level",
    "flowSchema": "same priority level, another FlowSchema",
    "flow": "same FlowSchema, other flows",
}
_SUMMARIES: dict[MoveType, str] = {
    "classification": "classified on one side only",
    "priorityLevel": "to another priority level",
    "flowSchema": "to another FlowSchema of the same level",
    "flow": "to other flows of the same FlowSchema",
}
_LABEL_CELLS = 7


def render_comparison(comparison: ReplayComparison, sides: Sides, style: Style) -> str:
    """Render the comparison for people: which requests move, and tables of the priority levels."""
    moves = comparison.moves[:MAX_MOVES]
    parts = [
        render_prose(style, summarize(comparison), color="bold")
        + render_prose(
            style,
            f"{sides.old} -> {sides.new}, {_describe_releases(comparison)}",
            f"Configuration: {sides.description}",
            color="dim",
        ),
        render_prose(style, *describe_coverage(comparison.old, has_configuration=False)),
        *("".join(f"{line}\n" for line in _move_lines(move, comparison, style)) for move in moves),
    ]
    if more := describe_more_moves(comparison):
        parts.append(f"{more}\n")
    if comparison.levels:
        parts.append(_level_table(comparison, style))
    parts.append(render_prose(style, *describe_limits(comparison), color="dim"))
    return "\n".join(filter(None, parts))


def summarize(comparison: ReplayComparison) -> str:
    """Return a sentence with the numbers of requests that move."""
    moved = sum(move.requests for move in comparison.moves)
    total = comparison.classified
    requests = f"{format_count(total)} {'request' if total == 1 else 'requests'}"
    if not moved:
        changes = {
            "other limits": comparison.levels_with_other_limits,
            "other seats in use": comparison.levels_with_other_seats,
        }
        parts = [
            f"; {pluralize(count, 'priority level')} {'has' if count == 1 else 'have'} {what}"
            for what, count in changes.items()
            if count
        ]
        return f"None of {requests} moves{''.join(parts)}."
    counts = {kind: sum(move.requests for move in comparison.moves if move.type == kind) for kind in MOVE_TYPES}
    kinds = ", ".join(f"{format_count(count)} {_SUMMARIES[kind]}" for kind, count in counts.items() if count)
    verb = "moves" if moved == 1 else "move"
    return f"{format_count(moved)} of {requests} ({format_share(moved, total)}) {verb}: {kinds}."


def _describe_releases(comparison: ReplayComparison) -> str:
    limits = comparison.old.limits, comparison.new.limits
    releases = _format_step(*(side.release.name for side in limits))
    seats = _format_step(*(format_count(side.server_concurrency) for side in limits))
    return f"Kubernetes {releases}, {seats} seats of each API server"


def _format_step(old: str, new: str) -> str:
    return old if old == new else f"{old} -> {new}"


def _move_lines(move: Move, comparison: ReplayComparison, style: Style) -> Iterator[str]:
    old, new = (_describe_destination(side) for side in (move.old, move.new))
    *lines, last = wrap(_format_step(sanitize_line(old), sanitize_line(new)), style.prose_width, 0, 2)
    title = f"({_TITLES[move.type]})"
    if style.prose_width is not None and count_cells(last) + 2 + len(title) > style.prose_width - 2 * bool(lines):
        lines, last = [*lines, last], ""
    for number, line in enumerate(lines):
        yield "  " * bool(number) + style.paint(line, "bold")
    yield "  " * bool(lines) + (f"{style.paint(last, 'bold')}  " if last else "") + style.paint(title, "dim")
    text = f"{format_count(move.requests)} ({format_share(move.requests, comparison.classified)})"
    if move.rejected:
        text += f", {format_count(move.rejected)} of them rejected"
    yield from label_lines("count", text, _LABEL_CELLS, style, 2)
    yield from label_lines("users", _list_users(move), _LABEL_CELLS, style, 2)
    yield from label_lines("first", _describe_request(move.first), _LABEL_CELLS, style, 2)


def _list_users(move: Move) -> str:
    users = [f"{user} {format_count(requests)}" for user, requests in move.users]
    if others := move.user_count - len(users):
        users.append(f"and {format_count(others)} more")
    return ", ".join(users)


def _describe_destination(side: Destination | None) -> str:
    if side is None:
        return "not classified"
    method = f" {side.distinguished_by}" if side.distinguished_by else ""
    return f"{side.priority_level} ({side.flow_schema}{method})"


def _describe_request(request: MovedRequest) -> str:
    place = f" in namespace {request.namespace}" if request.namespace else ""
    audit_id = f", audit ID {request.audit_id}" if request.audit_id else ""
    return f"{format_second(request.time)} UTC, {request.user}: {request.verb} {request.resource}{place}{audit_id}"


def _level_table(comparison: ReplayComparison, style: Style) -> str:
    rows: list[tuple[str | Text, ...]] = []
    for name, row in zip(comparison.levels, list_levels(comparison), strict=True):
        traffic = _find(comparison.new, name)
        color = "bold red" if traffic is not None and is_overloaded(traffic) else ""
        rows.append(
            (
                Text(sanitize_line(name), "bold"),
                *(Text(cell, color if title == "Peak" else "") for title, cell in [*row.items()][1:]),
            )
        )
    return render_table([title.upper() for title in _LEVEL_TITLES], rows, style)


_LEVEL_TITLES = ("Priority level", "Requests", "Seat-seconds", "Peak", "Nominal", "Attainable")


def list_levels(comparison: ReplayComparison) -> Iterator[dict[str, str]]:
    """Yield the numbers of each level on both sides, by title."""
    for name in comparison.levels:
        cells = [_level_cells(report, name) for report in (comparison.old, comparison.new)]
        steps = (_format_step(*pair) for pair in zip(*cells, strict=True))
        yield dict(zip(_LEVEL_TITLES, (name, *steps), strict=True))


def _level_cells(report: ReplayReport, name: str) -> tuple[str, ...]:
    """Return the cells of a priority level on one side. `-` stands for a level that the side does not have."""
    level, limits = _find(report, name), report.limits.level(name)
    if limits is None:
        return ("-",) * 5
    nominal = format_count(limits.nominal)
    attainable = "-" if limits.is_exempt else format_count(limits.attainable)
    if level is None:
        return "0", format_seat_seconds(0), "0", nominal, attainable
    peak = format_count(find_peak(level) or 0)
    return (
        format_count(level.requests),
        format_seat_seconds(level.seat_microseconds),
        peak,
        nominal,
        format_attainable(level),
    )


def _find(report: ReplayReport, name: str) -> LevelTraffic | None:
    return next((level for level in report.levels if level.name == name), None)


def describe_limits(comparison: ReplayComparison) -> Iterator[str]:
    """Yield sentences about the meaning of the numbers. The sentences of both sides differ in numbers only."""
    yield "The durations are those of the log: with other seats, requests would wait less or longer, or be rejected."
    yield from describe_limits_of_log(comparison.new)


def render_markdown(comparison: ReplayComparison, sides: Sides) -> str:
    """Render the comparison for a pull request or an issue. Names become code spans."""
    parts = [
        f"### {TITLE}",
        f"**{summarize(comparison)}**",
        "\n".join(f"- {format_prose(fact)}" for fact in describe_sides(comparison, sides)),
        markdown.render_table(list_moves(comparison), ("Before", "After", "Users", "First request")),
        describe_more_moves(comparison),
        markdown.render_table(list_levels(comparison), _LEVEL_TITLES[:1]),
        "\n".join(f"- {format_prose(sentence)}" for sentence in describe_limits(comparison)),
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def describe_sides(comparison: ReplayComparison, sides: Sides) -> Iterator[str]:
    """Yield sentences about both configurations and the log, for a document."""
    yield f"{sides.old} -> {sides.new}, {_describe_releases(comparison)}"
    yield f"Configuration: {sides.description}"
    yield from describe_coverage(comparison.old, has_configuration=False)


def list_moves(comparison: ReplayComparison) -> Iterator[dict[str, str]]:
    """Yield the first moves, by title, for a document."""
    for move in comparison.moves[:MAX_MOVES]:
        yield {
            "Before": _describe_destination(move.old),
            "After": _describe_destination(move.new),
            "Requests": format_count(move.requests),
            "Rejected": format_count(move.rejected),
            "Users": _list_users(move),
            "First request": _describe_request(move.first),
        }


def describe_more_moves(comparison: ReplayComparison) -> str:
    """Return a sentence about the moves that a document does not list, or an empty string."""
    others = len(comparison.moves) - MAX_MOVES
    return f"And {others} more: see --format json." if others > 0 else ""


def comparison_json(comparison: ReplayComparison, sides: Sides) -> dict[str, object]:
    """Return the object that `replay --compare --format json` prints."""
    return {
        "schema": SCHEMA,
        "configuration": sides.description,
        "sides": {"old": sides.old, "new": sides.new},
        "changed": comparison.changed,
        "moved": sum(move.requests for move in comparison.moves),
        "moves": [_move_json(move) for move in comparison.moves],
        "old": replay_json(comparison.old._replace(configuration=sides.old_description)),
        "new": replay_json(comparison.new._replace(configuration=sides.new_description)),
    }


def _move_json(move: Move) -> dict[str, object]:
    return {
        "type": move.type,
        "old": _destination_json(move.old),
        "new": _destination_json(move.new),
        "requests": move.requests,
        "rejected": move.rejected,
        "userCount": move.user_count,
        "topUsers": [{"user": user, "requests": requests} for user, requests in move.users],
        "first": {
            "auditID": move.first.audit_id,
            "time": format_time(move.first.time),
            "user": move.first.user,
            "verb": move.first.verb,
            "resource": move.first.resource,
            "namespace": move.first.namespace,
        },
    }


def _destination_json(side: Destination | None) -> dict[str, object] | None:
    return side and {
        "flowSchema": side.flow_schema,
        "priorityLevel": side.priority_level,
        "distinguisherMethod": side.distinguished_by,
    }
