"""The README: the messages that it shows are those of apflint, and its commands and hooks exist."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import yaml

from apflint.cli.app import run
from apflint.releases import NEWEST, parse_release

if TYPE_CHECKING:
    import pytest

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")
ACCEPTED_BUT_WRONG = "fixtures/stories/accepted-but-wrong"


def test_set_up_command_is_that_of_the_sample_output(root: Path) -> None:
    """The command at the start is the one whose output the README shows. tests/test_docs.py compares the output."""
    block = re.search(r"^\$ (python3 -m venv .*)$", README, re.MULTILINE)
    assert block is not None
    command = block[1].rpartition("&& .venv/bin/")[2]
    assert f"$ {command}\n" in (root / "docs" / "sample-output.md").read_text(encoding="utf-8")


def test_first_screen_begins_with_what_readers_have() -> None:
    """The first commands need only a cluster, manifests or an audit log. tests/test_docs.py compares their output."""
    screen = README.partition("\n## ")[0]
    commands = re.findall(r"^\$ apflint (\w+)", screen, re.MULTILINE)
    assert commands == ["doctor", "check", "replay"]
    assert "`apflint check --live`" in screen


def test_newest_release_is_not_called_recorded() -> None:
    recorded = re.search(r"recorded from kube-apiservers of seven releases, 1\.21 to ([\d.]+)", README)
    assert recorded is not None
    assert parse_release(recorded[1]).minor < NEWEST.minor
    assert f"{NEWEST.name}, the default, follow" in README


def test_api_server_accepts_the_story(capsys: pytest.CaptureFixture[str], root: Path) -> None:
    run(["check", "--isolated", "--format", "json", str(root / ACCEPTED_BUT_WRONG)])
    assert [finding for finding in json.loads(capsys.readouterr().out)["findings"] if finding["apiserver"]] == []


def test_pre_commit_hook_exists(root: Path) -> None:
    entry = re.search(r"`(\{repo: .*\})`", README)
    assert entry is not None
    hooks = yaml.safe_load((root / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {hook["id"] for hook in yaml.safe_load(entry[1])["hooks"]} <= {hook["id"] for hook in hooks}


def test_commands_exist(capsys: pytest.CaptureFixture[str]) -> None:
    named = {shlex.split(line)[1] for line in re.findall(r"`(?:uvx |kubectl )?(apflint \w[^`]*)`", README)}
    assert "check" in named
    for command in sorted(named):
        assert run([command, "--help"]) == 0
        assert f"apflint {command}" in capsys.readouterr().out


def test_picture_is_what_apflint_prints(root: Path) -> None:
    """Only the words of the picture are compared, because its layout depends on the version of rich."""
    picture = (root / "docs/images/terminal.svg").read_text(encoding="utf-8")
    words = " ".join(re.sub(r"<[^>]*>", " ", picture.replace("&#160;", " ")).split())
    done = subprocess.run(
        [sys.executable, "-m", "apflint", "check", "--isolated", "ci.yaml"],
        cwd=root / ACCEPTED_BUT_WRONG,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout
    for word in re.findall(r"\w+", done.stdout):
        assert word in words
