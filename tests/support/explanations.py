"""Runs the `apflint explain` commands that findings contain."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

from apflint.cli.app import run
from apflint.releases import NEWEST

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def explain(
    command: str | None, directory: Path, capsys: pytest.CaptureFixture[str], *manifests: dict[str, Any]
) -> dict[str, Any]:
    """Run the `apflint explain` command in the example of a finding, with these manifests. Return its JSON output."""
    for index, manifest in enumerate(manifests):
        (directory / f"{index}.json").write_text(json.dumps(manifest), encoding="utf-8")
    assert command is not None
    program, *arguments = shlex.split(command)
    assert program == "apflint"
    source = str(directory) if any(directory.iterdir()) else f"defaults:{NEWEST.name}"
    assert run([*arguments, "-f", source, "--format", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer
