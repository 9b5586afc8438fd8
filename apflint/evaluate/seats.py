"""Estimates of the seats of one request, from the objects that the server loads for a list, or the watchers of a changed object.

Sources: `util/flowcontrol/request` (list_work_estimator.go, mutating_work_estimator.go, width.go, config.go), compared between
the release branches 1.22 to 1.36 of kubernetes/apiserver. Feature gates have their defaults. The estimates for 1.36 were compared
with kube-apiserver 1.36.2.

| releases | seats of a list | seats of a watch |
|---|---|---|
| 1.18 to 1.22 | 1 | 1 |
| 1.23 to 1.33 | 1 for each 100 objects that the server reads, at most 10 | 1; in 1.32, see below |
| 1.34 | 1 for each 100 kB that the server loads, at most 100 | 1; see below |
| from 1.35 on | as in 1.34 | 1; see below |

In 1.32 and from 1.34 on, a watch with `sendInitialEvents` takes as many seats as a list from the watch cache. From 1.35
on, the same applies to a watch without `resourceVersion`, and to a watch with `resourceVersion=0`.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, Literal

from apflint.evaluate.resources import is_stored
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from apflint.evaluate.limits import LevelLimits
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.releases import Release

MINIMUM_SEATS = 1
MAXIMUM_LIST_SEATS = 100
"""Maximum seats of one list request at any level, from 1.34 on. For other releases, see `Release.max_list_seats`."""
_MAXIMUM_MUTATING_SEATS = 10
"""Maximum seats of a mutating request while watchers are notified (its second phase), from 1.24 on.

