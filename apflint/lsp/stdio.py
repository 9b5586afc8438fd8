"""The server on standard input and output: takes the streams, reads message headers, reports the exit code.

pygls accepts only `Content-Length: N` in exactly this case and with CR LF, ignores all other lines, and passes any N to
`read`. `MessageReader` tolerates other spellings and refuses lengths that no editor sends.
"""

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

if TYPE_CHECKING:
    from typing import BinaryIO

    from apflint.lsp.server import Server

_MAX_HEADER_BYTES = 4096
_MAX_SHOWN_BYTES = 60
_SWITCH_INTERVAL_SECONDS = 0.001
"""Time that a check in its thread may delay the answer to a request."""
_NOTE = "This is the language server: an editor starts it, and talks to it on standard input. Ctrl-C ends it."


def run() -> int:
    """Serve the editor on standard input and output.

    Return 0 if the editor ended the session, 1 if it disconnected, 2 if it did not send messages of the protocol.
    Raises ValueError if standard input is closed.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # pygls would wait for a thread that waits for standard input
    if getattr(sys.stdin, "buffer", None) is None:
        raise ValueError(
            "Standard input is closed. The language server is started by an editor, which talks to it there."
        )
    if sys.stdin.isatty():
        sys.stderr.write(f"{_NOTE}\n")
    reader, output = _take_streams()
    logger = logging.getLogger("pygls")
    logger.addHandler(_EditorLog(server))
    logger.setLevel(
        logging.ERROR
    )  # its warnings are about legitimate messages: late cancellations, unknown notifications
    logger.propagate = False
    sys.setswitchinterval(_SWITCH_INTERVAL_SECONDS)
    server.start_io(cast("BinaryIO", reader), output)
    exit_code = 2 if reader.is_broken else int(not server.was_shut_down)
    if not server.session.close():  # the interpreter would wait for the check, whose result nobody needs
        sys.stderr.flush()
        os._exit(exit_code)
    return exit_code


def _take_streams() -> tuple[MessageReader, BinaryIO]:
    """Move the streams of the protocol away from descriptors 0 and 1.

    Otherwise a file such as /dev/stdin in the settings would consume messages, and anything printed would corrupt them.
    """
    input_, output = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return MessageReader(input_), output


class _EditorLog(logging.Handler):
    """Sends log records of pygls to the log of the editor."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.server = server
        self.is_sending = False

    def emit(self, record: logging.LogRecord) -> None:
        if not self.is_sending and self.server.protocol.writer is not None:  # sending may log again
            self.is_sending = True
            try:
                self.server.log("error", self._message(record))
            finally:
                self.is_sending = False

    def _message(self, record: logging.LogRecord) -> str:
        """Return the message, with the traceback only if a function of apflint failed."""
        if record.exc_info is None or record.msg.startswith("Exception occurred"):
            return self.format(record)
        return f"{record.getMessage()}: {record.exc_info[1]}"


class MessageReader:
    """A binary stream as pygls reads it, with all headers in the one form that pygls knows."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._ends_headers = False
        self._has_reported = False
        self.is_broken = False
        """Whether reading ended early, because it is unknown where the next message starts."""

    def readline(self) -> bytes:
        """Return the next header line, or nothing at the end of the stream."""
        if self._ends_headers:
            self._ends_headers = False
            return b"\r\n"
        length = self._read_headers()
        self._ends_headers = bool(length)
        return b"Content-Length: %d\r\n" % length if length else b""

    def read(self, size: int) -> bytes:
        """Return the body of a message."""
        return self._stream.read(size)

    def _read_headers(self) -> int:
        """Return the length of the next message, or 0 at the end of the stream."""
        length = 0
        while not self.is_broken and (line := self._stream.readline(_MAX_HEADER_BYTES)):
            if not line.strip():
                if length:
                    return length
                continue
            name, _, value = line.partition(b":")
            name, value = name.strip().lower(), value.strip()
            if name == b"content-length":
                length = self._parse_length(value)
            elif name != b"content-type":
                self._report(f'expected the header "Content-Length: N", got "{_shorten(line.strip())}"')
        return 0

    def _parse_length(self, value: bytes) -> int:
        if not value.isdigit():
            self._report(f'Content-Length "{_shorten(value)}" is not a number; the language server ends')
        elif len(value) > len(str(MAX_MESSAGE_BYTES)) or int(value) > MAX_MESSAGE_BYTES:
            self._report(
                f"Content-Length {_shorten(value)} is greater than {MAX_MESSAGE_BYTES:,}; the language server ends"
            )
        else:
            return int(value)
        self.is_broken = True
        return 0

    def _report(self, problem: str) -> None:
        """Print the first problem. Further ones are usually the same mistake."""
        if not self._has_reported:
            self._has_reported = True
            sys.stderr.write(f"apflint: {sanitize(problem)}\n")


def _shorten(value: bytes) -> str:
    text = value[:_MAX_SHOWN_BYTES].decode("utf-8", "replace")
    return text if len(value) <= _MAX_SHOWN_BYTES else f"{text}..."
