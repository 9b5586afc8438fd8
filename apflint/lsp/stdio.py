"""Runs the language server on standard input and output, limits the length of messages, and returns the exit code."""

from __future__ import annotations

import logging
import os
import signal
import sys
from typing import TYPE_CHECKING, cast

from apflint.budgets import MAX_MESSAGE_BYTES
from apflint.lsp.features import code_actions, completion, hover, navigation  # noqa: F401  # they register with the server
from apflint.lsp.server import server
from apflint.output.sanitize import sanitize
from apflint.user_error import UserError

if TYPE_CHECKING:
    from typing import BinaryIO

_MAX_HEADER_BYTES = 4096
_MAX_SHOWN_BYTES = 60
_SWITCH_INTERVAL_SECONDS = 0.001
"""Interval at which Python switches threads. The thread of a check delays a response by at most about this time."""
_NOTE = "This is the language server: an editor must start this command and write to its input. Press Ctrl-C to end."


def run() -> int:
    """Run the server on standard input and output, and return the exit code.

    The exit code is 0 if the editor ended the session, 1 if the editor disconnected, and 2 if a message is too long. Raises
    UserError if standard input is closed.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # after Ctrl-C, pygls would wait for the thread that reads stdin
    if getattr(sys.stdin, "buffer", None) is None:
        raise UserError(
            "Standard input is closed. Start the language server from an editor, which writes to standard input."
        )
    if sys.stdin.isatty():
        sys.stderr.write(f"{_NOTE}\n")
    reader, output = _take_streams()
    logging.getLogger("pygls").setLevel(logging.ERROR)  # pygls warns about each notification without a handler
    sys.setswitchinterval(_SWITCH_INTERVAL_SECONDS)
    server.start_io(cast("BinaryIO", reader), output)
    exit_code = 2 if reader.is_broken else int(not server.was_shut_down)
    if not server.session.close():  # a check is still running, but nobody needs its result
        sys.stderr.flush()
        os._exit(exit_code)
    return exit_code


def _take_streams() -> tuple[MessageReader, BinaryIO]:
    """Return the streams of the protocol on new file descriptors, and redirect the descriptors 0 and 1.

    If the streams kept these descriptors, reading a path such as /dev/stdin in the settings would consume messages, and
    printed text would corrupt messages.
    """
    input_, output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return MessageReader(input_), output


class MessageReader:
    """A binary stream with the methods that pygls needs. If a message is too long, the stream ends before this message."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._has_reported = False
        self.is_broken = False
        """True if the stream ended because of a message that is too long."""

    def readline(self) -> bytes:
        """Return the next header line, or an empty string at the end of the stream."""
        line = self._stream.readline(_MAX_HEADER_BYTES)
        if line.strip() and not line.startswith(b"Content-"):
            shown = line[:_MAX_SHOWN_BYTES].decode("utf-8", "replace").strip()
            self._report(f'expected the header "Content-Length: N", got "{shown}"')
        return line

    def read(self, size: int) -> bytes:
        """Return the body of a message, or an empty string if the body is longer than MAX_MESSAGE_BYTES."""
        if size <= MAX_MESSAGE_BYTES:
            return self._stream.read(size)
        self._report(f"Content-Length {size} is greater than {MAX_MESSAGE_BYTES:,}; the language server ends")
        self.is_broken = True
        return b""

    def _report(self, problem: str) -> None:
        """Print a problem to standard error if it is the first. Later problems usually have the same cause."""
        if not self._has_reported:
            self._has_reported = True
            sys.stderr.write(f"apflint: {sanitize(problem)}\n")
