"""What a place means: a field, a priority level, a rule that a comment names; and the rules of findings there."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from apflint import catalogue
from apflint.finding import field_path
from apflint.load.document import KINDS
from apflint.lsp import fields, suppressing
from apflint.lsp.completion import LEVEL
from apflint.lsp.outline import outline, piece
from apflint.lsp.prose import prose
from apflint.lsp.spot import entry_at, manifest
from apflint.report.markdown import code

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.catalogue import Rule
    from apflint.finding import Path
    from apflint.lsp.fields import Field
    from apflint.lsp.known import Known
    from apflint.lsp.spot import Manifest


class Hover(NamedTuple):
    """What to show, in Markdown, about `text[start:end]`."""

    markdown: str
    start: int
    end: int


def hover(text: str, offset: int, known: Known, *, json: bool = False, rules: Iterable[str] = ()) -> Hover | None:
    """What is at an offset; `rules` are the ids of those with findings there, whose summaries are added."""
    offset = min(max(offset, 0), len(text))
    found = _comment(text, offset) if not json else None
    if found is None:
        found = _field_or_level(text, offset, known, json=json)
    about = [_finding(catalogue.rule(rule)) for rule in dict.fromkeys(rules)]
    if found is None:
        return Hover("\n\n".join(about), offset, offset) if about else None
    return found._replace(
        markdown="\n\n---\n\n".join([found.markdown, "\n\n".join(about)] if about else [found.markdown])
    )


def _comment(text: str, offset: int) -> Hover | None:
    named = suppressing.named(text, offset)
    if named is None:
        return None
    try:
        rule = catalogue.find(named.written)
    except ValueError:
        return None
    return Hover(_rule(rule), named.start, named.end)


def _field_or_level(text: str, offset: int, known: Known, *, json: bool) -> Hover | None:
    part = piece(text, offset, json=json)
    if part is None:
        return None
    entries = outline(text, part)
    at = entry_at(entries, offset)
    if at is None:
        return None
    entry, on_key = at
    owner = manifest(entries, entry.path)
    if owner is None or not owner.kind:
        return None
    path = entry.path[len(owner.prefix) :]
    if not on_key and (owner.kind, path) in ((KINDS[0], LEVEL), (KINDS[1], ("metadata", "name"))):
        return Hover(known.level(entry.text or ""), *entry.value)
    while path and isinstance(path[-1], int):
        path = path[:-1]  # an item: what matters is what it is an item of
    field = fields.field(owner.kind, owner.version, known.release, path)
    if field is None or not field.description:  # a label of somebody's own
        return None
    return Hover(_field(field, path, owner, known), *(entry.key if on_key else entry.value))


def _field(field: Field, path: Path, owner: Manifest, known: Known) -> str:
    facts = [field.type] if field.type else []
    if field.required:
        facts.append("required")
    if field.default is not None:
        facts.append(f"default {code(json.dumps(field.default))}")
    if field.values and not field.item:
        facts.append("such as " + ", ".join(code(value) for value in field.values))
    version = fields.known_version(owner.version, known.release)
    where = f"{code(field_path(path))} of {owner.kind} {version}, Kubernetes {known.release.name}"
    head = f"**{prose(field.name)}**: {', '.join(facts)}"
    return "\n\n".join(part for part in (head, prose(field.description), where) if part)


def _rule(rule: Rule) -> str:
    severity = "off by default" if rule.severity == "off" else rule.severity
    return f"**[{rule.id}]({rule.url})** {rule.name} ({severity})\n\n{prose(rule.summary)}"


def _finding(rule: Rule) -> str:
    return f"[{rule.id}]({rule.url}) {rule.name}: {prose(rule.summary)}"
