"""Sentences, numbers and lists that the text, Markdown and HTML reports of a replay share."""

from __future__ import annotations

from datetime import UTC
from itertools import islice
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.replay.omissions import describe_omissions
from apflint.replay.only_harmed_client import is_hardly_harmed, is_mainly_harmed
from apflint.replay.server_traffic import find_imbalance
from apflint.replay.unexplained_rejections import find_contradictions
from apflint.time_zones import convert, describe_period, name_zone
from apflint.unknown_seats import FIND_SEATS
from apflint.wording import count_noun, format_duration, join_some, join_words, pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import tzinfo

    from apflint.replay.statistics import Breakdown, LevelTraffic, ReplayReport, UserTraffic
    from apflint.replay.verification import Decision, Verification

_OUTCOMES = {
    "no user": "without a user (such as 401)",
    "no impersonation": "with a denied impersonation",
    "long-running": "long-running (exec, attach, log, port-forward, proxy, profiles)",
}
"""Descriptions of outcomes, which follow a number of requests. `classified` has no description."""
_MAX_FILES_WITHOUT_EVENTS = 3
_MAX_DIFFERENCES = 5
_MAX_NAMED_LEVELS = 4
"""Maximum number of levels that the summary names."""
_MAX_NAMED_USERS = 3
"""Maximum number of users of a level that the summary names."""
_BUSY_SHARE = 0.01
"""The summary names a user only if the user used at least this fraction of the seat-seconds of the level."""


class LevelSummary(NamedTuple):
    """Rejections, waits and busy users of one priority level."""

    name: str
    rejections: str
    """A clause with the number of rejected requests and their users, or an empty string."""
    waits: str
    """A clause with the number of logged waits and their users, or an empty string."""
    others: str
    """A clause about all other users if only one user is harmed, or an empty string."""
    seats: str
    """A clause with the users with the most seat-seconds, or an empty string."""

    def __str__(self) -> str:
        """Return the clauses of the level that are not empty, joined by `. `, or an empty string if all are empty."""
        return ". ".join(filter(None, (self.rejections, self.waits, self.others, self.seats)))


def summarize(report: ReplayReport) -> tuple[str, ...]:
    """Return sentences about rejections and waits of all levels."""
    total = report.outcomes.get("classified", 0)
    rejected = sum(level.rejected for level in report.levels)
    waits = [level.waits for level in report.levels if level.waits is not None]
    sentences = [
        f"API Priority and Fairness rejected {format_count(rejected)} of {format_count(total)} requests"
        f" ({format_share(rejected, total)})."
        if rejected
        else f"API Priority and Fairness rejected none of {format_count(total)} requests."
    ]
    if waits:
        number, longest = sum(wait.number for wait in waits), max(wait.max for wait in waits)
        sentences.append(
            f"{format_count(number)} {'is' if number == 1 else 'are'} known to have waited in queues, up to"
            f" {format_duration(longest)}."
        )
    else:
        sentences.append("No wait in a queue is logged.")
    return tuple(sentences)


def summarize_levels(report: ReplayReport) -> tuple[tuple[LevelSummary, ...], int]:
    """Return (summaries of the levels with the most rejections and waits, number of omitted levels)."""
    levels = [level for level in report.levels if level.rejected or level.waits is not None]
    return tuple(map(_summarize_level, levels[:_MAX_NAMED_LEVELS])), len(levels[_MAX_NAMED_LEVELS:])


def describe_more_levels(number: int) -> str:
    """Return a sentence about the levels with rejections or waits that the summary omits."""
    return f"{count_noun(number, 'more priority level')} with rejections or waits"


