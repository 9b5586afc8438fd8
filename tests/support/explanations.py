"""What `apflint explain` answers to the commands that findings show."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def explain(
    text: str, directory: Path, capsys: pytest.CaptureFixture[str], *manifests: dict[str, Any]
) -> dict[str, Any]:
    """Run the `apflint explain` command in a text with these manifests, and return its JSON output."""
    for index, manifest in enumerate(manifests):
        (directory / f"{index}.json").write_text(json.dumps(manifest), encoding="utf-8")
    command = re.search(r"`apflint explain (.*?)`", text)
    assert command is not None, text
    assert run(["explain", *shlex.split(command[1]), "-f", str(directory), "--format", "json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer
