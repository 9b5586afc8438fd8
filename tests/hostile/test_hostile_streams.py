"""What becomes of a run whose streams are closed or full, whose reader has had enough, or that somebody interrupts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import IO, TYPE_CHECKING, NamedTuple

import pytest
from conftest import UNMEASURED
from limited import HEAD, NEIGHBOUR

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

pytestmark = pytest.mark.slow

SOON = 20
FIXABLE = HEAD + '  matchingPrecedence: "1000"\n'
MORE_THAN_A_PIPE_HOLDS = b"# nothing\n" * 200_000
REQUEST = b'{"user": "a", "groups": [], "method": "GET", "path": "/x"}\n'
INITIALIZE = b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"capabilities": {}}}'


class Ended(NamedTuple):
    """A run: its status and what it said, of what could be read."""

    status: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "bad.yaml").write_text(NEIGHBOUR)
    (tmp_path / "many.yaml").write_text("---\n".join(NEIGHBOUR.replace("neighbour", f"n{i}") for i in range(300)))
    (tmp_path / "fixable.yaml").write_text(FIXABLE)
    (tmp_path / "good.yaml").write_text(HEAD)
    return tmp_path


def redirected(folder: Path, line: str, redirection: str) -> Ended:
    """`apflint LINE`, with its streams as a shell redirects them."""
    command = f'exec "$0" -m apflint {line} {redirection}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable],
        cwd=folder,
        env=UNMEASURED,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=SOON,
        check=False,
    )
    ended = Ended(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in ended.err
    assert "internal error" not in ended.err
    return ended


PRINTING = {
    "check bad.yaml": 1,
    "check --format json many.yaml": 1,
    "check --statistics bad.yaml": 1,
    "explain get /x --as y -f good.yaml": 0,
    "limits good.yaml": 0,
    "fix --diff fixable.yaml": 1,
    "fix - < fixable.yaml": 0,
    "rule": 0,
    "check --help": 0,
    "--version": 0,
}


@pytest.mark.parametrize(
    ("redirection", "reason"), [("> /dev/full", "No space left on device"), (">&-", "Bad file descriptor")]
)
@pytest.mark.parametrize("line", PRINTING)
def test_standard_output_that_takes_nothing_is_a_failure(
    line: str, redirection: str, reason: str, folder: Path
) -> None:
    ended = redirected(folder, line, redirection)
    assert ended.status == 2
    assert ended.err.endswith(f"apflint: cannot write to standard output: {reason}\n")
    assert ended.err.count("cannot write") == 1


@pytest.mark.parametrize("redirection", ["2> /dev/full", "2>&-"])
@pytest.mark.parametrize("line", PRINTING)
def test_standard_error_that_takes_nothing_changes_nothing_else(line: str, redirection: str, folder: Path) -> None:
    ended = redirected(folder, line, redirection)
    assert ended.status == PRINTING[line]
    assert ended.out == redirected(folder, line, "").out


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("check bad.yaml", 2),
        ("check --isolated --select APF0 good.yaml", 0),
        ("check -", 2),
        ("chek", 2),
        ("fix fixable.yaml", 0),
    ],
)
def test_a_run_without_any_stream(line: str, status: int, folder: Path) -> None:
    """What is opened first would get the numbers of the streams, and what is told would be written into it."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert redirected(folder, line, "<&- >&- 2>&-").status == status
    after = {path.name: path.read_bytes() for path in folder.iterdir()}
    if line.startswith("fix"):
        assert after.pop("fixable.yaml") == FIXABLE.replace('"', "").encode()
        del before["fixable.yaml"]
    assert after == before


def test_standard_input_that_is_closed(folder: Path) -> None:
    ended = redirected(folder, "check - bad.yaml", "<&-")
    assert "apflint: <stdin>: Standard input is closed. Connect it to a pipe or a file.\n" in ended.err
    assert "APF201" in ended.out
    assert ended.status == 2
    assert redirected(folder, "check bad.yaml", "<&-").status == 1


def test_a_file_of_a_report_that_takes_nothing(folder: Path) -> None:
    """Findings are printed all the same."""
    ended = redirected(
        folder, "check --report sarif=/dev/full --report json=good.yaml/x --report json=/proc/x bad.yaml", ""
    )
    for name, reason in (("/dev/full", "No space left on device"), ("good.yaml/x", "Not a directory"), ("/proc/x", "")):
        assert f'apflint: cannot write the report to "{name}": {reason}' in ended.err
    assert "APF201" in ended.out
    assert ended.status == 2
    for line in ("--baseline /dev/full --write-baseline", "--baseline good.yaml/x --write-baseline"):
        ended = redirected(folder, f"check {line} bad.yaml", "")
        assert (ended.status, ended.out, len(ended.err.splitlines())) == (2, "", 1)


