"""The report of `apflint replay --baseline`: what is different in a period of a log, the largest difference first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from apflint.named_tuple import NamedTuple
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
from apflint.output.console import shorten
from apflint.output.json_text import SCHEMA
from apflint.output.replay.json import replay_json
from apflint.output.replay.report import explain_numbers
from apflint.output.replay.wording import (
    describe_contradictions,
    describe_coverage,
    describe_imbalance,
    describe_limits_of_log,
    format_clock,
    format_count,
    format_moment,
    format_period,
    format_share,
    format_time,
)
from apflint.replay.client_traffic import Traffic
from apflint.replay.differences import SLOW_FACTOR
from apflint.wording import count_noun, format_duration, join_some

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.output.blocks import Block, Cell
    from apflint.output.console import Style
    from apflint.replay.differences import Difference, Slowdown
    from apflint.replay.period_comparison import ComparedPeriod, PeriodComparison
    from apflint.replay.statistics import LevelTraffic, ReplayReport

TITLE = "Differences from the baseline"
"""Title of the Markdown and HTML documents."""
_MAX_SENTENCES = 5
"""Maximum number of clients that sentences describe. The table has more."""
_MIN_SHARE = 0.02
"""Minimum share in all differences for describing a client in a sentence."""
_MIN_FACTOR = 1.5
"""Minimum growth of a client's rate, as a factor, for describing the client in a sentence."""
_MIN_EVIDENCE = 10.0
"""Minimum `Difference.evidence` for describing a client in a sentence. Of 10,000 clients with random requests, none
reaches it."""
_MIN_GONE_REQUESTS = 5.0
"""Minimum number of requests expected in the period for calling a client gone. Fewer may be missing by chance."""
_MAX_GONE = 5
_MAX_LEVELS = 3
"""Maximum number of priority levels whose rejections sentences describe."""
_MAX_NAME_CELLS = 100
"""Maximum width of a name in sentences, and in tables if there is no terminal, in cells."""

_RATES_NOTE = (
    "Numbers before an arrow are those of the baseline. REQUESTS/S: requests per second. X: this rate divided by the"
    " rate in the baseline. SEATS: seat-seconds per second, which is the average number of seats in use. A wait that the log"
    " does not show counts as use."
)
_DIFFERENCE_NOTE = (
    "DIFFERENCE: how much this row contributes to the increases of all rows. Rows are sorted by this value,"
    " which grows with the requests, the seats and the logarithm of X (G-test). If the server only becomes slower, the"
    " value does not change."
)
_PATTERN_NOTE = "* in a name: a generated part, such as the name of a node or a pod."


class _Rates(NamedTuple):
    """The mean numbers of requests and seat-seconds in one second of the period or of the baseline."""

    requests: float
    seats: float
    """Seat-seconds for each second: the mean number of seats in use."""


