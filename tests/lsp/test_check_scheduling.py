"""Sessions without a server process: checks that fail, take long, or finish after a further change."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from apflint.lsp import check_scheduling
from apflint.lsp.check_scheduling import Session

from .texts import UNKNOWN_FIELD

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from lsprotocol.types import LogMessageParams, PublishDiagnosticsParams

UNTITLED = "untitled:Untitled-1"


class RecordingEditor:
    """Records what a session reports."""

    def __init__(self) -> None:
        self.published: list[tuple[str, int | None, list[Any]]] = []
        self.logged: list[tuple[str, str]] = []

    def text_document_publish_diagnostics(self, params: PublishDiagnosticsParams) -> None:
        self.published.append((params.uri, params.version, [diagnostic.code for diagnostic in params.diagnostics]))

    def window_log_message(self, params: LogMessageParams) -> None:
        self.logged.append((params.type.name, params.message))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(check_scheduling, "CHECK_DELAY_SECONDS", 0.001)


def run_session(act: Callable[[Session], Coroutine[Any, Any, None]]) -> RecordingEditor:
    """Run a session and return what it reported."""

    async def whole() -> RecordingEditor:
        editor = RecordingEditor()
        await act(Session(editor))
        return editor

    return asyncio.run(whole())


def test_a_running_check_does_not_delay_the_end(capfd: pytest.CaptureFixture[str]) -> None:
    go, ended = threading.Event(), threading.Event()
    closed: list[bool] = []

    async def act(own: Session) -> None:
        def slow(*_: object, **__: object) -> NoReturn:
            go.wait()
            ended.set()
            raise ZeroDivisionError

        own._checker.check = slow  # type: ignore[method-assign] # a slow check
        own.open_document(UNTITLED, "yaml", 1, UNKNOWN_FIELD)
        own._start_check()
        await asyncio.sleep(0.01)
        closed.append(own.close())

    editor = run_session(act)
    go.set()
    assert ended.wait(10)
    assert closed == [False]
    assert (editor.published, editor.logged) == ([], [])
    assert capfd.readouterr() == ("", "")


def test_a_session_without_checks_is_closed() -> None:
    async def act(own: Session) -> None:
        assert own.close()

    assert run_session(act).published == []


def test_a_failed_check_is_logged_and_the_next_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(own: Session) -> None:
        true = own._checker.check

        def broken(*_: object, **__: object) -> NoReturn:
            raise ZeroDivisionError

        monkeypatch.setattr(own._checker, "check", broken)
        own.open_document(UNTITLED, "yaml", 1, UNKNOWN_FIELD)
        await own.wait_for_checks()
        monkeypatch.setattr(own._checker, "check", true)
        own.change_document(UNTITLED, 2, UNKNOWN_FIELD + "\n")
        await own.wait_for_checks()

    editor = run_session(act)
    ((severity, message),) = editor.logged
    assert severity == "Error"
    assert message.startswith("The check failed. This is a bug in apflint, please report it.\nTraceback")
    assert "ZeroDivisionError" in message
    assert [(uri, version, "APF101" in rules) for uri, version, rules in editor.published] == [(UNTITLED, 2, True)]


def test_requests_wait_for_a_check_at_most_for_a_limited_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_scheduling, "MAX_WAIT_SECONDS", 0.01)
    go = threading.Event()

    async def act(own: Session) -> None:
        own._executor.submit(go.wait)
        own.open_document(UNTITLED, "yaml", 1, UNKNOWN_FIELD)
        await own.wait_for_checks()
        assert own.result.documents == {}
        assert own.current_result(UNTITLED) is None
        go.set()
        monkeypatch.setattr(check_scheduling, "MAX_WAIT_SECONDS", 10)
        await own.wait_for_checks()
        answer = own.current_result(UNTITLED)
        assert answer is not None
        assert "APF101" in [finding.rule for finding in answer.findings]

    assert [version for _, version, _ in run_session(act).published] == [1]


def test_changes_during_a_check_are_published_after_the_next_one() -> None:
    entered, go = threading.Event(), threading.Event()

    async def act(own: Session) -> None:
        true = own._checker.check

        def slow(*expected: Any, **more: Any) -> Any:
            entered.set()
            go.wait()
            return true(*expected, **more)

        own._checker.check = slow  # type: ignore[method-assign] # so that the session ends during a check
        own.open_document(UNTITLED, "yaml", 1, UNKNOWN_FIELD)
        await asyncio.to_thread(entered.wait)
        own.change_document(UNTITLED, 2, UNKNOWN_FIELD.replace("x: 1", "y: 1"))
        go.set()
        await own.wait_for_checks()
        assert own.documents[UNTITLED].text == UNKNOWN_FIELD.replace("x: 1", "y: 1")
        assert own.current_result(UNTITLED) is not None
        own.change_document(UNTITLED, 3, UNKNOWN_FIELD)
        assert own.current_result(UNTITLED) is None  # the last check was of the previous text
        await own.wait_for_checks()

    assert [version for _, version, _ in run_session(act).published] == [2, 3]


def test_documents_without_apf_objects_are_not_checked() -> None:
    async def act(own: Session) -> None:
        own.open_document("untitled:a", "python", 1, UNKNOWN_FIELD)
        own.change_document("untitled:a", 2, UNKNOWN_FIELD)
        own.close_document("untitled:a")
        own.open_document(UNTITLED, "yaml", 1, "kind: ConfigMap\n")
        own.close_document(UNTITLED)
        assert own._requested == 0
        await own.wait_for_checks()
        assert own.documents == {}

    editor = run_session(act)
    assert (editor.published, editor.logged) == ([], [])
