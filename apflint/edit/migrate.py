"""Moves the objects of a text to a later API version: edits at exact places, and a proof that they did as planned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from apflint.edit import replacement
from apflint.edit.entries import find_alias
from apflint.edit.migration_target import Target, serves
from apflint.edit.operations import locate, text_edits
from apflint.edit.proof import prove
from apflint.edit.text_edits import CannotEditError, apply_edits
from apflint.edit.version_semantics import is_older, plan_migration
from apflint.fix import Set
from apflint.load import load_text
from apflint.load.document import GROUP
from apflint.load.tree import Scalar, resolve_alias, walk
from apflint.releases import api_version

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.edit.version_semantics import Plan
    from apflint.fix import Edit, Operation
    from apflint.load.document import Document
    from apflint.load.source import Source
    from apflint.location import Path


class Remark(NamedTuple):
    """What was done to an object or found at a place, without a final period."""

    kind: Literal["migrated", "note", "refused"]
    line: int
    """1-based."""
    object: str
    """`FlowSchema "name"`, or an empty string for text that is not an object."""
    message: str


class Migration(NamedTuple):
    """The result for a text. If anything is refused, the text is unchanged."""

    text: str
    remarks: tuple[Remark, ...]

    @property
    def is_refused(self) -> bool:
        """Whether anything is refused."""
        return any(remark.kind == "refused" for remark in self.remarks)


def migrate(source: Source, target: Target, *, accept_changes: bool = False) -> Migration:
    """Move every object of a text to `target.version`; with `accept_changes` also those whose meaning changes.

    Never raises: what cannot be migrated is refused, with its place.
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
        if remark := _find_obstacle(document, target):
            remarks.append(remark)
            continue
        plan = plan_migration(document, target)
        remarks += _describe(document, plan, target, accept_changes=accept_changes)
        versions = _find_versions(document, target)
        operations = locate(document, plan.operations)
        try:
            edits += text_edits(source.text, document.root, operations)
            edits += (
                replacement.replace_part(source.text, document.root, path, old.rpartition("/")[2], target.version)
                for path, old in versions.items()
            )
        except CannotEditError as error:
            message = f"the text cannot be edited here: {error}; edit it manually"
            remarks.append(Remark("refused", source.position(error.start)[0], _title(document), message))
        migrated.append((document, [*operations, *(Set(path, f"{GROUP}/{target.version}") for path in versions)]))
    text = source.text
    if not any(remark.kind == "refused" for remark in remarks):
        intended: dict[int, list[Operation]] = {}
        for document, operations in migrated:
            intended.setdefault(document.start, []).extend(operations)
        try:
            text = apply_edits(source.text, edits)
            prove(source, text, intended)
        except CannotEditError as error:
            blamed = [entry for entry in migrated if entry[0].start in error.failed] or migrated
            remarks += (_describe_shared(document, operations) for document, operations in blamed)
            text = source.text
    return Migration(text, tuple(sorted(dict.fromkeys(remarks), key=lambda remark: remark.line)))


def _title(document: Document) -> str:
    return f'{document.kind} "{document.name}"'


def _line(document: Document, path: Path) -> int:
    return document.source.position(document.offsets(path)[0])[0]


def _find_obstacle(document: Document, target: Target) -> Remark | None:
    """Return why an object is not migrated, or None if it can be."""
    line, version = _line(document, ("apiVersion",)), document.version
    if api_version(version) is None:
        return Remark("refused", line, _title(document), f'unknown version "{version}" of {GROUP}')
    if is_older(version, target.version):
        return None
    missing = next((release for release in target.releases if not serves(release, version)), None)
    if missing is None:
        return Remark("note", line, _title(document), f"is already {version}, which is newer: left unchanged")
    message = f"{version} is newer than {target.version}, but Kubernetes {missing.name} does not serve it"
    return Remark("refused", line, _title(document), message)


def _describe(document: Document, plan: Plan, target: Target, *, accept_changes: bool) -> Iterator[Remark]:
    versions = f"{document.version} -> {target.version}"
    yield Remark("migrated", _line(document, ("apiVersion",)), _title(document), versions)
    for note in plan.notes:
        is_refused = note.effect == "impossible" or (note.effect == "changed" and not accept_changes)
        yield Remark("refused" if is_refused else "note", _line(document, note.path), _title(document), note.message)


def _find_versions(document: Document, target: Target) -> dict[Path, str]:
    """Return the apiVersions of an object, by path from the root: its own, and that of a list of its kind, which it may inherit."""
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
    """Describe an object whose edits would change other places, pointing at the alias or merge key if there is one."""
    for operation in operations:
        alias = find_alias(document.root, operation.path)
        if alias is not None:
            name = document.source.text[alias[0] : alias[1]].partition("\n")[0]
            message = f"`{name}` repeats a value of another place, which an edit would change, too; edit it manually"
            return Remark("refused", document.source.position(alias[0])[0], _title(document), message)
    message = "an edit would change another place, too (an anchor, perhaps); edit it manually"
    return Remark("refused", _line(document, ("apiVersion",)), _title(document), message)
