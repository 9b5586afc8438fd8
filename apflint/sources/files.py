"""Reads files. Patches of kustomizations are skipped."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from apflint.finding import SkippedDocuments
from apflint.load.source_text import STDIN
from apflint.named_tuple import NamedTuple
from apflint.sources.discovery import FoundFile, InputFile
from apflint.sources.file_reading import UnreadableInput, is_stream, may_hold_apf, read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MAX_NAMES = 10
"""Maximum number of notes about files that the user named and that contain no APF objects."""
CONTEXT_REASON = "context"
"""Reason for skipping a file of the context. Checks use its objects without reporting findings about them."""
PATCH_REASON = "patch or other input of a kustomization"
"""Reason for skipping a file that a kustomization lists as a patch or another input."""


class ReadError(NamedTuple):
    """The reason why a source, or a file of a source, cannot be read."""

    message: str
    """The complete message, with the name of the source."""
    file: FoundFile | None = None
    """The file, or None if the whole source cannot be read."""


class SourceFiles(NamedTuple):
    """The content of a source: files that were read, files that could not be read, and skipped files."""

    files: tuple[InputFile, ...] = ()
    skipped: tuple[SkippedDocuments, ...] = ()
    errors: tuple[ReadError, ...] = ()
    notes: tuple[str, ...] = ()
    """Clauses about other entries that were not read, such as submodules."""


def join_sources(sources: Iterable[SourceFiles]) -> SourceFiles:
    """Return the files of several sources in the order of the sources."""
    parts = list(sources)
    return SourceFiles(*(tuple(item for part in parts for item in part[index]) for index in range(len(parts[0]))))  # type: ignore[arg-type]  # fields of the same type


def read_files(found: Iterable[FoundFile]) -> SourceFiles:
    """Read files. Files that cannot be read are in `SourceFiles.errors`.

    A file that a kustomization lists as a patch is in `SourceFiles.skipped`. The file is also in `SourceFiles.files`,
    but `InputFile.may_hold_apf` is false, so that the file is not parsed.
    """
    files: list[InputFile] = []
    skipped: list[SkippedDocuments] = []
    errors: list[ReadError] = []
    patches = None
    for file in found:
        data = read_file(file)
        if isinstance(data, UnreadableInput):
            errors.append(ReadError(f"{file.name}: {data.reason}", file))
            continue
        is_manifest = may_hold_apf(data)
        if is_manifest and file.name != STDIN:
            # imported here, because most files contain no APF objects
            from apflint.sources.kustomize_patches import Patches

            patches = patches or Patches()
            if file.path in patches:
                skipped.append(SkippedDocuments(file.name, PATCH_REASON))
                is_manifest = False
        data = data if is_manifest or _is_needed(file) else b""
        files.append(InputFile.from_bytes(file.name, file.path, data, may_hold_apf=is_manifest))
    return SourceFiles(tuple(files), tuple(skipped), tuple(errors))


def _is_needed(file: FoundFile) -> bool:
    """Return whether to keep the bytes of a file even if the file contains no APF objects.

    This is true for streams, because `fix` prints their bytes, and for kustomizations, because APF408 reads them.
    """
    return file.path == "-" or is_stream(file.path) or "ustomization" in file.name


def is_same_file(path: str, other: str) -> bool:
    """Return whether two paths lead to the same file. If their base names differ, return False, to save time."""
    return os.path.basename(path) == os.path.basename(other) and os.path.realpath(path) == os.path.realpath(other)


def describe_files_without_objects(names: Sequence[str]) -> tuple[str, ...]:
    """Return at most `_MAX_NAMES` notes on the files `names`, which contain no APF objects.

    If there are more files, the last note contains only the number of the remaining files.
    """
    shown = names if len(names) <= _MAX_NAMES else names[: _MAX_NAMES - 1]
    notes = [f"{name}: this file contains no FlowSchema and no PriorityLevelConfiguration" for name in shown]
    if more := len(names) - len(shown):
        notes.append(f"{more} more files contain no FlowSchema and no PriorityLevelConfiguration")
    return tuple(notes)
