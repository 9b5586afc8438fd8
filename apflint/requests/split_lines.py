"""Joins the parts of long lines: container runtimes split lines of more than 16 KiB.

Sources: the tag P of the CRI format in `pkg/kubelet/kuberuntime/logs/logs.go`, and `maxBufSize` in `daemon/logger/copier.go` of Docker.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_FILE_BYTES
from apflint.requests.log_wrappers import find_open_part, find_part
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_RECORD_CHARACTERS = 4 * 1024 * 1024
"""Maximum number of characters of a line that is joined from records of Docker. The joined text is parsed after each part, which
would take too long for longer lines."""
_INCOMPLETE_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{0,4})?\Z")
_MAX_ESCAPE_CHARACTERS = 6
"""Maximum number of characters of an escape. Python reports every escape at the end of a text as an error."""
_INCOMPLETE_CONSTANT = re.compile(r"t(ru?)?|f(a(ls?)?)?|n(ul?)?|-")
_INCOMPLETE_END_OF_NUMBER = re.compile(r"(?<=[0-9])([.]|[eE][-+]?)")
INCOMPLETE = "the line is a part of a longer line, and the other parts of the longer line are missing"


class SplitLines:
    """Collects the parts into which a container runtime splits a long line, and joins them to the complete line."""

    def __init__(self) -> None:
        self._parts: dict[str, list[str]] = {}
        """Parts by stream. The parts of standard output and standard error may alternate."""
        self._size = 0

    @property
    def is_empty(self) -> bool:
        """Whether no incomplete line is waiting for further parts."""
        return not self._parts

    def clear(self) -> int:
        """Delete all parts. Return the number of incomplete lines to which the parts belong."""
        number = len(self._parts)
        self._parts.clear()
        self._size = 0
        return number

    def join_line(self, line: str) -> str | None:
        """Add a line, which may be a part of a longer line. Return the complete line, or None if more parts must follow.

        Raises UserError if the complete line is too long.
        """
        part = find_part(line) if line[:1].isdigit() else None
        if part is None or (part.is_last and part.stream not in self._parts):
            return line
        text = self._add(part.stream, part.text, MAX_FILE_BYTES)
        return self._take(part.stream, text) if part.is_last else None

    def join_record(self, value: object) -> Iterator[object]:
        """Add a log record, and yield the records that are now complete. A record may contain a part of a line.

        Yield a record that contains no part of a line unchanged. Yield nothing for a part if more parts of
        the line must follow. After the last part, yield its record with the complete line instead of the
        part. If the joined parts are not valid JSON after the last part, or after a part that is valid JSON
        itself, yield the record of this part unchanged, and then raise UserError. Also raises UserError if
        the joined line is too long.
        """
        part = find_open_part(value)
        if part is None:
            yield value
            return
        if part.stream not in self._parts:
            if part.is_last or not _is_open(part.text):
                yield value
            else:
                self._add(part.stream, part.text, _MAX_RECORD_CHARACTERS)
            return
        text = self._add(part.stream, part.text, _MAX_RECORD_CHARACTERS)
        fields: Any = value
        if _is_json(text):
            yield {**fields, "log": self._take(part.stream, text)}
        elif part.is_last or _is_json(part.text):
            self._take(part.stream, text)
            yield value
            raise UserError(INCOMPLETE)

    def _add(self, stream: str, text: str, maximum: int) -> str:
        parts = self._parts.setdefault(stream, [])
        parts.append(text)
        self._size += len(text)
        if self._size > maximum:
            self.clear()
            raise UserError(f"the joined line is longer than {maximum >> 20} MiB")
        return "".join(parts)

    def _take(self, stream: str, text: str) -> str:
        del self._parts[stream]
        self._size -= len(text)
        return text


def is_part(line: str) -> bool:
    """Return whether a line contains only a part of an event."""
    part = find_part(line) if line[:1].isdigit() else None
    if part is not None:
        return not part.is_last
    if '"log"' not in line:
        return False
    try:
        record = find_open_part(json.loads(line))
    except (ValueError, RecursionError):
        return False
    return record is not None and not record.is_last and _is_open(record.text)


def _is_open(text: str) -> bool:
    """Return whether a text is the incomplete beginning of a JSON object."""
    if not text.startswith("{"):
        return False
    if escape := _INCOMPLETE_ESCAPE.search(text, max(0, len(text) - _MAX_ESCAPE_CHARACTERS)):
        text = text[: escape.start()]
    at = _find_error(text)
    # For most incomplete texts, the error is at the end of the text. If the text ends in an incomplete string or
    # constant, the error is at the start of this value. Then put a complete value there, and search for the error
    # again.
    if at is not None and text[at : at + 1] == '"':
        text = f'{text[:at]}""'
        at = _find_error(text)
    elif at is not None and _INCOMPLETE_CONSTANT.fullmatch(text, at):
        text = f"{text[:at]}0"
        at = _find_error(text)
    elif at is not None and _INCOMPLETE_END_OF_NUMBER.fullmatch(text, at):
        return True
    return at is not None and at >= len(text)


def _find_error(text: str) -> int | None:
    """Return the position at which a text stops being valid JSON, or None if the whole text is valid."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos
    except (ValueError, RecursionError):
        pass
    return None


def _is_json(text: str) -> bool:
    if not text.rstrip().endswith("}"):
        return False
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
