"""How many seats one request takes: a list by the objects it loads, a change by the watchers it notifies.

Sources: `util/flowcontrol/request` (list_work_estimator.go, mutating_work_estimator.go, width.go, config.go).
`max_seats` and `request_bound` apply to every release with such bounds. The estimates are those of 1.34 and later, with
the feature gate SizeBasedListCostEstimate on, as by default; recorded from kube-apiserver 1.36.2.
"""

from __future__ import annotations

from math import ceil
from typing import Literal

from apflint.record import NamedTuple

MINIMUM_SEATS = 1
MAXIMUM_LIST_SEATS = 100
"""Maximum seats of a list at any level, from 1.34 on. For other releases, see `Release.max_list_seats`."""
MAXIMUM_MUTATING_SEATS = 10
"""Maximum seats of a change in its second phase, from 1.24 on. For other releases, see `Release.max_mutating_seats`."""
MAX_SEATS_PERCENT = 15
"""Percentage of the nominal limit of a level that one request may take (`priorityLevelMaxSeatsPercent`)."""
BYTES_PER_SEAT = 100_000
CACHE_BYTES = 1_000_000
"""Estimated maximum memory of a list from the watch cache, which is streamed."""
UNKNOWN_OBJECT_BYTES = 1_500_000
"""Size of an object before the server has measured any: the maximum of etcd."""
WATCHERS_PER_SEAT = 10
EVENT_NANOSECONDS = 5_000_000
"""Time for which a change holds a seat to notify ten watchers."""

Count = int | Literal["stale", "unknown"]
"""Number of objects of a resource; "stale" if the server has not counted recently, "unknown" if it has no such resource."""


class Seats(NamedTuple):
    """The seats that one request takes at its level."""

    initial: int
    """Seats while it executes."""
    final: int = 0
    """Seats after that, while watchers are notified."""
    nanoseconds: int = 0
    """Time for which the final seats are held."""

    @property
    def peak(self) -> int:
        """Seats that must be free before the request starts."""
        return max(self.initial, self.final)


def max_seats(nominal: int, hand_size: int | None) -> int:
    """Return the bound that a level sets on the seats of one request; `nominal` is the level's limit in seats.

    15% of the limit, rounded up, and at most the limit divided by the hand size; at least 1. A level without queues
    (`hand_size` None) has no bound: 0, as in the server (`util/flowcontrol/apf_controller.go`).
    """
    if hand_size is None:
        return 0
    return max(1, min(ceil(nominal * MAX_SEATS_PERCENT / 100), nominal // hand_size))


def request_bound(level_max_seats: int, overall: int) -> int:
    """Return the maximum seats of one request: the bound of its level (0: none), but no more than the overall maximum."""
    return overall if level_max_seats == 0 else min(level_max_seats, overall)


def estimate_list_seats(
    objects: Count,
    object_bytes: int,
    level_max_seats: int,
    *,
    limit: int = 0,
    selector: bool = False,
    from_cache: bool = True,
    single: bool = False,
) -> Seats:
    """Return the seats of a list, or of a watch that starts with the existing objects.

    `objects` is the number of stored objects of the resource in all namespaces; `object_bytes` their average size (0:
    unknown); `level_max_seats` the result of `max_seats`. `limit` is that of the request (0: none), `selector` whether it has
    a label or field selector, `from_cache` the result of `is_listed_from_cache`, `single` whether it names one object
    (`metadata.name=x`).
    """
    bound = request_bound(level_max_seats, MAXIMUM_LIST_SEATS)
    if objects == "unknown":  # probably a resource of an aggregated server, which does the work
        return Seats(MINIMUM_SEATS)
    if isinstance(objects, str):
        objects, object_bytes = 1_000_000_000, UNKNOWN_OBJECT_BYTES
    if object_bytes <= 0 and objects:
        object_bytes = UNKNOWN_OBJECT_BYTES
    loaded = min(limit, objects) if limit > 0 else objects
    if single:
        loaded = 1
    elif selector and not from_cache:  # etcd cannot select, so the server reads pages until it has enough objects
        loaded = max(loaded, objects // 2)
    size = loaded * object_bytes
    if from_cache:
        size = min(size, CACHE_BYTES)
    return Seats(min(max(-(-size // BYTES_PER_SEAT), MINIMUM_SEATS), bound))


def estimate_undecodable_list_seats(level_max_seats: int) -> Seats:
    """Return the seats of a list or watch whose query cannot be decoded (`limit=abc`): the maximum."""
    return Seats(request_bound(level_max_seats, MAXIMUM_LIST_SEATS))


def is_listed_from_cache(
    resource_version: str = "", match: str = "", *, limit: int = 0, continued: bool = False, consistent: bool = True
) -> bool:
    """Return whether the watch cache can answer a list (`ShouldDelegateListMeta` without snapshots).

    `match` is the request's `resourceVersionMatch`, `continued` whether it has `continue`, `consistent` whether the
    server can answer a read of the newest state from its cache (ConsistentListFromCache; it needs etcd 3.4.31, 3.5.13 or later).
    """
    if match == "Exact":
        return False
    if match == "NotOlderThan":
        return True
    if continued:
        return False
    if resource_version == "":
        return consistent
    return resource_version == "0" or limit == 0


def is_watch_list(resource_version: str = "", *, send_initial_events: bool = False) -> bool:
    """Return whether a watch starts with the existing objects and so takes the seats of a list from the cache, not 1."""
    return send_initial_events or resource_version in ("", "0")


def estimate_mutating_seats(watchers: int, level_max_seats: int) -> Seats:
    """Return the seats of create, update, patch and delete for a number of watchers that see the change.

    Up to 9 watchers require no seats. If the level bounds the seats, they are held longer instead. Not for deletecollection and
    tokens of service accounts, which take 1 seat.
    """
    if watchers < WATCHERS_PER_SEAT:
        return Seats(MINIMUM_SEATS)
    wanted = -(-watchers // WATCHERS_PER_SEAT)
    final = min(wanted, request_bound(level_max_seats, MAXIMUM_MUTATING_SEATS))
    return Seats(MINIMUM_SEATS, final, wanted * EVENT_NANOSECONDS // final)


MUTATING_VERBS = frozenset({"create", "update", "patch", "delete"})


def is_mutating(verb: str, resource: str = "", subresource: str = "") -> bool:
    """Return whether `estimate_mutating_seats` applies; the verb is that of the request's attributes, not the HTTP method."""
    return verb in MUTATING_VERBS and (resource, subresource) != ("serviceaccounts", "token")
