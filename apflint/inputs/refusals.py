"""Why an input is not read, in sentences for people, without the name of the file."""

from __future__ import annotations

import errno
import os
import stat


def too_large(size: int, limit: int) -> str:
    """Of a file with more bytes than are read of one."""
    return (
        f"It has {size / 1_000_000:.0f} MB, and apflint reads files of up to {limit >> 20} MiB."
        " Split it, or leave it out with --exclude."
    )


def too_long(limit: int) -> str:
    """Of a stream that gives more bytes than are read of one."""
    return (
        f"It gives more than {limit >> 20} MiB, and that is as much as apflint reads of one input."
        " Pass the objects in smaller parts."
    )


def no_regular_file(mode: int) -> str:
    """Of what is in a file system beside regular files, by its mode."""
    kind = "no regular file"
    for test, name in (
        (stat.S_ISFIFO, "a named pipe"),
        (stat.S_ISSOCK, "a socket"),
        (stat.S_ISCHR, "a device"),
        (stat.S_ISBLK, "a device"),
        (stat.S_ISDIR, "a directory"),
    ):
        if test(mode):
            kind = name
    return f"It is {kind}, and apflint reads regular files. To read what a command prints, pipe it to `-`."


def failure(path: str, error: OSError | ValueError) -> str:
    """Of what the system said about a path."""
    if not isinstance(error, OSError):
        return "No file can have this name."
    if error.errno == errno.ENOENT and os.path.islink(path):
        return "It is a symbolic link to something that does not exist."
    told = {
        errno.ENOENT: "There is no such file or directory.",
        errno.ENOTDIR: "There is no such file: a part of the path before it is no directory.",
        errno.EACCES: "Permission denied: whoever runs apflint may not read it.",
        errno.EPERM: "Permission denied: whoever runs apflint may not read it.",
        errno.ELOOP: "It is a symbolic link that leads back to itself.",
        errno.ENAMETOOLONG: "The name is longer than this system allows.",
    }
    return told.get(error.errno or 0, f"The system cannot read it: {error.strerror or error}.")
