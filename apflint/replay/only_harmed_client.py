"""Thresholds that decide whether the rejections and waits at a level concern only one client."""

from __future__ import annotations

_MAIN_SHARE = 0.9
"""One client has most rejections and waits if it has at least this fraction of them."""
_MIN_HARMED = 10
"""Clients are compared only if this number of requests of one client was rejected, or has a logged wait."""
_HARDLY_SHARE = 0.01
"""Clients are hardly harmed if at most this fraction of their requests is rejected, or has a logged wait."""


def is_mainly_harmed(harmed: int, other_harmed: int) -> bool:
    """Return whether one client has at least `_MAIN_SHARE` of all harmed requests, and at least `_MIN_HARMED`.

    `harmed` is the number of harmed requests of the client, and `other_harmed` is that of all other
    clients. A harmed request was rejected, or has a logged wait.
    """
    return harmed >= max(_MAIN_SHARE * (harmed + other_harmed), _MIN_HARMED)


def is_hardly_harmed(harmed: int, requests: int) -> bool:
    """Return whether so few of the requests of a group of clients are harmed that the overload hardly affects it.

    `requests` is the number of requests of these clients, and `harmed` is the number of their harmed
    requests.
    """
    return harmed <= _HARDLY_SHARE * requests
