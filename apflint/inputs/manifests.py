"""Reads the manifests that a run checks or edits: named files and directories without context, patches and the baseline."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from apflint.finding import Skipped
from apflint.inputs.discovery import discover_files
from apflint.inputs.reading import Unreadable, may_hold_apf, read_file
from apflint.load.source import STDIN
from apflint.record import NamedTuple
from apflint.settings.patterns import Patterns

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from apflint.inputs.discovery import FoundFile

MAX_NAMES = 10
"""Maximum number of notes on named files."""
CONTEXT_REASON = "context"
"""Reason for skipping a file of `context`, which is read only for the objects it defines."""


class Selection(NamedTuple):
    """The manifests to read."""

    paths: tuple[str, ...]
    exclude: Patterns = Patterns()
    force_exclude: bool = False
    stdin_filename: str | None = None
    """Name that findings show for standard input."""
    context: tuple[str, ...] = ()
    """Paths that are read for the objects they define. They have no findings, even if they lie below one of `paths`."""
    baseline: str | None = None
    """The baseline file. It is not a manifest, even if it lies below one of `paths`."""

    @property
    def is_partial(self) -> bool:
        """Whether these are some files of a project, as a pre-commit hook names them with --force-exclude."""
        return self.force_exclude and not any(path == "-" or os.path.isdir(path) for path in self.paths)


class InputFile(NamedTuple):
    """A file that was read."""

    name: str
    """The name in findings."""
    path: str
    """`-` is standard input."""
    data: bytes
    may_hold_apf: bool
    """Whether it may contain APF objects. Other files, the majority in a repository, are not parsed."""

    @property
    def content(self) -> tuple[str, bytes]:
        """The name, and the bytes to parse."""
        return self.name, self.data if self.may_hold_apf else b""


def read_selection(
    selection: Selection,
    errors: list[str],
    skipped: list[Skipped],
    track: Callable[[Sequence[FoundFile]], Iterable[FoundFile]] = iter,
) -> Iterator[InputFile]:
    """Yield the files that can be read.

    Messages about unreadable files are appended to `errors`, and skipped files to `skipped`. `track` wraps the files to show
    the progress.
    """
    found = list(discover_files(selection.paths, selection.exclude, selection.force_exclude, skipped))
    if selection.baseline is not None:
        found = [file for file in found if not _is_same_file(selection.baseline, file.path)]
    if selection.context:
        found = _without_context(found, selection, skipped)
    for file in read_files(track(found), lambda file, reason: errors.append(f"{file.name}: {reason}"), skipped):
        yield file._replace(name=selection.stdin_filename) if file.name == STDIN and selection.stdin_filename else file


def read_files(
    found: Iterable[FoundFile], report_error: Callable[[FoundFile, str], object], skipped: list[Skipped]
) -> Iterator[InputFile]:
    """Yield the files that can be read. The names of patches are appended to `skipped`."""
    patches = None
    for file in found:
        data = read_file(file)
        if isinstance(data, Unreadable):
            report_error(file, data.reason)
            continue
        is_manifest = may_hold_apf(data)
        if is_manifest and file.name != STDIN:
            from apflint.inputs.patches import REASON, Patches  # most files of a repository do not contain APF objects

            patches = patches or Patches()
            if file.path in patches:
                skipped.append(Skipped(file.name, REASON))
                is_manifest = False
        yield InputFile(file.name, file.path, data, is_manifest)


def read_context(selection: Selection, errors: list[str]) -> Iterator[InputFile]:
    """Yield the files of `context`. Settings or options name them, so `exclude` applies only within directories."""
    return read_selection(selection._replace(paths=selection.context, context=(), force_exclude=False), errors, [])


def _without_context(found: list[FoundFile], selection: Selection, skipped: list[Skipped]) -> list[FoundFile]:
    context = {
        os.path.realpath(file.path) for file in discover_files(selection.context, selection.exclude) if not file.problem
    }
    kept: list[FoundFile] = []
    for file in found:
        if not file.problem and os.path.realpath(file.path) in context:
            skipped.append(Skipped(file.name, CONTEXT_REASON))
        else:
            kept.append(file)
    return kept


def _is_same_file(path: str, other: str) -> bool:
    """Compare two paths. Only paths with the same base name are resolved, which reads the file system."""
    return os.path.basename(path) == os.path.basename(other) and os.path.realpath(path) == os.path.realpath(other)


def collect_named(files: Iterable[InputFile], paths: Container[str], names: list[str]) -> Iterator[InputFile]:
    """Yield the files, and append to `names` the names of those in `paths`, without standard input."""
    for file in files:
        if file.path in paths and file.path != "-":
            names.append(file.name)
        yield file


def describe_files_without_objects(names: Sequence[str]) -> Iterator[str]:
    """Yield notes on explicitly named files without FlowSchemas and PriorityLevelConfigurations, the last one for many."""
    shown = names if len(names) <= MAX_NAMES else names[: MAX_NAMES - 1]
    yield from (f"{name}: no FlowSchema and no PriorityLevelConfiguration in this file" for name in shown)
    if more := len(names) - len(shown):
        yield f"no FlowSchema and no PriorityLevelConfiguration in {more} more files"
