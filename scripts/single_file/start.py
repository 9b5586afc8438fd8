"""The entry point of the single-file build: the module `__main__` of a zip archive. `pack` appends the call of `start`.

The syntax is that of Python 3.6, so that older Pythons report what is missing instead of a syntax error.
"""

import marshal
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES

MYPY = False  # in place of `typing.TYPE_CHECKING`, because the import of typing takes 8 ms
if MYPY:
    from typing import Any, NoReturn


def start(loader: "Any", machine: str, parts: "dict[str, tuple[int, int]]") -> None:
    """Run apflint from the archive of `loader`, which is the single file.

    `parts` maps each supported Python to the place of its code in the archive: (offset, size). The code
    consists of the importer, its index and its data files. The key is the first suffix of compiled
    modules of this Python. The suffix names the version, operating system and C library. If the running
    Python is not supported, start a supported one.
    """
    part = parts.get(EXTENSION_SUFFIXES[0])
    if part is None or os.uname().machine != machine:
        use_other_python(machine, sorted(parts))
    with open(loader.archive, "rb") as archive:
        archive.seek(part[0])
        code, index, data_files = marshal.loads(archive.read(part[1]))
    importer: dict[str, Any] = {"__name__": "importer"}
    exec(marshal.loads(code), importer)
    importer["install"](loader, index, data_files)
    from apflint.cli.main import main

    main()


def use_other_python(machine: str, suffixes: "list[str]") -> "NoReturn":
    """Run the single file with a supported Python from PATH. If there is none, print what the file needs, and exit."""
    import shutil
    import subprocess

    versions = [suffix.split("-")[1].replace("3", "3.", 1) for suffix in suffixes]
    running = sys.version.split()[0]
    # If this version of Python is supported, the platform is not, and another Python would only start the same search.
    if not any(running.startswith(f"{version}.") for version in versions):
        for version in reversed(versions):
            program = shutil.which(f"python{version}")
            # Test the program: for a version that is not selected, the program that pyenv puts in PATH only prints an
            # error.
            if program and subprocess.call([program, "-c", ""], stderr=subprocess.DEVNULL) == 0:
                os.execv(program, [program, *sys.argv])
    system = "macOS" if "darwin" in suffixes[0] else "Linux with glibc"
    sys.stderr.write(
        f"apflint: this file needs CPython {' or '.join(versions)} on {system} ({machine}). {sys.executable} is Python "
        f"{running} on {os.uname().sysname} ({os.uname().machine}).\nInstall apflint instead: pip install apflint\n"
    )
    sys.exit(2)