class _PeriodWriter:
    """Writes sentences and tables about the differences between a period and its baseline."""

    def __init__(self, comparison: PeriodComparison, top: int, style: Style) -> None:
        self._comparison = comparison
        self._now, self._before = comparison.now, comparison.before
        self._top = top
        self._style = style
        self._zone = self._now.report.zone
        self._is_long = self._now.period.end - self._before.period.start > 86_400_000_000

    def list_sentences(self) -> list[str]:
        """Return the sentences about differences, the largest first."""
        differences = self._comparison.differences
        clients = [
            found
            for found in differences.clients
            if found.share >= _MIN_SHARE and found.evidence >= _MIN_EVIDENCE and self._factor(found) >= _MIN_FACTOR
        ][:_MAX_SENTENCES]
        ranked = [(found.share, self._describe_client(found)) for found in clients]
        slowdown = differences.slowdown
        if slowdown is not None and slowdown.factor >= SLOW_FACTOR:
            # The share of a client measures both requests and seat-seconds. The share of a slowdown measures
            # only seat-seconds. To make the two shares comparable, halve the share of the slowdown.
            ranked.append((slowdown.share / 2, self._describe_slowdown(slowdown)))
        ranked.sort(key=lambda item: -item[0])
        sentences = [sentence for _, sentence in ranked]
        if not clients:
            sentences.append("No client sends clearly more requests than in the baseline.")
        sentences += self._describe_other_new_clients(clients)
        sentences += self._describe_changes()
        levels = list(self._describe_levels())
        sentences += levels[:_MAX_LEVELS]
        if (more := len(levels) - _MAX_LEVELS) > 0:
            sentences.append(f"{count_noun(more, 'more priority level')} with more rejections.")
        sentences += describe_imbalance(self._now.report)
        if gone := self._list_gone():
            sentences.append(f"Without requests now: {join_some(gone, _MAX_GONE)}.")
        return sentences

    def _describe_other_new_clients(self, described: Sequence[Difference]) -> Iterator[str]:
        """Yield a sentence about the new clients that are not in `described`."""
        others = [found for found in self._comparison.differences.clients if found.is_new and found not in described]
        if others:
            requests = sum(found.now.requests for found in others)
            share = format_share(requests, self._total(self._now.report).requests)
            rate = _format_rate(requests / self._now.period.seconds)
            what = "more new client" if any(found.is_new for found in described) else "new client"
            yield f"{count_noun(len(others), what)}: {rate} requests/s ({share} of all)."

    def _factor(self, found: Difference) -> float:
        return float("inf") if found.is_new else found.now.requests / (found.before.requests * self._comparison.ratio)

    def _describe_client(self, found: Difference) -> str:
        """Return a sentence about one client, such as `alice is new: 12 requests/s (40% of all), ... mostly list pods.`."""
        now, before = self._rate(found.now, self._now), self._rate(found.before, self._before)
        share = format_share(found.now.requests, self._total(self._now.report).requests)
        is_plural = found.users > 1
        if found.is_new:
            verb = "are" if is_plural else "is"
            parts = [f"{_name_client(found)} {verb} new: {_format_rate(now.requests)} requests/s ({share} of all)"]
        else:
            verb, factor = "send" if is_plural else "sends", _format_factor(self._factor(found))
            rates = _format_step(before.requests, now.requests)
            parts = [f"{_name_client(found)} {verb} {factor} as many requests: {rates}/s ({share} of all)"]
        if found.now.executed:
            seats = _format_rate(now.seats) if found.is_new else _format_step(before.seats, now.seats)
            parts.append(f"{seats} seats in use")
        if found.now.rejected:
            old = f" ({format_count(found.before.rejected)} in the baseline)" if found.before.rejected else ""
            parts.append(f"{format_count(found.now.rejected)} rejected{old}")
        is_new_operation = found.is_operation_new and not found.is_new
        parts.append(f"mostly {_describe_operation(found)}{' (not in the baseline)' if is_new_operation else ''}")
        if found.is_new and found.now.first is not None:
            parts.append(f"first seen {self._clock(found.now.first)}")
        return f"{', '.join(parts)}."

    def _describe_slowdown(self, slowdown: Slowdown) -> str:
        return (
            f"Requests that also occur in the baseline take {_format_factor(slowdown.factor)} as long:"
            f" {format_duration(slowdown.before)} -> {format_duration(slowdown.now)} on average. The requests of"
            f" {slowdown.slower} of {count_noun(slowdown.compared, 'client')} take at least {SLOW_FACTOR:.0f} times as long. Possible causes are more requests of a"
            " client, slow storage, a slow webhook, and waits that the log does not show: apflint doctor shows"
            " which of these is the cause."
        )

    def _describe_changes(self) -> Iterator[str]:
        """Yield a sentence for each change of the configuration between the start of the baseline and the end of the period."""
        for time, name in self._now.report.later_configurations:
            if self._before.period.start <= time < self._now.period.end:
                yield f"The configuration changed at {format_moment(time, self._zone)}: {name}."

    def _describe_levels(self) -> Iterator[str]:
        """Yield a sentence for each priority level that rejects a larger part of its requests than in the baseline."""
        for level in self._now.report.levels:
            before = _sum_level(_find_level(self._before.report, level.name))
            # Compare products instead of quotients, because the baseline may have no requests.
            if level.rejected * before.requests > _MIN_FACTOR * before.rejected * level.requests or (
                level.rejected and not before.rejected
            ):
                baseline = f"{format_count(before.rejected)} of {format_count(before.requests)}"
                yield (
                    f"Priority level {level.name} rejected {format_count(level.rejected)} of"
                    f" {count_noun(level.requests, 'request')} ({format_share(level.rejected, level.requests)}). In the baseline,"
                    f" it rejected {baseline if before.rejected else 'none'}."
                )

    def _list_gone(self) -> list[str]:
        ratio = self._comparison.ratio
        return [
            f"{_name_client(found)} ({_format_rate(self._rate(found.before, self._before).requests)}/s in the baseline)"
            for found in self._comparison.differences.gone
            if found.before.requests * ratio >= _MIN_GONE_REQUESTS
        ]

    def list_periods(self) -> list[tuple[str, str]]:
        """Return a pair (label, description) for the period, and then a pair for the baseline.

        The description has the time range, the numbers of requests and rejections, and the mean seats in
        use.
        """
        return [("Period", self._describe_period(self._now)), ("Baseline", self._describe_period(self._before))]

    def _describe_period(self, side: ComparedPeriod) -> str:
        total = self._total(side.report)
        rates = self._rate(total, side)
        rejected = f"{format_count(total.rejected)} rejected" if total.rejected else "none rejected"
        period = format_period(side.period.start, side.period.end, self._zone)
        return (
            f"{period}: {count_noun(total.requests, 'request')}, {_format_rate(rates.requests)}/s, {rejected},"
            f" {_format_rate(rates.seats)} seats in use"
        )

    @staticmethod
    def _total(report: ReplayReport) -> Traffic:
        levels = report.levels
        return Traffic(
            sum(level.requests for level in levels),
            sum(level.rejected for level in levels),
            0,
            sum(level.seat_microseconds for level in levels),
        )

    @staticmethod
    def _rate(traffic: Traffic, side: ComparedPeriod) -> _Rates:
        seconds = side.period.seconds
        return _Rates(traffic.requests / seconds, traffic.seat_microseconds / 1e6 / seconds)

    def _clock(self, time: int) -> str:
        return format_clock(time, self._is_long, self._zone)

    def tabulate_clients(self) -> Table:
        """Return the table of clients, the largest difference first."""
        found = self._comparison.differences.clients
        return self._tabulate("Clients", ["User"], [[_name_client(one)] for one in found], found)

    def tabulate_operations(self) -> Table:
        """Return the table of verbs, resources and user agents, the largest difference first."""
        found = self._comparison.differences.operations
        has_agents = any(one.operation.agent for one in found)
        titles = ["User", "Request", *(["User agent"] if has_agents else [])]
        names = [(_name_client(one), _name_request(one), one.operation.agent)[: len(titles)] for one in found]
        return self._tabulate("Verbs, resources and user agents", titles, names, found)

    def _tabulate(
        self, title: str, names: list[str], keys: Sequence[Sequence[str]], found: Sequence[Difference]
    ) -> Table:
        rows: list[Sequence[Cell]] = []
        for cells, one in zip(keys[: self._top], found, strict=False):
            now, before = self._rate(one.now, self._now), self._rate(one.before, self._before)
            first, last = one.first, one.last
            rows.append(
                (
                    *(self._shorten(cell) for cell in cells),
                    _format_step(before.requests, now.requests),
                    "new" if one.is_new else _format_factor(self._factor(one)),
                    _format_step(before.seats, now.seats),
                    _format_ratio(now.seats, before.seats),
                    Text(format_count(one.now.rejected), "error" if one.now.rejected else ""),
                    format_share(round(1_000_000 * one.share), 1_000_000),
                    "-" if first is None else self._clock(first),
                    "-" if last is None else self._clock(last),
                )
            )
        columns = [
            *(Column(name, "name", is_optional=name == "User agent") for name in names),
            *map(Column, ("Requests/s", "x", "Seats")),
            Column("Seats x", is_optional=True),
            Column("Rejected", is_optional=len(names) > 1),
            *(Column(name, is_optional=True) for name in ("Difference", "First seen", "Last seen")),
        ]
        more = len(found) - len(rows)
        notes = [f"{format_count(more)} more; show them with --top."] if more > 0 else []
        return Table(columns, rows, title, notes, keys=len(names))

    def _shorten(self, name: str) -> str:
        return shorten(name, _MAX_NAME_CELLS) if self._style.width is None and name else name or "-"

    def tabulate_levels(self) -> Table:
        """Return the table of levels with requests, rejections, waits and seats in the period and in the baseline."""
        names = dict.fromkeys(level.name for side in (self._now, self._before) for level in side.report.levels)
        rows: list[Sequence[Cell]] = []
        for name in names:
            now, before = _find_level(self._now.report, name), _find_level(self._before.report, name)
            new, old = self._rate(_sum_level(now), self._now), self._rate(_sum_level(before), self._before)
            rejected = [0 if level is None else level.rejected for level in (before, now)]
            rows.append(
                (
                    Text(name, "error" if rejected[1] else "bold"),
                    _format_step(old.requests, new.requests),
                    _format_ratio(new.requests, old.requests),
                    _format_step(old.seats, new.seats),
                    _format_ratio(new.seats, old.seats),
                    _join_step(*map(format_count, rejected)),
                    _join_step(*(_format_p99(level) for level in (before, now))),
                )
            )
        columns = [Column("Priority level", "name"), *map(Column, ("Requests/s", "x", "Seats"))]
        columns += [Column("Seats x", is_optional=True), Column("Rejected"), Column("Time p99")]
        return Table(columns, rows, "Priority levels")

    def tabulate_servers(self) -> Table:
        """Return the table of API servers. The table is empty if there is only one server."""
        total = self._total(self._now.report).requests
        before = {found.server: found for found in self._before.report.by_server}
        rows: list[Sequence[Cell]] = []
        for server in self._now.report.by_server:
            old = before.get(server.server)
            traffic = [
                Traffic(side.requests, side.rejected, 0, side.seat_microseconds) if side is not None else Traffic()
                for side in (old, server)
            ]
            then, now = self._rate(traffic[0], self._before), self._rate(traffic[1], self._now)
            rows.append(
                (
                    server.server,
                    _format_step(then.requests, now.requests),
                    format_share(server.requests, total),
                    _format_step(then.seats, now.seats),
                    _join_step(*(format_count(side.rejected) for side in traffic)),
                )
            )
        titles = ("Requests/s", "Share", "Seats", "Rejected")
        return Table((Column("API server", "name"), *map(Column, titles)), rows, "API servers")


def report_periods(comparison: PeriodComparison, style: Style, top: int = 10) -> Iterator[Block]:
    """Yield the differences as sentences, and then as tables with at most `top` rows."""
    writer = _PeriodWriter(comparison, top, style)
    now = comparison.now.report
    sentences = writer.list_sentences()
    yield Only(DOCUMENTS, [Heading(TITLE, 1)])
    yield Prose([*describe_contradictions(now)], "error")
    yield Only(TEXT, [Group([Prose([sentences[0]], "bold"), Prose(sentences[1:])])])
    yield Only(DOCUMENTS, [Bullets([Text(sentences[0], "bold"), *sentences[1:]])])
    yield Facts(writer.list_periods())
    yield Bullets(list(describe_coverage(now, has_period=False)), marker="")
    yield writer.tabulate_clients()
    yield writer.tabulate_operations()
    yield writer.tabulate_levels()
    yield writer.tabulate_servers()
    yield Only(HTML, _draw(comparison))
    yield from explain_numbers(
        [
            _RATES_NOTE,
            _DIFFERENCE_NOTE,
            _PATTERN_NOTE,
            *describe_limits_of_log(now),
        ]
    )


def _draw(comparison: PeriodComparison) -> Iterator[Block]:
    """Yield the charts of the priority levels in the period and in the baseline."""
    from apflint.output.replay.charts import draw_sides  # imported here, because only HTML reports contain charts

    sides = (("Period", comparison.now.report), ("Baseline", comparison.before.report))
    levels = dict.fromkeys(level.name for _, report in sides for level in report.levels)
    return draw_sides(list(levels), sides)


