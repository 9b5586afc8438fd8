"""File system entries other than regular files: each is skipped or a clear error, and valid files are still checked."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from limited import HEAD, NEIGHBOUR, apflint, can_be_ordinary, checked, ordinary

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def test_a_directory_named_like_a_manifest(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").mkdir()
    (tmp_path / "bad.yaml" / "inner.yaml").write_text(HEAD + "  a: 1\n")
    _, findings = checked(tmp_path)
    assert [finding["file"] for finding in findings] == ["bad.yaml/inner.yaml"]


def test_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").symlink_to("nowhere.yaml")
    run, findings = checked(tmp_path)
    assert findings == []
    assert "bad.yaml: Symbolic link to something that does not exist." in run.err
    assert run.status == 2


def test_links_in_a_loop(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").symlink_to("b.yaml")
    (tmp_path / "b.yaml").symlink_to("a.yaml")
    (tmp_path / "directory").mkdir()
    (tmp_path / "directory" / "up").symlink_to(tmp_path)
    (tmp_path / "directory" / "up.yaml").symlink_to(tmp_path)
    run, findings = checked(tmp_path)
    assert findings == []
    assert "refers back to itself" in run.err
    assert run.status == 2


def test_a_named_pipe(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "bad.yaml")
    run, findings = checked(tmp_path)
    assert findings == []
    assert "bad.yaml: This is a named pipe" in run.err
    assert run.status == 2


def test_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # the absolute path may exceed the maximum length of a socket name
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("bad.yaml")
        run, _ = checked(tmp_path)
    assert "bad.yaml: This is a socket" in run.err
    assert run.status == 2


def test_a_device(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").symlink_to("/dev/zero")
    run, _ = checked(tmp_path)
    assert "bad.yaml: This is a device" in run.err
    assert run.status == 2


@pytest.mark.skipif(not can_be_ordinary(), reason="whoever runs this may read everything, and cannot give that up")
def test_what_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(HEAD)
    (tmp_path / "bad.yaml").chmod(0)
    (tmp_path / "directory").mkdir(mode=0)
    (tmp_path / "neighbour.yaml").write_text(NEIGHBOUR)
    run = apflint(tmp_path, "check", ".", first=ordinary)
    assert "bad.yaml: Permission denied.\n" in run.err
    assert "directory/: Permission denied" in run.err
    assert "APF201" in run.out
    assert run.status == 2


@pytest.mark.parametrize("name", ["gone.yaml", "gone/", "neighbour.yaml/x.yaml", "x" * 5000])
def test_a_path_that_is_not_there(name: str, tmp_path: Path) -> None:
    (tmp_path / "neighbour.yaml").write_text(NEIGHBOUR)
    run = apflint(tmp_path, "check", name, "neighbour.yaml")
    assert "APF201" in run.out
    assert name in run.err
    assert run.status == 2


def test_a_file_of_100_megabytes_that_holds_nothing_of_ours(tmp_path: Path) -> None:
    with (tmp_path / "bad.yaml").open("wb") as file:
        file.truncate(100_000_000)
    run, findings = checked(tmp_path)
    assert findings == []
    assert run.status == 1


def test_a_file_of_100_megabytes_that_does(tmp_path: Path) -> None:
    with (tmp_path / "bad.yaml").open("wb") as file:
        file.write(HEAD.encode())
        file.truncate(100_000_000)
    run, findings = checked(tmp_path)
    assert findings == []
    assert "bad.yaml: The file has 100 MB" in run.err
    assert run.status == 2


def test_names_with_control_characters(tmp_path: Path) -> None:
    """`checked` asserts that the output has no control characters."""
    (tmp_path / "bad\x1b[31m\r\n::error::.yaml").write_text(HEAD + "  a: 1\n")
    (tmp_path / os.fsdecode(b"bad\xff.yaml")).write_text(HEAD + "  b: 1\n")
    (tmp_path / "bad\x1b[31m.json").symlink_to("nowhere")
    _, findings = checked(tmp_path, printed=True)
    assert [finding["field"] for finding in findings if finding["rule"] == "APF101"] == ["spec.a", "spec.b"]


def test_standard_input_that_is_closed_or_empty(tmp_path: Path) -> None:
    assert apflint(tmp_path, "check", "-", stdin=b"").status == 0
    assert apflint(tmp_path, "check", "-", stdin=b"\xff\xfe\0").status in (0, 1)


def test_a_file_that_vanishes_between_finding_and_reading(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text(HEAD)
    (tmp_path / "neighbour.yaml").write_text(NEIGHBOUR)
    command = [sys.executable, "-m", "apflint", "check", "-", "bad.yaml", "neighbour.yaml"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        # More than fits into a pipe. So when the write returns, apflint reads standard input, and has found all files.
        process.stdin.write("# nothing\n" * 200_000)
        (tmp_path / "bad.yaml").unlink()
        out, err = process.communicate(timeout=60)
    assert "bad.yaml: No such file or directory." in err
    assert "APF201" in out
    assert process.returncode == 2


@pytest.mark.parametrize(
    "command",
    ["limits .", "graph .", "diff defaults:1.37 .", "explain list pods --as a -f .", "explain list pods --as a"],
)
def test_a_dangling_link_costs_a_warning_and_not_the_answer(command: str, tmp_path: Path) -> None:
    (tmp_path / "good.yaml").write_text(HEAD)
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    run = apflint(tmp_path, *command.split())
    assert run.status == 0
    assert run.out
    assert "apflint: gone.yaml: Symbolic link to something that does not exist. apflint ignores the file\n" in run.err


def test_a_dangling_link_that_is_named_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    run = apflint(tmp_path, "limits", "gone.yaml")
    assert (run.status, run.out) == (2, "")
