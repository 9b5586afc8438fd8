"""Writes the single-file build: apflint, its dependencies and their compiled modules, for one platform and several Pythons.

The file is a zip archive that Python runs. Its members are not compressed, so that offsets into the file are also offsets into
the members. Equal inputs give equal bytes.
"""

from __future__ import annotations

import io
import marshal
import struct
import subprocess
import zipfile
import zlib
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from single_file.importer import Index, Kind

SOURCES = Path(__file__).parent
SHEBANG = b"#!/usr/bin/env python3\n"
LEFT_OUT = (
    *("pip/*", "pip-*", "setuptools/*", "setuptools-*", "pkg_resources/*", "_distutils_hack/*"),
    *("*/tests/*", "*/benchmarks/*", "pysat/allies/*", "pysat/examples/*", "pycard.*", "bin/*", "*/__pycache__/*"),
)
"""Files in the directory of packages that no command imports. python-sat uses `pycard` only for cardinality constraints."""
DATA = (
    "apflint/_shipped/*",
    "apflint/*.txt",
    "apflint/*.css",
    "apflint/*.json",
    "apflint/cli/commands/*.py",  # `apflint --help` reads the summaries from this source code
    "jsonschema_specifications/schemas/*",
    "*.dist-info/METADATA",  # prompt_toolkit reads its own version from this file
    "*.dist-info/licenses/*",
    "*.dist-info/LICENSE*",
)
"""Files that are ordinary members of the archive."""
FAST = ("apflint/", "yaml/", "pysat/")
"""Packages whose code is not compressed, because most runs import this code."""
COMPILE = """
import marshal, sys
from importlib.machinery import SourceFileLoader
sys.dont_write_bytecode = True
codes = {path: marshal.dumps(SourceFileLoader("m", path).get_code("m")) for path in sys.argv[1:]}
marshal.dump(codes, sys.stdout.buffer, 2)
"""
"""Program that compiles files with relative paths, and prints their code. The program uses byte code that pip has
compiled.
"""


class Environment(NamedTuple):
    """The packages of apflint for one Python on one platform."""

    python: Path
    """A Python of this version, which compiles. This Python may run on another platform."""
    packages: Path
    """Directory with the packages."""
    suffix: str
    """Suffix of compiled modules, such as `.cpython-311-x86_64-linux-gnu.so`."""


def write_single_file(path: Path, machine: str, environments: Iterable[Environment]) -> None:
    """Write the file for a machine, as `uname -m` names it. All environments must be for the platform of this machine."""
    buffer = io.BytesIO(SHEBANG)
    buffer.seek(len(SHEBANG))
    parts: dict[str, tuple[int, int]] = {}
    with zipfile.ZipFile(buffer, "w") as archive:
        members: dict[str, bytes] = {}
        for environment in environments:
            files = list_files(environment.packages)
            data_files = [name for name in files if any(fnmatch(name, pattern) for pattern in DATA)]
            members |= {name: (environment.packages / name).read_bytes() for name in data_files}
            parts[environment.suffix] = _add_environment(archive, environment, files, data_files)
        for name in sorted(members):
            _add(archive, name, members[name])
        call = f"\n\nstart(__loader__, {machine!r}, {parts!r})\n"
        _add(archive, "__main__.py", (SOURCES / "start.py").read_bytes() + call.encode())
    path.write_bytes(buffer.getvalue())
    path.chmod(0o755)


def list_files(packages: Path) -> list[str]:
    """Return the paths of the files in a directory of packages, without those that no command needs."""
    paths = sorted(path.relative_to(packages).as_posix() for path in packages.rglob("*") if path.is_file())
    return [path for path in paths if not any(fnmatch(path, pattern) for pattern in LEFT_OUT)]


def _add_environment(
    archive: zipfile.ZipFile, environment: Environment, files: Sequence[str], data_files: Sequence[str]
) -> tuple[int, int]:
    """Add the modules of an environment, and the importer with their index. Return the offset and size of the importer."""
    directory = environment.suffix.strip(".").removesuffix(".so")
    index: Index = {}
    for name in files:
        if name.endswith(environment.suffix):
            content = strip_symbols((environment.packages / name).read_bytes())
            place = _add(archive, f"{directory}/{name}", content)
            index[name.removesuffix(environment.suffix).replace("/", ".")] = ("extension", False, *place)
    codes = compile_files(environment.python, environment.packages, [name for name in files if name.endswith(".py")])
    stored = {name: code if name.startswith(FAST) else zlib.compress(code, 9) for name, code in codes.items()}
    offset, _ = _add(archive, f"{directory}/modules", b"".join(stored.values()))
    for name, code in stored.items():
        path, _, last = name.removesuffix(".py").rpartition("/")
        kind: Kind = "package" if last == "__init__" else "module"
        module = path if kind == "package" else name.removesuffix(".py")
        index[module.replace("/", ".")] = (kind, code != codes[name], offset, len(code))
        offset += len(code)
    parents = {name[:end] for name in index for end, character in enumerate(name) if character == "."}
    index |= dict.fromkeys(sorted(parents - index.keys()), ("namespace", False, 0, 0))
    (importer,) = compile_files(environment.python, SOURCES, ["importer.py"]).values()
    return _add(archive, f"{directory}/importer", marshal.dumps((importer, index, list(data_files)), 2))


def compile_files(python: Path, directory: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Compile files with a Python. Return the code of each file in the `marshal` format of this Python."""
    command = [str(python), "-I", "-c", COMPILE, *names]
    codes: dict[str, bytes] = marshal.loads(subprocess.run(command, cwd=directory, check=True, stdout=-1).stdout)
    return codes


def strip_symbols(library: bytes) -> bytes:
    """Return a shared library of Linux without the data after its segments: symbols and debug information for developers.

    Loading takes less time, because the file in memory is smaller. Libraries in the format of macOS stay as they are. Source:
    elf(5), 64-bit little-endian.
    """
    if not library.startswith(b"\x7fELF\x02\x01"):
        return library
    # The comments below are the names of the ELF fields and constants in elf(5).
    (table,) = struct.unpack_from("<Q", library, 32)  # e_phoff
    size, count = struct.unpack_from("<HH", library, 54)  # e_phentsize, e_phnum
    headers = (struct.unpack_from("<IIQQQQ", library, table + number * size) for number in range(count))
    end = max(offset + in_file for kind, _, offset, _, _, in_file in headers if kind == 1)  # PT_LOAD
    kept = bytearray(library[:end])
    struct.pack_into("<Q", kept, 40, 0)  # e_shoff: no section headers
    struct.pack_into("<HH", kept, 60, 0, 0)  # e_shnum, e_shstrndx
    return bytes(kept)


def _add(archive: zipfile.ZipFile, name: str, content: bytes) -> tuple[int, int]:
    """Add a member, and return the offset and size of its content."""
    member = zipfile.ZipInfo(name)  # the time is always 1980, so that equal inputs give equal bytes
    archive.writestr(member, content)
    assert archive.fp is not None
    return archive.fp.tell() - len(content), len(content)