def test_a_summary_of_a_job_that_takes_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands for GitHub's log are printed all the same."""
    monkeypatch.setitem(UNMEASURED, "GITHUB_STEP_SUMMARY", "/dev/full")
    ended = redirected(folder, "check --format github bad.yaml", "")
    assert 'apflint: cannot write the job summary to "/dev/full": No space left on device\n' in ended.err
    assert "APF201" in ended.out
    assert ended.status == 2


@pytest.mark.parametrize("line", ["check many.yaml", "check --format json many.yaml", "rule --format json", "defaults"])
def test_a_reader_who_has_had_enough_is_no_failure(line: str, folder: Path) -> None:
    command = f'{{ "$0" -m apflint {line}; echo "status $?" >&2; }} | head -c 10'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable],
        cwd=folder,
        env=UNMEASURED,
        capture_output=True,
        timeout=SOON,
        check=False,
    )
    assert len(done.stdout) == 10
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr
    assert done.stderr.endswith((b"status 0\n", b"status 1\n"))


def test_a_reader_who_has_had_enough_of_endless_answers(folder: Path) -> None:
    with started(folder, "explain", "--requests", "-", "-f", "good.yaml") as process:
        stdin, stdout = streams(process)
        stdin.write(REQUEST)
        stdin.flush()
        assert stdout.readline().startswith(b'{"request"')
        stdout.close()
        with suppress(BrokenPipeError):
            for _ in range(1_000):
                stdin.write(REQUEST * 100)
                stdin.flush()
        assert process.wait(SOON) == 0
        assert process.stderr is not None
        assert process.stderr.read() == b""
        with suppress(BrokenPipeError):
            stdin.close()


def started(folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    # A shell that runs something in the background has it ignore Ctrl-C, and so would we.
    return subprocess.Popen(
        [sys.executable, "-m", "apflint", *arguments],
        cwd=folder,
        env=UNMEASURED,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509  # there are no threads here
    )


def streams(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    return process.stdin, process.stdout


def reads_input(stdin: IO[bytes], _stdout: IO[bytes]) -> None:
    stdin.write(MORE_THAN_A_PIPE_HOLDS)  # once it is written, it is being read
    stdin.flush()
    time.sleep(0.1)  # for it to wait for more


def answers(stdin: IO[bytes], stdout: IO[bytes]) -> None:
    stdin.write(REQUEST)
    stdin.flush()
    assert stdout.readline().startswith(b'{"request"')


def serves(stdin: IO[bytes], stdout: IO[bytes]) -> None:
    stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(INITIALIZE), INITIALIZE))
    stdin.flush()
    length = int(stdout.readline().split(b":")[1])
    while stdout.readline().strip():
        pass
    assert b"capabilities" in stdout.read(length)


def interrupts() -> Iterator[tuple[tuple[str, ...], Callable[[IO[bytes], IO[bytes]], None]]]:
    yield ("check", "bad.yaml", "-"), reads_input
    yield ("check", "--fix", "fixable.yaml", "--context", "-"), reads_input
    yield ("fix", "fixable.yaml", "-"), reads_input
    yield ("migrate", "-"), reads_input
    yield ("test", "-"), reads_input
    yield ("limits", "-"), reads_input
    yield ("diff", "good.yaml", "-"), reads_input
    yield ("explain", "--requests", "-", "-f", "good.yaml"), answers
    yield ("lsp",), serves


@pytest.mark.parametrize(
    ("arguments", "begun"), [pytest.param(*found, id=" ".join(found[0])) for found in interrupts()]
)
def test_interrupted(arguments: tuple[str, ...], begun: Callable[[IO[bytes], IO[bytes]], None], folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with started(folder, *arguments) as process:
        begun(*streams(process))
        process.send_signal(signal.SIGINT)
        assert process.wait(SOON) in (130, -signal.SIGINT)  # to a shell they are the same
        out, err = process.communicate()
    assert (out, err) == (b"", b"")
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_report_of_json_is_whole_or_not_there(folder: Path) -> None:
    """A run that is ended by force while it writes leaves the old report."""
    assert redirected(folder, "check --report json=report.json many.yaml", "> /dev/null").status == 1
    before = (folder / "report.json").read_bytes()
    assert len(json.loads(before)["findings"]) == 300
    limited = "ulimit -f 8; exec"  # blocks of 512 bytes: what is written beyond is refused, as by a disk that is full
    done = subprocess.run(
        ["/bin/sh", "-c", f'{limited} "$0" -m apflint check --report json=report.json -q many.yaml', sys.executable],
        cwd=folder,
        env=UNMEASURED,
        capture_output=True,
        timeout=SOON,
        check=False,
    )
    assert b'cannot write the report to "report.json": File too large' in done.stderr
    assert done.returncode == 2
    assert (folder / "report.json").read_bytes() == before
    assert sorted(os.listdir(folder)) == ["bad.yaml", "fixable.yaml", "good.yaml", "many.yaml", "report.json"]