def _name_client(found: Difference) -> str:
    users = f" ({found.users} users)" if found.users > 1 else ""
    return f"{shorten(found.operation.user, _MAX_NAME_CELLS) or '-'}{users}"


def _name_request(found: Difference) -> str:
    return f"{found.operation.verb} {found.operation.resource}"


def _describe_operation(found: Difference) -> str:
    agent = f" with {shorten(found.operation.agent, _MAX_NAME_CELLS)}" if found.operation.agent else ""
    return f"{shorten(_name_request(found), _MAX_NAME_CELLS)}{agent}"


def _find_level(report: ReplayReport, name: str) -> LevelTraffic | None:
    return next((level for level in report.levels if level.name == name), None)


def _sum_level(level: LevelTraffic | None) -> Traffic:
    return Traffic() if level is None else Traffic(level.requests, level.rejected, 0, level.seat_microseconds)


def _format_p99(level: LevelTraffic | None) -> str:
    return "-" if level is None or level.durations is None else format_duration(level.durations.p99)


def _format_rate(value: float) -> str:
    """Return a number with two or three digits, such as `0.05`, `5.8` or `255`."""
    if value >= 10 or not value:
        return f"{value:,.0f}"
    if value >= 1:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 0.01 else "<0.01"


def _format_factor(value: float) -> str:
    """Return a factor such as `1.7x`, `17x` or `0.25x`."""
    return f"{_format_rate(value)}x"


