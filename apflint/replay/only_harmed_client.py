"""The bounds above which one client is the only one whose requests are rejected or wait."""

from __future__ import annotations

_MAIN_SHARE = 0.9
"""One client has most rejections and waits if it has at least this fraction of them."""
_MIN_HARMED = 10
"""Clients are compared only if this number of requests of one client was rejected, or has a logged wait."""
_HARDLY_SHARE = 0.01
"""Clients are hardly harmed if at most this fraction of their requests is rejected, or has a logged wait."""


def is_mainly_harmed(harmed: int, other_harmed: int) -> bool:
    """Return whether a client with a number of harmed requests has most of all harmed requests."""
    return harmed >= max(_MAIN_SHARE * (harmed + other_harmed), _MIN_HARMED)


def is_hardly_harmed(harmed: int, requests: int) -> bool:
    """Return whether so few of the requests of some clients are harmed that the overload hardly concerns them."""
    return harmed <= _HARDLY_SHARE * requests
