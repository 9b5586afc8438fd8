"""Progress is for people who wait at a terminal, and for nobody else."""

from __future__ import annotations

import io
import sys

import pytest

from apflint.cli import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "patience", "seen"), [(Terminal(), 0.0, True), (Terminal(), 60.0, False), (io.StringIO(), 0.0, False)]
)
def test_a_bar_after_a_second_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, patience: float, seen: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE", patience)
    assert list(progress.watched(range(5))) == [0, 1, 2, 3, 4]
    assert ("Reading" in stream.getvalue()) == seen


def test_a_run_that_ends_early_leaves_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    assert list(progress.watched([1])) == [1]
    assert stream.getvalue() == ""
