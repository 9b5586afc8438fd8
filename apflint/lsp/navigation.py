"""Where objects are: the level that a FlowSchema names, the FlowSchemas that name a level, the objects of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.load.document import KINDS
from apflint.load.node import walk
from apflint.lsp.completion import LEVEL
from apflint.lsp.outline import outline, piece
from apflint.lsp.spot import entry_at, manifest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Path
    from apflint.load.document import Document
    from apflint.load.source import Source
    from apflint.workspace import Workspace

_NAME = ("metadata", "name")


class Where(NamedTuple):
    """A place in a text that was read."""

    source: Source
    start: int
    end: int


class Symbol(NamedTuple):
    """An object in a file: its whole extent, and its name."""

    name: str
    kind: str
    whole: Where
    named: Where


def level_at(text: str, offset: int, *, json: bool = False) -> tuple[str, bool] | None:
    """The name of the priority level at an offset, and whether it is the level's own name rather than a FlowSchema's word."""
    part = piece(text, offset, json=json)
    if part is None:
        return None
    entries = outline(text, part)
    at = entry_at(entries, offset)
    owner = manifest(entries, at[0].path) if at is not None else None
    if at is None or owner is None or at[1] or not at[0].text:
        return None
    path = at[0].path[len(owner.prefix) :]
    if (owner.kind, path) == (KINDS[0], LEVEL):
        return at[0].text, False
    return (at[0].text, True) if (owner.kind, path) == (KINDS[1], _NAME) else None


def definitions(known: Workspace, level: str) -> list[Where]:
    """Where manifests define a level: nowhere, for one that is built in."""
    return [
        _where(document, _NAME) for document in _documents(known) if (document.kind, document.name) == (KINDS[1], level)
    ]


def references(known: Workspace, level: str) -> list[Where]:
    """Where FlowSchemas name a level."""
    return [
        _where(document, LEVEL)
        for document in _documents(known)
        if document.kind == KINDS[0] and document.at(*LEVEL) == level
    ]


def symbols(known: Workspace, name: str) -> list[Symbol]:
    """The objects of a file, in order."""
    found = []
    for document in _documents(known):
        if document.source.name == name:
            _, _, root = walk(document.root, document.prefix)
            whole = Where(document.source, root.start, max(root.end, root.start))
            named = _where(document, _NAME)
            inside = whole.start <= named.start and named.end <= whole.end
            found.append(Symbol(document.name or "(no name)", document.kind, whole, named if inside else whole))
    return found


def _documents(known: Workspace) -> Iterator[Document]:
    return (manifest.document for manifest in (*known.manifests, *known.context))


def _where(document: Document, path: Path) -> Where:
    return Where(document.source, *document.offsets(path))
