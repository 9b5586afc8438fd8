"""`apflint explain --requests`: lines of JSON in, lines of JSON out, many of them a second.

Three things make it fast: a line that was seen before has the same answer, parts of an answer that depend on little (the
user, the FlowSchema, the flow) are written once, and nothing but the piece at hand is in memory.
"""

from __future__ import annotations

import json
import sys
from itertools import chain, islice
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, TypeVar

from apflint.budgets import MAX_FILE_BYTES
from apflint.errors import UserError
from apflint.evaluate.classify import MAX_REMEMBERED
from apflint.evaluate.requestinfo import parse_request_info
from apflint.output.explain import (
    flow_json,
    outcome_json,
    reasons_json,
    remarks_json,
    request_json,
    resolution_json,
    user_json,
)
from apflint.output.sanitize import sanitize_json
from apflint.requests.json_lines import describe_json_error, read_json_values
from apflint.requests.log_envelopes import strip_timestamp, unwrap_list

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from apflint.evaluate.classify import MatchedBy
    from apflint.evaluate.flows import Flow
    from apflint.evaluate.match import UserInfo
    from apflint.output.explain import Explainer, Explanation
    from apflint.requests.request import Request

K = TypeVar("K")
V = TypeVar("V")

_PIECE = 1 << 20
_KEPT_CHARACTERS = 32 * 1024 * 1024
_SOME = 1_000
"""Answers to the parts of one value that are given at once."""
_encode = json.JSONEncoder().encode
_REQUEST = "{" + ", ".join(f'"{key}": %s' for key in request_json(parse_request_info("GET", "/"))) + "}"
"""A request in JSON without its values, which are texts and truth values: filled in twice as fast as encoded."""


class Answers:
    """Turns lines of requests into lines of answers."""

    def __init__(self, explainer: Explainer, read: Callable[[object], Request], *, reasons: bool) -> None:
        self._explainer = explainer
        self._read = read
        self._reasons = reasons
        self.errors: list[tuple[int, str]] = []
        """What was no request since somebody last looked: the line, and a sentence."""
        self.seen: dict[bytes, str] = {}
        """Lines and their answers."""
        self._users: dict[UserInfo, str] = {}
        self._flows: dict[Flow, str] = {}
        self._remarks: dict[tuple[str | None, tuple[str, ...]], str] = {}
        self._ends: dict[tuple[int, MatchedBy | None], tuple[str, str]] = {}
        self._answers: dict[Request, str] = {}
        """Answers to requests, which are the same in many audit events."""
        self._kept = 0
        """Characters in `seen` and `_answers`, which may be a thousand for a request, or ten thousand."""

    def line(self, number: int, line: bytes) -> Iterator[str]:
        """The answers to one line, each ending in a newline; none for a blank one, several for a list."""
        text = line.decode("utf-8", "replace")
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            blank = not text or text.isspace() or text.startswith("\ufeff") or strip_timestamp(text) is not text
            yield from self.texts(number, text) if blank else (self._refused(number, describe_json_error(error)),)
            return
        if not isinstance(value, dict) or unwrap_list(value) is not value:
            del value  # a list, which is read again: there must not be two of it in memory
            yield from self.texts(number, text)
            return
        try:
            request = self._read(value)
            # Lines of equal audit events differ, so their answers are remembered by the request. Equal requests are equal lines.
            answer = self._answer(request) if self._reasons else self._compose(request)
        except UserError as error:
            yield self._refused(number, str(error))
            return
        self._make_room(len(line))
        yield _remember(self.seen, line, answer)

    def _make_room(self, size: int) -> None:
        self._kept += size
        if self._kept > _KEPT_CHARACTERS:
            self.seen.clear()
            self._answers.clear()
            self._kept = size

    def _answer(self, request: Request) -> str:
        """Return the answer to a request, from memory if it was asked before."""
        answer = self._answers.get(request)
        if answer is None:
            answer = self._compose(request)
            self._make_room(len(answer))
            self._answers[request] = answer
        return answer

    def texts(self, number: int, text: str) -> Iterator[str]:
        """The answers to a text that begins on line `number`: one JSON value, or one a line."""
        for value in read_json_values(text):
            problem = value.error
            if problem is None:
                try:
                    yield self._answer(self._read(value.value))
                    continue
                except UserError as error:
                    problem = str(error)
            yield self._refused(number + value.line - 1, problem)

    def _refused(self, number: int, problem: str) -> str:
        self.errors.append((number, problem))
        return f'{{"error": {encode_basestring_ascii(problem)}, "inputLine": {number}}}\n'

    def _compose(self, request: Request) -> str:
        """`apflint.output.explain.as_json` as a line, from parts that were written before."""
        answer = self._explainer.explain(request, reasons=self._reasons)
        info = request_json(request.info)
        user = self._users.get(request.user)
        if user is None:
            user = _remember(self._users, request.user, _encode(user_json(request.user)))
        flow = self._flows.get(answer.flow)
        if flow is None:
            flow = _remember(self._flows, answer.flow, _encode(flow_json(answer.flow)))
        resolution = answer.resolution
        ends = self._ends.get((resolution.position, resolution.matched_by))
        if ends is None:
            ends = self._end(answer)
        remarks = self._remarks.get((answer.unseen, request.notes))
        if remarks is None:
            remarks = _remember(self._remarks, (answer.unseen, request.notes), _members(remarks_json(answer)))
        more = f", {_members(reasons_json(answer, self._explainer.limits))}" if self._reasons else ""
        return f'{{"request": {_REQUEST % tuple(map(_scalar, info.values()))}, "user": {user}, {ends[0]}, "flow": {flow}, {ends[1]}, {remarks}{more}}}\n'

    def _end(self, answer: Explanation) -> tuple[str, str]:
        resolution = answer.resolution
        parts = _members(resolution_json(resolution)), _members(outcome_json(answer, self._explainer.limits))
        return _remember(self._ends, (resolution.position, resolution.matched_by), parts)


