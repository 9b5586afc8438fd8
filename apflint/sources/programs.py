"""Runs other programs, such as kubectl, with limits on time and output."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import threading
from typing import TYPE_CHECKING, NamedTuple

from apflint.budgets import MAX_FILE_BYTES
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import IO

_MAX_MESSAGE_BYTES = 64 * 1024
_MAX_MESSAGE_CHARACTERS = 400
# kubectl prints some errors as a klog line: severity, date, time, process ID, and source position.
_LOG_HEADER = re.compile(r'^[EF][0-9]{4} [0-9:.]+ +[0-9]+ [\w.-]+:[0-9]+\] ("command failed" err=)?')


_running: set[subprocess.Popen[bytes]] = set()
"""Programs that have not ended yet. Several threads run programs at the same time."""


class ProgramOutput(NamedTuple):
    """Output and exit status of a program."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def message(self) -> str:
        """The standard error of the program on one line, or a text such as `exit code 1` if standard error is empty."""
        text = _LOG_HEADER.sub("", " ".join(self.stderr.split()))
        return text[:_MAX_MESSAGE_CHARACTERS] or f"exit code {self.status}"


def run_program(
    command: Sequence[str],
    seconds: int,
    directory: str | None = None,
    *,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    max_bytes: int | None = None,
) -> ProgramOutput:
    """Run a program in a directory, by default the current one, and return its output.

    Raises UserError if the program is missing or cannot be started. If the program runs longer than `seconds`, or
    prints more than `max_bytes` (`MAX_FILE_BYTES` by default), the program and all processes that it started are
    killed, and UserError is raised.
    """
    name = command[0]
    limit = MAX_FILE_BYTES if max_bytes is None else max_bytes
    try:
        # Pass standard input as a file, because a pipe could cause a deadlock: the program may wait until
        # apflint reads its output, while apflint waits until the program reads its input.
        with tempfile.TemporaryFile() if stdin else open(os.devnull, "rb") as file:
            if stdin:
                file.write(stdin)
                file.seek(0)
            process = subprocess.Popen(  # noqa: S603  # no shell, and the caller has chosen the program
                command,
                cwd=directory,
                env=environment,
                stdin=file,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # so that child processes, such as login plugins, can be killed with the program
            )
    except FileNotFoundError:
        raise UserError(f"{name} is not installed, or not in the PATH.") from None
    except OSError as error:
        raise UserError(f"{name} cannot be run: {error.strerror}.") from None
    _running.add(process)
    expired = threading.Event()

    def expire() -> None:
        expired.set()
        _kill(process)

    timer = threading.Timer(seconds, expire)
    timer.start()
    messages: list[bytes] = []
    reader = threading.Thread(target=_read_messages, args=(process.stderr, messages))
    reader.start()
    assert process.stdout is not None
    try:
        stdout = process.stdout.read(limit + 1)
        if len(stdout) > limit:
            _kill(process)
        status = process.wait()
        reader.join()
    finally:  # this block also runs after Ctrl-C
        timer.cancel()
        _kill(process)
        _running.discard(process)
        process.stdout.close()
    if expired.is_set():
        raise UserError(f"{name} did not finish within {seconds} seconds.")
    if len(stdout) > limit:
        raise UserError(f"{name} printed more than {limit >> 20} MiB.")
    return ProgramOutput(status, stdout, b"".join(messages).decode("utf-8", "replace"))


def kill_programs() -> None:
    """Kill all programs that `run_program` currently runs, in any thread, so that the threads can end after Ctrl-C."""
    for process in tuple(_running):
        _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and the processes that it started. Does nothing if the process has ended."""
    if process.returncode is not None:
        return
    try:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    except ProcessLookupError:
        pass


def _read_messages(stream: IO[bytes] | None, messages: list[bytes]) -> None:
    """Read the standard error of a program to its end. Append its first `_MAX_MESSAGE_BYTES` bytes to `messages`."""
    assert stream is not None
    messages.append(stream.read(_MAX_MESSAGE_BYTES))
    while stream.read(_MAX_MESSAGE_BYTES):
        pass
    stream.close()
