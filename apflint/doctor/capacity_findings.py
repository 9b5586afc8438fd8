"""The rules about levels that reject requests, or that have too few seats for their requests."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from apflint.doctor import metric_names
from apflint.doctor.evidence import MAX_NAMED, Diagnosis, about_level, describe_clients
from apflint.doctor.expected_levels import LEASE_LEVELS
from apflint.doctor.snapshot import level_of
from apflint.evaluate.seats import BYTES_PER_SEAT, CACHE_BYTES
from apflint.finding import Problem
from apflint.wording import join_some, pluralize

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.doctor.evidence import Evidence
    from apflint.doctor.level_state import LevelState
    from apflint.releases import Release

FEW_REJECTIONS = 0.001
"""Maximum proportion of rejected requests of a level that is reported with severity info."""
LONG_WAIT_SECONDS = 10.0
"""Minimum wait in seconds that counts as long. The value is also a bucket bound of the wait histogram.

A request waits for at most a quarter of its timeout: 15 s with the default timeout of 60 s.
"""
LEASE_WAIT_SECONDS = 1.0
"""Minimum wait in seconds that counts as long at the levels for leases. The value is also a bucket bound of the wait
histogram.

A component of the control plane renews its lease every 2 s. If no renewal succeeds for 10 s, the component gives up the
lease (default of `--leader-elect-renew-deadline`).
"""
MAX_LONG_WAITS = 0.01
"""Maximum proportion of requests with a long wait. APF802 reports levels above this proportion."""
MIN_SHORT_SECONDS = 20.0
"""Minimum time in seconds for which the demand of a reported level exceeds its seats.

Two adjustments of the limits take this time. Shorter times are bursts.
"""
_REASONS = {
    "queue-full": "queue-full: no seat was free, and the queue with the least estimated work among those of the flow was full.",
    "concurrency-limit": "concurrency-limit: the level has no queues, and no seat was free.",
    "time-out": "time-out: the requests waited for a quarter of their timeout (15 s by default), or their clients left.",
    "cancelled": "cancelled: the clients left while the requests waited.",
}


def requests_rejected(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF801: report levels that rejected requests."""
    for level in evidence.state.levels:
        if level.rejected:
            first = level.rejections[0] if level.rejections else None
            reasons: Counter[str] = Counter()
            schemas: Counter[str] = Counter()
            for rejection in level.rejections:
                reasons[rejection.reason] += rejection.requests
                schemas[rejection.schema] += rejection.requests
            counts = ", ".join(f"{count} {reason}" for reason, count in reasons.most_common())
            named = join_some([f"{schema} ({count})" for schema, count in schemas.most_common()], MAX_NAMED)
            is_rare = level.rejected <= FEW_REJECTIONS * (level.rejected + (level.dispatched or 0))
            yield about_level(
                level,
                Problem(
                    evidence.line(first.line) if first is not None else evidence.level(level),
                    f'"{level.name}" rejected {pluralize(level.rejected, "request")} {evidence.span}{counts and ": "}{counts}',
                    severity="info" if is_rare else None,
                    notes=(
                        *(_REASONS[reason] for reason in reasons if reason in _REASONS),
                        f"By FlowSchema: {named}."
                        if named
                        else "Only metrics show the reasons and the FlowSchemas of rejections.",
                        *describe_clients(evidence, level),
                    ),
                    help=_advise(first.reason if first is not None else ""),
                ),
            )


def _advise(reason: str) -> str:
    if reason == "queue-full":
        return "find out whether one client or all clients send too many requests, or whether the requests are slow"
    if reason == "concurrency-limit":
        return "use limitResponse Queue if the clients can wait, and find out whether the clients send too many requests, or slow ones"
    return "find out whether the requests of the level are slow or too many, or whether its clients have short timeouts"


