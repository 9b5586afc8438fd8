"""Writes a file in one step, so that a reader never sees half of it."""

from __future__ import annotations

import os
import stat


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
    from apflint.signals import delay_termination  # few runs write a file

    with delay_termination():
        _replace(path, data, mode)


def _replace(path: str, data: bytes, mode: int | None) -> None:
    temporary = f"{path}.{os.getpid()}.tmp"
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
