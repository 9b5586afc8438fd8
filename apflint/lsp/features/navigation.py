"""Finds definitions and references of priority levels, and lists the objects of a file as symbols."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from apflint.load.tree import walk
from apflint.lsp.cursor import LEVEL_FIELDS, field_at
from apflint.lsp.protocol_conversion import range_at
from apflint.lsp.server import EditorServer, server

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.load.document import Document
    from apflint.lsp.protocol_conversion import Encoding
    from apflint.lsp.server import PositionParams
    from apflint.workspace import Workspace

_SYMBOL_KINDS = {
    "FlowSchema": types.SymbolKind.Function,
    "PriorityLevelConfiguration": types.SymbolKind.Class,
}


@server.feature(types.TEXT_DOCUMENT_DEFINITION)
async def find_definitions(ls: EditorServer, params: types.DefinitionParams) -> list[types.Location]:
    """Return the locations at which manifests define the priority level at the cursor. Built-in levels have no location."""
    return await _find_level(ls, params, "PriorityLevelConfiguration")


@server.feature(types.TEXT_DOCUMENT_REFERENCES)
async def find_references(ls: EditorServer, params: types.ReferenceParams) -> list[types.Location]:
    """Return the locations at which FlowSchemas reference the priority level at the cursor."""
    definitions = ("PriorityLevelConfiguration",) if params.context.include_declaration else ()
    return await _find_level(ls, params, *definitions, "FlowSchema")


@server.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
async def list_symbols(ls: EditorServer, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    """Return the objects of a file as symbols, in the order of the file."""
    current = await ls.session.checked_result(params.text_document.uri)
    if current is None:
        return []
    documents = _list_documents(current.directory.effective.workspace)
    return [_symbol(item, ls.session.encoding) for item in documents if item.source.name == current.source.name]


async def _find_level(ls: EditorServer, params: PositionParams, *kinds: str) -> list[types.Location]:
    """Return the locations at which objects of `kinds`, in this order, name the priority level at the cursor."""
    document, offset = ls.document_at(params)
    if document is None or not document.may_hold_apf:
        return []
    field = field_at(document.text, offset, json=document.is_json)
    if field is None or field.level is None:
        return []
    await ls.session.wait_for_checks()
    checked = ls.session.result.documents.get(document.uri)
    if checked is None:
        return []
    return [
        types.Location(
            checked.uris[manifest.source.name],
            range_at(manifest.source, *manifest.offsets(LEVEL_FIELDS[kind]), ls.session.encoding),
        )
        for kind in kinds
        for manifest in _list_documents(checked.directory.effective.workspace)
        if manifest.kind == kind and manifest.at(*LEVEL_FIELDS[kind]) == field.level
    ]


def _list_documents(workspace: Workspace) -> Iterator[Document]:
    return (manifest.document for manifest in (*workspace.manifests, *workspace.context))


def _symbol(document: Document, encoding: Encoding) -> types.DocumentSymbol:
    _, _, root = walk(document.root, document.prefix)
    start, end = document.offsets(("metadata", "name"))
    is_inside = root.start <= start and end <= root.end
    whole = range_at(document.source, root.start, max(root.end, root.start), encoding)
    return types.DocumentSymbol(
        name=document.name or "(no name)",
        kind=_SYMBOL_KINDS[document.kind],
        detail=document.kind,
        range=whole,
        selection_range=range_at(document.source, start, end, encoding) if is_inside else whole,
    )
