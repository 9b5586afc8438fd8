"""How long a request may wait in a queue: a quarter of its own deadline, which the query parameter `timeout` shortens.

Facts: Kubernetes `endpoints/filters/request_deadline.go` (WithRequestDeadline, parseTimeout), `server/filters/
priority-and-fairness.go` (getRequestWaitContext), and Go's `time.ParseDuration`. Recorded from kube-apiserver 1.36.2: 15
seconds without a timeout, 2 seconds with `?timeout=8s`, and status 400 for `?timeout=bogus`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.evaluate.requestinfo import long_running, parse_query
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.evaluate.requestinfo import RequestInfo

REQUEST_TIMEOUT_SECONDS = 60.0
"""Default of the flag `--request-timeout` of kube-apiserver, and the longest deadline of a request."""
WAIT_FRACTION = 4
DEFAULT_WAIT_SECONDS = REQUEST_TIMEOUT_SECONDS / WAIT_FRACTION
"""The wait limit of a request that sets no timeout of its own, with the default `--request-timeout`."""

_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)"
_MAX_SECONDS = 2.0**63 / 1e9
"""A duration is an int64 of nanoseconds."""
_DURATION = re.compile(rf"[+-]?(?:0|(?:{_PART})+)", re.ASCII)


class Deadline(NamedTuple):
    """What the query parameter `timeout` of a request means."""

    wait_seconds: float
    """How long the request may wait in a queue, from Kubernetes 1.28 on."""
    invalid: str | None = None
    """The value of `timeout` if it is not a duration: the server then answers 400 before it classifies the request."""


_DEFAULT = Deadline(DEFAULT_WAIT_SECONDS)


def deadline(url: str, info: RequestInfo) -> Deadline:
    """Return the deadline of the request for `url`, a path with or without a query; `info` are its attributes."""
    if "timeout" not in url or long_running(info):  # long-running requests have no deadline
        return _DEFAULT
    value = parse_query(url.partition("?")[2]).get("timeout", "")
    if not value:
        return _DEFAULT
    seconds = parse_duration(value)
    if seconds is None:
        return Deadline(DEFAULT_WAIT_SECONDS, value)
    if not 0 < seconds < REQUEST_TIMEOUT_SECONDS:  # 0 stands for no timeout of the client's
        return _DEFAULT
    return Deadline(seconds / WAIT_FRACTION)


def parse_duration(text: str) -> float | None:
    """Return the seconds of a Go duration such as `5s`, `1m30s` or `-1.5h`; None if it is not one."""
    if _DURATION.fullmatch(text) is None:
        return None
    seconds = sum(float(number) * _SECONDS[unit] for number, unit in re.findall(_PART, text))
    if seconds >= _MAX_SECONDS:
        return None
    return -seconds if text.startswith("-") else seconds
