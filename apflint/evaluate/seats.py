"""Estimates of the seats of one request, from the objects that a list loads or the watchers that a change notifies.

Sources: `util/flowcontrol/request` (list_work_estimator.go, mutating_work_estimator.go, width.go, config.go).
`max_seats` and `request_bound` apply to every release that limits the seats of a request. The estimates apply to 1.34 and
later with the feature gate SizeBasedListCostEstimate, which is on by default. Compared with kube-apiserver 1.36.2.
"""

from __future__ import annotations

from math import ceil
from typing import Literal

from apflint.record import NamedTuple

MINIMUM_SEATS = 1
MAXIMUM_LIST_SEATS = 100
"""Maximum seats of one list request at any level, from 1.34 on. For other releases, see `Release.max_list_seats`."""
MAXIMUM_MUTATING_SEATS = 10
"""Maximum seats of a mutating request while watchers are notified (its second phase), from 1.24 on.

For other releases, see `Release.max_mutating_seats`.
"""
MAX_SEATS_PERCENT = 15
"""Percentage of the nominal limit of a level that one request may take (`priorityLevelMaxSeatsPercent`)."""
BYTES_PER_SEAT = 100_000
CACHE_BYTES = 1_000_000
"""Maximum memory in bytes that the server assumes for a list from the watch cache. The response is streamed."""
UNKNOWN_OBJECT_BYTES = 1_500_000
"""Assumed size of an object before the server has measured objects: the maximum size in etcd."""
WATCHERS_PER_SEAT = 10
EVENT_NANOSECONDS = 5_000_000
"""Time for which a mutating request holds a seat to notify WATCHERS_PER_SEAT watchers."""

Count = int | Literal["stale", "unknown"]
"""Number of objects of a resource. "stale": not counted recently by the server. "unknown": not stored by the server."""


class Seats(NamedTuple):
    """The seats that one request takes at its level."""

    initial: int
    """Seats while the request executes."""
    final: int = 0
    """Seats after the execution, while watchers are notified."""
    nanoseconds: int = 0
    """Time for which the request holds the final seats."""

    @property
    def peak(self) -> int:
        """Seats that must be free before the request starts. The request takes them for both phases."""
        return max(self.initial, self.final)


def max_seats(nominal: int, hand_size: int | None) -> int:
    """Return the maximum seats that a level allows one request, or 0 if the level sets no maximum.

    `nominal` is the nominal limit of the level in seats. The maximum is 15% of `nominal`, rounded up, but at most
    `nominal // hand_size` and at least 1. Levels without queues (`hand_size` is None) set no maximum. Source:
    `util/flowcontrol/apf_controller.go`.
    """
    if hand_size is None:
        return 0
    return max(1, min(ceil(nominal * MAX_SEATS_PERCENT / 100), nominal // hand_size))


def request_bound(level_max_seats: int, overall: int) -> int:
    """Return the maximum seats of one request: `overall`, or `level_max_seats` if that is lower and not 0."""
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
    """Return the seats of a list request, or of a watch request that starts with the existing objects.

    `objects` is the number of stored objects of the resource in all namespaces, and `object_bytes` is their average size (0
    if unknown). `level_max_seats` is the result of `max_seats`, and `from_cache` the result of `is_listed_from_cache`. The
    other parameters describe the request: `limit` (0 if absent), whether it has a label or field `selector`, and whether it
    is for a `single` object (`metadata.name=x`).
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
    """Return the seats of a list or watch with invalid list options (`limit=abc`). The server assumes the maximum."""
    return Seats(request_bound(level_max_seats, MAXIMUM_LIST_SEATS))


def is_listed_from_cache(
    resource_version: str = "", match: str = "", *, limit: int = 0, continued: bool = False, consistent: bool = True
) -> bool:
    """Return whether the watch cache can answer a list request (`ShouldDelegateListMeta` without snapshots).

    `match` is the parameter `resourceVersionMatch`. `continued` is whether the request has the parameter `continue`.
    `consistent` is whether the cache can serve the newest state (ConsistentListFromCache, with etcd 3.4.31, 3.5.13 or later).
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
    """Return whether a watch starts with the existing objects. Such a watch takes as many seats as a list from the cache."""
    return send_initial_events or resource_version in ("", "0")


def estimate_mutating_seats(watchers: int, level_max_seats: int) -> Seats:
    """Return the seats of a create, update, patch or delete request if `watchers` watchers are notified of the change.

    Up to 9 watchers need no final seats. If the level allows fewer seats than needed, the request holds the seats longer.
    Requests for deletecollection or tokens of service accounts always take 1 seat.
    """
    if watchers < WATCHERS_PER_SEAT:
        return Seats(MINIMUM_SEATS)
    wanted = -(-watchers // WATCHERS_PER_SEAT)
    final = min(wanted, request_bound(level_max_seats, MAXIMUM_MUTATING_SEATS))
    return Seats(MINIMUM_SEATS, final, wanted * EVENT_NANOSECONDS // final)


MUTATING_VERBS = frozenset({"create", "update", "patch", "delete"})


def is_mutating(verb: str, resource: str = "", subresource: str = "") -> bool:
    """Return whether `estimate_mutating_seats` applies to a request. `verb` is `RequestInfo.verb`, not the HTTP method."""
    return verb in MUTATING_VERBS and (resource, subresource) != ("serviceaccounts", "token")
