"""Completion of fields, values, names of priority levels, and rule ids in suppression comments."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from lsprotocol import types

from apflint import builtin, catalogue
from apflint.budgets import MAX_NEW_DOCUMENT_CHARACTERS
from apflint.load.document import GROUP, KINDS
from apflint.lsp.convert import escape_markdown, markup, range_at
from apflint.lsp.cursor import LEVEL_REFERENCE, enclosing_object, insertion_point, suppression_at
from apflint.lsp.partial_yaml import scalars_by_path
from apflint.lsp.schema_fields import find_field, list_fields
from apflint.lsp.server import Server, server

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from apflint.location import Path
    from apflint.lsp.cluster_state import ClusterState
    from apflint.lsp.cursor import EnclosingObject, InsertionPoint, SuppressionAtCursor
    from apflint.lsp.schema_fields import Field

_PLAIN_SCALAR = re.compile(r"[A-Za-z/][\w./:@-]*[\w/]|[A-Za-z/]")
_NOT_A_STRING = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", ".inf", ".nan"})

Kind = Literal["field", "value", "level", "rule", "comment"]

_TRIGGER_CHARACTERS = [":", " ", "[", "{", ",", '"', "'"]
_COMMENTS = ("apflint: ignore[", "apflint: file-ignore[")
_ITEM_KINDS: dict[Kind, types.CompletionItemKind] = {
    "field": types.CompletionItemKind.Field,
    "value": types.CompletionItemKind.EnumMember,
    "level": types.CompletionItemKind.Reference,
    "rule": types.CompletionItemKind.Constant,
    "comment": types.CompletionItemKind.Keyword,
}


class Proposal(NamedTuple):
    """A proposal to replace `text[start:end]` with `new`."""

    label: str
    kind: Kind
    detail: str
    documentation: str
    """Markdown."""
    new: str
    start: int
    end: int


@server.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions(trigger_characters=_TRIGGER_CHARACTERS))
def list_completions(ls: Server, params: types.CompletionParams) -> types.CompletionList | None:
    """Return the proposals for the cursor, in their order. Editors filter them by the text behind a dash."""
    at = ls.document_at(params)
    if at is None or not (at[0].may_hold_apf or len(at[0].text) <= MAX_NEW_DOCUMENT_CHARACTERS):
        return None
    document, offset = at
    current = ls.session.current_result(document.uri)
    rules = {finding.rule for finding in current.findings} if current is not None else set()
    cluster = ls.session.cluster_state(document.uri)
    client = ls.client_capabilities.text_document
    item = client.completion.completion_item if client is not None and client.completion is not None else None
    formats = item.documentation_format if item is not None else None
    items = [
        types.CompletionItem(
            label=proposal.label,
            kind=_ITEM_KINDS[proposal.kind],
            detail=proposal.detail or None,
            documentation=markup(proposal.documentation, formats) if proposal.documentation else None,
            sort_text=f"{number:04}",
            filter_text=proposal.label.removeprefix("- "),
            text_edit=types.TextEdit(
                range_at(document.source, proposal.start, proposal.end, ls.session.encoding), proposal.new
            ),
        )
        for number, proposal in enumerate(complete(document.text, offset, cluster, json=document.is_json, rules=rules))
    ]
    return types.CompletionList(is_incomplete=False, items=items)


def complete(
    text: str, offset: int, cluster: ClusterState, *, json: bool = False, rules: Collection[str] = ()
) -> list[Proposal]:
    """Return proposals for an offset, the best first. `rules` have findings in the document, so they come first."""
    offset = min(max(offset, 0), len(text))
    if not json and (comment := suppression_at(text, offset)) is not None:
        return list(_complete_comment(comment, rules))
    point = insertion_point(text, offset, json=json)
    if point is None:
        return []
    owner = enclosing_object(point.entries, point.path)
    if owner is None:
        return []
    return list(_ProposalWriter(text, point, owner, cluster, json=json).proposals())


def _complete_comment(point: SuppressionAtCursor, rules: Collection[str]) -> Iterator[Proposal]:
    if point.rules is None:
        for comment in _COMMENTS:
            yield Proposal(
                comment, "comment", "apflint", "Suppresses findings of rules.", comment, point.start, point.end
            )
        return
    candidates = (rule_id for rule_id in catalogue.list_ids() if rule_id not in point.rules)
    for rule_id in sorted(candidates, key=lambda rule_id: (rule_id not in rules, rule_id)):
        rule = catalogue.read_rule(rule_id)
        new = rule_id if point.is_closed else f"{rule_id}] "
        yield Proposal(rule_id, "rule", rule.name, escape_markdown(rule.summary), new, point.start, point.end)


class _ProposalWriter:
    """Writes proposals in the style of their place: with or without quotes and a dash."""

    def __init__(
        self, text: str, point: InsertionPoint, owner: EnclosingObject, cluster: ClusterState, *, json: bool
    ) -> None:
        self.text = text
        self.point = point
        self.owner = owner
        self.cluster = cluster
        self.json = json
        self.path: Path = point.path[len(owner.prefix) :]

    def proposals(self) -> Iterator[Proposal]:
        field = self._find_field(self.path)
        if not self.point.is_key:
            yield from self._propose_values(self.path, field)
        elif field is not None and field.type == "list":
            if self.point.is_line_empty and not self.point.in_flow:
                yield from self._propose_list_items(self.path, field)
        elif field is None or field.type == "object":
            yield from self._propose_fields(self.path, "")
            yield from self._propose_items_of_list_above()
        elif not self.point.is_line_empty and isinstance(self.path[-1], int):
            yield from self._propose_values(self.path, field)  # `- get` may still become a key

    def _find_field(self, path: Path) -> Field | None:
        return find_field(self._kind(), self.owner.version, self.cluster.release, path)

    def _kind(self) -> str:
        return self.owner.kind or KINDS[0]

    def _propose_fields(self, path: Path, dash: str) -> Iterator[Proposal]:
        full = (*self.owner.prefix, *path)
        scalars = scalars_by_path(self.point.entries)
        siblings: dict[str, str | None] = {
            entry.path[-1]: scalars.get(entry.path)
            for entry in self.point.entries
            if entry.path and entry.path[:-1] == full and isinstance(entry.path[-1], str)
        }
        for field in list_fields(self._kind(), self.owner.version, self.cluster.release, path, siblings):
            if self.owner.kind or (not path and field.name in ("apiVersion", "kind")):
                yield self._proposal(
                    dash + field.name,
                    "field",
                    _detail(field),
                    escape_markdown(field.description),
                    dash + self._write_key(field),
                )

    def _propose_items_of_list_above(self) -> Iterator[Proposal]:
        """Propose items of an empty list whose key is on the line above: its dashes need not be indented."""
        above = [entry for entry in self.point.entries if entry.key[1] <= self.point.start]
        if not self.point.is_line_empty or self.point.in_flow or not above or above[-1].text != "":
            return
        path = above[-1].path[len(self.owner.prefix) :]
        field = self._find_field(path)
        if above[-1].path[:-1] == self.point.path and field is not None and field.type == "list":
            yield from self._propose_list_items(path, field)

    def _propose_list_items(self, path: Path, field: Field) -> Iterator[Proposal]:
        item = (*path, self._count_items((*self.owner.prefix, *path)))
        if field.item == "object":
            yield from self._propose_fields(item, "- ")
        else:
            for value in self._propose_values(item, self._find_field(item)):
                yield value._replace(label=f"- {value.label}", new=f"- {value.new}")

    def _count_items(self, path: Path) -> int:
        """Return the number of items of the list at a path of the document."""
        entries = (entry.path for entry in self.point.entries)
        return len({entry[len(path)] for entry in entries if entry[: len(path)] == path != entry})

    def _propose_values(self, path: Path, field: Field | None) -> Iterator[Proposal]:
        if path == ("apiVersion",):
            served = self.cluster.release.served or self.cluster.release.on_request
            for version in served:
                note = f"served by Kubernetes {self.cluster.release.name}"
                yield self._proposal(f"{GROUP}/{version}", "value", note, "", self._write_scalar(f"{GROUP}/{version}"))
        elif path == ("kind",):
            for kind in KINDS:
                spec = find_field(kind, self.owner.version, self.cluster.release, ("spec",))
                yield self._proposal(
                    kind,
                    "value",
                    "",
                    escape_markdown(spec.description) if spec is not None else "",
                    self._write_scalar(kind),
                )
        elif path == LEVEL_REFERENCE and self.owner.kind == "FlowSchema":
            yield from self._propose_levels()
        elif not self.owner.kind:
            return
        elif field is not None and field.type == "boolean":
            for word in ("true", "false"):
                yield self._proposal(word, "value", "", "", self.point.lead + word)
        elif field is not None:
            used = self._other_items(path) if isinstance(path[-1], int) else set()
            for value in field.values:
                if value not in used and not (used and "*" in (value, *used)):  # a wildcard excludes other values
                    yield self._proposal(value or '""', "value", "", "", self._write_scalar(value))

    def _other_items(self, path: Path) -> set[str]:
        """Return the other items of the list that `path` is an item of."""
        siblings = (*self.owner.prefix, *path[:-1])
        return {entry.text for entry in self.point.entries if entry.path[:-1] == siblings and entry.text is not None}

    def _propose_levels(self) -> Iterator[Proposal]:
        built_in = builtin.list_names(self.cluster.release, "PriorityLevelConfiguration")
        for name in self.cluster.level_names():
            detail = "built in" if name in built_in else "priority level"
            yield self._proposal(name, "level", detail, self.cluster.describe_level(name), self._write_scalar(name))

    def _write_key(self, field: Field) -> str:
        name = field.name
        quote = self.point.quote or ('"' if self.json else "")
        closed = bool(self.point.quote) and self.text[self.point.end : self.point.end + 1] == quote
        if quote:
            name = (name if self.point.quote else f"{quote}{name}") + ("" if closed else quote)
        if self.point.has_colon or closed:
            return name
        return f"{name}:" if field.type in ("list", "object") and not self.point.in_flow else f"{name}: "

    def _write_scalar(self, value: str) -> str:
        if self.point.quote:
            inner = json.dumps(value, ensure_ascii=False)[1:-1] if self.point.quote == '"' else value.replace("'", "''")
            closed = self.text[self.point.end : self.point.end + 1] == self.point.quote
            return self.point.lead + inner + ("" if closed else self.point.quote)
        plain = not self.json and _PLAIN_SCALAR.fullmatch(value) and value.lower() not in _NOT_A_STRING
        return self.point.lead + (value if plain else json.dumps(value, ensure_ascii=False))

    def _proposal(self, label: str, kind: Kind, detail: str, documentation: str, new: str) -> Proposal:
        return Proposal(label, kind, detail, documentation, new, self.point.start, self.point.end)


def _detail(field: Field) -> str:
    parts = ["required"] if field.required else []
    if field.type:
        parts.append(
            f"list of {field.item}s" if field.type == "list" and field.item in ("string", "object") else field.type
        )
    if field.default is not None:
        parts.append(f"default {json.dumps(field.default)}")
    return ", ".join(parts)