def long_waits(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF802: report levels with many long waits."""
    for level in evidence.state.levels:
        if level.waits is None:
            continue
        limit = LEASE_WAIT_SECONDS if level.name in LEASE_LEVELS else LONG_WAIT_SECONDS
        long = level.waits.longer_than(limit)
        if long > MAX_LONG_WAITS * level.waits.requests:
            yield about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'{long} of {level.waits.requests} requests waited more than {limit:g} s at "{level.name}"',
                    notes=(
                        f"The requests were counted {evidence.span}.",
                        "A request waits for at most a quarter of its timeout, by default 15 s of 60 s. Then the server rejects the request.",
                        *describe_clients(evidence, level),
                    ),
                    help="before you change the level, find out whether its requests are slow or too many",
                ),
            )


def saturated_level(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF803: report levels that use all of their seats while other levels have idle seats."""
    limited = evidence.limited
    if any(map(_is_unknown, limited)):
        return
    all_idle, all_lendable = sum(map(_idle, limited)), sum(map(_lendable, limited))
    for level in evidence.lasting:
        if not _is_saturated(level):
            continue
        assert level.current is not None, "checked by _is_saturated"
        # The sums over all levels are computed once. Subtracting this level gives the sums over the other levels.
        idle, lendable = all_idle - _idle(level), all_lendable - _lendable(level)
        # Limit the idle seats to the unused seats of the server, because the sum of the current limits may exceed the
        # server's seats.
        if evidence.state.total is not None:
            used = sum(other.seats_in_use or 0 for other in evidence.state.levels if not other.is_deleted)
            idle = min(idle, evidence.state.total - used)
        if idle <= 0:
            continue
        if metric_names.name_in(metric_names.CURRENT, evidence.release) is None:
            cause = (
                f"In Kubernetes {evidence.release.name}, levels cannot borrow seats. Borrowing requires 1.26 or later."
            )
            advice = "increase the shares of the level"
        elif level.max is not None and level.current >= level.max:
            cause = f"The level has reached its max limit of {pluralize(level.max, 'seat')}, which follows from borrowingLimitPercent."
            advice = "increase borrowingLimitPercent or the shares of the level"
        elif not lendable:
            cause = "The other levels do not lend their idle seats, because their limits are already as low as their min limits."
            advice = f'increase lendablePercent of the levels with idle seats, or the shares of "{level.name}"'
        else:
            continue  # no finding: the next adjustment increases the limit, within 10 seconds
        yield about_level(
            level,
            Problem(
                evidence.level(level),
                f'"{level.name}" uses all of its seats ({level.current}) while other levels have {pluralize(idle, "idle seat")}',
                notes=(f"Waiting requests of the level: {level.waiting}.", cause),
                help=advice,
            ),
        )


def _is_unknown(level: LevelState) -> bool:
    return level.current is None or level.seats_in_use is None


def _idle(level: LevelState) -> int:
    return max(0, (level.current or 0) - (level.seats_in_use or 0))


def _lendable(level: LevelState) -> int:
    return max(0, (level.current or 0) - max(level.min or 0, level.seats_in_use or 0))


def _is_saturated(level: LevelState) -> bool:
    """Return whether requests wait because the level uses all of its seats."""
    return bool(
        level.waiting and level.current and level.seats_in_use is not None and level.seats_in_use >= level.current
    )


def demand_above_nominal(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF804: report levels whose demand exceeds their nominal limit."""
    earlier_demand = evidence.state.earlier_demand()
    for level in evidence.lasting:
        nominal, average, smoothed = level.nominal, level.demand_average, level.demand_smoothed
        if nominal is None or average is None or smoothed is None or level.current is None:
            continue
        if min(average, smoothed) > nominal and all(earlier[level.name] > nominal for earlier in earlier_demand):
            # With a limit of 0, the ratio of demand to limit is undefined. Then `seconds_short` has no meaning,
            # because it is computed from a histogram of this ratio.
            short = level.seconds_short if level.current else None
            is_short_burst = short is not None and short < MIN_SHORT_SECONDS
            duration = (
                []
                if short is None
                else [
                    f"For {short:.0f} of {level.seconds or 0:.0f} s, the demand exceeded the seats that the level had."
                ]
            )
            yield about_level(
                level,
                Problem(
                    evidence.level(level),
                    f'the smoothed demand of "{level.name}" is {smoothed:.1f} seats, and its nominal limit is {nominal}',
                    severity="info" if level.current >= smoothed or is_short_burst else None,
                    notes=(
                        (
                            "The demand includes the seats of waiting requests, so a queue inflates the demand: the level may need fewer"
                            " seats. After a burst, the smoothed demand halves in 5 minutes. In the last adjustment"
                            f" period (10 s), the average demand was {average:.1f} seats."
                        ),
                        *duration,
                        f"The level currently has {pluralize(level.current, 'seat')}, including borrowed seats.",
                    ),
                    help="check whether the offered load exceeds the nominal limit: apflint doctor shows this load for an overloaded level",
                ),
            )


def starved_lender(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF805: report levels whose requests wait because the level lends seats."""
    for level in evidence.lasting:
        if level.demand_average is not None and level.demand_average <= (level.current or 0):
            continue  # no finding: the requests arrived recently, and the next adjustment returns the lent seats
        if _is_saturated(level) and level.nominal is not None and level.current is not None:
            lent = level.nominal - level.current
            if lent > 0:
                waiting = (
                    "1 of its requests waits" if level.waiting == 1 else f"{level.waiting or 0:,} of its requests wait"
                )
                yield about_level(
                    level,
                    Problem(
                        evidence.level(level),
                        f'"{level.name}" lends {pluralize(lent, "seat")} while {waiting}',
                        notes=("The server takes lent seats back at the next adjustment, within 10 seconds.",),
                        help="decrease lendablePercent of the level if its requests cannot wait for 10 seconds",
                    ),
                )


def request_wider_than_level(evidence: Evidence) -> Iterator[Diagnosis]:
    """APF813: report requests that need more seats than the limit of their level."""
    metrics = evidence.state.server.last.metrics
    widths: dict[str, dict[float, float]] = {}
    lines: dict[str, int] = {}
    for sample in metrics.find(metric_names.WIDTHS) if metrics is not None else ():
        buckets = widths.setdefault(level_of(sample), {})
        bound = float(sample.labels["le"])
        buckets[bound] = buckets.get(bound, 0) + sample.value
        lines.setdefault(level_of(sample), sample.line)
    for level in evidence.limited:
        # The limit may have been the nominal limit when the requests arrived, so use the greater of both limits.
        limit = max(level.nominal or 0, level.current or 0)
        buckets = widths.get(level.name, {})
        # Requests above a bucket bound need more seats than the bound. If the bound is at least the limit of the level,
        # they certainly need more seats than the limit.
        bounds = [bound for bound in buckets if limit and bound >= limit]
        if not bounds:
            continue
        bound = min(bounds)
        wider = round(max(buckets.values()) - buckets[bound])
        if wider > 0:
            yield about_level(
                level,
                Problem(
                    evidence.line(lines[level.name]),
                    f'{pluralize(wider, "request")} needed more than {pluralize(round(bound), "seat")} at "{level.name}", which has {limit}',
                    notes=(
                        "The requests were counted since the start of the server.",
                        (
                            "If a request needs more seats than the limit, the server executes the request only while no other request of the level"
                            " executes."
                        ),
                        _describe_wide_requests(evidence.release),
                    ),
                    help="give the level more shares, or send the lists to a larger level, or use lists with a limit",
                ),
            )


def _describe_wide_requests(release: Release) -> str:
    """Return a sentence with the maximum number of seats that requests take in a release."""
    text = f"Large lists take up to {release.max_list_seats} seats"
    if release.estimates_seats_by_size:
        text += f" (up to {CACHE_BYTES // BYTES_PER_SEAT} if the server answers from the watch cache)"
    return f"{text}. Changes that many watchers observe take up to {release.max_mutating_seats} seats."
