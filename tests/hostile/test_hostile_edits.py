"""Edits of files that change, disappear or are read-only: a file has either its complete old or its complete new
content."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest
from conftest import UNMEASURED
from limited import HEAD, WALL, apflint, can_be_ordinary, ordinary

from apflint.atomic_write import write_atomically
from apflint.cli.error_reporting import run_and_report_errors
from apflint.edit import file_content

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

FIXABLE = (HEAD + '  matchingPrecedence: "1000"\n').encode()
FIXED = FIXABLE.replace(b'"', b"")
EDITING = ["fix", "check --fix", "migrate --to v1"]
OLD = FIXABLE.replace(b"/v1\n", b"/v1beta3\n")
"""A manifest with a fixable finding."""
MOVABLE = FIXED.replace(b"/v1\n", b"/v1beta3\n")
"""A manifest that can be migrated to v1."""


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "bad.yaml").write_bytes(FIXABLE)
    (tmp_path / "other.yaml").write_bytes(FIXABLE.replace(b"name: x", b"name: other"))
    yield tmp_path
    tmp_path.chmod(0o755)


def names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))


def edited_meanwhile(directory: Path, then: Callable[[Path], object]) -> subprocess.CompletedProcess[str]:
    """Run `apflint fix bad.yaml other.yaml`, and change bad.yaml after apflint has read it and before it writes it."""
    command = [sys.executable, "-m", "apflint", "fix", "bad.yaml", "--isolated", "other.yaml", "-"]
    with subprocess.Popen(
        command,
        cwd=directory,
        env=UNMEASURED,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        process.stdin.write(
            "# nothing\n" * 200_000
        )  # more than fits into a pipe, so when the write returns, apflint has read the files
        then(directory / "bad.yaml")
        out, err = process.communicate(timeout=WALL)
    assert "Traceback" not in err
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def becomes_a_link(path: Path) -> None:
    path.unlink()
    path.symlink_to("elsewhere.yaml")
    (path.parent / "elsewhere.yaml").write_text("# mine\n")


def becomes_a_directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def becomes_a_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize(
    ("then", "reason"),
    [
        (lambda path: path.write_text("# mine\n"), "another process has changed it"),
        (lambda path: path.write_bytes(FIXABLE + b"# more\n"), "another process has changed it"),
        (lambda path: path.write_bytes(FIXABLE[:-1]), "another process has changed it"),
        (lambda path: path.unlink(), "No such file or directory"),
        (becomes_a_link, "another process has changed it"),
        (becomes_a_directory, "it is not a regular file"),
        (becomes_a_pipe, "it is not a regular file"),
    ],
    ids=["other text", "more text", "less text", "gone", "a link", "a directory", "a pipe"],
)
def test_file_that_changed_meanwhile_is_not_written(
    then: Callable[[Path], object], reason: str, directory: Path
) -> None:
    done = edited_meanwhile(directory, then)
    assert f"bad.yaml: not written: {reason}\n" in done.stderr
    assert (directory / "other.yaml").read_bytes() == FIXED.replace(b"name: x", b"name: other")
    assert done.returncode == 2
    assert set(names(directory)) <= {"bad.yaml", "elsewhere.yaml", "other.yaml"}
    if (directory / "elsewhere.yaml").exists():
        assert (directory / "elsewhere.yaml").read_text() == "# mine\n"


def test_what_is_gone_before_it_is_read(directory: Path) -> None:
    (directory / "bad.yaml").unlink()
    run = apflint(directory, "fix", "bad.yaml", "other.yaml")
    assert "bad.yaml: No such file or directory." in run.err
    assert (directory / "other.yaml").read_bytes() == FIXED.replace(b"name: x", b"name: other")
    assert run.status == 2


@pytest.mark.skipif(not can_be_ordinary(), reason="whoever runs this may write everything, and cannot give that up")
@pytest.mark.parametrize("command", EDITING)
def test_a_file_that_may_not_be_written(command: str, directory: Path) -> None:
    old = MOVABLE if "migrate" in command else OLD
    (directory / "bad.yaml").write_bytes(old)
    (directory / "bad.yaml").chmod(0o444)
    run = apflint(directory, *command.split(), "bad.yaml", "other.yaml", first=ordinary)
    assert "bad.yaml: not written: it is read-only\n" in run.err
    assert (directory / "bad.yaml").read_bytes() == old
    if "migrate" not in command:
        assert (directory / "other.yaml").read_bytes() == FIXED.replace(b"name: x", b"name: other")
    assert run.status == 2
    assert names(directory) == ["bad.yaml", "other.yaml"]


@pytest.mark.skipif(not can_be_ordinary(), reason="whoever runs this may write everything, and cannot give that up")
@pytest.mark.parametrize(
    "command", [*EDITING, "check --report json=report.json", "check --baseline known.json --write-baseline"]
)
def test_a_directory_that_may_not_be_written(command: str, directory: Path) -> None:
    old = MOVABLE if "migrate" in command else OLD
    (directory / "bad.yaml").write_bytes(old)
    directory.chmod(0o555)
    run = apflint(directory, *command.split(), "bad.yaml", first=ordinary)
    assert "Permission denied" in run.err
    assert run.status == 2
    assert (directory / "bad.yaml").read_bytes() == old
    assert names(directory) == ["bad.yaml", "other.yaml"]


@pytest.mark.parametrize("command", EDITING)
def test_a_disk_that_is_full(command: str, directory: Path) -> None:
    """A file size limit stands for a full disk: writing fails after a part of the content was written."""
    text = (MOVABLE if "migrate" in command else OLD) + b"# comment\n" * 2_000
    (directory / "bad.yaml").write_bytes(text)
    done = subprocess.run(
        ["/bin/sh", "-c", f'ulimit -f 8; exec "$0" -m apflint {command} bad.yaml', sys.executable],
        cwd=directory,
        env=UNMEASURED,
        capture_output=True,
        text=True,
        timeout=WALL,
        check=False,
    )
    assert "bad.yaml: not written: File too large\n" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.returncode == 2
    assert (directory / "bad.yaml").read_bytes() == text
    assert names(directory) == ["bad.yaml", "other.yaml"]


@pytest.mark.parametrize("where", ["fsync", "replace", "fchmod"])
def test_interrupted_while_it_is_written(where: str, directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, where, interrupt)
    path = directory / "bad.yaml"

    def edit() -> int:
        file_content.replace(str(path), FIXABLE, FIXED)
        return 0

    def report() -> int:
        write_atomically(str(path), FIXED)
        return 0

    assert run_and_report_errors(edit) == 130
    if where == "replace":
        assert run_and_report_errors(report) == 130
    assert path.read_bytes() == FIXABLE
    assert names(directory) == ["bad.yaml", "other.yaml"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_mode_links_and_line_ends_are_kept(end: bytes, mark: bytes, directory: Path) -> None:
    (directory / "bad.yaml").write_bytes(mark + FIXABLE.replace(b"\n", end))
    (directory / "bad.yaml").chmod(0o640)
    (directory / "link.yaml").symlink_to("bad.yaml")
    assert apflint(directory, "fix", "link.yaml").status == 0
    assert (directory / "bad.yaml").read_bytes() == mark + FIXED.replace(b"\n", end)
    assert (directory / "bad.yaml").stat().st_mode & 0o777 == 0o640
    assert (directory / "link.yaml").is_symlink()
    assert names(directory) == ["bad.yaml", "link.yaml", "other.yaml"]


def test_ended_by_force_while_it_writes(directory: Path) -> None:
    """Whenever the run is killed, the file has its complete old or its complete new content."""
    text = FIXABLE + b"# comment\n" * 100_000
    wholes = {text, text.replace(b'"', b"")}
    for delay in (0.15, 0.2, 0.3):
        (directory / "bad.yaml").write_bytes(text)
        with subprocess.Popen(
            [sys.executable, "-m", "apflint", "fix", "-q", "bad.yaml"], cwd=directory, env=UNMEASURED
        ) as process:
            time.sleep(delay)
            process.kill()
        assert (directory / "bad.yaml").read_bytes() in wholes


SELF_SIGNALLING = """
import os, signal, sys
from apflint.atomic_write import write_atomically
from apflint.edit import file_content
number = getattr(signal, sys.argv[2])
signal.signal(number, signal.SIG_DFL) # under nohup, SIGHUP is ignored
called = []
def interrupted(*arguments, original=getattr(os, sys.argv[3])):
    if not called:
        called.append(1)
        os.kill(os.getpid(), number)
    return original(*arguments)
