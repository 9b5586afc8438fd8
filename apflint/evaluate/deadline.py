"""How long a request may wait in a queue: a quarter of its own deadline, which the query parameter `timeout` shortens.

Sources: `endpoints/filters/request_deadline.go` (WithRequestDeadline, parseTimeout), `server/filters/priority-and-fairness.go`
(getRequestWaitContext), and Go's `time.ParseDuration`. Recorded from kube-apiserver 1.36.2: 15 seconds without a timeout,
2 seconds with `?timeout=8s`, and status 400 for `?timeout=bogus`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.evaluate.requestinfo import is_long_running, parse_query
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.evaluate.requestinfo import RequestInfo

REQUEST_TIMEOUT_SECONDS = 60.0
"""Default of kube-apiserver's flag `--request-timeout`, the longest deadline of a request."""
WAIT_FRACTION = 4
DEFAULT_WAIT_SECONDS = REQUEST_TIMEOUT_SECONDS / WAIT_FRACTION
"""Wait limit of a request without a timeout, with the default `--request-timeout`."""

_UNIT_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART})+)", re.ASCII)
_MAX_SECONDS = 2.0**63 / 1e9
"""A duration is an int64 of nanoseconds."""


class Deadline(NamedTuple):
    """The deadline of a request by its query parameter `timeout`."""

    wait_seconds: float
    """Maximum time in a queue, from Kubernetes 1.28 on."""
    invalid: str | None = None
    """The value of `timeout` if it is not a duration: the server answers 400 before it classifies the request."""


def find_deadline(url: str, info: RequestInfo) -> Deadline:
    """Return the deadline of the request for `url`, a path with or without a query; `info` are its attributes."""
    default = Deadline(DEFAULT_WAIT_SECONDS)
    if "timeout" not in url or is_long_running(info):  # long-running requests have no deadline
        return default
    value = parse_query(url.partition("?")[2]).get("timeout", "")
    if not value:
        return default
    seconds = parse_duration(value)
    if seconds is None:
        return Deadline(DEFAULT_WAIT_SECONDS, value)
    # 0 means no timeout; a longer one than that of the server has no effect.
    return Deadline(seconds / WAIT_FRACTION) if 0 < seconds < REQUEST_TIMEOUT_SECONDS else default


def parse_duration(text: str) -> float | None:
    """Return the seconds of a Go duration such as `5s`, `1m30s` or `-1.5h`, or None if it is not one."""
    if _DURATION.fullmatch(text) is None:
        return None
    seconds = sum(float(number) * _UNIT_SECONDS[unit] for number, unit in re.findall(_PART, text))
    if seconds >= _MAX_SECONDS:
        return None
    return -seconds if text.startswith("-") else seconds
