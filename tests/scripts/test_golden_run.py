"""`scripts/golden_run.py`: a case in a fork prints what a new process prints, and a changed byte is found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, get_args

import pytest
from golden.cases import COMMANDS, SCHEMAS, line

from apflint.cli.app import COMMANDS as ALL_COMMANDS
from apflint.cli.commands.schema import Name

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="scripts/golden_run.py forks")
MANIFEST = b"apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: a}\n"


def run_script(root: Path, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(root / "scripts/golden_run.py"), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("text", "status"),
    [("--help", 0), ("rule APF305 --format json", 0), ("check -", 1), ("check --nope", 2), ("limits missing.yaml", 2)],
)
def test_fork_prints_what_a_new_process_prints(
    text: str, status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from golden_run import run_case  # imported here, because Windows cannot import this module

    (tmp_path / "work/here").mkdir(parents=True)
    monkeypatch.setenv("COLUMNS", "80")
    forked, new = (run_case(line(text, stdin=MANIFEST, new=new), tmp_path) for new in (False, True))
    assert forked == new
    assert forked.startswith(f"$ cd here && apflint {text}\nexit status {status}\n".encode())


def test_files_that_a_case_changes_are_recorded(tmp_path: Path) -> None:
    from golden_run import run_case

    directory = tmp_path / "work/here"
    directory.mkdir(parents=True)
    (directory / "same.yaml").write_bytes(MANIFEST)
    text = run_case(line("check --report concise=new.txt .", writes=True), tmp_path)
    assert b"--- new.txt\nsame.yaml:" in text
    assert b"--- same.yaml" not in text
    assert [path.name for path in directory.iterdir()] == ["same.yaml"]


def test_recording_has_no_temporary_paths_and_a_changed_byte_is_found(root: Path, tmp_path: Path) -> None:
    before, after = tmp_path / "before", tmp_path / "after"
    done = run_script(root, "record", before, "--only", "test_fixtures_policy")
    assert done.returncode == 0, done.stderr
    files = sorted(before.glob("test/*.txt"))
    assert len(files) >= 10
    assert not any(b"/golden-" in path.read_bytes() for path in files)
    shutil.copytree(before, after)
    assert run_script(root, "compare", before, after).stdout == f"0 of {len(files)} cases differ\n"
    changed, missing = (after / path.relative_to(before) for path in files[:2])
    changed.write_bytes(changed.read_bytes().replace(b"exit status ", b"exit status 7"))
    missing.unlink()
    done = run_script(root, "compare", before, after)
    assert done.returncode == 1
    assert "+exit status 7" in done.stdout
    assert done.stdout.endswith(f"2 of {len(files)} cases differ\n  test: 2 of {len(files)}\n")


def test_wrong_directories_are_errors(root: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "is not empty" in run_script(root, "record", tmp_path).stderr
    assert "is not a checkout" in run_script(root, "record", tmp_path / "new", "--apflint", tmp_path).stderr
    assert run_script(root, "compare", tmp_path, tmp_path).returncode == 1


def test_every_command_and_schema_has_cases() -> None:
    assert set(COMMANDS) == set(ALL_COMMANDS)
    assert set(SCHEMAS) == set(get_args(Name))
