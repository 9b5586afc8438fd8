"""The report of `apflint replay --compare`: requests that move, and the seats of levels under both configurations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.blocks import (
    DOCUMENTS,
    HTML,
    TEXT,
    Bullets,
    Column,
    Facts,
    Group,
    Heading,
    Only,
    Prose,
    Table,
    Text,
)
from apflint.output.json_text import SCHEMA
from apflint.output.replay.json import replay_json
from apflint.output.replay.report import explain_numbers
from apflint.output.replay.wording import (
    describe_coverage,
    describe_limits_of_log,
    format_attainable,
    format_count,
    format_moment,
    format_peak,
    format_seat_seconds,
    format_share,
    format_time,
    is_overloaded,
    mark_waits,
)
from apflint.replay.comparison import MOVE_TYPES
from apflint.wording import pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from apflint.output.blocks import Block
    from apflint.output.configuration_line import Sides
    from apflint.replay.comparison import LoggedDestination, LoggedMove, MovedRequest, MoveType, ReplayComparison
    from apflint.replay.statistics import LevelTraffic, ReplayReport

MAX_MOVES = 20
"""Maximum number of moves in text, Markdown and HTML. Further moves are only counted. JSON has all moves."""
TITLE = "Replay under two configurations"
"""Title of the Markdown and HTML documents."""
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


def report_comparison(comparison: ReplayComparison, sides: Sides) -> Iterator[Block]:
    """Yield the moves of requests, and then tables and drawings of the priority levels."""
    moves = comparison.moves[:MAX_MOVES]
    coverage = list(describe_coverage(comparison.old, has_configuration=False))
    subject = [f"{sides.old} -> {sides.new}, {_describe_releases(comparison)}", f"Configuration: {sides.description}"]
    summary = Prose([summarize(comparison)], "bold")
    yield Only(
        DOCUMENTS,
        [Heading(TITLE, 1), summary, Bullets([*subject, *coverage]), _tabulate_moves(moves, comparison.old.zone)],
    )
    yield Only(TEXT, [Group([summary, Prose(subject, "dim")]), Prose(coverage)])
    yield Only(TEXT, [_describe_move(move, comparison) for move in moves])
    if (others := len(comparison.moves) - MAX_MOVES) > 0:
        yield Prose([f"And {others} more: see --format json."])
    yield _tabulate_levels(comparison)
    yield Only(HTML, _draw(comparison, sides))
    yield from explain_numbers(
        [
            "The durations are from the log. With a different number of seats, waits would be shorter or longer, or requests would be rejected.",
            # The sentences about the old configuration are left out, because they would differ only in numbers.
            *describe_limits_of_log(comparison.new),
        ]
    )


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


def _describe_move(move: LoggedMove, comparison: ReplayComparison) -> Group:
    old, new = (_describe_destination(side) for side in (move.old, move.new))
    count = f"{format_count(move.requests)} ({format_share(move.requests, comparison.classified)})"
    if move.rejected:
        count += f", {format_count(move.rejected)} of them rejected"
    facts = (
        ("count", count),
        ("users", _list_users(move)),
        ("first", _describe_request(move.first, comparison.old.zone)),
    )
    return Group([Heading(_format_step(old, new), 3, _TITLES[move.type]), Facts(facts, indent=2)])


def _tabulate_moves(moves: Sequence[LoggedMove], zone: tzinfo) -> Table:
    rows = [
        (
            _describe_destination(move.old),
            _describe_destination(move.new),
            format_count(move.requests),
            format_count(move.rejected),
            _list_users(move),
            _describe_request(move.first, zone),
        )
        for move in moves
    ]
    columns = (
        *(Column("Before", "name"), Column("After", "name"), Column("Requests"), Column("Rejected")),
        *(Column("Users", "name"), Column("First request", "name")),
    )
    return Table(columns, rows, "Requests that move")


def _list_users(move: LoggedMove) -> str:
    users = [f"{user} {format_count(requests)}" for user, requests in move.users]
    if others := move.user_count - len(users):
        users.append(f"and {format_count(others)} more")
    return ", ".join(users)


def _describe_destination(side: LoggedDestination | None) -> str:
    if side is None:
        return "not classified"
    method = f" {side.distinguished_by}" if side.distinguished_by else ""
    return f"{side.priority_level} ({side.flow_schema}{method})"


def _describe_request(request: MovedRequest, zone: tzinfo) -> str:
    place = f" in namespace {request.namespace}" if request.namespace else ""
    audit_id = f", audit ID {request.audit_id}" if request.audit_id else ""
    return f"{format_moment(request.time, zone)}, {request.user}: {request.verb} {request.resource}{place}{audit_id}"


def _tabulate_levels(comparison: ReplayComparison) -> Table:
    """Return the numbers of each level under both configurations."""
    rows: list[tuple[str | Text, ...]] = []
    for name in comparison.levels:
        cells = [_level_cells(report, name) for report in (comparison.old, comparison.new)]
        requests, seat_seconds, peak, *limits = (_format_step(*pair) for pair in zip(*cells, strict=True))
        traffic = _find(comparison.new, name)
        is_red = traffic is not None and is_overloaded(traffic)
        rows.append((Text(name, "bold"), requests, seat_seconds, Text(peak, "error" if is_red else ""), *limits))
    titles = ("Requests", "Seat-seconds", "Peak", "Nominal", "Attainable")
    return Table((Column("Priority level", "name"), *map(Column, titles)), rows, "Priority levels")


def _level_cells(report: ReplayReport, name: str) -> tuple[str, ...]:
    """Return the cells of a priority level in a report. If the configuration lacks the level, all cells are `-`."""
    level, limits = _find(report, name), report.limits.level(name)
    if limits is None:
        return ("-",) * 5
    nominal = format_count(limits.nominal)
    attainable = "-" if limits.is_exempt else format_count(limits.attainable)
    if level is None:
        return "0", format_seat_seconds(0), "0", nominal, attainable
    return (
        format_count(level.requests),
        f"{mark_waits(level)}{format_seat_seconds(level.seat_microseconds)}",
        "0" if level.peak is None else format_peak(level),
        nominal,
        format_attainable(level),
    )


def _find(report: ReplayReport, name: str) -> LevelTraffic | None:
    return next((level for level in report.levels if level.name == name), None)


def _draw(comparison: ReplayComparison, sides: Sides) -> Iterator[Block]:
    from apflint.output.replay.charts import draw_sides  # imported on demand: only the HTML format needs it

    return draw_sides(comparison.levels, ((sides.old, comparison.old), (sides.new, comparison.new)))


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


def _move_json(move: LoggedMove) -> dict[str, object]:
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


def _destination_json(side: LoggedDestination | None) -> dict[str, object] | None:
    return side and {
        "flowSchema": side.flow_schema,
        "priorityLevel": side.priority_level,
        "distinguisherMethod": side.distinguished_by,
    }
