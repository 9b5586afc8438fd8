"""What an editor asks about a place: each function reads the session, and makes the protocol's values of the answer."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Protocol

from lsprotocol import types

from apflint.lsp import actions, navigation, positions, wire
from apflint.lsp.completion import complete
from apflint.lsp.hover import hover
from apflint.lsp.outline import LONGEST
from apflint.lsp.session import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.finding import Edit
    from apflint.lsp.actions import Action
    from apflint.lsp.navigation import Where
    from apflint.lsp.server import Server
    from apflint.lsp.session import Answer, Document

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.apflint"
_FIX_ALL_TITLE = "Fix all safe problems in this file"
_QUICK = types.CodeActionKind.QuickFix.value


class _Place(Protocol):
    """What all questions about a place have."""

    text_document: types.TextDocumentIdentifier
    position: types.Position


def _at(ls: Server, params: _Place) -> tuple[Document, int] | None:
    """The document and offset that a question is about; None where there is nothing to say."""
    document = ls.session.documents.get(params.text_document.uri)
    if document is None:
        return None
    return document, ls.session.offset(document, params.position.line, params.position.character)


def _hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
    at = _at(ls, params)
    if at is None or not at[0].ours:
        return None
    document, offset = at
    answer = ls.session.answer(document.uri)
    rules = [one.rule for one in actions.between(answer.findings, answer.source, offset, offset)] if answer else []
    found = hover(document.text, offset, ls.session.known(document.uri), json=document.json, rules=rules)
    if found is None:
        return None
    place = None
    if found.start < found.end:
        place = wire.offsets(document.source, found.start, found.end, ls.session.encoding)
    able = ls.client_capabilities.text_document
    formats = able.hover.content_format if able is not None and able.hover is not None else None
    return types.Hover(wire.text(found.markdown, formats), place)


def _complete(ls: Server, params: types.CompletionParams) -> types.CompletionList | None:
    at = _at(ls, params)
    if at is None or not (at[0].ours or len(at[0].text) <= SMALL):
        return None
    document, offset = at
    answer = ls.session.answer(document.uri)
    found = {finding.rule for finding in answer.findings} if answer is not None else set()
    items = complete(document.text, offset, ls.session.known(document.uri), json=document.json, found=found)
    able = ls.client_capabilities.text_document
    item = able.completion.completion_item if able is not None and able.completion is not None else None
    formats = item.documentation_format if item is not None else None
    return wire.completion(items, document.source, ls.session.encoding, formats)


async def _define(ls: Server, params: types.DefinitionParams) -> list[types.Location]:
    return await _places(ls, params, navigation.definitions)


async def _refer(ls: Server, params: types.ReferenceParams) -> list[types.Location]:
    found = await _places(ls, params, navigation.references)
    if params.context.include_declaration:
        found = [*await _places(ls, params, navigation.definitions), *found]
    return found


async def _places(ls: Server, params: _Place, find: Callable[..., list[Where]]) -> list[types.Location]:
    at = _at(ls, params)
    level = navigation.level_at(at[0].text, at[1], json=at[0].json) if at is not None and at[0].ours else None
    if level is None:
        return []
    await ls.session.settled()
    known, found = ls.session.known(params.text_document.uri).workspace, ls.session.round
    home = found.homes.get(params.text_document.uri) if found is not None else None
    if known is None or found is None or home is None:
        return []
    return [
        types.Location(address, wire.where(place, ls.session.encoding))
        for place in find(known, level[0])
        if (address := home.uris.get(place.source.name)) is not None
    ]


async def _list(ls: Server, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    answer = await _settled(ls, params.text_document.uri)
    if answer is None:
        return []
    found = navigation.symbols(answer.home.checked.workspace, answer.home.name)
    return [wire.symbol(one, ls.session.encoding) for one in found]


async def _act(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    answer = await _settled(ls, params.text_document.uri)
    if answer is None:
        return []
    start, end = (
        positions.offset(answer.source, positions.Position(place.line, place.character), ls.session.encoding)
        for place in (params.range.start, params.range.end)
    )
    done: list[types.CodeAction] = []
    if _asked(params, _QUICK):
        found = [*islice(actions.between(answer.findings, answer.source, start, end), actions.MOST)]
        quick = (*actions.quick_fixes(found), *actions.ignores(answer.source, found))
        done += [_quick(ls, answer, action) for action in quick]
    by_hand = params.context.trigger_kind != types.CodeActionTriggerKind.Automatic
    if _asked(params, FIX_ALL) and (by_hand or params.context.only) and _can_mend(answer):
        whole = types.CodeAction(_FIX_ALL_TITLE, kind=FIX_ALL, data=answer.document.uri)
        if not _asks_again(ls):
            whole = await _mend(ls, whole)
        if _asks_again(ls) or whole.edit is not None:
            done.append(whole)
    return done


async def _mend(ls: Server, action: types.CodeAction) -> types.CodeAction:
    """The action with its edit, which takes as long as it takes."""
    answer = await _settled(ls, str(action.data))
    if answer is not None and _can_mend(answer) and (edits := await ls.session.mended(answer)):
        action.edit = _edit(ls, answer, edits)
    return action


async def _settled(ls: Server, uri: str) -> Answer | None:
    """What is found in a document as it is now."""
    document = ls.session.documents.get(uri)
    if document is None or not document.ours:
        return None
    await ls.session.settled()
    return ls.session.answer(uri)


def _asked(params: types.CodeActionParams, kind: str) -> bool:
    """Whether actions of a kind are wanted: all are where nothing is said, and `source` stands for what is below it."""
    only = params.context.only
    return only is None or any(f"{kind}.".startswith(f"{getattr(one, 'value', one)}.") for one in only)


def _asks_again(ls: Server) -> bool:
    """Whether the editor asks for the edit of an action once somebody has chosen it."""
    document = ls.client_capabilities.text_document
    able = document.code_action if document is not None else None
    return bool(able and able.data_support and able.resolve_support and "edit" in able.resolve_support.properties)


def _can_mend(answer: Answer) -> bool:
    return len(answer.source.text) <= LONGEST and any(
        finding.fix is not None and finding.fix.safe for finding in answer.findings
    )


def _quick(ls: Server, answer: Answer, action: Action) -> types.CodeAction:
    about = {id(finding) for finding in action.findings}
    shown = zip(answer.findings, answer.diagnostics, strict=False)
    return types.CodeAction(
        title=action.title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=[wire.diagnostic(one) for finding, one in shown if id(finding) in about] or None,
        is_preferred=action.preferred or None,
        edit=_edit(ls, answer, action.edits),
    )


def _edit(ls: Server, answer: Answer, changes: Iterable[Edit]) -> types.WorkspaceEdit:
    """Edits of a document: of the version they were made for, where the editor can tell versions apart."""
    edits = wire.edits(answer.source, changes, ls.session.encoding)
    uri, version = answer.document.uri, answer.document.version
    workspace = ls.client_capabilities.workspace
    able = workspace.workspace_edit if workspace is not None else None
    if able is None or not able.document_changes:
        return types.WorkspaceEdit(changes={uri: edits})
    document = types.OptionalVersionedTextDocumentIdentifier(uri, version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, edits)])


_TRIGGERS = [":", " ", "[", "{", ",", '"', "'"]
FEATURES: dict[str, tuple[Callable[..., object], object]] = {
    types.TEXT_DOCUMENT_HOVER: (_hover, None),
    types.TEXT_DOCUMENT_COMPLETION: (_complete, types.CompletionOptions(trigger_characters=_TRIGGERS)),
    types.TEXT_DOCUMENT_DEFINITION: (_define, None),
    types.TEXT_DOCUMENT_REFERENCES: (_refer, None),
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (_list, None),
    types.TEXT_DOCUMENT_CODE_ACTION: (
        _act,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL], resolve_provider=True),
    ),
    types.CODE_ACTION_RESOLVE: (_mend, None),
}
