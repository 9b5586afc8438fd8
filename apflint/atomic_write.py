"""Writes a file in one step, so that a reader never sees an incomplete file."""

from __future__ import annotations

import os
import signal
import stat
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def write_atomically(path: str, data: bytes, verify: Callable[[], None] = lambda: None) -> None:
    """Replace the content of a file, or create the file. If writing fails, the file is unchanged.

    If `path` is a symbolic link, the target of the link is replaced. The new file has the permissions of the old file.
    It also has the owner of the old file if the user may change the owner. If `path` is a device or a pipe, `data` is
    written into the device or pipe, without a replacement.

    `verify` is called just before the replacement, and may raise an exception to prevent the replacement. Raises
    OSError if the file cannot be written, and ValueError if the path contains a NUL character.
    """
    path = os.path.realpath(path)
    try:
        status = os.stat(path)
    except FileNotFoundError:
        status = None
    if status is not None and not stat.S_ISREG(status.st_mode):
        with open(path, "wb") as file:
            file.write(data)
        return
    directory, name = os.path.split(path)
    temporary = os.path.join(directory, f".{name[:100]}.{os.getpid()}.tmp")
    with _delay_termination():
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                if status is not None:
                    _copy_owner_and_mode(status, file.fileno())
                os.fsync(file.fileno())
            verify()
            os.replace(temporary, path)
        except BaseException as error:
            if not isinstance(error, FileExistsError) and os.path.lexists(temporary):
                os.unlink(temporary)
            raise


def _copy_owner_and_mode(status: os.stat_result, descriptor: int) -> None:
    current = os.fstat(descriptor)
    if (current.st_uid, current.st_gid) != (status.st_uid, status.st_gid):
        with suppress(PermissionError):  # usually, only root may change the owner of a file
            os.fchown(descriptor, status.st_uid, status.st_gid)
    if hasattr(os, "fchmod"):  # Windows has fchmod since Python 3.13
        os.fchmod(descriptor, stat.S_IMODE(status.st_mode))  # must follow fchown, which clears set-user-ID bits


@contextmanager
def _delay_termination() -> Iterator[None]:
    """Delay SIGTERM and SIGHUP until the body of the `with` statement ends, so that no temporary file is left behind.

    A signal that the process ignores or handles is not delayed. In other threads than the main thread, no signal is
    delayed, because Python allows only the main thread to set signal handlers.
    """
    received: list[int] = []
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    try:
        replaced = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
        for number in replaced:
            signal.signal(number, lambda number, _: received.append(number))
    except ValueError:  # `signal.signal` raises ValueError outside of the main thread
        yield
        return
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
        if received:
            os.kill(os.getpid(), received[0])
