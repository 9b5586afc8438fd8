"""The file system through which DuckDB reads objects in object storage.

DuckDB gets paths with numbers instead of names, because DuckDB would interpret special characters in names as glob
patterns. DuckDB opens an object once for each thread, so that threads do not share a position.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

from fsspec import AbstractFileSystem

from apflint.sources.object_storage import open_object

if TYPE_CHECKING:
    from apflint.sources.audit_logs import AuditLogFile


class ObjectFileSystem(AbstractFileSystem):
    """File system through which DuckDB reads objects in object storage under numbers instead of names.

    DuckDB would interpret special characters in names as glob patterns.
    """

    protocol = "apflint-object"
    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self._files: list[AuditLogFile] = []

    def add(self, file: AuditLogFile) -> str:
        """Store an object of object storage, and return the path under which DuckDB opens the object.

        The path contains a number instead of the name, such as `apflint-object://0`.
        """
        self._files.append(file)
        return f"{self.protocol}://{len(self._files) - 1}"

    def info(self, path: str, **_: object) -> dict[str, object]:
        """Return the size of an object, as fsspec describes files."""
        return {"name": path, "size": self._find(path).size, "type": "file"}

    def _open(self, path: str, mode: str = "rb", **_: object) -> BinaryIO:  # noqa: ARG002  # DuckDB only reads
        file = self._find(path)
        return open_object(file.path, file.size)

    def _find(self, path: str) -> AuditLogFile:
        return self._files[int(self._strip_protocol(path))]
