"""Definitions and references of priority levels, and the objects of a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types

from apflint.load.document import KINDS
from apflint.load.tree import walk
from apflint.lsp.convert import range_at
from apflint.lsp.cursor import LEVEL_NAME, LEVEL_REFERENCE, field_at
from apflint.lsp.server import Server, server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.load.document import Document
    from apflint.load.source import Source
    from apflint.location import Path
    from apflint.lsp.convert import Encoding
    from apflint.lsp.server import DocumentPosition
    from apflint.workspace import Workspace


class _Extent(NamedTuple):
    """`text[start:end]` of a source."""

    source: Source
    start: int
    end: int

    def range(self, encoding: Encoding) -> types.Range:
        return range_at(self.source, self.start, self.end, encoding)


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
async def find_definitions(ls: Server, params: types.DefinitionParams) -> list[types.Location]:
    """Return where manifests define the priority level at the cursor. Built-in levels are defined nowhere."""
    return await _locations(ls, params, _definitions)


@server.feature(types.TEXT_DOCUMENT_REFERENCES)
async def find_references(ls: Server, params: types.ReferenceParams) -> list[types.Location]:
    """Return where FlowSchemas reference the priority level at the cursor."""
    locations = await _locations(ls, params, _references)
    if params.context.include_declaration:
        locations = [*await _locations(ls, params, _definitions), *locations]
    return locations


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
async def list_symbols(ls: Server, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """Return the objects of a file in order."""
    current = await ls.session.checked_result(params.text_document.uri)
    if current is None:
        return []
    documents = _documents(current.directory.effective.workspace)
    return [_symbol(item, ls.session.encoding) for item in documents if item.source.name == current.source.name]


async def _locations(
    ls: Server, params: DocumentPosition, find: Callable[[Workspace, str], Iterator[_Extent]]
) -> list[types.Location]:
    at = ls.document_at(params)
    if at is None or not at[0].may_hold_apf:
        return []
    document, offset = at
    field = field_at(document.text, offset, json=document.is_json)
    if field is None or field.level is None:
        return []
    await ls.session.wait_for_checks()
    last = ls.session.last_result
    checked = last.documents.get(document.uri) if last is not None else None
    if checked is None:
        return []
    return [
        types.Location(uri, extent.range(ls.session.encoding))
        for extent in find(checked.directory.effective.workspace, field.level)
        if (uri := checked.uris.get(extent.source.name)) is not None
    ]


def _definitions(workspace: Workspace, level: str) -> Iterator[_Extent]:
    for document in _documents(workspace):
        if (document.kind, document.name) == (KINDS[1], level):
            yield _extent(document, LEVEL_NAME)


def _references(workspace: Workspace, level: str) -> Iterator[_Extent]:
    for document in _documents(workspace):
        if document.kind == KINDS[0] and document.at(*LEVEL_REFERENCE) == level:
            yield _extent(document, LEVEL_REFERENCE)


def _symbol(document: Document, encoding: Encoding) -> types.DocumentSymbol:
    _, _, root = walk(document.root, document.prefix)
    whole = _Extent(document.source, root.start, max(root.end, root.start))
    name = _extent(document, LEVEL_NAME)
    is_inside = whole.start <= name.start and name.end <= whole.end
    return types.DocumentSymbol(
        name=document.name or "(no name)",
        kind=types.SymbolKind.Class if document.kind == KINDS[1] else types.SymbolKind.Function,
        detail=document.kind,
        range=whole.range(encoding),
        selection_range=(name if is_inside else whole).range(encoding),
    )


def _documents(workspace: Workspace) -> Iterator[Document]:
    return (manifest.document for manifest in (*workspace.manifests, *workspace.context))


def _extent(document: Document, path: Path) -> _Extent:
    return _Extent(document.source, *document.offsets(path))
