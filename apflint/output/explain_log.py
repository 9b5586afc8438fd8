"""Explanations of the requests in an audit log, or in kube-apiserver's own log, as text."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from apflint.budgets import MAX_LINES_WITHOUT_EVENTS
from apflint.output.explain import report_explanation
from apflint.output.server_log_comparison import report_logged
from apflint.output.text import render
from apflint.requests.audit_event import parse_event
from apflint.requests.json_lines import (
    NO_EVENTS,
    NotEventError,
    NotJsonError,
    RejectedLine,
    join_first_value,
    read_json_values,
)
from apflint.requests.server_log import is_server_log_line, parse_logged_request
from apflint.requests.server_log_comparison import LoggedComparer
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.output.console import Style
    from apflint.request_explanation import Explainer
    from apflint.requests.request import Request

_MAX_DOUBTFUL_LINES = 1_000
"""Maximum number of lines that are not JSON and whose errors are held back until the first request.

If this request shows that the input is kube-apiserver's own log, the lines are not errors, because such a log contains
other lines, too. Errors of further lines are reported immediately.
"""


class LogExplainer:
    """Explains the lines of an audit log, or of kube-apiserver's own log.

    `other_lines` is the number of lines in kube-apiserver's own log that are not about a request.
    """

    def __init__(self, explainer: Explainer, style: Style) -> None:
        self._comparer = LoggedComparer(explainer.known)
        self._style = style
        self._is_first = True
        self._is_server_log = False
        self._doubtful: list[RejectedLine] = []
        self.other_lines = 0

        @lru_cache(maxsize=256)  # most events in an audit log repeat an earlier request
        def answer(request: Request) -> str:
            return render(report_explanation(explainer.explain(request), style), style)

        self._answer = answer

    def explain(self, batches: Iterable[list[bytes]]) -> Iterator[tuple[str, list[RejectedLine]]]:
        """Yield (explanation, []) for each request, and ("", rejected lines) for lines without a valid event."""
        number, missed = 0, 0
        for batch in join_first_value(batches):
            is_line = not isinstance(batch, str)
            for text in (batch,) if isinstance(batch, str) else (line.decode("utf-8", "replace") for line in batch):
                number += 1
                missed += 1
                for answer, errors in self._explain_text(number, text, is_line=is_line):
                    missed = 0 if answer else missed
                    yield answer, errors
                if missed > MAX_LINES_WITHOUT_EVENTS:
                    yield "", [*self._doubtful, RejectedLine.of(number, NotEventError(NO_EVENTS))]
                    return
        yield "", self._doubtful

    def _explain_text(self, number: int, text: str, *, is_line: bool) -> Iterator[tuple[str, list[RejectedLine]]]:
        if is_line:
            logged = parse_logged_request(text)
            if logged is not None:
                self._is_server_log = True
                self.other_lines += len(self._doubtful)
                self._doubtful.clear()
                blocks = report_logged(logged, self._comparer.compare(logged))
                yield self._separate(render(blocks, self._style)), []
                return
            if is_server_log_line(text):
                self.other_lines += 1
                return
        for value in read_json_values(text):
            error = value.error
            if error is None:
                try:
                    answer = self._answer(parse_event(value.value))
                except UserError as problem:
                    error = problem
                else:
                    yield self._separate(answer), []
                    continue
            elif isinstance(error, NotJsonError) and self._is_server_log:
                self.other_lines += 1
                continue
            line = RejectedLine.of(number + value.line - 1, error)
            if isinstance(error, NotJsonError) and len(self._doubtful) < _MAX_DOUBTFUL_LINES:
                self._doubtful.append(line)
            else:
                yield "", [line]

    def _separate(self, answer: str) -> str:
        """Return the answer with an empty line before it, except for the first answer."""
        separator = "" if self._is_first else "\n"
        self._is_first = False
        return separator + answer