def _summarize_level(level: LevelTraffic) -> LevelSummary:
    rejections = waits = seats = ""
    if level.rejected:
        users = [(user.name, format_count(user.rejected)) for user in level.rejected_users[:_MAX_NAMED_USERS]]
        others = level.rejected - sum(user.rejected for user in level.rejected_users[:_MAX_NAMED_USERS])
        rejections = f"{format_count(level.rejected)} rejected ({_list_users(users, others)})"
    if level.waits is not None:
        users = [(user.name, format_count(user.waits)) for user in level.waiting_users[:_MAX_NAMED_USERS]]
        others = level.waits.number - sum(user.waits for user in level.waiting_users[:_MAX_NAMED_USERS])
        waits = f"{format_count(level.waits.number)} waited up to {format_duration(level.waits.max)} ({_list_users(users, others)})"
    busy = [
        user
        for user in level.busy_users[:_MAX_NAMED_USERS]
        if user.seat_microseconds >= _BUSY_SHARE * level.seat_microseconds
    ]
    if busy:
        shares = [
            f"{user.name or '-'} {format_share(user.seat_microseconds, level.seat_microseconds)}" for user in busy
        ]
        seats = f"Executed seat-seconds: {', '.join(shares)}"
    return LevelSummary(level.name, rejections, waits, _compare_users(level), seats)


def _list_users(users: Sequence[tuple[str, str]], others: int) -> str:
    """Return a list such as `alice 12, bob 3, others 5`, without `others` if the parameter `others` is 0."""
    names = [f"{name or '-'} {figure}" for name, figure in users]
    return ", ".join((*names, f"others {format_count(others)}") if others else names)


def _compare_users(level: LevelTraffic) -> str:
    """Return a clause such as `3 other users hardly harmed: 0 of 90 requests rejected`, or "".

    The result is "" unless one user has most of the rejections and waits, and hardly any requests of
    the other users are rejected or wait.
    """
    first = next(iter(level.harmed_users), None)
    others = level.user_count - 1
    if first is None or not others or not is_mainly_harmed(first.harmed, level.harmed - first.harmed):
        return ""
    requests, harmed = level.requests - first.requests, level.harmed - first.harmed
    if not is_hardly_harmed(harmed, requests):
        return ""
    how = "rejected" if level.waits is None else "rejected or waiting over 500 ms"  # a log does not show shorter waits
    return f"{pluralize(others, 'other user')} hardly harmed: {format_count(harmed)} of {count_noun(requests, 'request')} {how}"


def describe_contradictions(report: ReplayReport) -> Iterator[str]:
    """Yield sentences about rejections in the log that are impossible with this configuration.

    Such a rejection shows that the server had a different configuration, so all other figures are doubtful.
    """
    contradictions = list(find_contradictions(report))
    if about_seats := [found for found in contradictions if found.is_about_seats]:
        levels = [
            f"{quote(found.level)} rejected {count_noun(found.rejected, 'request')} with at most {found.seats} of its"
            f" {count_noun(found.limit, 'seat')} in use"
            for found in about_seats
        ]
        yield (
            f"The log contradicts the default of {report.limits.server_concurrency} seats: {join_some(levels, _MAX_NAMED_LEVELS)}."
            f" If the servers had other objects than this configuration, first name those objects with -f. {FIND_SEATS}"
        )
    for found in islice((found for found in contradictions if not found.is_about_seats), _MAX_NAMED_LEVELS):
        yield (
            f"The log contradicts this configuration: priority level {quote(found.level)} rejected"
            f" {count_noun(found.rejected, 'request')}, but at most {found.seats} of its {count_noun(found.limit, 'seat')} were in"
            " use. Name the objects and the seats (--server-concurrency) that the servers had at that time, or use a log with"
            " all requests."
        )


