"""Reads lines in the layout of kube-apiserver by their parts. Text that many lines share is parsed once.

Most lines repeat the text from the URI to the object of an earlier line, and a log has few different annotations. So a line is
split before fixed keys of the event, and the parts are found in dictionaries. The split is exact: if `{A}`, `{B}` and `{C}` are
JSON objects, then `{A,B,C}` is one, and its fields are those of the three. All other lines are left to a JSON parser.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apflint.errors import UserError
from apflint.replay.events import (
    DECISION,
    LATER_STAGES,
    QUEUE_WAIT,
    RECEIVED,
    STARTED,
    is_status,
    parse_time,
    parse_wait,
    read_attributes,
)

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Collection, Hashable, Mapping, Sequence

    from apflint.replay.tables import Row

scan: Callable[[str, int], tuple[object, int]] = vars(json.JSONDecoder())["scan_once"]
"""Parses a value at an index of a string. It is faster than `json.loads`, which searches for spaces around the value.

Raises StopIteration, ValueError or RecursionError if there is no value."""
_EXPECTED = (UserError, ValueError, LookupError, AttributeError, TypeError, StopIteration, RecursionError)
"""Raised by `scan` and by `read_attributes` for text that is not an event, and for events in another layout."""
MAX_REMEMBERED_CHARACTERS = 32 * 1024 * 1024
"""Maximum length of all texts that are remembered. If they get longer, all of them are forgotten."""
_MAX_PART_CHARACTERS = 16 * 1024
_MAX_SECONDS = 1_000_000

_HEAD = '{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"'
_ID = slice(len(_HEAD), len(_HEAD) + 36)
_STAGE = '","stage":"'
_IS_RECEIVED = f'{_STAGE}{RECEIVED}",'
_RECEIVED_STAGE = slice(_ID.stop, _ID.stop + len(_IS_RECEIVED))
_STATUS, _RECEIVED = ',"responseStatus":', ',"requestReceivedTimestamp":"'
_ENDED, _ANNOTATIONS = 'Z","stageTimestamp":"', 'Z","annotations":'
_SECOND_LENGTH = len("2026-11-22T05:49:20.")
_BODY_FIELDS = frozenset(
    ("requestURI", "verb", "user", "impersonatedUser", "authenticationMetadata", "sourceIPs", "userAgent", "objectRef")
)


class _Body:
    """The part of an event from the stage to the object. The attribute tuple follows from it."""

    __slots__ = ("key", "number", "stage", "start")

    def __init__(self, stage: str, start: int, key: Hashable) -> None:
        self.stage = stage
        self.start = start
        """Number of characters before the URI."""
        self.key = key
        self.number: int | None = None


class CanonicalLines:
    """Reads lines, and remembers their parts."""

    def __init__(
        self,
        namespaces: Collection[str],
        find_number: Callable[[str, Hashable], int],
        hash_id: Callable[[str], object],
    ) -> None:
        """Create a reader. `find_number` returns the index of a result of `read_attributes`, which it verifies in the line."""
        self._namespaces = namespaces
        self._find_number = find_number
        self._hash_id = hash_id
        self._bodies: dict[str, _Body] = {}
        self._codes: dict[str, int | None] = {}
        self._rests: dict[str, tuple[int, int | None]] = {}
        self._characters = 0
        self._seconds: dict[str, int] = {}

    def read(self, lines: Sequence[str], server: int, rows: list[Row], stages: Counter[str]) -> list[int]:
        """Append the rows of events to `rows`, and count their stages. Return the indices of the lines that are left."""
        received: dict[str, int] = {}
        others = []
        for index, line in enumerate(lines):
            if line[_RECEIVED_STAGE] == _IS_RECEIVED:
                # The event is in order if it equals what the later event of the request implies. So it is not parsed.
                if received.setdefault(line[_ID], index) != index:
                    others.append(index)
                continue
            try:
                row, stage, implied = self._read_line(line, server, received)
            except _EXPECTED:
                others.append(index)
                continue
            rows.append(row)
            stages[stage] += 1
            if implied is not None:
                position = received.pop(line[_ID])
                if lines[position] == implied:
                    stages[RECEIVED] += 1
                else:
                    others.append(position)
        return sorted((*others, *received.values()))

    def _read_line(self, line: str, server: int, received: Mapping[str, int]) -> tuple[Row, str, str | None]:
        """Return row and stage of an event, and the line that precedes the event if its ID is in `received`.

        Raises one of `_EXPECTED` for other lines.
        """
        status = line.index(_STATUS, _ID.stop)
        text = line[_ID.stop : status]
        body = self._bodies.get(text) or self._read_body(text)
        number = body.number
        if number is None:
            number = body.number = self._find_number(line, body.key)
        start = line.index(_RECEIVED, status) + 29
        text = line[status + 18 : start - 29]
        code = self._codes.get(text, -1)
        if code == -1:
            code = self._read_code(text)
        text = line[start + 73 :]
        decided, wait = self._rests.get(text) or self._read_rest(text)
        begin, end = line[start : start + 20], line[start + 47 : start + 67]
        begin_second = self._seconds.get(begin) or self._parse_second(begin)
        end_second = self._seconds.get(end) or self._parse_second(end)
        begin, end, audit_id = line[start + 20 : start + 26], line[start + 67 : start + 73], line[_ID]
        if (
            line[start + 26 : start + 47] != _ENDED
            or not line[start : start + 73].isascii()
            or not (begin.isdigit() and end.isdigit() and audit_id.replace("-", "").isalnum())
            or not line.startswith(_HEAD)
        ):
            raise ValueError(line)
        implied = None
        if audit_id in received:
            time = line[start : start + 27]
            implied = f'{line[: _ID.stop]}{_IS_RECEIVED}{line[_ID.stop + body.start : status]}{_RECEIVED}{time}","stageTimestamp":"{time}"}}'
        row = (
            number,
            server,
            self._hash_id(audit_id),
            1 if body.stage == STARTED else 0,
            begin_second + int(begin),
            end_second + int(end),
            code,
            decided,
            wait,
        )
        return row, body.stage, implied

    def _read_body(self, text: str) -> _Body:
        start = text.index('",', len(_STAGE)) + 2
        stage = text[len(_STAGE) : start - 2]
        event: Any
        event, end = scan(f"{{{text[start:]}}}", 0)
        if end != len(text) - start + 2 or not _BODY_FIELDS.issuperset(event) or stage not in LATER_STAGES:
            raise ValueError(text)
        body = _Body(stage, start, read_attributes(event, self._namespaces))
        if self._can_remember(text):
            self._bodies[text] = body
        return body

    def _read_code(self, text: str) -> int | None:
        """Return the code in `responseStatus`, or None without one."""
        status, end = scan(text, 0)
        if end != len(text) or type(status) is not dict:
            raise ValueError(text)
        code = status.get("code")
        if code is not None and not is_status(code):
            raise ValueError(text)
        if self._can_remember(text):
            self._codes[text] = code
        return code

    def _read_rest(self, text: str) -> tuple[int, int | None]:
        """Return whether authorization decided, and the queue wait, from the text after the times."""
        annotations: Any = {}
        if text != 'Z"}':
            annotations, end = scan(text, len(_ANNOTATIONS))
            if not text.startswith(_ANNOTATIONS) or text[end:] != "}" or type(annotations) is not dict:
                raise ValueError(text)
        wait = parse_wait(annotations[QUEUE_WAIT]) if QUEUE_WAIT in annotations else None
        answer = int(annotations.get(DECISION) is not None), wait
        if self._can_remember(text):
            self._rests[text] = answer
        return answer

    def _can_remember(self, text: str) -> bool:
        """Return whether a text is short enough to be remembered. Forget all texts if they are too many."""
        if len(text) > _MAX_PART_CHARACTERS:
            return False
        self._characters += len(text)
        if self._characters > MAX_REMEMBERED_CHARACTERS:
            self._bodies.clear()
            self._codes.clear()
            self._rests.clear()
            self._characters = len(text)
        return True

    def _parse_second(self, text: str) -> int:
        """Return the microseconds since 1970 of the second of a time in the form of kube-apiserver."""
        second = parse_time(f"{text[:19]}Z") if len(text) == _SECOND_LENGTH and text[19] == "." else None
        if second is None:
            raise ValueError(text)
        if len(self._seconds) > _MAX_SECONDS:
            self._seconds.clear()
        self._seconds[text] = second
        return second
