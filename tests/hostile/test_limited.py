"""The limits that the other tests rely on: a run that takes too much time or memory fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

import limited
import pytest

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_that_takes_too_long_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match=r"0\.\d s of a processor that is \d"):
        limited.apflint(tmp_path, "check", "--help", seconds=0.001)


def test_a_run_that_never_ends_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "apflint.py").write_text("while True:\n    pass\n")  # Python searches the directory for modules first
    monkeypatch.setattr(limited, "HANGING", 1)
    with pytest.raises(AssertionError, match="killed by signal 9"):
        limited.apflint(tmp_path, "check")


def test_a_run_that_takes_too_much_memory_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "apflint.py").write_text("bytes(100_000_000)\n")
    assert limited.apflint(tmp_path).status == 0
    monkeypatch.setattr(limited, "BYTES", 90_000_000)
    with pytest.raises(AssertionError, match="MemoryError"):
        limited.apflint(tmp_path)


def test_a_slow_machine_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limited, "YARDSTICK", limited.YARDSTICK / 1_000)
    assert limited._slowness() > 100
    monkeypatch.setattr(limited, "YARDSTICK", 1_000)
    assert limited._slowness() == 1
