"""Reads the manifests that a run checks or edits. Leaves out context files, Kustomize patches and the baseline file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from apflint.errors import UserError
from apflint.finding import Skipped
from apflint.load.source import STDIN
from apflint.record import NamedTuple
from apflint.settings.patterns import Patterns
from apflint.sources.discovery import FoundFile, InputFile, discover_files
from apflint.sources.reading import Unreadable, may_hold_apf, read_file

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator, Sequence

    from apflint.settings.clusters import ClusterSelection
    from apflint.sources.kubectl import LiveConfiguration

MAX_NAMES = 10
"""Maximum number of notes on files that the user named and that contain no APF objects."""
CONTEXT_REASON = "context"
"""Reason for skipping a file of `Selection.context`. Its objects are known to the checks, but have no findings."""


class Selection(NamedTuple):
    """The manifests of a run: the paths to read, and the files to leave out."""

    paths: tuple[str, ...]
    exclude: Patterns = Patterns()
    force_exclude: bool = False
    stdin_filename: str | None = None
    """Name that findings show for standard input."""
    context: tuple[str, ...] = ()
    """Paths of further manifests of the cluster. Findings in them are not reported, even if they are also in `paths`."""
    baseline: str | None = None
    """The baseline file, which is not read as a manifest, even if the file is below one of `paths`."""
    live: LiveConfiguration | None = None
    """The running cluster, or None. If there are manifests to check, they are applied to it."""
    clusters: ClusterSelection | None = None
    """The clusters of the project, or None if the settings define no clusters."""
    kustomizations: tuple[str, ...] = ()
    """Directories of kustomizations to build. The objects are checked together with the manifests in `paths`."""
    revisions: tuple[str, ...] = ()
    """Git revisions, with the prefix `git:`, whose manifests are checked together with those in `paths`."""
    may_render: bool = False
    """Whether settings may start programs that render manifests, and kustomize may use the network."""

    @property
    def has_manifests(self) -> bool:
        """Return whether the run checks manifests, and not the objects of a running cluster."""
        return bool(self.paths or self.kustomizations or self.revisions)

    @property
    def is_partial(self) -> bool:
        """Return whether the run reads only some files of a project, as a pre-commit hook does with --force-exclude."""
        return (
            self.force_exclude
            and not (self.live or self.kustomizations or self.revisions)
            and not any(path == "-" or os.path.isdir(path) for path in self.paths)
        )


def read_selection(
    selection: Selection,
    errors: list[str],
    skipped: list[Skipped],
    track: Callable[[Sequence[FoundFile]], Iterable[FoundFile]] = iter,
) -> Iterator[InputFile]:
    """Yield the selected files that can be read.

    Messages about unreadable files are appended to `errors`, and skipped files to `skipped`. `track` iterates over the
    found files and shows the progress.
    """
    if not selection.has_manifests:
        yield from _read_live(selection)
    for directory in dict.fromkeys(selection.kustomizations):
        from apflint.sources.kustomize import build_kustomization  # few runs need it

        try:
            name, data = build_kustomization(directory, may_render=selection.may_render)
        except UserError as error:
            errors.append(str(error))
        else:
            yield InputFile(name, name, data, may_hold_apf(data))
    for revision in selection.revisions:
        from apflint.sources.git import read_revision
        from apflint.sources.patches import REASON

        read = read_revision(revision, (), selection.exclude)
        skipped += (Skipped(name, REASON) for name in read.patches)
        yield from read.files
    found = list(discover_files(selection.paths, selection.exclude, selection.force_exclude, skipped))
    if selection.baseline is not None:
        found = [file for file in found if not is_same_file(selection.baseline, file.path)]
    if selection.context:
        found = _without_context(found, selection, skipped)
    for file in read_files(track(found), lambda file, reason: errors.append(f"{file.name}: {reason}"), skipped):
        yield file._replace(name=selection.stdin_filename) if file.name == STDIN and selection.stdin_filename else file


def read_files(
    found: Iterable[FoundFile], report_error: Callable[[FoundFile, str], object], skipped: list[Skipped]
) -> Iterator[InputFile]:
    """Yield the readable files. Append Kustomize patches to `skipped`.

    For each unreadable file, pass the file and the reason to `report_error`.
    """
    patches = None
    for file in found:
        data = read_file(file)
        if isinstance(data, Unreadable):
            report_error(file, data.reason)
            continue
        is_manifest = may_hold_apf(data)
        if is_manifest and file.name != STDIN:
            from apflint.sources.patches import REASON, Patches  # most files of a repository do not contain APF objects

            patches = patches or Patches()
            if file.path in patches:
                skipped.append(Skipped(file.name, REASON))
                is_manifest = False
        yield InputFile(file.name, file.path, data, is_manifest)


def read_context(selection: Selection, errors: list[str]) -> Iterator[InputFile]:
    """Yield the files of `selection.context`. `exclude` applies only to files below directories of the context."""
    files = selection._replace(
        paths=selection.context, context=(), force_exclude=False, live=None, kustomizations=(), revisions=()
    )
    yield from read_selection(files, errors, [])


def _read_live(selection: Selection) -> Iterator[InputFile]:
    files = selection.live.files if selection.live is not None else ()
    return (InputFile(name, name, data, may_hold_apf=True) for name, data in files)


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


def is_same_file(path: str, other: str) -> bool:
    """Return whether two paths are the same file. Paths with different base names are not resolved, to save time."""
    return os.path.basename(path) == os.path.basename(other) and os.path.realpath(path) == os.path.realpath(other)


def collect_named(files: Iterable[InputFile], paths: Container[str], names: list[str]) -> Iterator[InputFile]:
    """Yield the files. Append the names of files in `paths` to `names`, except standard input."""
    for file in files:
        if file.path in paths and file.path != "-":
            names.append(file.name)
        yield file


def describe_files_without_objects(names: Sequence[str]) -> Iterator[str]:
    """Yield at most `MAX_NAMES` notes on the files `names`, which contain no APF objects.

    If there are more files, the last note contains only the number of the remaining files.
    """
    shown = names if len(names) <= MAX_NAMES else names[: MAX_NAMES - 1]
    yield from (f"{name}: no FlowSchema and no PriorityLevelConfiguration in this file" for name in shown)
    if more := len(names) - len(shown):
        yield f"no FlowSchema and no PriorityLevelConfiguration in {more} more files"
