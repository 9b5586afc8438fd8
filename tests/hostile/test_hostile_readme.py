"""The table of README.md names existing tests."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent


def test_every_test_that_is_named_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", (HERE / "README.md").read_text()))
    files = {path.stem: path.read_text() for path in HERE.glob("test_*.py")}
    defined = {name for text in files.values() for name in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    assert len(named) > 20
    assert named <= defined | set(files)
    assert set(files) - {"test_hostile_readme"} <= named
