"""Runs with closed or full streams, with a reader that stops reading, and with interrupts."""

from __future__ import annotations

import json
import os
import re
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
    """The result of a run: exit code, and the output that could be read."""

    status: int
    out: str
    err: str


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "bad.yaml").write_text(NEIGHBOUR)
    (tmp_path / "many.yaml").write_text("---\n".join(NEIGHBOUR.replace("neighbour", f"n{i}") for i in range(300)))
    (tmp_path / "fixable.yaml").write_text(FIXABLE)
    (tmp_path / "good.yaml").write_text(HEAD)
    return tmp_path


def redirected(directory: Path, line: str, redirection: str) -> Ended:
    """Run `apflint LINE` with the redirections of a shell."""
    command = f'exec "$0" -m apflint {line} {redirection}'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable],
        cwd=directory,
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
    line: str, redirection: str, reason: str, directory: Path
) -> None:
    ended = redirected(directory, line, redirection)
    assert ended.status == 2
    assert ended.err.endswith(f"apflint: cannot write to standard output: {reason}\n")
    assert ended.err.count("cannot write") == 1


@pytest.mark.parametrize("redirection", ["2> /dev/full", "2>&-"])
@pytest.mark.parametrize("line", PRINTING)
def test_standard_error_that_takes_nothing_changes_nothing_else(line: str, redirection: str, directory: Path) -> None:
    ended = redirected(directory, line, redirection)
    assert ended.status == PRINTING[line]
    assert ended.out == redirected(directory, line, "").out


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
def test_a_run_without_any_stream(line: str, status: int, directory: Path) -> None:
    """Files that a process opens first get the descriptors of closed standard streams. Messages must not be written
    into them."""
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    assert redirected(directory, line, "<&- >&- 2>&-").status == status
    after = {path.name: path.read_bytes() for path in directory.iterdir()}
    if line.startswith("fix"):
        assert after.pop("fixable.yaml") == FIXABLE.replace('"', "").encode()
        del before["fixable.yaml"]
    assert after == before


def test_standard_input_that_is_closed(directory: Path) -> None:
    ended = redirected(directory, "check - bad.yaml", "<&-")
    assert "apflint: <stdin>: Standard input is closed. Connect it to a pipe or a file.\n" in ended.err
    assert "APF201" in ended.out
    assert ended.status == 2
    assert redirected(directory, "check bad.yaml", "<&-").status == 1


def test_a_file_of_a_report_that_takes_nothing(directory: Path) -> None:
    """Findings are printed although the report cannot be written."""
    ended = redirected(
        directory, "check --report sarif=/dev/full --report json=good.yaml/x --report json=/proc/x bad.yaml", ""
    )
    for name, reason in (("/dev/full", "No space left on device"), ("good.yaml/x", "Not a directory"), ("/proc/x", "")):
        assert f'apflint: cannot write the report to "{name}": {reason}' in ended.err
    assert "APF201" in ended.out
    assert ended.status == 2
    for line in ("--baseline /dev/full --write-baseline", "--baseline good.yaml/x --write-baseline"):
        ended = redirected(directory, f"check {line} bad.yaml", "")
        assert (ended.status, ended.out, len(ended.err.splitlines())) == (2, "", 1)