def describe_coverage(
    report: ReplayReport, *, has_configuration: bool = True, has_period: bool = True
) -> Iterator[str]:
    """Yield sentences about the period, the configuration, and requests that were skipped or not classified.

    If `has_configuration` is false, the configuration is omitted. If `has_period` is false, times are omitted.
    """
    coverage = report.coverage
    requests, events = sum(report.outcomes.values()), sum(coverage.stages.values())
    selected = list(_describe_filter(report, has_period=has_period))
    if coverage.interrupted:
        part = f" Only the beginning of {coverage.beginning_of} was read." if coverage.beginning_of else ""
        yield f"PARTIAL RESULT: reading was interrupted.{part}"
    yield (
        f"{pluralize(coverage.files, 'file')}, {pluralize(len(report.servers), 'API server')}: {count_noun(events, 'event')} of"
        f" {count_noun(report.extent.requests, 'request')}{'' if selected or not has_period else _describe_period(report)}"
    )
    if has_configuration:
        yield f"Kubernetes {report.limits.release.name}, {report.limits.server_concurrency} seats of each API server"
        if report.configuration:
            yield _describe_configuration(report)
            yield from describe_changes(report)
    if selected:
        found = (
            f"{count_noun(requests, 'request')}{_describe_period(report) if has_period else ''}"
            if requests
            else _describe_no_match(report)
        )
        yield f"Only requests {join_words(selected, 'and')}: {found}"
    skipped = [
        f"{format_count(report.outcomes[outcome])} {text}"
        for outcome, text in _OUTCOMES.items()
        if report.outcomes.get(outcome)
    ]
    if skipped:
        yield f"Not classified: {join_words(skipped, 'and')}."
    if coverage.first_unreadable is not None:
        first = coverage.first_unreadable
        yield f"Unreadable: {pluralize(coverage.unreadable, 'line')}. First: {first.file}:{first.line}: {first.reason}"
    if report.verification is not None:
        yield from describe_verification(report.verification, has_counts=report.has_counts)
    for place in coverage.without_events[:_MAX_FILES_WITHOUT_EVENTS]:
        yield f"No audit events: {place.file}: {place.reason}"
    if len(coverage.without_events) > _MAX_FILES_WITHOUT_EVENTS:
        yield f"No audit events in {len(coverage.without_events) - _MAX_FILES_WITHOUT_EVENTS:,} more files."
    for place in coverage.damaged:
        yield f"Incomplete: {place.file}, from line {place.line}: {place.reason}"
    yield from map(str, coverage.omitted)
    if coverage.other_records:
        yield f"Skipped: {count_noun(coverage.other_records, 'record')} of other logs."
    if report.unanswered:
        yield (
            f"Not counted: {count_noun(report.unanswered, 'request')} with only a RequestReceived event (the request"
            " still runs, the log is cut off, or the audit policy omits the other stages)."
        )
    if report.copies:
        yield (
            f"Omitted: {count_noun(report.copies, 'event')} that repeat earlier events, not counting RequestReceived events."
        )
    if report.unreadable_waits:
        yield (
            f"Unknown queue wait: {count_noun(report.unreadable_waits, 'request')} whose annotation apf-queue-wait is not a"
            " duration."
        )
    if report.backwards:
        yield (
            f"The clock was changed: {count_noun(report.backwards, 'request')} with an end before the start. The"
            " duration of such a request is unknown."
        )


def describe_verification(found: Verification, *, has_counts: bool) -> Iterator[str]:
    """Yield sentences about requests for which this replay and the servers' own logs agree or differ."""
    if not found.compared:
        yield f"Verified: none of {count_noun(found.logged, 'request')} in the logs of the servers is in the audit log."
        return
    hint = "" if has_counts else " Without --metrics or --objects, each list counts as 1 seat."
    yield (
        f"Verified with the logs of the servers: {found.agreeing:,} of {count_noun(found.compared, 'request')} have the same"
        f" FlowSchema and priority level in the log and in this replay, and {found.same_seats:,} also the same number of seats.{hint}"
    )
    for logged, replayed, number, audit_id in found.differences[:_MAX_DIFFERENCES]:
        yield (
            f"Different: {count_noun(number, 'request')}, such as {quote(audit_id)}. On the server:"
            f" {_describe_decision(logged)}. In this replay: {_describe_decision(replayed)}"
        )
    if len(found.differences) > _MAX_DIFFERENCES:
        yield f"And {len(found.differences) - _MAX_DIFFERENCES:,} more kinds of differences; see --format json."


def _describe_decision(decision: Decision) -> str:
    if decision.flow_schema is None:
        return "not classified"
    return f"{decision.flow_schema} ({decision.priority_level})"


def _describe_configuration(report: ReplayReport) -> str:
    hint = "" if report.has_own_objects else ". Name the objects of your cluster with -f, --live or --cluster."
    return f"Configuration: {report.configuration}{hint}"


def describe_changes(report: ReplayReport) -> Iterator[str]:
    """Yield a sentence for each configuration that replaced an earlier one."""
    for time, name in report.later_configurations:
        yield f"Configuration from {format_moment(time, report.zone)}: {name}"