For other releases, see `Release.max_mutating_seats`.
"""
MAX_SEATS_PERCENT = 15
"""Percentage of the nominal limit of a level that one request may take (`priorityLevelMaxSeatsPercent`)."""
_OBJECTS_PER_SEAT = 100
"""Objects for each seat of a list, until 1.33. Source: `ObjectsPerSeat` in config.go."""
BYTES_PER_SEAT = 100_000
"""Bytes for each seat of a list, from 1.34 on. Source: `seatsBasedOnObjectSize` in list_work_estimator.go."""
CACHE_BYTES = 1_000_000
"""Maximum memory in bytes that the server assumes for a list from the watch cache, because it streams the response."""
UNKNOWN_OBJECT_BYTES = 1_500_000
"""Assumed size of an object before the server has measured objects: the maximum size in etcd."""
_WATCHERS_PER_SEAT = 10
_EVENT_NANOSECONDS = 5_000_000
"""Time for which a mutating request holds a seat to notify WATCHERS_PER_SEAT watchers."""

Count = int | Literal["stale", "unknown"]
"""Number of objects of a resource. "stale": the server has not counted the objects recently. "unknown": the server stores none."""


class ListOptions(NamedTuple):
    """The query parameters that determine the seats of a list or watch request."""

    limit: int = 0
    """Value of the parameter `limit`, or 0 if absent."""
    resource_version: str = ""
    match: str = ""
    """The parameter `resourceVersionMatch`."""
    continued: bool = False
    """Whether the request has the parameter `continue`."""
    selector: bool = False
    """Whether the request has a label or field selector."""
    single: bool = False
    """Whether the request is for a single object (`fieldSelector=metadata.name=x`)."""
    send_initial_events: bool = False
    is_valid: bool = True
    """False if the server cannot decode the parameters, as in `limit=abc`."""


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
        """Seats that must be free before the request starts: the maximum of `initial` and `final`.

        The request holds this number of seats both during and after its execution.
        """
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
    """Return the lower of two maximums of the seats of one request.

    A `level_max_seats` of 0 means that the level sets no maximum.
    """
    return overall if level_max_seats == 0 else min(level_max_seats, overall)


def estimate_seats(
    release: Release,
    verb: str,
    options: ListOptions,
    objects: Count,
    object_bytes: int,
    level_max_seats: int,
    *,
    consistent: bool = True,
) -> int:
    """Return the seats of a request with the verb `list` or `watch` in a release.

    `objects` is the number of stored objects of the resource in all namespaces, and `object_bytes` is their average size in
    bytes (0 if unknown). `level_max_seats` is the result of `max_seats`. For `consistent`, see
    `is_listed_from_cache`.
    """
    if not release.estimates_seats or (verb == "watch" and not release.estimates_watches):
        return MINIMUM_SEATS
    bound = request_bound(level_max_seats, release.max_list_seats)
    if options.single and not release.estimates_seats_by_size:
        return MINIMUM_SEATS
    if not options.is_valid:  # the server first assumes the maximum number of seats, and later answers 400
        return bound
    if verb == "watch" and not is_watch_list(release, options):
        return MINIMUM_SEATS
    from_cache = verb == "watch" or is_listed_from_cache(release, options, consistent=consistent)
    if release.estimates_seats_by_size:
        return estimate_by_size(options, objects, object_bytes, bound, from_cache=from_cache)
    return estimate_by_count(options, objects, bound, from_cache=from_cache)


def estimate_by_count(options: ListOptions, objects: Count, bound: int, *, from_cache: bool) -> int:
    """Return the seats of a valid list request, at most `bound`, in releases that count objects.

    For a list from the watch cache, the server counts all objects of the resource. For a list from etcd, the server
    counts each object of the page (`limit`) twice, because it reads and decodes the object. If the list from etcd has a
    selector, the server counts all objects plus the objects of the page, because it may have to read all objects to
    fill the page.
    """
    if objects == "unknown":
        return MINIMUM_SEATS
    if isinstance(objects, str):
        return bound
    loaded = min(options.limit or objects, objects)
    read = objects if from_cache else objects + loaded if options.selector else 2 * loaded
    return min(max(-(-read // _OBJECTS_PER_SEAT), MINIMUM_SEATS), bound)


def estimate_by_size(
    options: ListOptions, objects: Count, object_bytes: int, bound: int = MAXIMUM_LIST_SEATS, *, from_cache: bool
) -> int:
    """Return the seats of a valid list request, at most `bound`, in releases that estimate the memory for the objects.

    `object_bytes` is the average size of an object in bytes, 0 if unknown.
    """
    if objects == "unknown":  # the server assumes that an aggregated API server does the work, so one seat is enough
        return MINIMUM_SEATS
    if isinstance(objects, str):
        objects, object_bytes = 1_000_000_000, UNKNOWN_OBJECT_BYTES
    if object_bytes <= 0 and objects:
        object_bytes = UNKNOWN_OBJECT_BYTES
    loaded = min(options.limit or objects, objects)
    if options.single:
        loaded = 1
    elif options.selector and not from_cache:  # etcd cannot select objects, so the server may read many pages
        loaded = max(loaded, objects // 2)
    size = loaded * object_bytes
    if from_cache:
        size = min(size, CACHE_BYTES)
    return min(max(-(-size // BYTES_PER_SEAT), MINIMUM_SEATS), bound)


def is_listed_from_cache(release: Release, options: ListOptions, *, consistent: bool = True) -> bool:
    """Return whether the server assumes that the watch cache answers a list request.

    `consistent` is whether the watch cache can answer consistent reads (from 1.31 on). Such reads require etcd 3.4.31,
    3.5.13 or later. Sources: `shouldListFromStorage` in list_work_estimator.go, from 1.33 on `ShouldDelegateListMeta`
    in storage/cacher/delegator/interface.go. The feature gate ConsistentListFromCache is on by default from 1.31 on.
    """
    version, match, minor = options.resource_version, options.match, release.minor
    is_exact = options.limit > 0 and version not in ("", "0")
    if minor >= 33 and match == "NotOlderThan":
        return True
    if options.continued or match == "Exact" or (minor >= 27 and match not in ("", "NotOlderThan")):
        return False
    if minor >= 31:
        return consistent if version == "" else not (is_exact and match == "")
    return version != "" and not is_exact


def is_watch_list(release: Release, options: ListOptions) -> bool:
    """Return whether a watch takes as many seats as a list from the cache.

    This is so if the watch first sends the existing objects. Sources: `estimate` in
    list_work_estimator.go, and for watches without `resourceVersion`, from 1.35 on,
    kubernetes/kubernetes pull request 134601.
    """
    is_unversioned = options.resource_version in ("", "0")
    return options.send_initial_events or (is_unversioned and release.estimates_unversioned_watches)


def bound_seats(release: Release, info: RequestInfo, options: ListOptions, level: LevelLimits) -> int:
    """Return the maximum seats of a request at a level of a release, for any number of objects and watchers.

    The result is 1 for resources without stored objects, such as SubjectAccessReviews, because the
    server counts no objects and notifies no watchers of these resources. `options` are the options of a
    list or watch.

    For an unknown resource, the result assumes that kube-apiserver stores its objects. If an aggregated
    API server serves the resource, a request takes only 1 seat.
    """
    has_objects = is_stored(info.resource, info.api_group)
    if info.verb in ("list", "watch") and info.is_resource_request:
        objects: Count = "stale" if has_objects else "unknown"
        maximum = level.max_seats or 0
        return max(
            estimate_seats(release, info.verb, options, objects, 0, maximum, consistent=consistent)
            for consistent in (True, False)
        )
    if info.is_resource_request and has_objects and is_mutating(info.verb, info.resource, info.subresource):
        return level.max_mutating_seats
    return MINIMUM_SEATS


def estimate_mutating_seats(watchers: int, level_max_seats: int) -> Seats:
    """Return the seats of a create, update, patch or delete request if `watchers` watchers are notified of the change.

    The request holds final seats after its execution, while watchers are notified. Up to 9 watchers need no final
    seats. If the level allows fewer final seats than the watchers need, the request holds the final seats longer.

    Do not call this for deletecollection requests and for requests for service account tokens, which always take
    1 seat.
    """
    if watchers < _WATCHERS_PER_SEAT:
        return Seats(MINIMUM_SEATS)
    wanted = -(-watchers // _WATCHERS_PER_SEAT)
    final = min(wanted, request_bound(level_max_seats, _MAXIMUM_MUTATING_SEATS))
    return Seats(MINIMUM_SEATS, final, wanted * _EVENT_NANOSECONDS // final)


_MUTATING_VERBS = frozenset({"create", "update", "patch", "delete"})


def is_mutating(verb: str, resource: str = "", subresource: str = "") -> bool:
    """Return whether a request is a create, update, patch or delete request, but not a request for a token.

    `verb` is `RequestInfo.verb`, not the HTTP method. A request for a service account token creates
    `serviceaccounts/token`, and always takes 1 seat.
    """
    return verb in _MUTATING_VERBS and (resource, subresource) != ("serviceaccounts", "token")
