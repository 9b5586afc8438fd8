"""Imputes missing service times: draws them at random from the service times of similar requests.

Two kinds of requests need an imputed service time. A rejected request has no service time. The logged duration of a
request that took at most half a second may contain a wait in a queue, which the log does not show. Both kinds get the
service time of a similar request (`RequestKind`) that did not wait and arrived at nearly the same time. The requests
must be close in time, because service times change during an incident.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.replay.classification import Assignment
    from apflint.replay.events import AttributeTuple

_NEIGHBORS = 50
"""Maximum number of earlier requests, and maximum number of later requests, from which a service time is drawn."""
_MAX_SAMPLES = 20_000
"""Maximum number of samples of one kind. If there are more, every second sample is dropped."""


class RequestKind(NamedTuple):
    """Attributes of requests whose service times are similar. An empty string stands for all values."""

    level: str = ""
    verb: str = ""
    user: str = ""
    resource: str = ""
    subresource: str = ""
    api_group: str = ""


class _Samples:
    """Service times of requests in the order of their arrival."""

    __slots__ = ("_left_out", "_step", "received", "times")

    def __init__(self) -> None:
        self.received = array("q")
        self.times = array("q")
        self._step, self._left_out = 1, 0

    def add(self, received: int, time: int) -> None:
        self._left_out += 1
        if self._left_out < self._step:
            return
        self._left_out = 0
        self.received.append(received)
        self.times.append(time)
        if len(self.times) > _MAX_SAMPLES:
            self.received, self.times, self._step = self.received[::2], self.times[::2], 2 * self._step

    def draw(self, received: int, quantile: float) -> int:
        """Return the service time of a random request among those that arrived just before and after `received`.

        `quantile` is a random number from 0 to 1 that selects the request.
        """
        middle = bisect_left(self.received, received)
        first, end = max(0, middle - _NEIGHBORS), min(len(self.times), middle + _NEIGHBORS)
        return self.times[first + int(quantile * (end - first))]


class ServiceTimes:
    """Service times in microseconds of each kind of requests."""

    def __init__(self, tuples: Sequence[AttributeTuple], assignments: Sequence[Assignment]) -> None:
        self._kinds = [
            tuple(_list_kinds(attributes, assignment.priority_level or ""))
            for attributes, assignment in zip(tuples, assignments, strict=True)
        ]
        self._samples: dict[tuple[int, bool], _Samples] = {}
        """The samples of each attribute tuple. The keys are pairs (index of the tuple, whether the samples are exact).
        """
        self._exact: dict[RequestKind, _Samples] = {}
        self._rough: dict[RequestKind, _Samples] = {}
        self._merged: dict[tuple[RequestKind, bool], _Samples] = {}
        """Cache of the samples of more general kinds than those in `_exact` and `_rough`.

        Only few requests need the more general kinds.
        """

    def add(self, attributes: int, received: int, time: int, *, is_exact: bool) -> None:
        """Add the service time of a request. `attributes` is the index of the attribute tuple of the request.

        `is_exact` is false if `time` may contain a wait.
        """
        found = self._samples.get((attributes, is_exact))
        if found is None:
            samples = self._exact if is_exact else self._rough
            found = self._samples[attributes, is_exact] = samples.setdefault(self._kinds[attributes][0], _Samples())
        found.add(received, time)

    def list_times(self, attributes: int) -> tuple[int, ...]:
        """Return sorted service times of requests that have the same level, user, verb and resource.

        `attributes` is the index of an attribute tuple of these requests.

        Requests that waited are omitted, unless all requests waited. If there are more than `_MAX_SAMPLES` service
        times, the result has only some of them.
        """
        kind = self._kinds[attributes][0]
        found = self._exact.get(kind) or self._rough.get(kind)
        return () if found is None else tuple(sorted(found.times))

    def draw(self, attributes: int, received: int, quantile: float) -> int | None:
        """Return the service time of a logged request that is as similar as possible to a given request.

        `attributes` is the index of the attribute tuple of the given request. The result is from a request
        that arrived shortly before or after `received`. `quantile` is a random number from 0 to 1 that
        selects this request. Return None if the log does not show any service time.
        """
        for kind in self._kinds[attributes]:
            for is_exact in (True, False):
                if (found := self._find(kind, is_exact=is_exact)) is not None:
                    return found.draw(received, quantile)
        return None

    def draw_exact(self, attributes: int, received: int, quantile: float) -> int | None:
        """Return the service time of a similar request that did not wait, or None if there is none.

        A similar request has the same level, verb, user and resource or, if there is no such request, the
        same level and verb.
        """
        for kind in self._kinds[attributes][:2]:
            if (found := self._find(kind, is_exact=True)) is not None:
                return found.draw(received, quantile)
        return None

    def _find(self, kind: RequestKind, *, is_exact: bool) -> _Samples | None:
        """Return the service times of the requests of a kind, or None if there are none.

        If `is_exact` is true, return only service times that contain no wait. Otherwise, return only
        service times that may contain a wait.
        """
        samples = self._exact if is_exact else self._rough
        if kind in samples:
            return samples[kind]
        if kind.user or kind.resource:  # this is the narrowest kind, so there are no other samples to merge
            return None
        found = self._merged.get((kind, is_exact))
        if found is None:
            found = self._merged[kind, is_exact] = _merge(
                [
                    special
                    for name, special in samples.items()
                    if kind.level in ("", name.level) and kind.verb in ("", name.verb)
                ]
            )
        return found if found.times else None


def _merge(parts: Sequence[_Samples]) -> _Samples:
    """Return the samples of several kinds of requests as one series in the order of their arrival."""
    merged = _Samples()
    for received, time in sorted(pair for part in parts for pair in zip(part.received, part.times, strict=True)):
        merged.add(received, time)
    return merged


def _list_kinds(attributes: AttributeTuple, level: str) -> Iterator[RequestKind]:
    """Yield four `RequestKind` keys under which the service times of a request are collected.

    The first kind has the level, verb, user and resource. Later kinds cover more requests: all requests
    of the level with this verb, all requests of the level, and all requests.
    """
    verb, user = attributes.verb, attributes.user or ""
    yield RequestKind(level, verb, user, attributes.resource, attributes.subresource, attributes.api_group)
    yield RequestKind(level, verb)
    yield RequestKind(level)
    yield RequestKind()
