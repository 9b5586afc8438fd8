"""What an editor asks about a place: each function reads the session, and makes the protocol's values of the answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from lsprotocol import types

from apflint.lsp import actions, navigation, positions, wire
from apflint.lsp.completion import complete
from apflint.lsp.hover import hover
from apflint.lsp.session import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.finding import Edit
    from apflint.load.source import Source
    from apflint.lsp.actions import Action
    from apflint.lsp.navigation import Where
    from apflint.lsp.server import Server
    from apflint.lsp.session import Answer, Document

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.apflint"
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
    return types.Hover(types.MarkupContent(types.MarkupKind.Markdown, found.markdown), place)


def _complete(ls: Server, params: types.CompletionParams) -> types.CompletionList | None:
    at = _at(ls, params)
    if at is None or not (at[0].ours or len(at[0].text) <= SMALL):
        return None
    document, offset = at
    answer = ls.session.answer(document.uri)
    found = {finding.rule for finding in answer.findings} if answer is not None else set()
    items = complete(document.text, offset, ls.session.known(document.uri), json=document.json, found=found)
    return wire.completion(items, document.source, ls.session.encoding)


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
        if (address := found.spelled.get((home.checked.folder, place.source.name))) is not None
    ]


async def _list(ls: Server, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
    document = ls.session.documents.get(params.text_document.uri)
    if document is None or not document.ours:
        return []
    await ls.session.settled()
    answer = ls.session.answer(document.uri)
    if answer is None:
        return []
    found = navigation.symbols(answer.home.checked.workspace, answer.home.name)
    return [wire.symbol(one, ls.session.encoding) for one in found]


async def _act(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
    uri = params.text_document.uri
    document = ls.session.documents.get(uri)
    if document is None or not document.ours:
        return []
    await ls.session.settled()
    answer = ls.session.answer(uri)
    if answer is None:
        return []
    start, end = (
        positions.offset(answer.source, positions.Position(place.line, place.character), ls.session.encoding)
        for place in (params.range.start, params.range.end)
    )
    found = actions.between(answer.findings, answer.source, start, end)
    done: list[types.CodeAction] = []
    if _asked(params, _QUICK):
        quick = (*actions.quick_fixes(found), *actions.ignores(answer.source, found))
        done += [_action(ls, uri, answer, action, _QUICK) for action in quick]
    by_hand = params.context.trigger_kind != types.CodeActionTriggerKind.Automatic
    if (_asked(params, FIX_ALL) and (by_hand or params.context.only)) and _has_safe(answer):
        text = await ls.session.mended(answer)
        if text is not None:
            edits = actions.difference(answer.source.text, text)
            whole = actions.Action("Fix all safe problems in this file", False, edits, ())
            done.append(_action(ls, uri, answer, whole, FIX_ALL))
    return done


def _asked(params: types.CodeActionParams, kind: str) -> bool:
    """Whether actions of a kind are wanted: all are where nothing is said, and `source` stands for what is below it."""
    only = params.context.only
    return only is None or any(f"{kind}.".startswith(f"{getattr(one, 'value', one)}.") for one in only)


def _has_safe(answer: Answer) -> bool:
    return any(finding.fix is not None and finding.fix.safe for finding in answer.findings)


def _action(ls: Server, uri: str, answer: Answer, action: Action, kind: str) -> types.CodeAction:
    of = {(finding.rule, wire.span(positions.from_span(answer.source, finding.span, ls.session.encoding)).start.line)
          for finding in action.findings}  # fmt: skip
    shown = ls.session.round.diagnostics.get(uri, []) if ls.session.round is not None else []
    about = [wire.diagnostic(one, {}) for one in shown if (one.rule, one.range.start.line) in of]
    return types.CodeAction(
        title=action.title,
        kind=types.CodeActionKind(kind) if kind == _QUICK else kind,
        diagnostics=about or None,
        is_preferred=action.preferred or None,
        edit=_edit(ls, uri, answer.source, action.edits),
    )


def _edit(ls: Server, uri: str, source: Source, changes: Iterable[Edit]) -> types.WorkspaceEdit:
    """Edits of a document: of the version they were made for, where the editor can tell versions apart."""
    edits = wire.edits(source, changes, ls.session.encoding)
    workspace = ls.client_capabilities.workspace
    able = workspace.workspace_edit if workspace is not None else None
    if able is None or not able.document_changes:
        return types.WorkspaceEdit(changes={uri: edits})
    document = types.OptionalVersionedTextDocumentIdentifier(uri, ls.session.documents[uri].version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, edits)])


_TRIGGERS = [":", " ", "[", "{", ",", '"', "'"]
FEATURES: dict[str, tuple[Callable[..., Any], Any]] = {
    types.TEXT_DOCUMENT_HOVER: (_hover, None),
    types.TEXT_DOCUMENT_COMPLETION: (_complete, types.CompletionOptions(trigger_characters=_TRIGGERS)),
    types.TEXT_DOCUMENT_DEFINITION: (_define, None),
    types.TEXT_DOCUMENT_REFERENCES: (_refer, None),
    types.TEXT_DOCUMENT_DOCUMENT_SYMBOL: (_list, None),
    types.TEXT_DOCUMENT_CODE_ACTION: (
        _act,
        types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL]),
    ),
}
