"""Explanations of many requests: lines of JSON in, lines of JSON out.

Equal lines have equal answers, which are remembered. Only the current lines are in memory.
"""

from __future__ import annotations

import json
from itertools import chain, islice
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, TypeVar

from apflint.budgets import MAX_FILE_BYTES
from apflint.errors import UserError
from apflint.evaluate.requestinfo import parse_request_info
from apflint.output.explain import REPEATED_FIELDS, reasons_json, request_json
from apflint.output.sanitize import sanitize_json
from apflint.requests.json_lines import describe_json_error, read_json_values, strip_timestamp, unwrap_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from apflint.explainer import Explainer
    from apflint.requests.request import Request

MAX_REMEMBERED_CHARACTERS = 32 * 1024 * 1024
"""Characters of lines and answers to remember: an answer may have a thousand, or ten thousand."""
_MAX_PART_CHARACTERS = 8 * 1024 * 1024
"""Characters to remember of each part that answers share."""
_ANSWERS_PER_PIECE = 1_000
_Key = TypeVar("_Key")
_encode = json.JSONEncoder().encode
_REQUEST = "{" + ", ".join(f'"{key}": %s' for key in request_json(parse_request_info("GET", "/"))) + "}"
"""A request in JSON without its values, which are strings and booleans: filled in faster than encoded."""


def explain_lines(
    explainer: Explainer, read: Callable[[object], Request], batches: Iterable[list[bytes]], *, reasons: bool
) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """Yield lines of answers, and the numbers of input lines that are not requests, each with the reason.

    The input is one JSON value, or one per line. `read` makes a request of a value; it raises UserError.
    """
    writer = LineExplainer(explainer, read, reasons=reasons)
    batches = iter(batches)
    head: list[list[bytes]] = []
    for batch in batches:
        head.append(batch)
        first = next((line for line in batch if line.strip()), None)
        if first is None:
            continue
        if _is_beginning(first):  # a JSON value over several lines
            size = 0
            for more in batches:
                head.append(more)
                size += sum(map(len, more))
                if size > MAX_FILE_BYTES:  # too much for one value: a log that begins in the middle of a line
                    break
            else:
                text = b"\n".join(chain.from_iterable(head)).decode("utf-8", "replace")
                head.clear()
                yield from writer.flush(writer.explain_text(1, text))
                return
        break
    number = 1
    for batch in chain(head, batches):
        yield from writer.flush(writer.explain_batch(number, batch))
        number += len(batch)


class _Memory(dict[_Key, str]):
    """Texts by key. All are forgotten when they have too many characters."""

    def __init__(self, max_characters: int) -> None:
        super().__init__()
        self._max_characters = max_characters
        self._characters = 0

    def add(self, key: _Key, text: str, size: int) -> None:
        """Remember a text. `size` is the number of its characters, with those of the key if it is long."""
        self._characters += size
        if self._characters > self._max_characters:
            self.clear()
            self._characters = size
        self[key] = text


class LineExplainer:
    """Answers lines, and remembers the answers. `rejected` has the lines that are not requests, until `flush` yields them."""

    def __init__(self, explainer: Explainer, read: Callable[[object], Request], *, reasons: bool) -> None:
        self._explainer = explainer
        self._read = read
        self._reasons = reasons
        self.rejected: list[tuple[int, str]] = []
        self._by_line: _Memory[bytes] = _Memory(MAX_REMEMBERED_CHARACTERS)
        self._by_request: _Memory[Request] = _Memory(MAX_REMEMBERED_CHARACTERS)
        """Answers to requests, which are equal in many audit events."""
        self._parts = [(key, build, _Memory[object](_MAX_PART_CHARACTERS)) for key, build in REPEATED_FIELDS]

    def flush(self, answers: Iterator[str]) -> Iterator[tuple[str, list[tuple[int, str]]]]:
        """Yield the answers in large pieces, each with the rejected lines."""
        while piece := "".join(islice(answers, _ANSWERS_PER_PIECE)):
            rejected, self.rejected = self.rejected, []
            yield sanitize_json(piece), rejected

    def explain_batch(self, first: int, lines: list[bytes]) -> Iterator[str]:
        """Yield the answers to lines, which are numbered from `first`: none to an empty line, several to a list."""
        for number, line in enumerate(lines, first):
            answer = self._by_line.get(line)
            if answer is None:
                yield from self._explain_new_line(number, line)
            else:
                yield answer

    def _explain_new_line(self, number: int, line: bytes) -> Iterator[str]:
        text = line.decode("utf-8", "replace")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            if not text or text.isspace() or text.startswith("\ufeff") or strip_timestamp(text) is not text:
                yield from self.explain_text(number, text)
            else:
                yield self._reject(number, describe_json_error(error))
            return
        if not isinstance(value, dict) or unwrap_list(value) is not value:
            del value  # a list, which is read again: there must not be two of it in memory
            yield from self.explain_text(number, text)
            return
        try:
            request = self._read(value)
            # Lines of equal audit events differ, so answers are remembered by request. Equal requests are equal lines.
            answer = self._explain(request) if self._reasons else self._encode(request)
        except UserError as error:
            yield self._reject(number, str(error))
            return
        self._by_line.add(line, answer, len(line) + len(answer))
        yield answer

    def explain_text(self, number: int, text: str) -> Iterator[str]:
        """Yield the answers to a text that begins on line `number`: one JSON value, or one per line."""
        for value in read_json_values(text):
            error = value.error
            if error is None:
                try:
                    yield self._explain(self._read(value.value))
                    continue
                except UserError as problem:
                    error = str(problem)
            yield self._reject(number + value.line - 1, error)

    def _explain(self, request: Request) -> str:
        answer = self._by_request.get(request)
        if answer is None:
            answer = self._encode(request)
            self._by_request.add(request, answer, len(answer))
        return answer

    def _reject(self, number: int, reason: str) -> str:
        self.rejected.append((number, reason))
        return f'{{"error": {encode_basestring_ascii(reason)}, "inputLine": {number}}}\n'

    def _encode(self, request: Request) -> str:
        """Return an explanation as a line. The text of fields that many explanations share is remembered."""
        explanation = self._explainer.explain(request, reasons=self._reasons)
        values = request_json(request.info).values()
        info = _REQUEST % tuple(
            [
                encode_basestring_ascii(value) if isinstance(value, str) else "true" if value else "false"
                for value in values
            ]
        )
        members = [f'"request": {info}']
        for find_key, build, memory in self._parts:
            key = find_key(explanation)
            text = memory.get(key)
            if text is None:
                text = _encode(build(explanation))[1:-1]
                memory.add(key, text, len(text))
            members.append(text)
        if self._reasons:
            members.append(_encode(reasons_json(explanation))[1:-1])
        return f"{{{', '.join(members)}}}\n"


def _is_beginning(line: bytes) -> bool:
    """Return whether a line is only the beginning of a JSON value: parsing fails at its end."""
    text = line.decode("utf-8", "replace").strip()
    try:
        json.loads(text)
    except (ValueError, RecursionError) as error:
        return isinstance(error, json.JSONDecodeError) and error.pos >= len(text)
    return False
