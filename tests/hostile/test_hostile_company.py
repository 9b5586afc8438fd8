"""A run has no side effects: it opens no connection, starts no program, and executes nothing from its input."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import pytest
from conftest import UNMEASURED
from limited import HEAD, NEIGHBOUR, WALL, apflint

from apflint.output.findings import FORMATS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

# This program runs apflint, and exits with 99 at the first event in FORBIDDEN. Python calls audit hooks such as `watch`
# when a program opens a connection, starts a process, and so on (PEP 578).
ALONE = """
import sys
FORBIDDEN = ("socket.", "urllib.", "http.", "ftplib.", "smtplib.", "subprocess.", "os.system", "os.exec", "os.fork",
             "os.spawn", "os.posix_spawn", "pty.", "webbrowser.", "ctypes.dlopen", "syslog.")
def watch(event, arguments):
    if event.startswith(FORBIDDEN):
        sys.__stderr__.write(f"NOT ALONE: {event} {arguments}\\n")
        sys.__stderr__.flush()
        import os
        os._exit(99)
sys.addaudithook(watch)
from apflint.cli.main import main
main()
"""
SUITE = "manifests: [bad.yaml]\ntests:\n  - request: get /x\n    as: alice\n    reaches: {flowSchema: catch-all}\n"
LINES = [
    "check .",
    "check --format sarif --report junit=x.xml --report github=y .",
    "check --baseline known.json --write-baseline .",
    "check --fix bad.yaml",
    "fix --diff .",
    "migrate .",
    "explain list pods -n x --as y",
    "explain --requests requests.jsonl",
    "limits .",
    "diff bad.yaml defaults:1.30",
    "shards",
    "graph --format svg bad.yaml",
    "graph --format html bad.yaml",
    "test suite.yaml",
    "defaults",
    "schema FlowSchema",
    "rule APF101",
    "config",
    "completion bash",
    "--help",
    "--version",
]


@pytest.mark.parametrize("line", LINES)
def test_no_network_and_no_other_programs(line: str, tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(NEIGHBOUR.replace("20000", '"1000"') + "  a: 1\n")
    (tmp_path / "remote.yaml").write_text("$schema: https://127.0.0.1:1/x\n" + NEIGHBOUR)
    (tmp_path / "suite.yaml").write_text(SUITE)
    (tmp_path / "requests.jsonl").write_text('{"user": "a", "groups": [], "method": "GET", "path": "/x"}\n')
    done = subprocess.run(
        [sys.executable, "-c", ALONE, *line.split()],
        cwd=tmp_path,
        env=UNMEASURED,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WALL,
        check=False,
    )
    assert "NOT ALONE" not in done.stderr
    assert done.returncode in (0, 1), done.stderr


NASTY = "a\x1b[31m\u202e::error::x%0A]]>&lt;b>|`*_<script>\n::warning::y"


@pytest.mark.parametrize("form", FORMATS)
def test_text_of_a_manifest_is_data_in_every_format(form: str, tmp_path: Path) -> None:
    """The output contains no workflow command of GitHub and no control character.
    tests/output/findings/test_read_back.py checks markup."""
    quoted = json.dumps(NASTY)
    (tmp_path / "bad.yaml").write_text(HEAD.replace("name: x", f"name: {quoted}") + f"  {quoted}: {quoted}\n")
    (tmp_path / "neighbour.yaml").write_text(NEIGHBOUR)
    run = apflint(tmp_path, "check", "--format", form, ".")
    assert run.status == 1
    assert "APF101" in run.out
    assert "neighbour.yaml" in run.out
    assert "\x1b" not in run.out
    assert "\u202e" not in run.out
    if form in ("json", "sarif", "gitlab"):
        json.loads(run.out)
    elif form == "junit":
        ET.fromstring(run.out)
    elif form == "github":
        assert all(line.startswith("::") for line in run.out.splitlines())
        assert "\n::error::x" not in run.out
        assert "\n::warning::y" not in run.out
    else:
        assert not any(line.startswith("::") for line in run.out.splitlines())
