"""Moves the objects of a text to a later API version, and proves that the edited text contains the intended objects."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Literal, NamedTuple

from apflint.edit.entry_locations import find_alias
from apflint.edit.migration_target import MigrationTarget, serves
from apflint.edit.object_edits import locate, prove, text_edits
from apflint.edit.replacement import replace_part
from apflint.edit.text_edits import CannotEditError, apply_edits
from apflint.edit.version_semantics import is_older, plan_migration
from apflint.edit_operations import Set
from apflint.load import load_text
from apflint.load.document import GROUP
from apflint.load.tree import Scalar, resolve_alias, walk
from apflint.releases import api_version

if TYPE_CHECKING:
    from apflint.edit_operations import Edit, Operation
    from apflint.load.document import Document
    from apflint.load.source_text import Source
    from apflint.location import Path


class Remark(NamedTuple):
    """A message about an object or a line of the text. The message has no final period."""

    kind: Literal["migrated", "note", "refused"]
    line: int
    """Line number, counted from 1."""
    object: str
    """`FlowSchema "name"`, or an empty string if the message is not about an object."""
    message: str


class Migration(NamedTuple):
    """The result of migrating a text. If a remark has the kind `refused`, the text is unchanged."""

    text: str
    remarks: tuple[Remark, ...]
    versions: tuple[str, ...] = ()
    """The previous API version of each migrated object. Empty if the migration is refused."""

    @property
    def is_refused(self) -> bool:
        """Return whether the migration is refused: at least one of its remarks has the kind `refused`."""
        return any(remark.kind == "refused" for remark in self.remarks)


def migrate(source: Source, target: MigrationTarget, *, accept_changes: bool = False) -> Migration:
    """Migrate the objects of a text to `target.version`.

    If the meaning of an object would change, the migration is refused, unless `accept_changes` is true.

    Never raises an error: the result contains a remark for everything that cannot be migrated.
    """
    loaded = load_text(source)
    remarks = [
        Remark("refused", problem.place.span.line, "", problem.message)
        for problem in loaded.problems
        if problem.kind != "not-apf"
    ]
    migrated: list[tuple[Document, list[Operation]]] = []
    edits: list[Edit] = []
    for document in loaded.documents:
        if document.version == target.version:
            continue
        if obstacle := _find_obstacle(document, target):
            remarks.append(obstacle)
            continue
        operations, notes = plan_migration(document, target)
        remarks.append(_remark("migrated", document, f"{document.version} -> {target.version}"))
        for note in notes:
            is_refused = note.effect == "impossible" or (note.effect == "changed" and not accept_changes)
            remarks.append(_remark("refused" if is_refused else "note", document, note.message, note.path))
        located, versions = locate(document, operations), _find_versions(document, target)
        try:
            edits += text_edits(source.text, document.root, located)
            edits += (
                replace_part(source.text, document.root, path, old.rpartition("/")[2], target.version)
                for path, old in versions.items()
            )
        except CannotEditError as error:
            message = f"the text cannot be edited here: {error}; edit the text manually"
            remarks.append(_remark("refused", document, message, start=error.start))
        migrated.append((document, [*located, *(Set(path, f"{GROUP}/{target.version}") for path in versions)]))
    text = source.text
    if not any(remark.kind == "refused" for remark in remarks):
        intended: defaultdict[int, list[Operation]] = defaultdict(list)
        for document, located in migrated:
            intended[document.start] += located
        try:
            text = apply_edits(source.text, edits)
            prove(source, text, intended)
        except CannotEditError as error:
            blamed = [entry for entry in migrated if entry[0].start in error.failed] or migrated
            remarks += (_describe_shared(document, located) for document, located in blamed)
            text = source.text
    ordered = tuple(sorted(dict.fromkeys(remarks), key=lambda remark: remark.line))
    migration = Migration(text, ordered, tuple(document.version for document, _ in migrated))
    return migration._replace(versions=()) if migration.is_refused else migration


def _remark(
    kind: Literal["migrated", "note", "refused"],
    document: Document,
    message: str,
    path: Path = ("apiVersion",),
    start: int | None = None,
) -> Remark:
    """Return a remark about an object, at the line of the offset `start` or, by default, of the field at `path`."""
    line, _ = document.source.position(document.offsets(path)[0] if start is None else start)
    return Remark(kind, line, f'{document.kind} "{document.name}"', message)


def _find_obstacle(document: Document, target: MigrationTarget) -> Remark | None:
    """Return a remark that explains why an object is not migrated, or None if the object can be migrated."""
    version = document.version
    if api_version(version) is None:
        return _remark("refused", document, f'unknown version "{version}" of {GROUP}')
    if is_older(version, target.version):
        return None
    missing = next((release for release in target.releases if not serves(release, version)), None)
    if missing is None:
        return _remark("note", document, f"the object already has the newer version {version}, and stays unchanged")
    message = f"Kubernetes {missing.name} does not serve {version}, and apflint does not change {version} to the older {target.version}"
    return _remark("refused", document, message)


def _find_versions(document: Document, target: MigrationTarget) -> dict[Path, str]:
    """Return the apiVersions that a migration of an object replaces: a mapping from the path to the old apiVersion.

    Paths start at the root of the YAML document. If the object is an item of a list, the result includes the apiVersion
    of the list, because items without an apiVersion inherit the apiVersion of the list.
    """
    versions: dict[Path, str] = {}
    for owner in {document.prefix, document.prefix[:-2]}:
        path = (*owner, "apiVersion")
        depth, _, node = walk(document.root, path)
        scalar = resolve_alias(node)
        written = scalar.value if depth == len(path) and isinstance(scalar, Scalar) else None
        group, _, version = written.rpartition("/") if isinstance(written, str) else ("", "", "")
        if group == GROUP and api_version(version) and is_older(version, target.version):
            versions[path] = str(written)
    return versions


def _describe_shared(document: Document, operations: list[Operation]) -> Remark:
    """Return the remark that an object is not migrated, because an edit would also change another value.

    If the reason is that an alias or merge key repeats the edited value, the remark is at the position
    of the alias or merge key.
    """
    for operation in operations:
        if alias := find_alias(document.root, operation.path):
            name = document.source.text[slice(*alias)].partition("\n")[0]
            message = f"`{name}` repeats a value of another place; an edit would change both places, so edit the text manually"
            return _remark("refused", document, message, start=alias[0])
    return _remark(
        "refused",
        document,
        "an edit here would also change another value, perhaps because of an anchor, so edit the text manually",
    )
