"""Fast reader of log lines in the layout of kube-apiserver. Text that many lines have in common is parsed once.

In most lines, the body (the text from `requestURI` to `objectRef`) is the same as in an earlier line, and there are few
different annotations. So a line is split at fixed keys of the event, and each part is looked up in a dictionary of
parsed parts. The split is exact: if `{A}`, `{B}` and `{C}` are JSON objects, then `{A,B,C}` is a JSON object with the
fields of all three. A JSON parser reads all other lines.
"""

from __future__ import annotations

import json
import re
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from apflint.replay.events import (
    COMPLETE,
    DECISION,
    OTHER_NAMESPACE,
    QUEUE_WAIT,
    RECEIVED,
    STARTED,
    TOO_MANY_REQUESTS,
    is_status,
    parse_time,
    parse_wait,
    read_attributes,
)
from apflint.replay.uri_namespace import find_namespace, find_version
from apflint.requests.list_options import LIST_VERBS, reduce_list_options
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection, Hashable

    from apflint.replay.database_tables import Row

scan: Callable[[str, int], tuple[object, int]] = vars(json.JSONDecoder())["scan_once"]
"""Parses a value at an index of a string. This function is faster than `json.loads`, which searches for spaces around the
value.

Raises StopIteration, ValueError or RecursionError if there is no value.
"""
_EXPECTED = (UserError, ValueError, LookupError, AttributeError, TypeError, StopIteration, RecursionError)
"""Exceptions of `scan` and `read_attributes` for text that is not an event, and for events in another layout."""
MAX_REMEMBERED_BYTES = 64 * 1024 * 1024
"""Maximum total size in bytes of the keys in the caches. If the total exceeds the maximum, all caches are cleared."""
_MAX_PART_BYTES = 16 * 1024
_MAX_SECONDS = 1_000_000
_MAX_NAMESPACES = 20_000
_NAMESPACES = b"/namespaces/"

_HEAD = b'{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"'
_ID_START, _ID_END = len(_HEAD), len(_HEAD) + 36
_IS_RECEIVED, _IS_STARTED, _IS_COMPLETE = (f'","stage":"{stage}",'.encode() for stage in (RECEIVED, STARTED, COMPLETE))
_HEXADECIMAL = b"0123456789abcdef-"
_OTHER_FIELDS = {"stage": COMPLETE, "stageTimestamp": "1970-01-01T00:00:00Z"}
"""Values for the fields that are required in an event but are not part of the body.

With these values, the body can be validated without the rest of the line.
"""
_BODY_FIELDS = frozenset(
    ("requestURI", "verb", "user", "impersonatedUser", "authenticationMetadata", "sourceIPs", "userAgent", "objectRef")
)
_PLAIN = r"[ !#-\[\]-~]*"
"""Pattern for the content of a JSON string without escapes."""
_REQUEST = re.compile(
    rf'"requestURI":"({_PLAIN}(?:\\u0026{_PLAIN})*)",("verb":"({_PLAIN})",.*,"objectRef":'
    rf'\{{"resource":"{_PLAIN}")(?:,"namespace":"({_PLAIN})")?(?:,"name":"({_PLAIN})")?([^{{}}]*\}})'.encode()
)
"""Pattern for the body: the text from `requestURI` to `objectRef`.

The groups are the URI, the text up to the resource, the verb, the namespace, the name, and the rest. The groups
determine the attributes unless a key occurs twice.
"""
_LIST_VERBS = frozenset(verb.encode() for verb in LIST_VERBS)
_RECEIVED_BODY, _STARTED_BODY, _COMPLETE_BODY = (
    _ID_END + len(stage) for stage in (_IS_RECEIVED, _IS_STARTED, _IS_COMPLETE)
)
_get_started = itemgetter(3)
_STATUS = b',"responseStatus":'
_TIMES = b',"requestReceivedTimestamp":"0000-00-00T00:00:00.000000Z","stageTimestamp":"0000-00-00T00:00:00.000000Z"}\n'
"""End of a `RequestReceived` event, in which each digit is replaced by 0."""
_TIMES_LENGTH = len(_TIMES)
_DIGITS_TO_0 = bytes.maketrans(b"123456789", b"000000000")
_ANSWER = re.compile(
    # The second alternative would be enough, but the first matches the most common status faster.
    rb',"responseStatus":(\{"metadata":\{\},"code":[0-9]{3}\}|.*?)'
    rb',"requestReceivedTimestamp":"(.{19})\.([0-9]{6})Z","stageTimestamp":"(.{19})\.([0-9]{6})(Z.*)\n'
).match
_ANNOTATIONS = b'Z","annotations":'


