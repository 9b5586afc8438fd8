"""Plans an upgrade of Kubernetes over several minor releases: what to write in the manifests before which step, and what each step changes.

kube-apiserver is upgraded one minor release at a time (Kubernetes' version skew policy). A server converts stored objects
to every version that it serves. So only manifests, and clients that name an old version, need a change.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from apflint.diff.requests import Side, compare_configurations
from apflint.edit.migration import migrate
from apflint.edit.migration_target import MigrationTarget, serves
from apflint.effective_configuration import Effective
from apflint.engine import load_inputs
from apflint.load import load_text
from apflint.load.source_text import Source
from apflint.releases import API_VERSIONS
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from apflint.diff.requests import ConfigurationDifference
    from apflint.edit.migration import Remark
    from apflint.effective_configuration import Assumptions
    from apflint.releases import Release


class FileChange(NamedTuple):
    """What to change in a file before a step."""

    file: str
    version: str
    """The API version to write."""
    first: Release
    """The first release of the upgrade that serves `version`. The change is possible as soon as the cluster runs this release."""
    remarks: tuple[Remark, ...]
    """The changes of objects and fields, with their lines."""

    @property
    def is_refused(self) -> bool:
        """Whether apflint refuses to migrate the file, so that the user must edit it."""
        return any(remark.kind == "refused" for remark in self.remarks)


class Step(NamedTuple):
    """The upgrade from one minor release to the next."""

    old: Release
    new: Release
    changes: tuple[FileChange, ...]
    """The files to change before the step, because `new` does not serve one of their versions."""
    early: tuple[tuple[str, str], ...]
    """(file, API version) pairs of files that cannot be applied yet, because `old` does not serve their version."""
    difference: ConfigurationDifference
    """What the step changes, for the manifests as they are after `changes`."""


def plan_upgrade(releases: Sequence[Release], files: Mapping[str, str], assumptions: Assumptions) -> tuple[Step, ...]:
    """Return the steps of an upgrade through consecutive releases, the oldest first.

    `files` maps names of manifests to their texts. Each file is changed as late as possible: before the first release that does
    not serve its version. The new version is the newest one that the release before and the release after the step serve.
    """
    texts, refused = dict(files), set[str]()
    steps = []
    for old, new in pairwise(releases):
        before = _configure(texts, old, assumptions)
        changes = []
        for file, text in texts.items():
            if file not in refused and (change := _change_file(file, text, old, new, releases)) is not None:
                found, texts[file] = change  # safe during the iteration, because the key already exists
                changes.append(found)
                if found.is_refused:
                    refused.add(file)
        after = _configure(texts, new, assumptions)
        difference = compare_configurations(
            Side(before.configuration, before.limits), Side(after.configuration, after.limits)
        )
        steps.append(Step(old, new, tuple(changes), tuple(_find_early(files, old)), difference))
    return tuple(steps)


def _configure(texts: Mapping[str, str], release: Release, assumptions: Assumptions) -> Effective:
    return Effective(build_workspace(load_inputs(texts.items()), release), assumptions)


def _change_file(
    file: str, text: str, old: Release, new: Release, releases: Sequence[Release]
) -> tuple[FileChange, str] | None:
    """Return the change of a file before the step from `old` to `new`, and the changed text. Return None without a change."""
    source = Source(file, text)
    versions = {document.version for document in load_text(source).documents}
    if all(serves(new, version) for version in versions):
        return None
    served = [life.name for life in API_VERSIONS if life.name in new.served]
    target = next((version for version in served if serves(old, version)), served[0])
    first = next((release for release in releases if serves(release, target)), new)
    both = tuple(release for release in (old, new) if serves(release, target))
    migration = migrate(source, MigrationTarget(target, both))
    return FileChange(file, target, first, migration.remarks), migration.text


def _find_early(files: Mapping[str, str], release: Release) -> Iterator[tuple[str, str]]:
    """Yield the files, with their versions, that a release does not serve yet."""
    for file, text in files.items():
        for version in sorted({document.version for document in load_text(Source(file, text)).documents}):
            life = next((life for life in API_VERSIONS if life.name == version), None)
            if life is not None and release.minor < life.introduced:
                yield file, version


def count_objects(texts: Iterable[str]) -> int:
    """Return the number of objects of API Priority and Fairness in texts."""
    return sum(len(load_text(Source("", text)).documents) for text in texts)
