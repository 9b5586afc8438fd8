"""The README shows the output of apflint."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

from apflint.cli.app import run

if TYPE_CHECKING:
    import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_first_command_prints_the_output_in_the_readme(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    monkeypatch.chdir(root)
    block = re.search(r"```console\n\$ (.*?)\n(.*?)```", README, re.DOTALL)
    assert block is not None
    command = shlex.split(block[1].rpartition("&&")[2])
    assert command[0] == ".venv/bin/apflint"

    assert run(command[1:]) == 1

    printed = capsys.readouterr()
    assert printed.out + printed.err == block[2]


def test_every_command_in_the_table_exists(capsys: pytest.CaptureFixture[str]) -> None:
    named = set(re.findall(r"^\| `apflint (\w+)", README, re.MULTILINE))
    assert named >= {"check", "rule", "schema", "defaults"}
    for command in sorted(named):
        assert run([command, "--help"]) == 0
        assert f"apflint {command}" in capsys.readouterr().out
