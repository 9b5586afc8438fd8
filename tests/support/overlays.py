"""The recorded output of kubectl for the overlays in fixtures/stories/kustomize-overlays."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

STORY = Path(__file__).parents[2] / "fixtures" / "stories" / "kustomize-overlays"
OVERLAYS = ("staging", "prod", "canary", "edge")


def copy_story(directory: Path) -> Path:
    """Copy the kustomize project in `STORY` into a directory, without its recorded output.

    Return the root of the copy. The root has a directory `.git`, so that it looks like a git
    repository.
    """
    root = directory / "repository"
    shutil.copytree(STORY, root, ignore=shutil.ignore_patterns("built", "README.md"))
    (root / ".git").mkdir()
    return root


def use_recorded_kubectl(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide kustomize, and put a kubectl first in the PATH that prints the recorded output of `kubectl kustomize .../NAME`."""
    programs = directory / "recorded"
    programs.mkdir()
    script = f'#!/bin/sh\n[ "$1" = kustomize ] && exec {shutil.which("cat")} "{STORY}/built/$(basename "$2").txt"\n'
    (programs / "kubectl").write_text(script, encoding="utf-8")
    (programs / "kubectl").chmod(0o755)
    for needed in ("sh", "basename"):
        (programs / needed).symlink_to(str(shutil.which(needed)))
    monkeypatch.setenv("PATH", str(programs))
