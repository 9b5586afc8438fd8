"""Runs the tests of replay in an empty directory, because replay reads the manifests of the current directory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def empty_directory(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty directory."""
    directory = tmp_path_factory.mktemp("empty")
    monkeypatch.chdir(directory)
    return directory