def _describe_no_match(report: ReplayReport) -> str:
    extent = report.extent
    start, end = format_second(extent.start, report.zone), format_moment(extent.end, report.zone)
    period = f"; the log covers {start} to {end}" if extent.requests else ""
    return f"no request is selected{period}"


def _describe_period(report: ReplayReport) -> str:
    if report.start is None or report.end is None:
        return ""
    return f", {format_period(report.start, report.end, report.zone)}"


def _describe_filter(report: ReplayReport, *, has_period: bool) -> Iterator[str]:
    selected = report.filter
    for word, moment in (("since", selected.since), ("before", selected.until)):
        if moment is not None and has_period:
            yield f"{word} {format_moment(moment.microseconds, report.zone)}"
    if selected.conditions:
        yield f"with {', '.join(map(str, selected.conditions))}"


def describe_limits_of_log(report: ReplayReport) -> Iterator[str]:
    """Yield sentences that explain the columns of the tables, and sentences about facts that the log does not show."""
    if not report.levels:
        return
    yield "REJECTED: 429 by API Priority and Fairness. WAITS: logged only for requests that take over 500 ms."
    yield " ".join((f"SEAT-SECONDS, PEAK: {_describe_seats(report)}", *_explain_marks(report)))
    if report.watches:
        yield (
            f"Seats exclude {count_noun(report.watches, 'watch', 'watches')}: the log does not show when a watch is initialized"
            " and releases its seats."
        )
    yield from _describe_origin_of_limits(report)
    overloaded = [
        f"{level.name} {format_peak(level)} of {format_attainable(level)}"
        for level in report.levels
        if is_overloaded(level)
    ]
    if overloaded:
        yield (
            f"PEAK above ATTAINABLE: {join_some(overloaded, _MAX_NAMED_LEVELS)}. Only a single request"
            " that needs more seats can exceed ATTAINABLE. Otherwise, the log does not show some waits, so they count as use of seats, or the"
            " servers have more than"
            f" {format_count(report.limits.server_concurrency)} seats (--server-concurrency), or had another configuration."
        )
    if len(report.servers) > 1:
        yield "PEAK: the highest peak of one API server. Each API server has its own seats."
    if report.without_groups:
        yield (
            f"The log does not contain the groups of {count_noun(report.without_groups, 'request')}. For"
            f" {format_count(report.uncertain)} of them, the FlowSchema depends on these groups, so the replay may name the wrong FlowSchema."
        )
    yield from describe_omissions(report.omissions)


def _explain_marks(report: ReplayReport) -> Iterator[str]:
    """Yield a sentence for each mark of numbers that may count waits (see `mark_waits`), with the first such number."""
    levels = {mark: level for level in reversed(report.levels) if (mark := mark_waits(level))}
    for mark, clause in (("≤", ""), ("~", ", and each list as 1 seat")):
        if mark in levels:
            yield f"{format_peak(levels[mark])}: waits that the log does not show count as use{clause}."


def _describe_origin_of_limits(report: ReplayReport) -> Iterator[str]:
    """Yield sentences about the limits in the tables, if several configurations were in force during the log.

    The first sentence names the last configuration, because its limits are in the tables. The second
    sentence names the levels that this configuration no longer has.
    """
    if not report.later_configurations:
        return
    time, name = report.later_configurations[-1]
    yield (
        f"NOMINAL, ATTAINABLE: limits of the configuration {name}, which is in force from {format_moment(time, report.zone)} on. A PEAK before this"
        " time belongs to limits of an earlier configuration."
    )
    known = {limits.name for limits in report.limits.levels}
    if gone := [level.name for level in report.levels if level.name not in known]:
        yield f"Removed levels, with their last limits in an earlier configuration: {join_some(gone, _MAX_NAMED_LEVELS)}."


def _describe_seats(report: ReplayReport) -> str:
    if not report.has_counts:
        return "estimates, 1 seat per executed request. To count the seats of lists, use --metrics or --objects."
    text = "estimates for executed requests, from object counts. Each write counts as 1 seat, because the log does not show how many watchers it notifies."
    if report.uncounted:
        text += f" A list counts as 1 seat if the number or size of its objects is unknown: {count_noun(report.uncounted, 'list')}."
    return text


