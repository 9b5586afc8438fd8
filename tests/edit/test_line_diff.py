"""Unified diffs: `patch` can apply them, they equal the diffs of difflib, and the time grows linearly with the text."""

from __future__ import annotations

import difflib
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from apflint.edit.line_diff import write_unified_diff

if TYPE_CHECKING:
    from pathlib import Path

LINES = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "---\n", "--- d\n"]), max_size=25)


@pytest.mark.skipif(not shutil.which("patch"), reason="patch is not installed")
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, LINES)
@example([], ["a\n"])
@example(["a\n"], [])
@example(["a\n"] * 20, ["a\n"] * 9 + ["b\n"] + ["a\n"] * 10)
def test_patch_applies_the_diff(tmp_path: Path, old: list[str], new: list[str]) -> None:
    diff = "".join(write_unified_diff(old, new, "a/x", "b/x"))
    assert bool(diff) == (old != new)
    if diff:
        (tmp_path / "x").write_text("".join(old))
        command = ["patch", "--silent", "--fuzz=0", "-o", "y", "x"]
        subprocess.run(command, cwd=tmp_path, input=diff, text=True, check=True)
        assert (tmp_path / "y").read_text() == "".join(new)


@pytest.mark.parametrize("changed", [(3,), (3, 4, 5), (0, 7, 15, 29), (0, 6, 12, 13, 29)], ids=str)
def test_diff_equals_that_of_difflib(changed: tuple[int, ...]) -> None:
    old = [f"line {number}\n" for number in range(30)]
    new = [f"new {number}\n" if number in changed else line for number, line in enumerate(old)]
    assert list(write_unified_diff(old, new, "a", "b")) == list(difflib.unified_diff(old, new, "a", "b"))
    shorter = [line for number, line in enumerate(old) if number not in changed]
    assert list(write_unified_diff(old, shorter, "a", "b")) == list(difflib.unified_diff(old, shorter, "a", "b"))
    assert list(write_unified_diff(shorter, old, "a", "b")) == list(difflib.unified_diff(shorter, old, "a", "b"))


def test_lines_at_their_places_are_not_compared_with_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    longest = 0

    class Matcher(difflib.SequenceMatcher[str]):
        def __init__(self, junk: None, old: list[str], new: list[str]) -> None:
            nonlocal longest
            longest = max(longest, len(old))
            super().__init__(junk, old, new)

    monkeypatch.setattr(difflib, "SequenceMatcher", Matcher)
    old = ["---\n", "a\n", "b\n", "c\n"] * 1000
    assert len(list(write_unified_diff(old, [line.replace("b", "d") for line in old], "a", "b"))) > 4000
    assert longest == 0
    assert len(list(write_unified_diff(old, [line for line in old if line != "b\n"], "a", "b"))) > 3000
    assert longest == 4
