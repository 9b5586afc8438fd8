"""What can be written at a place: fields that are not there yet, values, names of priority levels, ids of rules."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Literal, NamedTuple

from apflint import builtin, catalogue
from apflint.load.document import GROUP, KINDS
from apflint.lsp import fields, suppressing
from apflint.lsp.outline import texts
from apflint.lsp.prose import prose
from apflint.lsp.spot import manifest, spot

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from apflint.finding import Path
    from apflint.lsp.fields import Field
    from apflint.lsp.known import Known
    from apflint.lsp.spot import Manifest, Spot

LEVEL = ("spec", "priorityLevelConfiguration", "name")
"""Where a FlowSchema names its priority level."""
_PLAIN = re.compile(r"[A-Za-z/][\w./:@-]*[\w/]|[A-Za-z/]")
_NOT_TEXT = frozenset({"y", "n", "yes", "no", "on", "off", "true", "false", "null", ".inf", ".nan"})

Kind = Literal["field", "value", "level", "rule", "form"]


class Item(NamedTuple):
    """One proposal: `new` goes in place of `text[start:end]`."""

    label: str
    kind: Kind
    detail: str
    documentation: str
    """Markdown."""
    new: str
    start: int
    end: int


def complete(text: str, offset: int, known: Known, *, json: bool = False, found: Collection[str] = ()) -> list[Item]:
    """Proposals for an offset, the best first. `found` are rules with findings nearby, which a comment would be about."""
    offset = min(max(offset, 0), len(text))
    if not json and (comment := suppressing.typing(text, offset)) is not None:
        return list(_comment(comment, found))
    here = spot(text, offset, json=json)
    if here is None:
        return []
    owner = manifest(here.entries, here.path)
    if owner is None:
        return []
    return list(_Writer(text, here, owner, known, json=json).items())


def _comment(typed: suppressing.Typing, found: Collection[str]) -> Iterator[Item]:
    if typed.ids is None:
        for form in suppressing.FORMS:
            yield Item(form, "form", "apflint", "Sets findings of rules aside.", form, typed.start, typed.end)
        return
    for rule_id in suppressing.ordered([one for one in catalogue.ids() if one not in typed.ids], found):
        rule = catalogue.rule(rule_id)
        new = rule_id if typed.closed else f"{rule_id}] "
        yield Item(rule_id, "rule", rule.name, prose(rule.summary), new, typed.start, typed.end)


class _Writer:
    """Writes proposals in the style of the place: in quotes or not, with a dash or not."""

    def __init__(self, text: str, here: Spot, owner: Manifest, known: Known, *, json: bool) -> None:
        self.text = text
        self.here = here
        self.owner = owner
        self.known = known
        self.json = json
        self.path: Path = here.path[len(owner.prefix) :]

    def items(self) -> Iterator[Item]:
        field = self._field(self.path)
        if not self.here.is_key:
            yield from self._values(self.path, field)
        elif field is not None and field.type == "list":
            if self.here.fresh and not self.here.flow:
                yield from self._list_items(self.path, field)
        elif field is None or field.type == "object":
            yield from self._members(self.path, "")
            yield from self._of_empty_list_above()
        elif not self.here.fresh and isinstance(self.path[-1], int):
            yield from self._values(self.path, field)  # `- get` looks like the beginning of a key

    def _field(self, path: Path) -> Field | None:
        return fields.field(self._kind(), self.owner.version, self.known.release, path)

    def _kind(self) -> str:
        return self.owner.kind or KINDS[0]

    def _members(self, path: Path, dash: str) -> Iterator[Item]:
        full = (*self.owner.prefix, *path)
        written = texts(self.here.entries)
        siblings: dict[str, str | None] = {
            entry.path[-1]: written.get(entry.path)
            for entry in self.here.entries
            if entry.path and entry.path[:-1] == full and isinstance(entry.path[-1], str)
        }
        for field in fields.members(self._kind(), self.owner.version, self.known.release, path, siblings):
            if self.owner.kind or (not path and field.name in ("apiVersion", "kind")):
                yield self._item(
                    dash + field.name, "field", _detail(field), prose(field.description), dash + self._key(field)
                )

    def _of_empty_list_above(self) -> Iterator[Item]:
        """Items of a list whose key is right above: its dashes may be below the key's first letter."""
        above = [entry for entry in self.here.entries if entry.key[1] <= self.here.start]
        if not self.here.fresh or self.here.flow or not above or above[-1].text != "":
            return
        path = above[-1].path[len(self.owner.prefix) :]
        field = self._field(path)
        if above[-1].path[:-1] == self.here.path and field is not None and field.type == "list":
            yield from self._list_items(path, field)

    def _list_items(self, path: Path, field: Field) -> Iterator[Item]:
        item = (*path, self._length((*self.owner.prefix, *path)))
        if field.item == "object":
            yield from self._members(item, "- ")
        else:
            for value in self._values(item, self._field(item)):
                yield value._replace(label=f"- {value.label}", new=f"- {value.new}")

    def _length(self, path: Path) -> int:
        """How many items the list at a path of the document has."""
        entries = (entry.path for entry in self.here.entries)
        return len({entry[len(path)] for entry in entries if entry[: len(path)] == path != entry})

    def _values(self, path: Path, field: Field | None) -> Iterator[Item]:
        if path == ("apiVersion",):
            served = self.known.release.served or self.known.release.on_request
            for version in served:
                note = f"served by Kubernetes {self.known.release.name}"
                yield self._item(f"{GROUP}/{version}", "value", note, "", self._scalar(f"{GROUP}/{version}"))
        elif path == ("kind",):
            for kind in KINDS:
                about = fields.field(kind, self.owner.version, self.known.release, ("spec",))
                yield self._item(
                    kind, "value", "", prose(about.description) if about is not None else "", self._scalar(kind)
                )
        elif path == LEVEL and self.owner.kind == "FlowSchema":
            yield from self._levels()
        elif not self.owner.kind:
            return
        elif field is not None and field.type == "true or false":
            for word in ("true", "false"):
                yield self._item(word, "value", "", "", self.here.lead + word)
        elif field is not None:
            used = self._used(path) if isinstance(path[-1], int) else set()
            for value in field.values:
                if value not in used and not (used and "*" in (value, *used)):  # a wildcard stands alone
                    yield self._item(value or '""', "value", "", "", self._scalar(value))

    def _used(self, path: Path) -> set[str]:
        """The other items of the list that `path` is an item of."""
        siblings = (*self.owner.prefix, *path[:-1])
        return {entry.text for entry in self.here.entries if entry.path[:-1] == siblings and entry.text is not None}

    def _levels(self) -> Iterator[Item]:
        built_in = builtin.names(self.known.release, "PriorityLevelConfiguration")
        for name in self.known.levels():
            detail = "built in" if name in built_in else "priority level"
            yield self._item(name, "level", detail, self.known.level(name), self._scalar(name))

    def _key(self, field: Field) -> str:
        name = field.name
        quote = self.here.quote or ('"' if self.json else "")
        closed = bool(self.here.quote) and self.text[self.here.end : self.here.end + 1] == quote
        if quote:
            name = (name if self.here.quote else f"{quote}{name}") + ("" if closed else quote)
        if self.here.has_colon or closed:
            return name
        return f"{name}:" if field.type in ("list", "object") and not self.here.flow else f"{name}: "

    def _scalar(self, value: str) -> str:
        if self.here.quote:
            inner = json.dumps(value, ensure_ascii=False)[1:-1] if self.here.quote == '"' else value.replace("'", "''")
            closed = self.text[self.here.end : self.here.end + 1] == self.here.quote
            return self.here.lead + inner + ("" if closed else self.here.quote)
        plain = not self.json and _PLAIN.fullmatch(value) and value.lower() not in _NOT_TEXT
        return self.here.lead + (value if plain else json.dumps(value, ensure_ascii=False))

    def _item(self, label: str, kind: Kind, detail: str, documentation: str, new: str) -> Item:
        return Item(label, kind, detail, documentation, new, self.here.start, self.here.end)


def _detail(field: Field) -> str:
    parts = ["required"] if field.required else []
    if field.type:
        parts.append(
            f"list of {field.item}s" if field.type == "list" and field.item in ("text", "object") else field.type
        )
    if field.default is not None:
        parts.append(f"default {json.dumps(field.default)}")
    return ", ".join(parts)
