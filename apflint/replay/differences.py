"""Differences between the clients of a period and of its baseline.

The difference of a client measures the evidence that its rate of requests has grown: N ln(N / E) - (N - E) for N
requests if E requests are expected, as in the G-test of statistics. A new client, or a busy client whose rate doubles,
has a large difference. Random variations cause small differences.

Seat-seconds are compared in the same way. The seat-seconds of both the period and the baseline are computed with the
durations in the period. Otherwise, a slow server would make all of its clients differ.
"""

from __future__ import annotations

from math import log
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple
from apflint.replay.client_traffic import Operation, Traffic

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from apflint.replay.client_traffic import ClientTraffic

_MINIMUM_EXPECTED = 0.5
"""Expected number of requests of a client that sent none in the baseline. For 0, the difference would be infinite."""
_MIN_EXECUTED = 3
"""Minimum number of executed requests in the period, and in the baseline, for comparing their durations."""
SLOW_FACTOR = 2.0
"""Minimum ratio of the durations in the period to those in the baseline for calling a client slower."""


class Difference(NamedTuple):
    """The requests of a client, or of one operation of a client, in a period compared with those in the baseline."""

    operation: Operation
    """The operation. For a client, the fields other than the user are those of the client's operation that differs most."""
    users: int
    """Number of user names with this pattern in both periods."""
    before: Traffic
    """The requests in the baseline."""
    now: Traffic
    """The requests in the period."""
    share: float
    """Share of this difference in the sum of all differences, from 0 to 1."""
    evidence: float = 0.0
    """N ln(N / E) - (N - E) for the requests. Twice this number is the G-test."""
    slower: int = 0
    """Additional seat-microseconds in the period, because operations that also occur in the baseline take longer."""
    is_operation_new: bool = False
    """Whether the baseline has no requests with `operation`."""

    @property
    def is_new(self) -> bool:
        """Return whether the baseline has no requests of this client or operation."""
        return not self.before.requests

    @property
    def first(self) -> int | None:
        """Return the time of the first of all requests in the baseline and the period, in microseconds since 1970.

        Return None if there are no requests.
        """
        return self.before.add(self.now).first

    @property
    def last(self) -> int | None:
        """Return the time of the last request in the baseline or the period, in microseconds since 1970.

        Return None if there are no requests.
        """
        return self.before.add(self.now).last


class Slowdown(NamedTuple):
    """Requests that occur in both the period and the baseline, and take longer in the period."""

    before: float
    """Mean of the durations in the baseline in microseconds, weighted by the numbers of requests in the period."""
    now: float
    """Mean duration in the period in microseconds."""
    slower: int
    """Number of clients whose requests take at least `SLOW_FACTOR` times as long."""
    compared: int
    """Number of clients with requests in both periods."""
    share: float
    """Share of the additional seat-seconds of the period that the longer durations explain, from 0 to 1."""

    @property
    def factor(self) -> float:
        """Return the mean duration in the period divided by the mean duration in the baseline."""
        return self.now / self.before if self.before else 1.0


class Differences(NamedTuple):
    """All differences between a period and its baseline."""

    clients: tuple[Difference, ...]
    """Clients with requests in the period, the largest difference first."""
    operations: tuple[Difference, ...]
    """Operations with requests in the period, the largest difference first."""
    gone: tuple[Difference, ...]
    """Clients with requests in the baseline only, in descending order of requests."""
    slowdown: Slowdown | None
    """How much slower requests are than in the baseline, or None if no requests can be compared."""


def find_differences(now: ClientTraffic, before: ClientTraffic, ratio: float) -> Differences:
    """Compare the clients of a period with those of its baseline.

    `ratio` is the length of the period divided by the length of the baseline.
    """
    names = _name_patterns(now.names, before.names)
    agents = _name_patterns(now.agents, before.agents)

    def rename(operation: Operation) -> Operation:
        return operation._replace(user=names[operation.user], agent=agents[operation.agent])

    pairs = {
        rename(operation): (before.operations.get(operation, Traffic()), now.operations.get(operation, Traffic()))
        for operation in sorted(now.operations.keys() | before.operations.keys())
    }
    numbers = {
        names[pattern]: len(now.names.get(pattern, frozenset()) | before.names.get(pattern, frozenset()))
        for pattern in names
    }
    operations = _compare(pairs, lambda operation: operation, numbers, ratio)
    clients = _compare(pairs, lambda operation: Operation(operation.user, "", "", ""), numbers, ratio)
    most: dict[str, Difference] = {}
    for found in operations:
        most.setdefault(found.operation.user, found)
    clients = [
        found._replace(
            operation=most[found.operation.user].operation, is_operation_new=most[found.operation.user].is_new
        )
        for found in clients
    ]
    gone = [found for found in clients if not found.now.requests]
    return Differences(
        tuple(found for found in clients if found.now.requests),
        tuple(found for found in operations if found.now.requests),
        tuple(sorted(gone, key=lambda found: (-found.before.requests, found.operation.user))),
        _find_slowdown(pairs, clients, ratio),
    )


