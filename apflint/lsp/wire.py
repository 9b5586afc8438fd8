"""Our values as those of the protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lsprotocol import types

from apflint.lsp import positions
from apflint.lsp.prose import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from apflint.finding import Edit
    from apflint.load.source import Source
    from apflint.lsp.completion import Item, Kind
    from apflint.lsp.diagnostics import Diagnostic
    from apflint.lsp.navigation import Symbol, Where
    from apflint.lsp.positions import Encoding, Range

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "info": types.DiagnosticSeverity.Information,
}
_ITEMS: dict[Kind, types.CompletionItemKind] = {
    "field": types.CompletionItemKind.Field,
    "value": types.CompletionItemKind.EnumMember,
    "level": types.CompletionItemKind.Reference,
    "rule": types.CompletionItemKind.Constant,
    "form": types.CompletionItemKind.Keyword,
}


def span(range_: Range) -> types.Range:
    """A range."""
    return types.Range(types.Position(*range_.start), types.Position(*range_.end))


def offsets(source: Source, start: int, end: int, encoding: Encoding) -> types.Range:
    """The range of `text[start:end]`."""
    return span(positions.from_offsets(source, start, end, encoding))


def diagnostic(found: Diagnostic) -> types.Diagnostic:
    """A finding."""
    tags = [types.DiagnosticTag.Unnecessary] if found.unnecessary else []
    tags += [types.DiagnosticTag.Deprecated] if found.deprecated else []
    related = [
        types.DiagnosticRelatedInformation(types.Location(other.uri, span(other.range)), other.message)
        for other in found.related
    ]
    return types.Diagnostic(
        range=span(found.range),
        message=found.message,
        severity=_SEVERITIES[found.severity],
        code=found.rule,
        code_description=types.CodeDescription(found.url),
        source="apflint",
        tags=tags or None,
        related_information=related or None,
    )


def text(markdown: str, formats: Sequence[types.MarkupKind] | None) -> types.MarkupContent:
    """Something to read, in Markdown where an editor shows it. `formats` are those that it has told of."""
    if formats is None or types.MarkupKind.Markdown in formats:
        return types.MarkupContent(types.MarkupKind.Markdown, markdown)
    return types.MarkupContent(types.MarkupKind.PlainText, plain(markdown))


def completion(
    items: Iterable[Item], source: Source, encoding: Encoding, formats: Sequence[types.MarkupKind] | None
) -> types.CompletionList:
    """Proposals, in our order. Editors filter by what is typed after the dash."""
    here = [
        types.CompletionItem(
            label=item.label,
            kind=_ITEMS[item.kind],
            detail=item.detail or None,
            documentation=text(item.documentation, formats) if item.documentation else None,
            sort_text=f"{number:04}",
            filter_text=item.label.removeprefix("- "),
            text_edit=types.TextEdit(offsets(source, item.start, item.end, encoding), item.new),
        )
        for number, item in enumerate(items)
    ]
    return types.CompletionList(is_incomplete=False, items=here)


def edits(source: Source, changes: Iterable[Edit], encoding: Encoding) -> list[types.TextEdit]:
    """Edits of a text."""
    return [types.TextEdit(offsets(source, edit.start, edit.end, encoding), edit.new) for edit in changes]


def symbol(found: Symbol, encoding: Encoding) -> types.DocumentSymbol:
    """An object of a file."""
    return types.DocumentSymbol(
        name=found.name,
        kind=types.SymbolKind.Class if found.kind == "PriorityLevelConfiguration" else types.SymbolKind.Function,
        detail=found.kind,
        range=where(found.whole, encoding),
        selection_range=where(found.named, encoding),
    )


def where(found: Where, encoding: Encoding) -> types.Range:
    """The range of a place."""
    return offsets(found.source, found.start, found.end, encoding)
