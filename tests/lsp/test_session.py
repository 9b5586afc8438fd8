"""The session behind the server, without a process: what becomes of checks that fail, take too long, or come too late."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from apflint.lsp import session
from apflint.lsp.positions import Change, Position, Range
from apflint.lsp.session import Session
from apflint.lsp.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from pathlib import Path

    from apflint.lsp.diagnostics import Diagnostic

TEXT = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\nspec: {x: 1}\n"
UNTITLED = "untitled:Untitled-1"


class Told:
    """An editor that remembers what it was told."""

    def __init__(self) -> None:
        self.shown: list[tuple[str, int | None, list[str]]] = []
        self.said: list[tuple[str, str]] = []

    def show(self, uri: str, version: int | None, diagnostics: list[Diagnostic]) -> None:
        self.shown.append((uri, version, [one.rule for one in diagnostics]))

    def say(self, severity: str, message: str) -> None:
        self.said.append((severity, message))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(session, "DELAY", 0.001)


def played(play: Callable[[Session], Coroutine[Any, Any, None]]) -> Told:
    """What the editor is told while a session goes on."""

    async def whole() -> Told:
        editor = Told()
        await play(Session(editor))
        return editor

    return asyncio.run(whole())


def test_a_job_that_fails_is_told_to_who_asked_and_the_next_is_done() -> None:
    def failing() -> NoReturn:
        raise LookupError("x")

    async def asked() -> None:
        worker = Worker()
        failed, done = worker.run(failing), worker.run(lambda: 7)
        with pytest.raises(LookupError, match="x"):
            await failed
        assert await done == 7

    asyncio.run(asked())


def test_whoever_no_longer_waits_is_told_nothing() -> None:
    go = threading.Event()

    async def asked() -> int:
        worker = Worker()
        waiting, next_one = worker.run(go.wait), worker.run(lambda: 7)
        waiting.cancel()
        go.set()
        return await next_one

    assert asyncio.run(asked()) == 7


def test_an_answer_that_comes_after_the_end_is_dropped() -> None:
    go, done = threading.Event(), threading.Event()

    async def asked() -> Worker:
        worker = Worker()
        worker.run(go.wait)
        return worker

    worker = asyncio.run(asked())
    go.set()

    async def again() -> None:
        await worker.run(done.set)

    asyncio.run(again())
    assert done.is_set()


def test_a_check_that_fails_is_said_and_the_next_one_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play(own: Session) -> None:
        true = own._all.check

        def broken(*_: object, **__: object) -> NoReturn:
            raise ZeroDivisionError

        monkeypatch.setattr(own._all, "check", broken)
        own.opened(UNTITLED, "yaml", 1, TEXT)
        await own.settled()
        monkeypatch.setattr(own._all, "check", true)
        own.changed(UNTITLED, 2, [Change(None, TEXT + "\n")])
        await own.settled()

    editor = played(play)
    ((severity, said),) = editor.said
    assert severity == "error"
    assert said.startswith("The check failed. This is a bug in apflint, please report it.\nTraceback")
    assert "ZeroDivisionError" in said
    assert [(uri, version, "APF101" in rules) for uri, version, rules in editor.shown] == [(UNTITLED, 2, True)]


def test_nobody_waits_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "PATIENCE", 0.01)
    go = threading.Event()

    async def play(own: Session) -> None:
        own._worker.run(go.wait)
        own.opened(UNTITLED, "yaml", 1, TEXT)
        await own.settled()
        assert own.round is None
        assert own.answer(UNTITLED) is None
        go.set()
        monkeypatch.setattr(session, "PATIENCE", 10)
        await own.settled()
        answer = own.answer(UNTITLED)
        assert answer is not None
        assert "APF101" in [one.rule for one in answer.findings]

    assert [version for _, version, _ in played(play).shown] == [1]


def test_what_changed_during_a_check_is_shown_after_the_next_one() -> None:
    entered, go = threading.Event(), threading.Event()

    async def play(own: Session) -> None:
        true = own._all.check

        def slow(*wanted: Any, **more: Any) -> Any:
            entered.set()
            go.wait()
            return true(*wanted, **more)

        own._all.check = slow  # type: ignore[method-assign]  # to be in the middle of it
        own.opened(UNTITLED, "yaml", 1, TEXT)
        await asyncio.to_thread(entered.wait)
        own.changed(UNTITLED, 2, [Change(Range(Position(3, 7), Position(3, 8)), "y")])
        go.set()
        await own.settled()
        assert own.documents[UNTITLED].text == TEXT.replace("x: 1", "y: 1")
        assert own.answer(UNTITLED) is not None
        own.changed(UNTITLED, 3, [Change(None, TEXT)])
        assert own.answer(UNTITLED) is None  # of the text before
        await own.settled()

    assert [version for _, version, _ in played(play).shown] == [2, 3]


def test_what_is_not_ours_is_not_checked() -> None:
    async def play(own: Session) -> None:
        own.opened("untitled:a", "python", 1, TEXT)
        own.changed("untitled:a", 2, [Change(None, TEXT)])
        own.closed("untitled:a")
        own.opened(UNTITLED, "yaml", 1, "kind: ConfigMap\n")
        own.closed(UNTITLED)
        assert own._wanted == 0
        await own.settled()
        assert own.documents == {}

    editor = played(play)
    assert (editor.shown, editor.said) == ([], [])