def _name_patterns(*sides: Mapping[str, frozenset[str]]) -> dict[str, str]:
    """Return the text that reports show for each pattern of names.

    Each of `sides` maps patterns to the names that match them. The text is the pattern, or the name if only one name
    matches.
    """
    members: dict[str, frozenset[str]] = {}
    for side in sides:
        for pattern, found in side.items():
            members[pattern] = members.get(pattern, frozenset()) | found
    return {pattern: next(iter(found)) if len(found) == 1 else pattern for pattern, found in members.items()}


def _compare(
    pairs: Mapping[Operation, tuple[Traffic, Traffic]],
    group: Callable[[Operation], Operation],
    numbers: Mapping[str, int],
    ratio: float,
) -> list[Difference]:
    """Return how the traffic of each group of operations differs between the baseline and the period.

    The group with the largest difference is first. `pairs` contains the traffic of each operation in
    the baseline and in the period. `group` returns the group of an operation. `numbers` maps each
    pattern of user names to the number of matching user names. `ratio` is the length of the period
    divided by the length of the baseline.
    """
    sums: dict[Operation, tuple[Traffic, Traffic, int]] = {}
    for operation, (before, now) in pairs.items():
        key = group(operation)
        old, new, slower = sums.get(key, (Traffic(), Traffic(), 0))
        sums[key] = old.add(before), new.add(now), slower + _measure_slowdown(before, now)
    by_requests = {key: _measure(new.requests, old.requests, ratio) for key, (old, new, _) in sums.items()}
    by_seats = {
        key: by_requests[key] * new.seat_microseconds / new.executed if new.executed else 0.0
        for key, (_, new, _) in sums.items()
    }
    total_requests, total_seats = sum(by_requests.values()), sum(by_seats.values())
    found = [
        Difference(
            key,
            numbers[key.user],
            old,
            new,
            (_divide(by_requests[key], total_requests) + _divide(by_seats[key], total_seats)) / 2,
            by_requests[key],
            slower,
        )
        for key, (old, new, slower) in sums.items()
    ]
    return sorted(found, key=lambda difference: (-difference.share, -difference.now.requests, difference.operation))


def _measure(now: int, before: int, ratio: float) -> float:
    """Return a number that is larger the more surely the rate of requests has grown, or 0 if it has not grown.

    `now` and `before` are the numbers of requests in the period and in the baseline. `ratio` is the
    length of the period divided by the length of the baseline. The result is N ln(N / E) - (N - E). N
    is `now`, and E is the number that is expected at an unchanged rate: `before` times `ratio`, where
    `before` counts as at least `_MINIMUM_EXPECTED`.
    """
    expected = max(before, _MINIMUM_EXPECTED) * ratio
    return now * log(now / expected) - (now - expected) if now > expected else 0.0


def _divide(part: float, total: float) -> float:
    return part / total if total else 0.0


def _is_comparable(before: Traffic, now: Traffic) -> bool:
    """Return whether both periods have enough executed requests of an operation to compare their durations."""
    return min(before.executed, now.executed) >= _MIN_EXECUTED


def _measure_slowdown(before: Traffic, now: Traffic) -> int:
    """Return how many more seat-microseconds the requests of an operation take now than in the baseline.

    The baseline value is scaled to the number of executed requests now. Return 0 if the requests do not
    take longer, or if one of the periods has too few executed requests for a comparison.
    """
    if not _is_comparable(before, now):
        return 0
    return max(0, now.seat_microseconds - before.seat_microseconds * now.executed // before.executed)


def _find_slowdown(
    pairs: Mapping[Operation, tuple[Traffic, Traffic]], clients: Iterable[Difference], ratio: float
) -> Slowdown | None:
    """Return how much longer the same requests take in the period than in the baseline.

    The comparison includes only operations that have enough executed requests in both the baseline and
    the period. Return None if there is no such operation. The mean duration in the baseline is weighted
    by the number of requests that each operation has in the period.
    """
    known = {operation: sides for operation, sides in pairs.items() if _is_comparable(*sides)}
    if not known:
        return None
    by_client: dict[str, list[float]] = {}
    for operation, (before, now) in known.items():
        sums = by_client.setdefault(operation.user, [0.0, 0.0, 0.0])
        sums[0] += before.seat_microseconds * now.executed / before.executed
        sums[1] += now.seat_microseconds
        sums[2] += now.executed
    expected, taken, executed = map(sum, zip(*by_client.values(), strict=True))
    slower = sum(after >= SLOW_FACTOR * old for old, after, _ in by_client.values())
    grown = sum(max(0.0, found.now.seat_microseconds - found.before.seat_microseconds * ratio) for found in clients)
    additional = sum(found.slower for found in clients)
    return Slowdown(expected / executed, taken / executed, slower, len(by_client), min(1.0, _divide(additional, grown)))
