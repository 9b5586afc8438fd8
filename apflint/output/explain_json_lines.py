"""Explains many requests: reads lines of JSON, and writes lines of JSON.

An *answer* is a line of JSON: the explanation of one request, or an error. Answers are cached, because many input lines are
equal.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import islice
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, TypeVar

from apflint.budgets import MAX_LINES_WITHOUT_EVENTS
from apflint.evaluate.requestinfo import parse_request_info
from apflint.output.explain import REPEATED_FIELDS, reasons_json, request_json
from apflint.output.json_text import SCHEMA
from apflint.output.sanitize import sanitize_json
from apflint.requests.json_lines import (
    NO_EVENTS,
    NotEventError,
    RejectedLine,
    describe_json_error,
    join_first_value,
    read_json_values,
)
from apflint.requests.log_wrappers import find_prefix, unwrap_list
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.request_explanation import Explainer
    from apflint.requests.request import Request

MAX_REMEMBERED_CHARACTERS = 32 * 1024 * 1024
"""Maximum number of characters in each cache of answers. An answer has about 1,000 to 10,000 characters."""
_MAX_PART_CHARACTERS = 8 * 1024 * 1024
"""Maximum number of characters in each cache of fields. Each row of `REPEATED_FIELDS` has a cache."""
_ANSWERS_PER_PIECE = 1_000
_Key = TypeVar("_Key")
ExplainLogged = Callable[[str], "dict[str, object] | None"]
"""Function that explains a line of kube-apiserver's own log.