def _scalar(value: str | bool) -> str:
    return encode_basestring_ascii(value) if isinstance(value, str) else "true" if value else "false"


def _members(value: dict[str, Any]) -> str:
    return _encode(value)[1:-1]


def _remember(memory: dict[K, V], key: K, value: V) -> V:
    if len(memory) >= MAX_REMEMBERED:
        memory.clear()
    memory[key] = value
    return value


def answers(
    explainer: Explainer, read: Callable[[object], Request], pieces: Iterable[bytes], *, reasons: bool
) -> Iterator[tuple[str, list[tuple[int, str]]]]:
    """For each piece of an input the lines of answers to it, and the lines in it that are no request, with a sentence each.

    An input is one JSON value or one a line. Raises ValueError for text that is not UTF-8 and for an endless line.
    """
    known = Answers(explainer, read, reasons=reasons)
    batches = _batches(pieces)
    head: list[list[bytes]] = []
    opening = b""
    for batch in batches:
        head.append(batch)
        opening = next((line for line in batch if line.strip()), b"")
        if opening:
            break
    if _is_beginning(opening):
        size = 0
        for batch in batches:
            head.append(batch)
            size += sum(map(len, batch))
            if size > MAX_FILE_BYTES:  # too much for one value: a log that begins in the middle of a line
                break
        else:
            whole = known.texts(1, b"\n".join(chain.from_iterable(head)).decode("utf-8", "replace"))
            head.clear()
            while some := "".join(islice(whole, _SOME)):
                yield sanitize_json(some), known.errors
                known.errors = []
            return
    number = 1
    for batch in chain(head, batches):
        seen = known.seen.get
        parts: list[str] = []
        for at, line in enumerate(batch, number):
            answer = seen(line)
            if answer is not None:
                parts.append(answer)
                continue
            for part in known.line(at, line):  # a list of thousands of events may be one line
                parts.append(part)
                if len(parts) >= _SOME:
                    yield sanitize_json("".join(parts)), known.errors
                    known.errors = []
                    parts.clear()
        number += len(batch)
        yield sanitize_json("".join(parts)), known.errors
        known.errors = []


def _batches(pieces: Iterable[bytes]) -> Iterator[list[bytes]]:
    """The whole lines of each piece, without their newlines."""
    parts: list[bytes] = []  # of a line that has not ended yet
    size = 0
    for at, piece in enumerate(pieces):
        if at == 0 and piece.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise ValueError("the requests are in UTF-16; write them in UTF-8")
        parts.append(piece.removeprefix(b"\xef\xbb\xbf") if at == 0 else piece)
        size += len(piece)
        if b"\n" in piece:
            *lines, rest = b"".join(parts).split(b"\n")
            parts, size = [rest], len(rest)
            yield lines
        if size > MAX_FILE_BYTES:
            raise ValueError(f"a line of the requests is longer than {MAX_FILE_BYTES >> 20} MiB")
    if rest := b"".join(parts):
        yield [rest]


def _is_beginning(line: bytes) -> bool:
    """Whether a line is only the beginning of a JSON value that goes on below: what is missing is missing at its end."""
    text = line.decode("utf-8", "replace").strip()
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text)
    except (ValueError, RecursionError):
        return False
    return False


def pieces_of(path: str) -> Iterator[bytes]:
    """The bytes of a file, or of standard input for `-`, as they come. Raises OSError where they cannot be had."""
    if path == "-":
        stream = getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise ValueError("standard input is closed: connect it to a pipe or a file")
        while piece := stream.read1(_PIECE):
            yield piece
        return
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(_PIECE):
            yield piece