def describe_imbalance(report: ReplayReport) -> Iterator[str]:
    """Yield a sentence about an API server that has much more than its even share of the load."""
    found = find_imbalance(report.by_server)
    if found is None:
        return
    shares = [
        f"{format_share(found.traffic.requests, found.requests)} of the requests",
        f"{format_share(found.traffic.seat_microseconds, found.seat_microseconds)} of the seat-seconds",
    ]
    if found.traffic.rejected:
        shares.append(f"{format_share(found.traffic.rejected, found.rejected)} of the rejections")
    yield (
        f"Imbalance: of {found.servers} API servers, {found.traffic.server} has {join_words(shares, 'and')}. The even share is"
        f" {format_share(1, found.servers)}. To spread the connections, use --goaway-chance of kube-apiserver, another algorithm of the load balancer, or"
        " a restart of the clients."
    )


def describe_more_groups(breakdown: Breakdown) -> str:
    """Return a sentence with the number of groups of --by that the table omits, or "" if it omits none."""
    more = breakdown.total - len(breakdown.groups)
    return f"{format_count(more)} more; show them with --top." if more else ""


def list_users(users: Sequence[UserTraffic], total: int) -> list[tuple[str, str]]:
    """Return (user name, percentage of the `total` requests that the user sent) pairs."""
    return [(user.name or "-", format_share(user.requests, total)) for user in users]


def is_overloaded(level: LevelTraffic) -> bool:
    """Return whether the estimated number of seats in use was greater than the attainable seats of the level."""
    return level.peak is not None and not level.limits.is_exempt and level.peak > level.limits.attainable


def format_peak(level: LevelTraffic) -> str:
    """Return the maximum seats in use at one API server, such as `39` or `≤39`, or `-` if no request was executed."""
    return "-" if level.peak is None else f"{mark_waits(level)}{format_count(level.peak)}"


def mark_waits(level: LevelTraffic) -> str:
    """Return the mark of numbers that may count waits that the log does not show, or an empty string.

    The mark is `≤`, or `~` if lists of an unknown number of objects may take more seats than they count.
    """
    if not level.may_count_waits:
        return ""
    return "~" if level.list_microseconds else "≤"


def format_attainable(level: LevelTraffic) -> str:
    """Return the attainable seats of a level as text, or `-` for an exempt level, which has no limit.

    The attainable seats are the current limit while only this level has more requests than seats.
    """
    return "-" if level.limits.is_exempt else format_count(level.limits.attainable)


def format_count(number: int) -> str:
    """Return a number with commas between thousands."""
    return f"{number:,}"


def format_share(part: int, total: int) -> str:
    """Return `part / total` as a percentage."""
    share = 100 * part / total if total else 0
    return f"{share:.0f}%" if share >= 1 or not part else "<1%"


def format_seat_seconds(microseconds: int) -> str:
    """Return seat-seconds with one decimal."""
    return f"{microseconds / 1e6:,.1f}"


def format_time(microseconds: int | None) -> str | None:
    """Return a time in RFC 3339. Return None if the time is None."""
    if microseconds is None:
        return None
    return convert(microseconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def format_clock(microseconds: int, has_date: bool, zone: tzinfo) -> str:
    """Return a time in a zone as `12-31 23:59` if `has_date` is true, or else as `23:59:59`."""
    return f"{convert(microseconds, zone):{'%m-%d %H:%M' if has_date else '%H:%M:%S'}}"


def format_second(microseconds: int, zone: tzinfo) -> str:
    """Return a time in a zone to the second, without the name of the zone."""
    return f"{convert(microseconds, zone):%Y-%m-%d %H:%M:%S}"


def format_moment(microseconds: int, zone: tzinfo) -> str:
    """Return a time in a zone to the second, such as `2026-11-22 05:49:20 UTC`."""
    return f"{format_second(microseconds, zone)} {name_zone(microseconds, zone)}"


def format_period(start: int, end: int, zone: tzinfo) -> str:
    """Return the start, the end and the length of a period. The end has no date if it is the date of the start."""
    return f"{describe_period(start, end, zone)} ({format_duration(end - start)})"