class CanonicalLines:
    """Reads the lines of an audit log that have the usual form, and caches the results for equal parts of lines."""

    def __init__(
        self,
        namespaces: Collection[str],
        find_number: Callable[[dict[str, object], Hashable], int],
        hash_id: Callable[[str], object],
        *,
        has_options: bool,
    ) -> None:
        """Create a reader of audit log lines in the usual form.

        `find_number` takes an event and the result of `read_attributes` for this event. It validates the
        event, and returns the index of its attribute tuple. `hash_id` converts an audit ID to the value
        of the column `id`.
        """
        self._namespaces = namespaces
        self._find_number = find_number
        self._hash_id = hash_id
        self._has_options = has_options
        self._bodies: dict[bytes, int] = {}
        """Index of the attribute tuple for each body."""
        self._requests: dict[tuple[Hashable, ...] | None, int] = {}
        """Index of the attribute tuple for the groups that `_REQUEST` matches in a body."""
        self._plain_namespaces: dict[bytes | None, str] = {}
        """Namespaces in attribute tuples by the namespace in `objectRef`, for names without special characters."""
        self._versions: set[bytes] = set()
        """Known beginnings of URIs before `/namespaces/`, such as `/api/v1`."""
        self._codes: dict[bytes, tuple[int | None, int]] = {}
        self._rests: dict[bytes, tuple[int, int | None]] = {}
        self._bytes = 0
        self._seconds: dict[bytes, int] = {}

    def read(
        self, data: bytes, server: int, rows: list[Row], others: list[Row], stages: Counter[str]
    ) -> tuple[list[int], int]:
        """Append rows of the tables `request` and `received`, and count the stages of the events.

        All lines of `data` must end with a newline. Return the offsets of lines that a JSON parser must read, and the
        number of all lines. Most of the time of a replay is spent in this loop.
        """
        # `received` maps the audit ID of each `RequestReceived` event to the offset of its line and to its
        # body. Usually, a later event of the request has an equal body. Only the body of the later event is
        # parsed: if it is valid, both bodies are valid.
        received: dict[bytes, tuple[int, bytes]] = {}
        new_rows: list[Row] = []
        left = []
        number_received, start, size = 0, 0, len(data)
        while start < size:
            audit_id = data[start + _ID_START : start + _ID_END]
            if data.startswith(_IS_RECEIVED, start + _ID_END):
                end = data.index(b"\n", start) + 1
                body_end = end - _TIMES_LENGTH
                event = start, data[start + _RECEIVED_BODY : body_end]
                if (
                    not data.startswith(_HEAD, start)
                    or not _is_hexadecimal(audit_id)
                    or data[body_end:end].translate(_DIGITS_TO_0) != _TIMES
                    or received.setdefault(audit_id, event) is not event
                ):
                    left.append(start)
                start = end
                continue
            try:
                row, end, is_pair = self._read_answer(data, start, audit_id, server, received.get(audit_id))
            except _EXPECTED:
                left.append(start)
                start = data.index(b"\n", start) + 1
                continue
            new_rows.append(row)
            if is_pair:
                del received[audit_id]
                number_received += 1
            start = end
        for audit_id, (start, body) in received.items():
            if body in self._bodies:
                others.append((self._hash_id(audit_id.decode()),))
                number_received += 1
            else:
                left.append(start)
        rows += new_rows
        number_started = sum(map(_get_started, new_rows))
        for stage, number in (
            (RECEIVED, number_received),
            (STARTED, number_started),
            (COMPLETE, len(new_rows) - number_started),
        ):
            if number:
                stages[stage] += number
        return sorted(left), number_received + len(new_rows) + len(left)

    def _read_answer(
        self, data: bytes, start: int, audit_id: bytes, server: int, received: tuple[int, bytes] | None
    ) -> tuple[Row, int, bool]:
        """Return the row of an event, the offset of the line end, and whether `received` belongs to the same request.

        The event has a later stage than `RequestReceived`. `received` is a `RequestReceived` event with the same audit
        ID, or None. Raises one of `_EXPECTED` for lines in another layout.
        """
        body_start, started = start + _COMPLETE_BODY, 0
        if not data.startswith(_IS_COMPLETE, start + _ID_END):
            body_start, started = start + _STARTED_BODY, 1
            if not data.startswith(_IS_STARTED, start + _ID_END):
                raise ValueError("another stage")
        _, body = received or (0, b"")
        # The caller has found `received` by the audit ID, so the audit IDs are equal.
        is_pair = received is not None and data.startswith(body, body_start)
        if not is_pair:
            body = data[body_start : data.index(_STATUS, body_start)]
        match = _ANSWER(data, body_start + len(body))
        if match is None or not data.startswith(_HEAD, start) or not (is_pair or _is_hexadecimal(audit_id)):
            raise ValueError("another layout")
        text, begin_second, begin, end_second, end, rest = match.groups()
        code, is_answer = self._codes.get(text) or self._read_code(text)
        decided, wait = self._rests.get(rest) or self._read_rest(rest)
        received_at = (self._seconds.get(begin_second) or self._parse_second(begin_second)) + int(begin)
        ended_at = (self._seconds.get(end_second) or self._parse_second(end_second)) + int(end)
        # Add the tuple last, because no tuple may be added if another part of the line raises an exception.
        number = self._bodies.get(body)
        if number is None:
            number = self._read_body(body)
        audit_hash = self._hash_id(audit_id.decode())
        return (
            (number, server, audit_hash, started, received_at, ended_at, code, decided or is_answer, wait),
            match.end(),
            is_pair,
        )

    def _read_body(self, text: bytes) -> int:
        """Return the index of the attribute tuple of an event. `text` is the event from `requestURI` to `objectRef`."""
        key: tuple[Hashable, ...] | None = None
        named = {}
        if match := _REQUEST.fullmatch(text):
            url, start, verb, reference, name, rest = match.groups()
            named = {"requestURI": url.decode().replace("\\u0026", "&"), "verb": verb.decode()}
            at = url.find(_NAMESPACES)
            namespace = self._plain_namespaces.get(reference)
            # Most URIs contain the namespace of `objectRef`. Comparing the URI with this namespace is faster than matching
            # the URI with a pattern.
            if (
                namespace is None
                or url[:at] not in self._versions
                or not url.startswith(b"%b/" % reference, at + len(_NAMESPACES))
            ):
                namespace = self._find_namespace(named["requestURI"], reference)
            key = start, namespace, rest
            if verb in _LIST_VERBS:
                options = reduce_list_options(named["requestURI"], None) if self._has_options else ""
                key += bool(name), options
        number = self._requests.get(key)
        if number is None:
            event = _parse(b"{%b}" % text)
            if not _BODY_FIELDS.issuperset(event):
                raise ValueError(text)
            attributes = read_attributes(event, self._namespaces, has_options=self._has_options)
            number = self._find_number({**event, **_OTHER_FIELDS}, attributes)
            # If a key occurs twice, JSON uses the last value, but the pattern matches the first. So a result is cached
            # only if both values are equal.
            if key is not None and named.items() <= event.items() and self._can_remember(text):
                self._requests[key] = number
        if self._can_remember(text):
            self._bodies[text] = number
        return number

    def _find_namespace(self, uri: str, reference: bytes | None) -> str:
        """Return the namespace in a URI, or `OTHER_NAMESPACE` if the rules do not distinguish this namespace.

        If the URI contains the namespace `reference` of the audit event, cache the result and the part of
        the URI before the namespace. The caller then recognizes similar URIs faster.
        """
        found, version = find_namespace(uri, (reference or b"").decode()), find_version(uri)
        namespace = OTHER_NAMESPACE if found and found not in self._namespaces else found
        if version is not None and reference == found.encode() and len(uri) <= _MAX_PART_BYTES:
            if len(self._plain_namespaces) + len(self._versions) >= _MAX_NAMESPACES:
                self._plain_namespaces.clear()
                self._versions.clear()
            self._plain_namespaces[reference] = namespace
            self._versions.add(version.encode())
        return namespace

    def _read_code(self, text: bytes) -> tuple[int | None, int]:
        """Return the code in `responseStatus` or None, and 1 if the code is 429 with a reason, else 0.

        A 429 with a reason comes from a handler, not from API Priority and Fairness.
        """
        status = _parse(text)
        code = status.get("code")
        if code is not None and not is_status(code):
            raise ValueError(text)
        answer = code, int(code == TOO_MANY_REQUESTS and status.get("reason") is not None)
        if self._can_remember(text):
            self._codes[text] = answer
        return answer

    def _read_rest(self, text: bytes) -> tuple[int, int | None]:
        """Return (1 or 0, queue wait in microseconds or None) for an event.

        The first value is 1 if the event has the annotation `authorization.k8s.io/decision`, else 0. `text`
        is the part of the line after the times.
        """
        annotations: Any = {}
        if text != b'Z"}':
            if not (text.startswith(_ANNOTATIONS) and text.endswith(b"}")):
                raise ValueError(text)
            annotations = _parse(text[len(_ANNOTATIONS) : -1])
        wait = parse_wait(annotations[QUEUE_WAIT]) if QUEUE_WAIT in annotations else None
        answer = int(annotations.get(DECISION) is not None), wait
        if self._can_remember(text):
            self._rests[text] = answer
        return answer

    def _can_remember(self, text: bytes) -> bool:
        """Return whether a text is short enough to be cached. If the caches are full, clear all caches first."""
        if len(text) > _MAX_PART_BYTES:
            return False
        self._bytes += len(text)
        if self._bytes > MAX_REMEMBERED_BYTES:
            self._bodies.clear()
            self._requests.clear()
            self._codes.clear()
            self._rests.clear()
            self._bytes = len(text)
        return True

    def _parse_second(self, text: bytes) -> int:
        """Return the microseconds since 1970 for a time without a fraction of a second."""
        second = parse_time(f"{text.decode()}Z")
        if second is None:
            raise ValueError(text)
        if len(self._seconds) > _MAX_SECONDS:
            self._seconds.clear()
        self._seconds[text] = second
        return second


def _is_hexadecimal(audit_id: bytes) -> bool:
    return not audit_id.translate(None, _HEXADECIMAL)


def _parse(text: bytes) -> dict[str, Any]:
    """Return the JSON object in a text. Raises one of `_EXPECTED` for other text, and for escaped lone surrogates."""
    string = text.decode()
    value, end = scan(string, 0)
    # Reject escapes of lone surrogates, which are valid JSON, but not valid Unicode.
    if (
        end != len(string)
        or type(value) is not dict
        or "\n" in string
        or ("\\u" in string and "\\ud" in string.lower())
    ):
        raise ValueError(text)
    return value
