"""Completes fields, values, names of priority levels, and rule ids in suppression comments."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from lsprotocol import types

from apflint import builtin, rule_catalogue
from apflint.budgets import MAX_NEW_DOCUMENT_CHARACTERS
from apflint.fixes.yaml_values import write_string
from apflint.load.document import GROUP, KINDS
from apflint.lsp.cursor import LEVEL_FIELDS, enclosing_object, insertion_point, suppression_at
from apflint.lsp.partial_yaml import scalars_by_path
from apflint.lsp.priority_levels import describe_level, list_level_names
from apflint.lsp.protocol_conversion import ANY_FORMAT, escape_markdown, markup, range_at
from apflint.lsp.schema_fields import find_field
from apflint.lsp.server import EditorServer, server

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from apflint.effective_configuration import Effective
    from apflint.location import Path
    from apflint.lsp.cursor import EnclosingObject, InsertionPoint, SuppressionAtCursor
    from apflint.lsp.schema_fields import Field

_TRIGGER_CHARACTERS = [":", " ", "[", "{", ",", '"', "'"]
_COMMENTS = ("apflint: ignore[", "apflint: file-ignore[")


class Proposal(NamedTuple):
    """A proposal to replace `text[start:end]` with `new`."""

    label: str
    kind: types.CompletionItemKind
    new: str
    start: int
    end: int
    detail: str = ""
    documentation: str = ""
    """A description in Markdown, or an empty string."""


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=_TRIGGER_CHARACTERS))
def list_completions(ls: EditorServer, params: types.CompletionParams) -> types.CompletionList | None:
    """Return the proposals for the cursor, best proposals first.

    Editors compare the filter text of a proposal with the word at the cursor. So the filter text of a new list item
    does not contain the dash.
    """
    document, offset = ls.document_at(params)
    if document is None or not (document.may_hold_apf or len(document.text) <= MAX_NEW_DOCUMENT_CHARACTERS):
        return None
    current = ls.session.current_result(document.uri)
    rules = {finding.rule for finding in current.findings} if current is not None else set()
    effective = ls.session.effective(document.uri)
    formats = ls.capability("text_document.completion.completion_item.documentation_format", default=ANY_FORMAT)
    items = [
        types.CompletionItem(
            label=proposal.label,
            kind=proposal.kind,
            detail=proposal.detail or None,
            documentation=markup(proposal.documentation, formats) if proposal.documentation else None,
            sort_text=f"{number:04}",
            filter_text=proposal.label.removeprefix("- "),
            text_edit=types.TextEdit(
                range_at(document.source, proposal.start, proposal.end, ls.session.encoding), proposal.new
            ),
        )
        for number, proposal in enumerate(
            complete(document.text, offset, effective, json=document.is_json, rules=rules)
        )
    ]
    return types.CompletionList(is_incomplete=False, items=items)


def complete(
    text: str, offset: int, effective: Effective, *, json: bool = False, rules: Collection[str] = ()
) -> list[Proposal]:
    """Return proposals for an offset, best proposals first.

    `rules` are the IDs of rules with findings. In a suppression comment, these IDs are proposed first.
    """
    if not json and (suppression := suppression_at(text, offset)) is not None:
        return list(_complete_suppression(suppression, rules))
    point = insertion_point(text, offset, json=json)
    owner = enclosing_object(point.entries, point.path) if point is not None else None
    if point is None or owner is None:
        return []
    return list(_ProposalWriter(text, point, owner, effective, json=json).proposals())


def _complete_suppression(suppression: SuppressionAtCursor, rules: Collection[str]) -> Iterator[Proposal]:
    start, end, others, is_closed = suppression
    if others is None:
        for comment in _COMMENTS:
            description = "Suppresses findings of rules."
            yield Proposal(comment, types.CompletionItemKind.Keyword, comment, start, end, "apflint", description)
        return
    for rule_id in sorted(rule_catalogue.list_ids(), key=lambda rule_id: (rule_id not in rules, rule_id)):
        if rule_id not in others:
            rule, new = rule_catalogue.read_rule(rule_id), rule_id if is_closed else f"{rule_id}] "
            description = escape_markdown(rule.summary)
            yield Proposal(rule_id, types.CompletionItemKind.Constant, new, start, end, rule.name, description)


class _ProposalWriter:
    """Writes proposals in the style of the surrounding text: with or without quotes and a dash."""

    def __init__(
        self, text: str, point: InsertionPoint, owner: EnclosingObject, effective: Effective, *, json: bool
    ) -> None:
        self.text = text
        self.point = point
        self.owner = owner
        self.effective = effective
        self.json = json
        self.is_closed = bool(point.quote) and text[point.end : point.end + 1] == point.quote
        self.on_own_line = point.is_line_empty and not point.in_flow

    def proposals(self) -> Iterator[Proposal]:
        path = self.point.path[len(self.owner.prefix) :]
        field = self._find_field(path)
        if not self.point.is_key:
            yield from self._propose_values(path, field)
        elif field is not None and field.type == "object":
            yield from self._propose_fields(path, field)
            yield from self._propose_items_of_list_above()
        elif field is not None and field.type == "array":
            yield from self._propose_items(path) if self.on_own_line else ()
        elif not self.point.is_line_empty and isinstance(path[-1], int):
            yield from self._propose_values(path, field)  # here, `- get` is a value, not the beginning of a key

    def _find_field(self, path: Path) -> Field | None:
        return find_field(self.owner.kind or KINDS[0], self.owner.version, self.effective.release, path)

    def _propose_fields(self, path: Path, parent: Field) -> Iterator[Proposal]:
        scalars, place = scalars_by_path(self.point.entries), (*self.owner.prefix, *path)
        present = {
            entry.name: scalars.get(entry.path)
            for entry in self.point.entries
            if entry.is_field and entry.path[:-1] == place
        }
        for field in parent.list_missing(present):
            if self.owner.kind or (not path and field.name in ("apiVersion", "kind")):
                new = self._write(field.name)
                if not self.point.has_colon and not self.is_closed:
                    starts_block = field.type in ("array", "object") and not self.point.in_flow
                    new += ":" if starts_block else ": "
                yield self._proposal(
                    field.name, types.CompletionItemKind.Field, new, field.facts, escape_markdown(field.description)
                )

    def _propose_items_of_list_above(self) -> Iterator[Proposal]:
        """Propose list items on a line below the key of an empty list, if the cursor is in the column of this key.

        YAML permits this indentation: the dashes of a list may have the same column as the key of the list.
        """
        above = [entry for entry in self.point.entries if entry.key[1] <= self.point.start]
        if self.on_own_line and above and above[-1].text == "" and above[-1].path[:-1] == self.point.path:
            path = above[-1].path[len(self.owner.prefix) :]
            field = self._find_field(path)
            if field is not None and field.type == "array":
                yield from self._propose_items(path)

    def _propose_items(self, path: Path) -> Iterator[Proposal]:
        """Propose new items of a list. Each proposal begins with a dash."""
        item = (*path, -1)
        field = self._find_field(item)
        is_object = field is not None and field.type == "object"
        proposals = self._propose_fields(item, field) if field and is_object else self._propose_values(item, field)
        for proposal in proposals:
            yield proposal._replace(label=f"- {proposal.label}", new=f"- {proposal.new}")

    def _propose_values(self, path: Path, field: Field | None) -> Iterator[Proposal]:
        release = self.effective.release
        if path == ("apiVersion",):
            for version in release.served or release.on_request:
                yield self._value(f"{GROUP}/{version}", f"served by Kubernetes {release.name}")
        elif path == ("kind",):
            for kind in KINDS:
                spec = find_field(kind, self.owner.version, release, ("spec",))
                yield self._value(kind, documentation=escape_markdown(spec.description) if spec is not None else "")
        elif self.owner.kind == "FlowSchema" and path == LEVEL_FIELDS["FlowSchema"]:
            built_in = builtin.list_names(release, "PriorityLevelConfiguration")
            for name in list_level_names(self.effective):
                detail = "built in" if name in built_in else "priority level"
                level = self._value(name, detail, describe_level(self.effective, name))
                yield level._replace(kind=types.CompletionItemKind.Reference)
        elif self.owner.kind and field is not None and field.type == "boolean":
            for word in ("true", "false"):
                yield self._proposal(word, types.CompletionItemKind.EnumMember, self.point.lead + word)
        elif self.owner.kind and field is not None:
            used = self._other_items(path) if isinstance(path[-1], int) else set()
            for value in field.values:
                if value not in used and not (used and "*" in (value, *used)):  # `*` excludes other values
                    yield self._value(value)

    def _other_items(self, path: Path) -> set[str]:
        """Return the items of a list, except the item at `path`, which contains the cursor."""
        siblings = (*self.owner.prefix, *path[:-1])
        return {entry.text for entry in self.point.entries if entry.path[:-1] == siblings and entry.text is not None}

    def _value(self, value: str, detail: str = "", documentation: str = "") -> Proposal:
        kind = types.CompletionItemKind.EnumMember
        return self._proposal(value or '""', kind, self.point.lead + self._write(value), detail, documentation)

    def _write(self, value: str) -> str:
        """Return a string with the quotes that are needed at the cursor."""
        if not self.point.quote:
            return json.dumps(value, ensure_ascii=False) if self.json else write_string(value)
        inner = json.dumps(value, ensure_ascii=False)[1:-1] if self.point.quote == '"' else value.replace("'", "''")
        return inner + ("" if self.is_closed else self.point.quote)

    def _proposal(
        self, label: str, kind: types.CompletionItemKind, new: str, detail: str = "", documentation: str = ""
    ) -> Proposal:
        return Proposal(label, kind, new, self.point.start, self.point.end, detail, documentation)