setattr(os, sys.argv[3], interrupted)
old, new = (open(name, "rb").read() for name in ("bad.yaml", "new"))
file_content.replace("bad.yaml", old, new) if sys.argv[1] == "files" else write_atomically("bad.yaml", new)
sys.exit(3)
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize(
    ("writer", "where"), [("files", "fsync"), ("files", "fchmod"), ("files", "replace"), ("atomic", "replace")]
)
def test_a_signal_while_it_is_written_leaves_nothing_beside(
    writer: str, where: str, name: str, directory: Path
) -> None:
    (directory / "new").write_bytes(FIXED)
    done = subprocess.run(
        [sys.executable, "-c", SELF_SIGNALLING, writer, name, where],
        cwd=directory,
        env=UNMEASURED,
        check=False,
        timeout=WALL,
    )
    assert done.returncode == -getattr(signal, name)
    assert (directory / "bad.yaml").read_bytes() == FIXED
    assert names(directory) == ["bad.yaml", "new", "other.yaml"]


@pytest.mark.parametrize("command", EDITING)
def test_a_link_out_of_the_directory_is_written_through_only_if_it_is_named(command: str, directory: Path) -> None:
    text = MOVABLE if "migrate" in command else FIXABLE
    inner = directory / "inner"
    inner.mkdir()
    (directory / "bad.yaml").write_bytes(text)
    (inner / "out.yaml").symlink_to("../bad.yaml")
    (inner / "own.yaml").write_bytes(text.replace(b"name: x", b"name: own"))
    (inner / "zz.yaml").symlink_to("own.yaml")
    run = apflint(inner, *command.split(), ".")
    assert run.status == 2
    assert "out.yaml: not written: it is a symbolic link to a file outside of the named directories: " in run.err
    assert (directory / "bad.yaml").read_bytes() == text
    assert (inner / "own.yaml").read_bytes() != text.replace(b"name: x", b"name: own")
    run = apflint(inner, *command.split(), "out.yaml")
    assert run.status in (0, 1)
    assert (directory / "bad.yaml").read_bytes() != text
    assert (inner / "out.yaml").is_symlink()


def test_a_failed_write_is_not_nothing_to_fix(directory: Path) -> None:
    inner = directory / "inner"
    inner.mkdir()
    (inner / "out.yaml").symlink_to("../bad.yaml")
    run = apflint(inner, "fix", ".")
    assert run.status == 2
    assert "nothing to fix" not in run.err
    assert "nothing was fixed" in run.err


@pytest.mark.parametrize("command", ["check", "fix", "explain list pods --as a", "limits", "migrate", "config"])
def test_a_directory_that_was_removed(command: str, directory: Path) -> None:
    gone = directory / "gone"
    gone.mkdir()
    run = apflint(gone, *command.split(), first=lambda: os.rmdir(gone))
    assert (run.status, run.out) == (2, "")
    assert run.err == "apflint: the current directory no longer exists\n"
