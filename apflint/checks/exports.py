"""APF105: fields that the API server fills in, as in manifests exported with `kubectl get -o yaml`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.metadata import objects
from apflint.finding import Problem
from apflint.fix import Fix, Remove
from apflint.location import Place
from apflint.wording import listed, quote, several

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.workspace import Workspace

# Recorded on 1.36: a create with a positive integer in resourceVersion answers 500, an update with another uid or
# resourceVersion 409; server-side apply refuses managedFields, and the uid of an object that does not exist.
_HARMFUL = {
    "resourceVersion": (
        "With resourceVersion the object cannot be created, and applying it fails once the stored object has changed."
    ),
    "uid": (
        "With uid an update fails if the object was recreated meanwhile, and server-side apply cannot create the object."
    ),
    "managedFields": "With managedFields server-side apply fails.",
}
"""Fields of `metadata` that make requests fail, and how."""
_HARMLESS = (
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
)
_EMPTY_STATUS: tuple[object, ...] = (None, {}, {"conditions": []}, {"conditions": None})
_MAX_NAMED_FIELDS = 4


def is_exported(document: Document) -> bool:
    """Whether an object was read from a server: no manifest that somebody writes has both a uid and a status."""
    return document.has_other_fields and bool(document.at("metadata", "uid")) and document.has("status")


def server_populated_field(workspace: Workspace) -> Iterator[Problem]:
    """APF105. One finding for each object, and one for all objects of a list from a server.

    A list that holds nothing but untouched built-in objects is no source of anything, so it has none.
    """
    exports: dict[Hashable, list[tuple[Document, list[Path]]]] = {}
    with_own: set[Hashable] = set()
    for found in objects(workspace):
        document = found.document
        if not document.has_other_fields or not (fields := _populated(document)):
            continue
        if document.prefix and is_exported(document):
            export = (document.source, document.start, document.prefix[:-1])
            exports.setdefault(export, []).append((document, fields))
            if not builtin.is_copy(found, workspace.release):
                with_own.add(export)
        else:
            yield _problem(document, fields)
    for list_of, members in exports.items():
        if list_of in with_own:
            yield from _problems_of_list(members)


def _populated(document: Document) -> list[Path]:
    """Paths of the fields that the server fills in; those that make requests fail come first."""
    paths: list[Path] = [
        ("metadata", name) for name in (*_HARMFUL, *_HARMLESS) if document.at("metadata", name) not in (None, [], "")
    ]
    return paths if document.at("status") in _EMPTY_STATUS else [*paths, ("status",)]


def _problem(document: Document, fields: list[Path]) -> Problem:
    names = [str(path[-1]) for path in fields]
    effects = [effect for name, effect in _HARMFUL.items() if name in names]
    are, them = ("is", "it") if len(names) == 1 else ("are", "them")
    message = f"{several([quote(name) for name in names], _MAX_NAMED_FIELDS)} {are} filled in by the API server."
    if names == ["status"]:
        message += " A status in a manifest is dropped."
    message = " ".join([message, *effects, f"Remove {them}"])
    return Problem(
        Place(document, fields[0], key=True), message, fix=_removal(fields), severity="warning" if effects else None
    )


def _problems_of_list(members: list[tuple[Document, list[Path]]]) -> Iterator[Problem]:
    """One problem that reports all objects of a list, and for `fix` one for each of the others."""
    names = dict.fromkeys(str(path[-1]) for _, fields in members for path in fields)
    harmful = [name for name in _HARMFUL if name in names]
    have = "its object has" if len(members) == 1 else f"its {len(members):,} objects have"
    message = (
        f"this list was exported from a cluster: {have} fields that the API server fills in"
        f" ({several(list(names), len(names))}). The other checks are not affected."
    )
    if harmful:
        message += f" Requests to create or apply the objects can fail because of {listed(harmful, 'and')}."
    message += " Remove the fields before you use the list as a source: `apflint fix` does"
    for number, (document, fields) in enumerate(members):
        place = Place(document, fields[0], key=True)
        yield Problem(place, message, fix=_removal(fields), severity="info", covered=number > 0)


def _removal(fields: list[Path]) -> Fix:
    title = f"remove {several([quote(path[-1]) for path in fields], _MAX_NAMED_FIELDS)}"
    return Fix(title, True, tuple(Remove(path) for path in fields))
