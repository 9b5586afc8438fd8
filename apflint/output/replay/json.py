"""The JSON that `apflint replay` prints. Durations are in seconds. Times have the format of RFC 3339."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.output.json_text import SCHEMA
from apflint.output.limits import level_json
from apflint.output.replay.wording import format_time
from apflint.replay.unexplained_rejections import find_contradictions

if TYPE_CHECKING:
    from apflint.replay.loaded_log import UnreadableLine
    from apflint.replay.statistics import (
        Breakdown,
        DurationPercentiles,
        LevelTraffic,
        ReplayReport,
        RequestAnswer,
        UserTraffic,
    )
    from apflint.replay.verification import Verification


def replay_json(report: ReplayReport) -> dict[str, object]:
    """Return the object that `replay --format json` prints."""
    coverage = report.coverage
    return {
        "schema": SCHEMA,
        "configuration": report.configuration,
        "laterConfigurations": [
            {"since": format_time(time), "configuration": name} for time, name in report.later_configurations
        ],
        "kubernetes": report.limits.release.name,
        "serverConcurrency": report.limits.server_concurrency,
        "contradictions": [
            {
                "priorityLevel": found.level,
                "rejected": found.rejected,
                "peakSeats": found.seats,
                "minLimit": found.min_limit,
                "limit": found.limit,
                "assumedServerConcurrency": report.limits.server_concurrency if found.is_about_seats else None,
            }
            for found in find_contradictions(report)
        ],
        "engine": report.engine,
        "partial": coverage.interrupted,
        "where": [str(condition) for condition in report.filter.conditions],
        "since": report.filter.since and format_time(report.filter.since.microseconds),
        "until": report.filter.until and format_time(report.filter.until.microseconds),
        "files": coverage.files,
        "start": format_time(report.start),
        "end": format_time(report.end),
        "log": {
            "requests": report.extent.requests,
            "start": format_time(report.extent.start) if report.extent.requests else None,
            "end": format_time(report.extent.end) if report.extent.requests else None,
        },
        "servers": list(report.servers),
        "events": sum(coverage.stages.values()),
        "eventsByStage": dict(sorted(coverage.stages.items())),
        "duplicateEvents": report.copies,
        "onlyReceived": report.unanswered,
        "unreadableWaits": report.unreadable_waits,
        "unreadable": coverage.unreadable,
        "firstUnreadable": None if coverage.first_unreadable is None else _place_json(coverage.first_unreadable),
        "damagedFiles": [_place_json(place) for place in coverage.damaged],
        "omittedObjects": [
            {
                "url": omitted.url,
                "objects": omitted.number,
                "bytes": omitted.size,
                "reason": "times" if omitted.is_outside_period else "names",
            }
            for omitted in coverage.omitted
        ],
        "verification": None if report.verification is None else _verification_json(report.verification),
        "filesWithoutEvents": [_place_json(place) for place in coverage.without_events],
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
        "intervals": None
        if report.intervals is None
        else {
            "start": format_time(report.intervals.start),
            "seconds": _seconds(report.intervals.size),
            "count": report.intervals.number,
        },
        "levels": [_level_json(level) for level in report.levels],
        "byServer": [
            {
                "server": server.server,
                "requests": server.requests,
                "rejected": server.rejected,
                "waits": server.waits,
                "seatSeconds": _seconds(server.seat_microseconds),
            }
            for server in report.by_server
        ],
        "by": None if report.breakdown is None else _breakdown_json(report.breakdown),
    }


def request_json(answer: RequestAnswer, configuration: str) -> dict[str, object]:
    """Return one line of `replay --each`. `wait` is in seconds. `configuration` describes the sources of the configuration."""
    return {
        "schema": SCHEMA,
        "configuration": configuration,
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
        "peaks": [{"server": peak.server, "seats": peak.seats, "time": format_time(peak.time)} for peak in level.peaks],
        "users": level.user_count,
        "topUsers": [_user_json(user) for user in level.users],
        "topRejectedUsers": [_user_json(user) for user in level.rejected_users],
        "topWaitingUsers": [_user_json(user) for user in level.waiting_users],
        "topUsersBySeatSeconds": [_user_json(user) for user in level.busy_users],
        "requestsOverTime": list(level.series.requests),
        "rejectedOverTime": list(level.series.rejected),
        "peakSeatsOverTime": list(level.series.seats),
        "seatsMayCountWaits": level.may_count_waits,
        "limits": level_json(level.limits),
    }


def _user_json(user: UserTraffic) -> dict[str, object]:
    return {
        "user": user.name,
        "requests": user.requests,
        "rejected": user.rejected,
        "waits": user.waits,
        "longestWait": _seconds(user.longest_wait) if user.waits else None,
        "seatSeconds": _seconds(user.seat_microseconds),
    }


def _distribution_json(values: DurationPercentiles | None) -> dict[str, object] | None:
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


def _place_json(place: UnreadableLine) -> dict[str, object]:
    return {"file": place.file, "line": place.line, "reason": place.reason}


def _seconds(microseconds: int | None) -> float | None:
    return None if microseconds is None else microseconds / 1e6


def _verification_json(found: Verification) -> dict[str, object]:
    return {
        "logged": found.logged,
        "compared": found.compared,
        "agreeing": found.agreeing,
        "sameSeats": found.same_seats,
        "differences": [
            {
                "logged": {"flowSchema": logged.flow_schema, "priorityLevel": logged.priority_level},
                "replayed": {"flowSchema": replayed.flow_schema, "priorityLevel": replayed.priority_level},
                "requests": number,
                "auditID": audit_id,
            }
            for logged, replayed, number, audit_id in found.differences
        ],
    }
