"""Imports modules from the single-file build. `start` runs this module without importing it.

For each Python, a single member of the archive contains the code of all modules, because reading a directory of
thousands of members takes longer than a run of apflint. Nothing is written to a cache. The system loads compiled
modules only from files: on Linux, these are files in memory, elsewhere temporary files that are deleted after loading.
"""

from __future__ import annotations

import marshal
import os
import sys
import zlib
from importlib.machinery import ExtensionFileLoader, ModuleSpec
from types import SimpleNamespace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.readers import ZipReader
    from types import CodeType, ModuleType
    from typing import Literal
    from zipimport import zipimporter

    Kind = Literal["module", "package", "namespace", "extension"]
    Index = dict[str, tuple[Kind, bool, int, int]]
    """Kind, whether the code is compressed, offset and size of each module.

    An extension is a compiled module. A namespace is a package without code.
    """

FILES_IN_MEMORY = "/proc/self/fd"


def install(loader: zipimporter, index: Index, data_files: list[str]) -> None:
    """Let Python import the modules of an index from the archive of a loader, in preference to other modules of these names."""
    path = os.path.abspath(loader.archive)
    if path != loader.archive:
        # apflint reads data files by their absolute paths, so the loader must not use a path such as `dir/../apflint`.
        loader = type(loader)(path)
    sys.meta_path.insert(0, Importer(loader, index, data_files))


class Importer:
    """Finds and loads the modules of an index."""

    def __init__(self, loader: zipimporter, index: Index, data_files: list[str]) -> None:
        self._loader = loader
        self._index = index
        self._data_files = data_files
        self._archive = _open_above_streams(loader.archive)
        self.get_data = loader.get_data

    def find_spec(
        self,
        name: str,
        _path: Sequence[str] | None = None,
        _target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the description of a module of the index, or None for any other module."""
        entry = self._index.get(name)
        if entry is None:
            return None
        if entry[0] == "extension":
            path = self._write_extension(name)
            return ModuleSpec(name, _ExtensionLoader(name, path), origin=path)
        directory = f"{self._loader.archive}/{name.replace('.', '/')}"
        if entry[0] == "namespace":
            spec = ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [directory]
            return spec
        is_package = entry[0] == "package"
        origin = f"{directory}/__init__.py" if is_package else f"{directory}.py"
        spec = ModuleSpec(name, self, origin=origin, is_package=is_package)  # type: ignore[arg-type]  # no base class: faster
        spec.has_location = True
        if is_package:
            spec.submodule_search_locations = [directory]
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Let Python create the module."""

    def exec_module(self, module: ModuleType) -> None:
        """Run the code of a module."""
        exec(self.get_code(module.__name__), module.__dict__)

    def get_code(self, name: str) -> CodeType:
        """Return the code of a module."""
        data = self._read(name)
        code: CodeType = marshal.loads(zlib.decompress(data) if self._index[name][1] else data)
        return code

    def get_source(self, name: str) -> None:
        """Report that the archive has no source code."""

    def is_package(self, name: str) -> bool:
        """Return whether a module is a package."""
        return self._index[name][0] == "package"

    def list_directory(self, path: str) -> list[str]:
        """Return the names of the data files in a directory of the archive.

        A module of the standard library would do the same, but importing it takes 5 ms.
        """
        prefix = f"{path.removeprefix(self._loader.archive).strip('/')}/"
        names = (name.removeprefix(prefix) for name in self._data_files if name.startswith(prefix))
        return [name for name in names if "/" not in name]

    def get_resource_reader(self, name: str) -> ZipReader:
        """Return the reader of the data files of a package. The data files are ordinary members of the archive."""
        from importlib.readers import ZipReader

        prefix = "".join(f"{part}/" for part in name.split(".")[:-1])
        return ZipReader(SimpleNamespace(archive=self._loader.archive, prefix=prefix), name)  # type: ignore[arg-type]

    def _read(self, name: str) -> bytes:
        _, _, offset, size = self._index[name]
        return os.pread(self._archive, size, offset)

    def _write_extension(self, name: str) -> str:
        """Write a compiled module to a new file, and return the path."""
        if hasattr(os, "memfd_create") and os.path.isdir(FILES_IN_MEMORY):
            # The descriptor stays open. If it were closed, a later module could get the same number, and so the same
            # path.
            descriptor = os.memfd_create(name)
            _, _, offset, size = self._index[name]
            while size:
                copied = os.sendfile(descriptor, self._archive, offset, size)
                offset, size = offset + copied, size - copied
            return f"{FILES_IN_MEMORY}/{descriptor}"
        from tempfile import mkstemp

        descriptor, path = mkstemp(".so", "apflint-")
        with open(descriptor, "wb") as file:
            file.write(self._read(name))
        return path


class _ExtensionLoader(ExtensionFileLoader):
    """Loads a compiled module from a file that only this process uses."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Load the module, and delete its file."""
        try:
            return super().create_module(spec)
        finally:
            if not self.path.startswith(FILES_IN_MEMORY):
                os.unlink(self.path)


def _open_above_streams(path: str) -> int:
    """Open a file for reading. Return a descriptor greater than 2, even if standard streams are closed."""
    descriptors = [os.open(path, os.O_RDONLY)]
    while descriptors[-1] <= 2:
        descriptors.append(os.dup(descriptors[-1]))
    for descriptor in descriptors[:-1]:
        os.close(descriptor)
    return descriptors[-1]
