"""Code actions: apply the fix of a finding, apply all safe fixes of a file, or suppress a finding with a comment."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types

from apflint.budgets import MAX_COMPLETION_CHARACTERS, MAX_FINDINGS_WITH_ACTIONS
from apflint.edit.text_edits import CannotEditError
from apflint.edit_operations import Edit
from apflint.load.comments import find_comments
from apflint.load.source_text import Source
from apflint.lsp.diagnostics import findings_between
from apflint.lsp.partial_yaml import document_at
from apflint.lsp.protocol_conversion import offset_at, range_at
from apflint.lsp.server import EditorServer, server
from apflint.suppressions import SUPPRESSION_RULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.finding import Finding
    from apflint.lsp.workspace import DocumentResult

FIX_ALL = f"{types.CodeActionKind.SourceFixAll.value}.apflint"
_FIX_ALL_TITLE = "Fix all safe problems in this file"
_QUICK_FIX = types.CodeActionKind.QuickFix.value
_IGNORE = re.compile(r"(?<!#)#+[ \t]*apflint:[ \t]*ignore[ \t]*\[(?P<ids>[^\]\r\n]*)\]")


class EditorAction(NamedTuple):
    """A code action: edits of a text, and the findings that the edits fix or suppress."""

    title: str
    is_safe: bool
    """Whether the edits preserve the meaning of the object. Editors may prefer safe actions."""
    edits: tuple[Edit, ...]
    findings: tuple[Finding, ...]


@server.feature(
    types.TEXT_DOCUMENT_CODE_ACTION,
    types.CodeActionOptions(code_action_kinds=[types.CodeActionKind.QuickFix, FIX_ALL], resolve_provider=True),
)
async def list_code_actions(ls: EditorServer, params: types.CodeActionParams) -> list[types.CodeAction]:
    """Return the actions for the findings in a range, and the action that applies all safe fixes of the file."""
    current = await ls.session.checked_result(params.text_document.uri)
    if current is None:
        return []
    actions: list[types.CodeAction] = []
    if _is_requested(params, _QUICK_FIX):
        start, end = (
            offset_at(current.source, at, ls.session.encoding) for at in (params.range.start, params.range.end)
        )
        touched = findings_between(current.findings, current.source, start, end)
        findings = [*islice(touched, MAX_FINDINGS_WITH_ACTIONS)]
        quick = (*quick_fixes(findings), *suppression_comments(current.source, findings))
        actions += [_code_action(ls, current, action) for action in quick]
    is_manual = params.context.trigger_kind != types.CodeActionTriggerKind.Automatic
    if _is_requested(params, FIX_ALL) and (is_manual or params.context.only) and _has_safe_fixes(current):
        fix_all = types.CodeAction(_FIX_ALL_TITLE, kind=FIX_ALL, data=current.uri)
        if _resolves_edits(ls) or (await resolve_code_action(ls, fix_all)).edit is not None:
            actions.append(fix_all)
    return actions


@server.feature(types.CODE_ACTION_RESOLVE)
async def resolve_code_action(ls: EditorServer, action: types.CodeAction) -> types.CodeAction:
    """Add the edits to the action that applies all safe fixes.

    The edits are computed only if the editor requests them, because computing them takes longer than listing the
    action.
    """
    current = await ls.session.checked_result(str(action.data))
    if current is not None and _has_safe_fixes(current) and (edits := await ls.session.fix_document(current)):
        action.edit = _workspace_edit(ls, current, edits)
    return action


def quick_fixes(findings: Iterable[Finding]) -> list[EditorAction]:
    """Return an action for each fix that can be applied to the text. Findings with equal edits share one action."""
    from apflint.edit.fix_batch import edits_of

    actions: dict[tuple[Edit, ...], EditorAction] = {}
    for finding in findings:
        if finding.fix is None:
            continue
        try:
            changes = edits_of(finding)
        except CannotEditError:
            continue
        if changes:
            note = "" if finding.fix.safe else " (may change what the object means)"
            title = f"{finding.fix.title[:1].upper()}{finding.fix.title[1:]}{note}"
            action = actions.get(changes, EditorAction(title, finding.fix.safe, changes, ()))
            actions[changes] = action._replace(findings=(*action.findings, finding))
    return list(actions.values())


def suppression_comments(source: Source, findings: Iterable[Finding]) -> Iterator[EditorAction]:
    """Yield an action for each rule and line with findings. The action adds a suppression comment for the rule to the line.

    Yields no action for a line on which a suppression comment is impossible or has no effect.
    """
    by_rule: dict[tuple[str, int], list[Finding]] = {}
    for finding in findings if not source.name.endswith(".json") else ():
        if finding.rule not in SUPPRESSION_RULES:
            by_rule.setdefault((finding.rule, finding.span.line), []).append(finding)
    for (rule, line), of_rule in by_rule.items():
        edit = _add_to_comment(source, rule, line)
        at = source.line_starts[line - 1] + of_rule[0].span.column - 1
        if edit is not None and _suppresses(source, edit, rule, at):
            yield EditorAction(f"Ignore {rule} for this line", False, (edit,), tuple(of_rule))


def _add_to_comment(source: Source, rule: str, line: int) -> Edit | None:
    """Return the edit that adds a rule to the suppression comment of a line. If there is no comment, the edit adds one.

    Return None if the line has another comment.
    """
    start = source.line_starts[line - 1]
    text = source.line(line)
    if (comment := _IGNORE.search(text)) is not None:
        at = start + comment.end("ids")
        return Edit(at, at, f", {rule}" if comment["ids"].strip() else rule)
    if re.search(r"(?:^|\s)#", text):
        return None  # the line ends with another comment, and everything after its `#` is part of this comment
    return Edit(start + len(text.rstrip()), start + len(text), f"  # apflint: ignore[{rule}]")


def _suppresses(source: Source, edit: Edit, rule: str, at: int) -> bool:
    """Return whether the comment that `edit` adds or extends suppresses `rule` at offset `at`.

    Return False in a block scalar, in which `#` does not start a comment.
    """
    document = document_at(source.text, edit.start)
    if document is None:
        return False
    start, end = document
    text = source.text[start : edit.start] + edit.new + source.text[edit.end : end]
    edit_end = edit.start + len(edit.new) - start
    return any(
        comment.start <= edit_end <= comment.end
        and rule in comment.text
        and comment.scope[0] <= at - start < comment.scope[1]
        for comment in find_comments(Source(source.name, text), "apflint:")
    )


def _is_requested(params: types.CodeActionParams, kind: str) -> bool:
    """Return whether the editor requests actions of a kind. The kind `source` includes the kind `source.fixAll`.

    An editor that names no kinds requests all kinds.
    """
    only = params.context.only
    return only is None or any(f"{kind}.".startswith(f"{getattr(wanted, 'value', wanted)}.") for wanted in only)


def _resolves_edits(ls: EditorServer) -> bool:
    """Return whether the editor can request the edits of an action later, when the user has chosen the action."""
    has_data = ls.capability("text_document.code_action.data_support", default=False)
    return has_data and "edit" in ls.capability("text_document.code_action.resolve_support.properties", default=())


def _has_safe_fixes(current: DocumentResult) -> bool:
    return len(current.source.text) <= MAX_COMPLETION_CHARACTERS and any(
        finding.fix is not None and finding.fix.safe for finding in current.findings
    )


def _code_action(ls: EditorServer, current: DocumentResult, action: EditorAction) -> types.CodeAction:
    shown = zip(current.findings, current.diagnostics, strict=False)
    diagnostics = [diagnostic for finding, diagnostic in shown if any(finding is fixed for fixed in action.findings)]
    return types.CodeAction(
        title=action.title,
        kind=types.CodeActionKind.QuickFix,
        diagnostics=diagnostics or None,
        is_preferred=action.is_safe or None,
        edit=_workspace_edit(ls, current, action.edits),
    )


def _workspace_edit(ls: EditorServer, current: DocumentResult, changes: Iterable[Edit]) -> types.WorkspaceEdit:
    """Return edits of a document in the form of the protocol, with the document version if the editor supports versions."""
    source, uri, encoding = current.source, current.uri, ls.session.encoding
    edits = [types.TextEdit(range_at(source, edit.start, edit.end, encoding), edit.new) for edit in changes]
    if not ls.capability("workspace.workspace_edit.document_changes", default=False):
        return types.WorkspaceEdit(changes={uri: edits})
    document = types.OptionalVersionedTextDocumentIdentifier(uri, ls.session.documents[uri].version)
    return types.WorkspaceEdit(document_changes=[types.TextDocumentEdit(document, edits)])