def _format_ratio(now: float, before: float) -> str:
    if not before:
        return "new" if now else "-"
    return _format_factor(now / before)


def _format_step(before: float, now: float) -> str:
    return _join_step(_format_rate(before), _format_rate(now))


def _join_step(before: str, now: str) -> str:
    return before if before == now else f"{before} -> {now}"


def periods_json(comparison: PeriodComparison, top: int = 10) -> dict[str, object]:
    """Return the object that `replay --baseline --format json` prints.

    The object has at most `top` clients and operations.
    """
    found, ratio = comparison.differences, comparison.ratio
    slowdown = found.slowdown
    return {
        "schema": SCHEMA,
        "configuration": comparison.now.report.configuration,
        "period": _period_json(comparison.now),
        "baseline": _period_json(comparison.before),
        "clientCount": len(found.clients),
        "clients": [_difference_json(one, comparison, ratio) for one in found.clients[:top]],
        "operationCount": len(found.operations),
        "operations": [_difference_json(one, comparison, ratio) for one in found.operations[:top]],
        "goneCount": len(found.gone),
        "gone": [_difference_json(one, comparison, ratio) for one in found.gone[:top]],
        "slowdown": None
        if slowdown is None
        else {
            "meanBefore": slowdown.before / 1e6,
            "meanNow": slowdown.now / 1e6,
            "factor": slowdown.factor,
            "slowerClients": slowdown.slower,
            "comparedClients": slowdown.compared,
        },
        "now": replay_json(comparison.now.report),
        "before": replay_json(comparison.before.report),
    }


def _period_json(side: ComparedPeriod) -> dict[str, object]:
    return {
        "start": format_time(side.period.start),
        "end": format_time(side.period.end),
        "seconds": side.period.seconds,
    }


def _difference_json(found: Difference, comparison: PeriodComparison, ratio: float) -> dict[str, object]:
    operation = found.operation
    seats = [
        traffic.seat_microseconds / 1e6 / side.period.seconds
        for traffic, side in ((found.before, comparison.before), (found.now, comparison.now))
    ]
    return {
        "user": operation.user,
        "users": found.users,
        "userAgent": operation.agent,
        "verb": operation.verb,
        "resource": operation.resource,
        "new": found.is_new,
        "newOperation": found.is_operation_new or found.is_new,
        "difference": found.share,
        "requestsFactor": None if found.is_new else found.now.requests / (found.before.requests * ratio),
        "seatSecondsFactor": seats[1] / seats[0] if seats[0] else None,
        "before": _traffic_json(found.before, comparison.before),
        "now": _traffic_json(found.now, comparison.now),
        "firstSeen": format_time(found.first),
        "lastSeen": format_time(found.last),
    }


def _traffic_json(traffic: Traffic, side: ComparedPeriod) -> dict[str, Any]:
    seconds = side.period.seconds
    return {
        "requests": traffic.requests,
        "requestsPerSecond": traffic.requests / seconds,
        "rejected": traffic.rejected,
        "seatSeconds": traffic.seat_microseconds / 1e6,
        "meanSeats": traffic.seat_microseconds / 1e6 / seconds,
    }