def test_a_summary_of_a_job_that_takes_nothing(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The workflow commands are printed although the summary cannot be written."""
    monkeypatch.setitem(UNMEASURED, "GITHUB_STEP_SUMMARY", "/dev/full")
    ended = redirected(directory, "check --format github bad.yaml", "")
    assert 'apflint: cannot write the job summary to "/dev/full": No space left on device\n' in ended.err
    assert "APF201" in ended.out
    assert ended.status == 2


@pytest.mark.parametrize("line", ["check many.yaml", "check --format json many.yaml", "rule --format json", "defaults"])
def test_reader_that_closes_the_pipe_is_no_failure(line: str, directory: Path) -> None:
    command = f'{{ "$0" -m apflint {line}; echo "status $?" >&2; }} | head -c 10'
    done = subprocess.run(
        ["/bin/sh", "-c", command, sys.executable],
        cwd=directory,
        env=UNMEASURED,
        capture_output=True,
        timeout=SOON,
        check=False,
    )
    assert len(done.stdout) == 10
    assert b"Traceback" not in done.stderr
    assert b"BrokenPipe" not in done.stderr
    assert done.stderr.endswith((b"status 0\n", b"status 1\n"))


def test_a_reader_who_has_had_enough_of_endless_answers(directory: Path) -> None:
    with started(directory, "explain", "--requests", "-", "-f", "good.yaml") as process:
        stdin, stdout = streams(process)
        stdin.write(REQUEST)
        stdin.flush()
        assert stdout.readline().startswith(b'{"schema": 1, "configuration"')
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


def started(directory: Path, *arguments: str) -> subprocess.Popen[bytes]:
    # A shell makes background processes ignore Ctrl-C, and apflint would inherit this setting.
    return subprocess.Popen(
        [sys.executable, "-m", "apflint", *arguments],
        cwd=directory,
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
    # The write returns only after apflint has begun to read, because the buffer of the pipe is too small for all data.
    stdin.write(MORE_THAN_A_PIPE_HOLDS)
    stdin.flush()
    time.sleep(0.1)  # apflint now waits for more input


def answers(stdin: IO[bytes], stdout: IO[bytes]) -> None:
    stdin.write(REQUEST)
    stdin.flush()
    assert stdout.readline().startswith(b'{"schema": 1, "configuration"')


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
    ("arguments", "begun"), [pytest.param(*interrupt, id=" ".join(interrupt[0])) for interrupt in interrupts()]
)
def test_interrupted(
    arguments: tuple[str, ...], begun: Callable[[IO[bytes], IO[bytes]], None], directory: Path
) -> None:
    before = {path.name: path.read_bytes() for path in directory.iterdir()}
    with started(directory, *arguments) as process:
        begun(*streams(process))
        process.send_signal(signal.SIGINT)
        assert process.wait(SOON) in (130, -signal.SIGINT)  # a shell reports both as 130
        out, err = process.communicate()
    # If a process is interrupted before Python runs, it prints nothing.
    assert (out, err) in ((b"", b"apflint: interrupted\n"), (b"", b""))
    assert {path.name: path.read_bytes() for path in directory.iterdir()} == before


def test_a_report_of_json_is_whole_or_not_there(directory: Path) -> None:
    """A run that is killed while it writes keeps the old report."""
    assert redirected(directory, "check --report json=report.json many.yaml", "> /dev/null").status == 1
    before = (directory / "report.json").read_bytes()
    assert len(json.loads(before)["findings"]) == 300
    limited = "ulimit -f 8; exec"  # 8 blocks of 512 bytes: writing more fails, as on a full disk
    done = subprocess.run(
        ["/bin/sh", "-c", f'{limited} "$0" -m apflint check --report json=report.json -q many.yaml', sys.executable],
        cwd=directory,
        env=UNMEASURED,
        capture_output=True,
        timeout=SOON,
        check=False,
    )
    assert b'cannot write the report to "report.json": File too large' in done.stderr
    assert done.returncode == 2
    assert (directory / "report.json").read_bytes() == before
    assert sorted(os.listdir(directory)) == ["bad.yaml", "fixable.yaml", "good.yaml", "many.yaml", "report.json"]


INTERRUPTED = [
    "check many.yaml",
    "fix many.yaml fixable.yaml",
    "graph many.yaml",
    "limits many.yaml",
    "diff good.yaml many.yaml",
    "replay --isolated --engine python events.log -f many.yaml",
    "doctor --isolated metrics.txt -f many.yaml",
    "simulate --isolated load.yaml -f good.yaml",
    "test suite.yaml",
    "migrate --to v1 --diff many.yaml",
]
EVENT = (
    '{"kind":"Event","apiVersion":"audit.k8s.io/v1","stage":"ResponseComplete","verb":"list",'
    '"requestURI":"/api/v1/pods","user":{"username":"a"},"responseStatus":{"code":200},'
    '"requestReceivedTimestamp":"2026-01-01T00:00:00.000000Z","stageTimestamp":"2026-01-01T00:00:01.000000Z"}\n'
)
METRIC = 'apiserver_flowcontrol_current_inqueue_requests{flow_schema="f%d",priority_level="l%d"} 1\n'
LOAD = "duration: 5m\nclients: [{name: a, as: a, request: list pods -A, count: 100, rate: 2/s, service: 20ms}]\n"
SUITE = "manifests: [many.yaml]\ntests: [{unreachable: {priorityLevel: catch-all}}]\n"


def write_inputs_of_long_runs(directory: Path) -> None:
    """Write a log, metrics, a load and a suite, each large enough that an interrupt comes during the run."""
    (directory / "events.log").write_text(EVENT * 50_000)
    (directory / "metrics.txt").write_text("".join(METRIC % (number, number) for number in range(4_000)))
    (directory / "load.yaml").write_text(LOAD)
    (directory / "suite.yaml").write_text(SUITE)


@pytest.mark.parametrize("line", INTERRUPTED)
def test_interrupted_at_any_moment(line: str, directory: Path) -> None:
    """The run ends with a one-line message, or before the interrupt. Each file has its old or its new content."""
    write_inputs_of_long_runs(directory)
    names = sorted(os.listdir(directory))
    old = (directory / "fixable.yaml").read_bytes()
    for delay in (0.05, 0.2, 0.35, 0.5, 0.8, 1.2):
        with started(directory, *line.split()) as process:
            with suppress(subprocess.TimeoutExpired):
                process.wait(delay)
            has_ended = process.poll() is not None
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=SOON)
        text = err.decode()
        assert "internal error" not in text
        assert "ignored" not in text
        # A traceback without apflint's `main` is from an interrupt before the start of apflint, so it is allowed. The
        # pattern needs the file name, because Python's `site` module also has a function `main`.
        if re.search(r'main\.py", line \d+, in main', text) or "Traceback" not in text:
            assert process.returncode in (0, 1, 130, -signal.SIGINT), text
            assert "Traceback" not in text
            ends = ("apflint: interrupted\n", "apflint: interrupted: the result is partial\n")
            assert process.returncode != 130 or text.endswith(ends)
        assert sorted(os.listdir(directory)) == names
        assert (directory / "fixable.yaml").read_bytes() in (old, FIXABLE.replace('"', "").encode())
        if has_ended:
            break  # an interrupt after a longer delay would also come after the end


def test_streams_that_are_no_baseline(directory: Path) -> None:
    os.mkfifo(directory / "pipe")
    for name in ("pipe", "/dev/zero", "/proc/kmsg"):
        for more in ("", "--write-baseline"):
            ended = redirected(directory, f"check --isolated --baseline {name} {more} good.yaml", "")
            assert ended.status == 2
            assert len(ended.err.splitlines()) == 1


READING = (
    "check {}",
    "limits {}",
    "diff {} good.yaml",
    "explain list pods --as x --metrics {}",
    "explain --event {}",
    "explain --requests {}",
    "explain --requests {} --format json",
    "doctor {}",
    "doctor --metrics {}",
    "replay {}",
    "replay --metrics {} audit.log",
    "simulate {} -f good.yaml",
    "simulate --from-audit {} -f good.yaml",
    "test {}",
    "check --config {} good.yaml",
    "config --config {}",
    "check --baseline {} good.yaml",
)
"""Commands that read a file. `{}` stands for the name of the file."""


@pytest.mark.parametrize("name", ["pipe", "/proc/kmsg"])
@pytest.mark.parametrize("line", READING)
def test_no_command_waits_for_a_file(line: str, name: str, directory: Path) -> None:
    """Reading /proc/kmsg, a regular file, waits for the next message of the kernel."""
    os.mkfifo(directory / "pipe")
    (directory / "audit.log").write_text("")
    isolated = "" if "--config" in line else "--isolated"
    ended = redirected(directory, f"{line.format(name)} {isolated}", "")
    assert ended.status == 2
    assert name in ended.err + ended.out


def test_closed_standard_input_and_deleted_directory_are_not_empty_logs(directory: Path) -> None:
    ended = redirected(directory, "replay --isolated -", "<&-")
    assert (ended.status, ended.err) == (
        2,
        "apflint: <stdin>: Standard input is closed. Connect it to a pipe or a file.\n",
    )
    (directory / "gone").mkdir()
    command = f"cd gone; rmdir ../gone; exec '{sys.executable}' -m apflint replay --isolated ."
    done = subprocess.run(
        ["/bin/sh", "-c", command], cwd=directory, env=UNMEASURED, capture_output=True, timeout=SOON, check=False
    )
    assert (done.returncode, done.stderr) == (2, b"apflint: the current directory no longer exists\n")
