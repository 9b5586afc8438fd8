"""How many seats one request takes: a list by what it loads, a change by how many watchers it will wake.

Facts: Kubernetes `util/flowcontrol/request` (list_work_estimator.go, mutating_work_estimator.go, width.go, config.go).
`max_seats` and `request_bound` hold for every release that has such bounds. The estimates are those of 1.34 and later, with
the feature gate SizeBasedListCostEstimate on, as by default; recorded from kube-apiserver 1.36.2.
"""

from __future__ import annotations

from math import ceil
from typing import Literal

from apflint.record import NamedTuple

MINIMUM_SEATS = 1
MAXIMUM_LIST_SEATS = 100
"""No list takes more, whatever its level would let it. From 1.34 on; `Release.max_list_seats` has the other releases."""
MAXIMUM_MUTATING_SEATS = 10
"""No change takes more in its second phase. From 1.24 on; `Release.max_mutating_seats` has the other releases."""
MAX_SEATS_PERCENT = 15
"""The share of a level's nominal limit that one request may take (`priorityLevelMaxSeatsPercent`)."""
BYTES_PER_SEAT = 100_000
CACHE_BYTES = 1_000_000
"""What a list from the watch cache is thought to hold in memory at once, at most: it is streamed."""
UNKNOWN_OBJECT_BYTES = 1_500_000
"""The size of an object where the server has not measured any yet: the most that etcd takes."""
WATCHERS_PER_SEAT = 10
EVENT_NANOSECONDS = 5_000_000
"""How long a seat of a change is held for sending the events of ten watchers."""

Count = int | Literal["stale", "unknown"]
"""Objects of a resource; "stale" when the server has not counted lately, "unknown" when it holds no such resource."""


class Seats(NamedTuple):
    """What one request takes of its level."""

    initial: int
    """Seats while it executes."""
    final: int = 0
    """Seats after that, while the watchers are told of the change."""
    nanoseconds: int = 0
    """How long the final seats are held."""

    @property
    def most(self) -> int:
        """The seats that must be free before it starts."""
        return max(self.initial, self.final)


def max_seats(nominal: int, hand_size: int | None) -> int:
    """Return the bound that a level sets on the seats of one request; `nominal` is the level's limit in seats.

    15 percent of the limit, rounded up, yet so few that requests of one flow can fill its hand side by side; at least
    1. A level without queues (`hand_size` None) has no bound of its own: 0, as the server has it.
    (`util/flowcontrol/apf_controller.go`, see `Release.bounds_seats_by_level`.)
    """
    if hand_size is None:
        return 0
    return max(1, min(ceil(nominal * MAX_SEATS_PERCENT / 100), nominal // hand_size))


def request_bound(level_max_seats: int, overall: int) -> int:
    """Return the maximum seats of one request: the bound of its level (0: none), but no more than the overall maximum."""
    return overall if level_max_seats == 0 else min(level_max_seats, overall)


def list_seats(
    objects: Count,
    object_bytes: int,
    level_max_seats: int,
    *,
    limit: int = 0,
    selector: bool = False,
    from_cache: bool = True,
    single: bool = False,
) -> Seats:
    """The seats of a list, or of a watch that starts with what exists.

    `objects` is how many objects of the resource the server stores, in all namespaces; `object_bytes` their average
    size (0: not known); `level_max_seats` what `max_seats` says (0: no bound). `limit` is the request's (0: none),
    `selector` whether it has a label or field selector, `from_cache` whether the watch cache can answer it (see
    `listed_from_cache`), `single` whether it names one object (`metadata.name=x`).
    """
    bound = request_bound(level_max_seats, MAXIMUM_LIST_SEATS)
    if objects == "unknown":  # the resource of an aggregated server, most likely: little work for this one
        return Seats(MINIMUM_SEATS)
    if isinstance(objects, str):
        objects, object_bytes = 1_000_000_000, UNKNOWN_OBJECT_BYTES
    if object_bytes <= 0 and objects:
        object_bytes = UNKNOWN_OBJECT_BYTES
    loaded = min(limit, objects) if limit > 0 else objects
    if single:
        loaded = 1
    elif selector and not from_cache:  # etcd cannot select, so pages are read until enough is found
        loaded = max(loaded, objects // 2)
    size = loaded * object_bytes
    if from_cache:
        size = min(size, CACHE_BYTES)
    return Seats(min(max(-(-size // BYTES_PER_SEAT), MINIMUM_SEATS), bound))


def undecodable_list_seats(level_max_seats: int) -> Seats:
    """The seats of a list or watch whose query cannot be decoded (`limit=abc`): the most there are."""
    return Seats(request_bound(level_max_seats, MAXIMUM_LIST_SEATS))


def listed_from_cache(
    resource_version: str = "", match: str = "", *, limit: int = 0, continued: bool = False, consistent: bool = True
) -> bool:
    """Whether the watch cache can answer a list (`ShouldDelegateListMeta` without snapshots).

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


def watch_lists(resource_version: str = "", *, send_initial_events: bool = False) -> bool:
    """Whether a watch starts with all that exists and so costs what a list from the cache costs; otherwise 1 seat."""
    return send_initial_events or resource_version in ("", "0")


def mutating_seats(watchers: int, level_max_seats: int) -> Seats:
    """The seats of create, update, patch and delete; `watchers` are those that will see the change.

    Up to 9 watchers cost nothing. When the level bounds the seats, they are held for longer instead.
    Not for deletecollection and not for a service account's tokens: these take 1 seat and no more.
    """
    if watchers < WATCHERS_PER_SEAT:
        return Seats(MINIMUM_SEATS)
    wanted = -(-watchers // WATCHERS_PER_SEAT)
    final = min(wanted, request_bound(level_max_seats, MAXIMUM_MUTATING_SEATS))
    return Seats(MINIMUM_SEATS, final, wanted * EVENT_NANOSECONDS // final)


MUTATING_VERBS = frozenset({"create", "update", "patch", "delete"})


def is_mutating(verb: str, resource: str = "", subresource: str = "") -> bool:
    """Whether `mutating_seats` applies; the verb is that of the request's attributes, not the HTTP method."""
    return verb in MUTATING_VERBS and (resource, subresource) != ("serviceaccounts", "token")
