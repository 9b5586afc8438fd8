"""Fixtures for sessions with the language server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .texts import FLOW, LEVEL

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory with a FlowSchema that has one mistake, its priority level, and settings that ignore all other findings."""
    (tmp_path / "apflint.toml").write_text("complete = true\nignore = ['APF512', 'APF603']\n")
    (tmp_path / "flow.yaml").write_text(FLOW)
    (tmp_path / "level.yaml").write_text(LEVEL)
    return tmp_path
