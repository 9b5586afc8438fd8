"""Parser of kube-apiserver's own log of requests: lines with the message "HTTP", which the server writes with `-v=3` or higher.

    I1123 16:25:48.417260   29718 httplog.go:134] "HTTP" verb="PUT" URI="/apis/..." latency="1.25s" ... resp=429

Such a line contains the decisions of the server: FlowSchema (`apf_fs`), priority level (`apf_pl`) and seats
(`apf_iseats`, `apf_fseats`). The line does not name the user. Programs that collect logs put other text before the
line, or wrap it into JSON. Sources: `staging/src/k8s.io/apiserver/pkg/server/httplog/httplog.go`,
`pkg/server/filters/priority-and-fairness.go`, and recordings of kube-apiserver 1.36.2.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from apflint.evaluate.request_outcomes import parse_duration
from apflint.evaluate.requestinfo import parse_request_info
from apflint.named_tuple import NamedTuple
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.evaluate.requestinfo import RequestInfo

LOGGED_WAIT_SECONDS = 0.1
"""Minimum time in seconds that a request spends in a filter for the server to log this time.

Source: `minFilterLatencyToLog` in filterlatency.go.
"""
_MARK = '"HTTP" '
_PAIR = re.compile(r'([A-Za-z_][\w-]*)=("(?:[^"\\]|\\.)*"|[^\s"]\S*)', re.ASCII)
_TIME = re.compile(r"[IWEF](\d\d)(\d\d) (\d\d:\d\d:\d\d(?:\.\d+)?) ", re.ASCII)
"""Pattern for a klog header: month and day without a year, and the time in the time zone of the server."""
_KLOG = re.compile(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ ", re.ASCII)
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))", re.ASCII)
_CONTROL = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_TEXT_KEYS = ("log", "message", "@message", "MESSAGE", "msg", "textPayload")
"""Keys of the log line in records of Docker, CloudWatch, journald and Google Cloud Logging."""
_FIRST_MILLISECONDS = 100_000_000_000
"""Minimum value of a Unix time that counts as milliseconds. In seconds, this value is the year 5138."""
_METHOD_OF_VERB = {"LIST": "GET", "WATCH": "GET", "WATCHLIST": "GET", "APPLY": "PATCH", "CONNECT": "POST"}
"""HTTP method for each logged verb that is not an HTTP method (`NormalizedVerb` in endpoints/metrics/metrics.go)."""


class LoggedRequest(NamedTuple):
    """A request in the log of kube-apiserver.

    Durations are in seconds. Values are None if the line does not contain them.
    """

    time: str
    """Time at which the request ended: `11-23 16:25:48.417260` from klog, or `2026-11-23T16:25:48.417260Z` from JSON. Empty if unknown."""
    verb: str
    """Verb as logged: an HTTP method, or LIST, WATCH, APPLY, CONNECT."""
    uri: str
    user_agent: str
    audit_id: str
    """Audit ID, or an empty string. Events of the audit log with this ID name the user."""
    flow_schema: str | None
    """Name of the FlowSchema, or None if API Priority and Fairness did not classify the request."""
    priority_level: str | None
    seats: int | None
    """Seats while the request executes."""
    final_seats: int | None
    """Seats after the execution, while watchers are notified."""
    latency: float | None
    queue_seconds: float | None
    """Time in seconds in API Priority and Fairness before the execution. Only times over `LOGGED_WAIT_SECONDS` are logged."""
    execution: float | None
    """Time of the execution in seconds, or None if the request was not executed."""
    status: int | None

    @property
    def is_rejected(self) -> bool:
        """Return whether API Priority and Fairness rejected the request.

        Requests that were executed can also get status 429, such as evictions that a PodDisruptionBudget refuses.
        """
        return self.status == 429 and self.flow_schema is not None and self.execution is None

    @property
    def wait(self) -> float | None:
        """The time in the queue in seconds, or None if the wait was not logged or the request was not classified.

        For a request that was classified but not executed, the time is the latency: the request only waited.
        """
        if self.flow_schema is None:
            return None
        wait = self.queue_seconds
        if wait is None and self.execution is None:
            wait = self.latency
        return wait if wait is not None and wait > LOGGED_WAIT_SECONDS else None

    def read_info(self) -> RequestInfo:
        """Return the attributes of the request. Raises UserError if the server could not parse the URI."""
        return parse_request_info(_METHOD_OF_VERB.get(self.verb, self.verb), self.uri)


def parse_logged_request(line: str) -> LoggedRequest | None:
    """Return the request that kube-apiserver logged in `line`, or None if the line is not about a request.

    `line` is a line of the log itself, or a JSON object that contains this line or its fields.
    """
    if line.lstrip(" \ufeff")[:1] == "{":
        return _parse_json(line)
    start = line.find(_MARK)
    if start < 0:
        return None
    fields = {key: _unquote(value) for key, value in _PAIR.findall(line, start + len(_MARK))}
    return _read_fields(fields, _find_time(line[:start]))


def is_server_log_line(line: str) -> bool:
    """Return whether a line has a klog header. kube-apiserver and other components write such headers."""
    return _KLOG.search(line, 0, 200) is not None


def _parse_json(line: str) -> LoggedRequest | None:
    if "HTTP" not in line:
        return None
    try:
        record = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    if record.get("msg") == "HTTP":  # kube-apiserver writes such records with --logging-format=json
        fields = {str(key): str(value) for key, value in record.items() if isinstance(value, str | int | float)}
        return _read_fields(fields, _format_epoch(record.get("ts")))
    for key in _TEXT_KEYS:
        text = record.get(key)
        if isinstance(text, str) and text[:1] != "{" and (request := parse_logged_request(text)):
            return request
    return None


def _read_fields(fields: Mapping[str, str], time: str) -> LoggedRequest | None:
    verb, uri = fields.get("verb"), fields.get("URI")
    if not verb or not uri:
        return None
    return LoggedRequest(
        time,
        verb,
        uri,
        fields.get("userAgent", ""),
        fields.get("audit-ID", ""),
        fields.get("apf_fs") or None,
        fields.get("apf_pl") or None,
        _read_number(fields.get("apf_iseats")),
        _read_number(fields.get("apf_fseats")),
        parse_duration(fields.get("latency", "")),
        parse_duration(fields.get("fl_priorityandfairness", "")),
        parse_duration(fields.get("apf_execution_time", "")),
        _read_number(fields.get("resp")),
    )


def _read_number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else None


def _find_time(header: str) -> str:
    match = _TIME.search(header)
    return f"{match[1]}-{match[2]} {match[3]}" if match else ""


def _format_epoch(time: object) -> str:
    """Return a Unix time in the form of audit events: `2026-11-23T16:25:48.417260Z`.

    Numbers are milliseconds, as kube-apiserver writes them (`component-base/logs/json/json.go`), or seconds, as in the
    Kubernetes documentation. Return a string unchanged, and an empty string for other values.
    """
    if isinstance(time, bool) or not isinstance(time, int | float):
        return time if isinstance(time, str) else ""
    from datetime import UTC, datetime

    try:
        moment = datetime.fromtimestamp(time / 1000 if time >= _FIRST_MILLISECONDS else time, UTC)
    except (ValueError, OverflowError, OSError):
        return ""
    return f"{moment:%Y-%m-%dT%H:%M:%S.%fZ}"


def _unquote(value: str) -> str:
    """Return the content of a string that Go's `strconv.Quote` has quoted. Return a value without quotes unchanged."""
    if value[:1] != '"':
        return value
    return _ESCAPE.sub(_unescape, value[1:-1]) if "\\" in value else value[1:-1]


def _unescape(match: re.Match[str]) -> str:
    *codes, letter = match.groups()
    if letter is not None:
        return _CONTROL.get(letter, letter)
    code = int(next(filter(None, codes)), 16)
    is_text = code < 0x110000 and not 0xD800 <= code < 0xE000
    return chr(code) if is_text else "\ufffd"


def require_not_logged_request(line: str) -> None:
    """Raise UserError if a line is from kube-apiserver's own log. The message is more helpful than the message for invalid JSON."""
    if parse_logged_request(line) is not None:
        raise UserError(
            "this line is from kube-apiserver's own log, which does not name users; an audit log is required. To show"
            " the decisions in kube-apiserver's own log, run apflint replay with only this file"
        )
