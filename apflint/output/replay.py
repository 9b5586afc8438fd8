"""Reports of replayed audit logs, as `apflint replay` prints them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from rich.text import Text

from apflint.output.console import render_prose
from apflint.output.limits import level_json
from apflint.output.sanitize import sanitize, sanitize_line
from apflint.output.tables import render_table
from apflint.replay.omissions import describe_omissions
from apflint.wording import join_words, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.output.console import Style
    from apflint.replay.filters import Filter
    from apflint.replay.log import Unreadable
    from apflint.replay.statistics import Breakdown, Distribution, LevelTraffic, ReplayReport, RequestAnswer

_BARS = "▁▂▃▄▅▆▇█"
_SPARKLINE_CELLS = 20
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_OUTCOMES = {
    "no user": "without a user, such as those answered with 401",
    "no impersonation": "whose impersonation was denied",
    "long-running": "long-running (exec, attach, log, port-forward, proxy, profiles)",
}
"""For each outcome except `classified`, a description that follows the number of requests."""


def replay_json(report: ReplayReport) -> dict[str, object]:
    """Return the object that `replay --format json` prints. Times are in seconds, dates in RFC 3339."""
    coverage = report.coverage
    return {
        "kubernetes": report.limits.release.name,
        "serverConcurrency": report.limits.server_concurrency,
        "engine": report.engine,
        "partial": coverage.interrupted,
        "where": [str(condition) for condition in report.filter.conditions],
        "since": report.filter.since and _format_time(report.filter.since.microseconds),
        "until": report.filter.until and _format_time(report.filter.until.microseconds),
        "files": coverage.files,
        "start": _format_time(report.start),
        "end": _format_time(report.end),
        "servers": list(report.servers),
        "events": sum(coverage.stages.values()),
        "eventsByStage": dict(sorted(coverage.stages.items())),
        "duplicateEvents": report.copies,
        "unreadable": coverage.unreadable,
        "firstUnreadable": None if coverage.first_unreadable is None else _place_json(coverage.first_unreadable),
        "damagedFiles": [_place_json(place) for place in coverage.damaged],
        "otherRecords": coverage.other_records,
        "requests": sum(report.outcomes.values()),
        "classified": report.outcomes.get("classified", 0),
        "notClassified": {
            "noUser": report.outcomes.get("no user", 0),
            "deniedImpersonation": report.outcomes.get("no impersonation", 0),
            "longRunning": report.outcomes.get("long-running", 0),
        },
        "withoutGroups": report.without_groups,
        "uncertain": report.uncertain,
        "endBeforeStart": report.backwards,
        "watches": report.watches,
        "seatsFromObjectCounts": report.has_counts,
        "withoutObjectCount": report.uncounted,
        "omissions": {
            "stages": report.omissions.stages,
            "verbs": report.omissions.verbs,
            "requests": report.omissions.requests,
            "authorizationDecisions": not report.omissions.has_decisions,
        },
        "levels": [_level_json(level) for level in report.levels],
        "by": None if report.breakdown is None else _breakdown_json(report.breakdown),
    }


def request_json(answer: RequestAnswer) -> dict[str, object]:
    """Return one line of `replay --each`. The wait is in seconds."""
    return {
        "auditID": answer.audit_id,
        "flowSchema": answer.flow_schema,
        "priorityLevel": answer.priority_level,
        "distinguisher": answer.distinguisher,
        "seats": answer.seats,
        "wait": _seconds(answer.wait),
        "rejected": answer.rejected,
    }


def _level_json(level: LevelTraffic) -> dict[str, object]:
    return {
        "name": level.name,
        "flowSchemas": [{"name": name, "requests": count} for name, count in level.flow_schemas],
        "requests": level.requests,
        "rejected": level.rejected,
        "waits": _distribution_json(level.waits),
        "durations": _distribution_json(level.durations),
        "seatSeconds": _seconds(level.seat_microseconds),
        "peaks": [
            {"server": peak.server, "seats": peak.seats, "time": _format_time(peak.time)} for peak in level.peaks
        ],
        "topUsers": [{"user": user, "requests": count} for user, count in level.users],
        "requestsOverTime": list(level.series),
        "limits": level_json(level.limits),
    }


def _distribution_json(values: Distribution | None) -> dict[str, object] | None:
    if values is None:
        return None
    return {"count": values.number, **{key: _seconds(getattr(values, key)) for key in ("p50", "p99", "max")}}


def _breakdown_json(breakdown: Breakdown) -> dict[str, object]:
    return {
        "dimensions": list(breakdown.dimensions),
        "total": breakdown.total,
        "groups": [
            {
                **dict(zip(breakdown.dimensions, group.values, strict=True)),
                "requests": group.requests,
                "rejected": group.rejected,
                "seatSeconds": _seconds(group.seat_microseconds),
            }
            for group in breakdown.groups
        ],
    }


def _place_json(place: Unreadable) -> dict[str, object]:
    return {"file": place.file, "line": place.line, "reason": place.reason}


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6


def _format_time(microseconds: int | None) -> str | None:
    if microseconds is None:
        return None
    return (_EPOCH + timedelta(microseconds=microseconds)).isoformat(timespec="microseconds").replace("+00:00", "Z")


def render_replay(report: ReplayReport, style: Style) -> str:
    """Render the report for people: what was read, tables of the priority levels, and what the numbers mean."""
    parts = [render_prose(style, *_describe_coverage(report))]
    if report.levels:
        parts += (_traffic(report, style), _seats(report, style))
    if report.breakdown is not None:
        parts.append(_render_breakdown(report.breakdown, style))
    parts.append(render_prose(style, *_notes(report)))
    return "\n".join(filter(None, parts))


def _describe_coverage(report: ReplayReport) -> Iterator[str]:
    coverage = report.coverage
    requests = sum(report.outcomes.values())
    events = sum(coverage.stages.values())
    if coverage.interrupted:
        yield "PARTIAL RESULT: reading was interrupted."
    yield (
        f"{pluralize(coverage.files, 'file')}, {pluralize(len(report.servers), 'API server')}: {_count(events)} events of"
        f" {_count(requests)} requests{_describe_period(report)}"
    )
    yield (
        f"Kubernetes {report.limits.release.name}, server concurrency limit {report.limits.server_concurrency} (seats of one"
        " API server)"
    )
    if selected := list(_describe_filter(report.filter)):
        yield f"Only requests {join_words(selected, 'and')}."
    skipped = [
        f"{_count(report.outcomes[outcome])} {text}"
        for outcome, text in _OUTCOMES.items()
        if outcome in report.outcomes
    ]
    if skipped:
        yield f"Not classified: {join_words(skipped, 'and')}."
    if coverage.first_unreadable is not None:
        first = coverage.first_unreadable
        yield f"Unreadable: {pluralize(coverage.unreadable, 'line')}. First: {first.file}:{first.line}: {first.reason}"
    for place in coverage.damaged:
        yield f"Incomplete: {place.file}, from line {place.line}: {place.reason}"
    if coverage.other_records:
        yield f"Skipped: {_count(coverage.other_records)} records of other logs."
    if report.copies:
        yield f"Omitted: {_count(report.copies)} events that the log contains twice."
    if report.backwards:
        yield f"The clock was changed: {_count(report.backwards)} requests end before they start. Their durations are unknown."


def _describe_filter(selected: Filter) -> Iterator[str]:
    for word, moment in (("since", selected.since), ("until", selected.until)):
        if moment is not None:
            yield f"{word} {_format_time(moment.microseconds)}"
    if selected.conditions:
        yield f"with {', '.join(map(str, selected.conditions))}"


def _describe_period(report: ReplayReport) -> str:
    if report.start is None or report.end is None:
        return ""
    start, end = (f"{_EPOCH + timedelta(microseconds=time):%Y-%m-%d %H:%M:%S}" for time in (report.start, report.end))
    return f", {start} to {end} UTC ({_format_duration(report.end - report.start)})"


def _traffic(report: ReplayReport, style: Style) -> str:
    total = report.outcomes["classified"]
    titles = ("PRIORITY LEVEL", "REQUESTS", "SHARE", "REJECTED", "WAITS", "WAIT P50", "WAIT P99", "WAIT MAX")
    rows: list[tuple[str | Text, ...]] = [
        (
            Text(sanitize_line(level.name), "bold"),
            _count(level.requests),
            f"{100 * level.requests / total:.1f}%",
            _count(level.rejected),
            *_cells(level.waits),
            *_cells(level.durations)[1:3],
            Text(_sparkline(level.series), "green"),
        )
        for level in report.levels
    ]
    return render_table((*titles, "TIME P50", "TIME P99", ""), rows, style)


def _seats(report: ReplayReport, style: Style) -> str:
    rows: list[tuple[str | Text, ...]] = []
    for level in report.levels:
        peak = max((peak.seats for peak in level.peaks), default=None)
        is_limited = level.limits.type == "Limited"
        color = "bold red" if peak is not None and is_limited and peak > level.limits.attainable else ""
        rows.append(
            (
                Text(sanitize_line(level.name), "bold"),
                f"{level.seat_microseconds / 1e6:,.1f}",
                Text("-" if peak is None else str(peak), color),
                str(level.limits.nominal),
                str(level.limits.attainable) if is_limited else "-",
                ", ".join(name for name, _ in level.flow_schemas),
                ", ".join(f"{user} {100 * count / level.requests:.0f}%" for user, count in level.users),
            )
        )
    titles = ("PRIORITY LEVEL", "SEAT-SECONDS", "PEAK", "NOMINAL", "ATTAINABLE", "FLOWSCHEMAS", "TOP USERS")
    return render_table(titles, rows, style, wrapped=("FLOWSCHEMAS", "TOP USERS"))


def _render_breakdown(breakdown: Breakdown, style: Style) -> str:
    rows: list[tuple[str | Text, ...]] = [
        (
            *(Text(sanitize(value) or "-") for value in group.values),
            _count(group.requests),
            _count(group.rejected),
            f"{group.seat_microseconds / 1e6:,.1f}",
        )
        for group in breakdown.groups
    ]
    names = [name.upper() for name in breakdown.dimensions]
    table = render_table((*names, "REQUESTS", "REJECTED", "SEAT-SECONDS"), rows, style, wrapped=names, keys=len(names))
    if breakdown.total > len(breakdown.groups):
        table += render_prose(style, f"{_count(breakdown.total - len(breakdown.groups))} more; show them with --top.")
    return table


def _notes(report: ReplayReport) -> Iterator[str]:
    if not report.levels:
        return
    yield "REJECTED: 429 by API Priority and Fairness. WAITS: logged waits in queues; only requests over 500 ms have one."
    yield f"SEAT-SECONDS, PEAK: {_describe_seats(report)} Waits that the log does not show count as use."
    if report.watches:
        yield (
            f"{_count(report.watches)} watches are not in TIME, SEAT-SECONDS and PEAK: they hold seats until they are"
            " initialized, which the log does not show."
        )
    if len(report.servers) > 1:
        yield "PEAK: the highest peak of one API server. Each API server has its own seats."
    if report.without_groups:
        yield (
            f"The log does not contain the groups of {_count(report.without_groups)} requests. For {_count(report.uncertain)}"
            " of them, the FlowSchema depends on unknown groups, so it may be another one."
        )
    yield from describe_omissions(report.omissions)


def _describe_seats(report: ReplayReport) -> str:
    if not report.has_counts:
        return "estimates with 1 seat per request. For the seats of lists, add object counts (--metrics, --objects)."
    text = "estimates from object counts. Changes take 1 seat: the log does not show how many watchers they notify."
    if report.uncounted:
        text += (
            f" {_count(report.uncounted)} lists take 1 seat, because the number or size of their objects is unknown."
        )
    return text


def _cells(values: Distribution | None) -> tuple[str, ...]:
    if values is None:
        return "-", "-", "-", "-"
    return _count(values.number), *map(_format_duration, values[1:])


def _count(number: int) -> str:
    return f"{number:,}"


def _format_duration(microseconds: int) -> str:
    """Return a duration with two or three digits, such as `43 ms`, `2.7 s` or `3h 20m`."""
    seconds = microseconds / 1e6
    for limit, factor, unit in ((0.001, 1e6, "µs"), (1, 1e3, "ms"), (60, 1, "s")):
        if seconds < limit:
            return f"{seconds * factor:.{0 if seconds * factor >= 10 or unit == 'µs' else 1}f} {unit}"
    minutes, hours, days = seconds / 60, seconds / 3600, seconds / 86400
    if hours < 1:
        return f"{int(minutes)}m {int(seconds % 60)}s"
    return f"{int(hours)}h {int(minutes % 60)}m" if days < 2 else f"{int(days)}d {int(hours % 24)}h"


def _sparkline(series: tuple[int, ...]) -> str:
    """Return requests over time as bars. The highest bar is the maximum of the level."""
    size = len(series) // _SPARKLINE_CELLS
    sums = [sum(series[at : at + size]) for at in range(0, len(series), size)]
    highest = max(sums)
    return "".join(_BARS[min(7, value * 8 // highest)] if value else " " for value in sums)