The function returns an empty object for a line that is not about a request, and None for a line that is not from such a
log.
"""
_encode = json.JSONEncoder().encode
_REQUEST = "{" + ", ".join(f'"{key}": %s' for key in request_json(parse_request_info("GET", "/"))) + "}"
"""Template of a request in JSON. Inserting its values is faster than using a JSON encoder."""


def explain_lines(
    explainer: Explainer,
    read: Callable[[object], Request],
    batches: Iterable[list[bytes]],
    *,
    reasons: bool,
    logged: ExplainLogged | None = None,
    configuration: str = "",
) -> Iterator[tuple[str, list[RejectedLine]]]:
    """Yield a pair for each part of the answers: (text of the answers, input lines rejected since the last pair).

    The input is a single JSON value, or one JSON value per line. `read` converts a value to a request,
    and raises UserError if the value is not a request. `logged` explains lines of kube-apiserver's own
    log. `configuration` describes the sources of the configuration.
    """
    writer = LineExplainer(explainer, read, reasons=reasons, logged=logged, configuration=configuration)
    number, missed = 1, 0
    for batch in join_first_value(batches):
        if isinstance(batch, str):
            yield from writer.flush(writer.explain_text(1, batch))
            return
        missed += len(batch)
        for answers, rejected in writer.flush(writer.explain_batch(number, batch)):
            if answers.count("\n") > len(rejected):
                missed = 0
            yield answers, rejected
        number += len(batch)
        if logged is not None and missed > MAX_LINES_WITHOUT_EVENTS:
            yield from writer.flush(iter([writer.reject(number, NotEventError(NO_EVENTS))]))
            return


class _Memory(dict[_Key, str]):
    """A cache of strings. If the strings have too many characters, the cache is cleared."""

    def __init__(self, max_characters: int) -> None:
        super().__init__()
        self._max_characters = max_characters
        self._characters = 0

    def add(self, key: _Key, text: str, size: int) -> None:
        """Cache a string. `size` is the number of characters of the string, and of the key if keys are long."""
        self._characters += size
        if self._characters > self._max_characters:
            self.clear()
            self._characters = size
        self[key] = text


class LineExplainer:
    """Explains the requests in lines of JSON, and caches the answers.

    `rejected` contains the lines without a valid request, until `flush` yields them.
    """

    def __init__(
        self,
        explainer: Explainer,
        read: Callable[[object], Request],
        *,
        reasons: bool,
        logged: ExplainLogged | None = None,
        configuration: str = "",
    ) -> None:
        self._head = f'"schema": {SCHEMA}, "configuration": {encode_basestring_ascii(configuration)}'
        self._logged = logged
        self._explainer = explainer
        self._read = read
        self._reasons = reasons
        self.rejected: list[RejectedLine] = []
        self._by_line: _Memory[bytes] = _Memory(MAX_REMEMBERED_CHARACTERS)
        self._by_request: _Memory[Request] = _Memory(MAX_REMEMBERED_CHARACTERS)
        """Answers by request, because many audit events contain equal requests."""
        self._parts = [(key, build, _Memory[object](_MAX_PART_CHARACTERS)) for key, build in REPEATED_FIELDS]

    def flush(self, answers: Iterator[str]) -> Iterator[tuple[str, list[RejectedLine]]]:
        """Yield (text, rejected lines): several `answers` in one text, and the lines rejected while they were made."""
        while piece := "".join(islice(answers, _ANSWERS_PER_PIECE)):
            rejected, self.rejected = self.rejected, []
            yield sanitize_json(piece), rejected

    def explain_batch(self, first: int, lines: list[bytes]) -> Iterator[str]:
        """Yield the answers to lines. `first` is the number of the first line.

        An empty line has no answer. A line with a list has several answers.
        """
        for number, line in enumerate(lines, first):
            answer = self._by_line.get(line)
            if answer is None:
                yield from self._explain_new_line(number, line)
            else:
                yield answer

    def _explain_new_line(self, number: int, line: bytes) -> Iterator[str]:
        text = line.decode("utf-8", "replace")
        if self._logged is not None and (explained := self._logged(text)) is not None:
            if explained:
                yield f"{_encode(explained)}\n"
            return
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            if not text or text.isspace() or text.startswith("\ufeff") or find_prefix(text):
                yield from self.explain_text(number, text)
            else:
                yield self.reject(number, describe_json_error(error))
            return
        if not isinstance(value, dict) or unwrap_list(value) is not None:
            del value  # `explain_text` parses the list again, so free this copy
            yield from self.explain_text(number, text)
            return
        try:
            request = self._read(value)
            # `_by_line` already caches answers by line. Two audit events are never equal lines, even if their requests
            # are equal. So if the input is audit events (`_reasons` is set), answers are also cached by request. In all
            # other input, equal requests are usually equal lines.
            answer = self._explain(request) if self._reasons else self._encode(request)
        except UserError as error:
            yield self.reject(number, error)
            return
        self._by_line.add(line, answer, len(line) + len(answer))
        yield answer

    def explain_text(self, number: int, text: str) -> Iterator[str]:
        """Yield the answers to text that contains one JSON value, or one JSON value per line. The text begins on line `number`."""
        for value in read_json_values(text):
            error = value.error
            if error is None:
                try:
                    yield self._explain(self._read(value.value))
                    continue
                except UserError as problem:
                    error = problem
            yield self.reject(number + value.line - 1, error)

    def _explain(self, request: Request) -> str:
        answer = self._by_request.get(request)
        if answer is None:
            answer = self._encode(request)
            self._by_request.add(request, answer, len(answer))
        return answer

    def reject(self, number: int, error: UserError) -> str:
        """Record the error of a line without a valid request, and return this error as the answer."""
        self.rejected.append(RejectedLine.of(number, error))
        return f'{{{self._head}, "error": {encode_basestring_ascii(str(error))}, "inputLine": {number}}}\n'

    def _encode(self, request: Request) -> str:
        """Return the explanation of a request as a line of JSON. Fields that many explanations share are cached."""
        explanation = self._explainer.explain(request, reasons=self._reasons)
        values = request_json(request.info).values()
        info = _REQUEST % tuple(
            [
                encode_basestring_ascii(value) if isinstance(value, str) else "true" if value else "false"
                for value in values
            ]
        )
        members = [f'{self._head}, "request": {info}']
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
