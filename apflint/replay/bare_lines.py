"""Fast removal of wrappers: the log records that hosted control planes and log collectors put around audit events.

`apflint.requests.log_wrappers` is the reference implementation. That module also reads all lines that this module
cannot read, such as lines with several wrappers.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_AUDIT_VALUE_PARTS
from apflint.named_tuple import NamedTuple
from apflint.requests.log_wrappers import AUDIT_CATEGORIES, EVENT_KEYS, WRAPPED_IN_FIELD, find_prefix

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.requests.log_wrappers import Wrapper

_scan = vars(json.JSONDecoder())["scan_once"]
_MAX_REMEMBERED = 1_000
_MAX_PREFIX_BYTES = 400


class BareLine(NamedTuple):
    """The text of an event without its wrapper."""

    text: bytes
    server: str
    """Name of the API server, or an empty string if the wrapper does not have it."""


class LineUnwrapper:
    """Extracts events from log records. Records with the same keys have the same wrapper, which is found only once."""

    def __init__(self, event_field: Sequence[str]) -> None:
        self._is_enabled = not event_field  # with --event-field, only `log_wrappers` can find the events
        self._wrappers: dict[tuple[str, ...], Wrapper | None] = {}

    def unwrap(self, lines: Sequence[bytes]) -> list[BareLine | None]:
        """Return for each line the event in it, or None if the fast method of this module cannot find the event.

        The caller must then read the line with `log_wrappers`.
        """
        if not self._is_enabled:
            return [None] * len(lines)
        return [self._unwrap_field(line) if line[:1] == b"{" else _strip_prefix(line) for line in lines]

    def _unwrap_field(self, line: bytes) -> BareLine | None:
        if len(line) > MAX_AUDIT_VALUE_PARTS:
            return None
        try:
            text = line.decode()
            value, end = _scan(text, 0)
        except (ValueError, StopIteration, RecursionError):
            return None
        if end != len(text) or type(value) is not dict:
            return None
        wrapper = self._find_wrapper(value)
        if wrapper is None or (wrapper.category and value.get(wrapper.category) not in AUDIT_CATEGORIES):
            return None
        found = _find(value, wrapper.path)
        if type(found) is not str or found[:1] != "{":
            return None
        event = found.removesuffix("\n")
        if event[-1:] != "}" or "\n" in event or ("\\u" in text and "\\ud" in text.lower()):
            return None
        server = _find(value, wrapper.server) if wrapper.server else ""
        return BareLine(event.encode(), server if isinstance(server, str) else "")

    def _find_wrapper(self, value: dict[str, Any]) -> Wrapper | None:
        """Return the wrapper of a log record, or None if the keys of the record do not determine the wrapper."""
        keys = tuple(value)
        if keys not in self._wrappers:
            if len(self._wrappers) >= _MAX_REMEMBERED:
                self._wrappers.clear()
            first = next((wrapper for wrapper in WRAPPED_IN_FIELD if wrapper.path[0] in value), None)
            self._wrappers[keys] = None if any(key in value for key in EVENT_KEYS) else first
        return self._wrappers[keys]


def _strip_prefix(line: bytes) -> BareLine | None:
    at = line.find(b"{", 0, _MAX_PREFIX_BYTES)
    if at < 1:
        return None
    try:
        wrapper = find_prefix(line[: at + 1].decode())
    except UnicodeError:
        return None
    return None if wrapper is None or wrapper.suffix else BareLine(line[at:], "")


def _find(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        value = value.get(key) if type(value) is dict else None
    return value
