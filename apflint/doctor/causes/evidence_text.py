"""Sentences about the load of a level, with figures, units, and values for comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.doctor.causes.client_ranking import name_shares, rank_clients
from apflint.doctor.causes.measurements import MIN_BASELINE
from apflint.wording import count_noun, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.doctor.causes.measurements import LevelLoad, ServerLoad, Sum
    from apflint.doctor.causes.overloaded_levels import Overload
    from apflint.doctor.dumps import RequestRow

_MIN_ROWS = 2
"""Minimum number of requests in a dump. The proportions of clients in a smaller dump are not shown."""


def seconds_text(seconds: float) -> str:
    """Return a duration such as `43 ms` or `5.5 s`."""
    return format_duration(seconds * 1e6)


def seats_text(seats: float) -> str:
    """Return a text such as `12 seats` or `2.5 seats`. Only a number below 10 can have a decimal place."""
    text = f"{seats:,.0f}" if seats >= 10 or seats == round(seats) else f"{seats:.1f}"
    return f"{text} seat" if text == "1" else f"{text} seats"


def offered_seats(server: ServerLoad, level: LevelLoad) -> float | None:
    """Return the offered load in seats: arriving requests per second x execution seconds x seats, or None if unknown.

    Unlike the demand that the server reports, the offered load includes rejected requests, and does not grow with the
    queue.
    """
    rate, service = server.rate(level.arrived), level.service_seconds
    if rate is None or service is None:
        return None
    return rate * service * (level.width.mean or 1)


def describe_span(server: ServerLoad) -> str:
    """Return a phrase for the time in which requests were counted, such as `in 10 s`."""
    return server.state.span


def describe_harm(server: ServerLoad, overload: Overload) -> str:
    """Return a sentence about the rejected, waiting and delayed requests of a level."""
    level = overload.load
    parts = []
    if overload.rejected:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in level.reasons().most_common())
        share = f"{level.rejected_share:.0%}" if level.rejected_share >= 0.01 else "less than 1%"
        detail = f"{share}; {reasons}" if reasons else share
        parts.append(f"{count_noun(overload.rejected, 'request')} rejected {describe_span(server)} ({detail})")
    if overload.waiting:
        parts.append(f"{count_noun(overload.waiting, 'request')} waiting")
    if overload.delay and overload.waiting:
        parts.append(f"the estimated wait is up to {seconds_text(overload.delay)}")
    text = ", ".join(parts) or "requests are delayed"
    return f'"{level.name}": {text}.'


def describe_offered(server: ServerLoad, level: LevelLoad) -> Iterator[str]:
    """Yield a sentence with the offered load and the limits of a level, or nothing if the offered load is unknown."""
    offered = offered_seats(server, level)
    if offered is None or level.service_seconds is None:
        return
    rate, width = server.rate(level.arrived) or 0, level.width.mean or 1
    product = f"{rate:,.1f} requests/s x {seconds_text(level.service_seconds)}"
    product += f" x {seats_text(width)}" if round(width, 1) != 1 else ""
    mean = ", the mean since the start" if server.is_since_start else ""
    yield f"Offered load: {product} = {seats_text(offered)}{mean}. {describe_limits(level)}"


def describe_limits(level: LevelLoad) -> str:
    """Return a sentence with the limits of a level."""
    state = level.state
    parts = [f"{name} {value}" for name, value in (("nominal", state.nominal), ("max", state.max)) if value is not None]
    now = "unknown" if state.current is None else str(state.current)
    return f'Limit of "{level.name}" now: {now} ({", ".join(parts)}).' if parts else f'Limit of "{level.name}": {now}.'


def describe_service(level: LevelLoad) -> Iterator[str]:
    """Yield a sentence with the present and, if known, the earlier mean execution time of a level.

    Yield nothing if the present mean is unknown.
    """
    now = level.executions.mean
    if now is not None:
        yield f'Requests of "{level.name}" run {seconds_text(now)} on average{compare(level.earlier_executions)}.'


def is_as_fast_as_before(level: LevelLoad) -> bool:
    """Return whether the mean execution time of a level is at most twice the earlier mean.

    Return False if a mean is unknown, or if there are fewer than `MIN_BASELINE` earlier executions.
    """
    now, before = level.executions.mean, level.earlier_executions
    return now is not None and before.mean is not None and before.number >= MIN_BASELINE and now <= 2 * before.mean


def compare(earlier: Sum) -> str:
    """Return a phrase with the earlier mean, such as ` (before: 43 ms, the mean of 200 since the start)`.

    Callers append the phrase to the current mean. Return an empty string if there are too few earlier observations.
    """
    if earlier.mean is None or earlier.number < MIN_BASELINE:
        return ""
    return f" (before: {seconds_text(earlier.mean)}, the mean of {earlier.number:,.0f} {earlier.span})"


def describe_clients(rows: Sequence[RequestRow], noun: str = "Seats in the dump") -> Iterator[str]:
    """Yield a sentence such as `Seats in the dump: a 80% and b 20%.`, which begins with `noun`.

    Yield nothing if the dump has fewer than two requests, or does not show the users.
    """
    shares = name_shares(rank_clients(rows)) if len(rows) >= _MIN_ROWS else None
    if shares is not None:
        yield f"{noun}: {shares}."
