"""Writes a file in one step, so that a reader never sees half of it."""

from __future__ import annotations

import os
import signal
import stat
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def write_atomically(path: str, data: bytes) -> None:
    """Replace the content of a file, or create the file. If that fails, the file is unchanged.

    A symbolic link stays, and its target is written. A device or a pipe is written to directly. Raises OSError, and
    ValueError for a path with a NUL character.
    """
    path = os.path.realpath(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        mode = None
    if mode is not None and not stat.S_ISREG(mode):
        with open(path, "wb") as file:
            file.write(data)
        return
    temporary = f"{path}.{os.getpid()}.tmp"
    with delay_termination():
        try:
            with open(temporary, "xb") as file:
                if mode is not None:
                    os.chmod(temporary, stat.S_IMODE(mode))
                file.write(data)
            os.replace(temporary, path)
        except BaseException as error:
            if not isinstance(error, FileExistsError) and os.path.lexists(temporary):
                os.unlink(temporary)
            raise


@contextmanager
def delay_termination() -> Iterator[None]:
    """Delay SIGTERM and SIGHUP until the body is done: otherwise they leave its temporary file behind.

    Signals that are ignored or have a handler keep it. In a thread, which gets no signals, this does nothing.
    """
    received: list[int] = []
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    try:
        replaced = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
        for number in replaced:
            signal.signal(number, lambda number, _: received.append(number))
    except ValueError:  # signals are for the main thread only
        yield
        return
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
        if received:
            os.kill(os.getpid(), received[0])
