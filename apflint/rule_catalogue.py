"""The rules, read from their pages in `rules/` when needed.

The page of a rule is the only source of its name, severity and summary.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, cast

from apflint.location import clipped
from apflint.named_tuple import NamedTuple
from apflint.package_data import list_rule_pages, read_shipped_text
from apflint.spelling import suggest
from apflint.user_error import UserError

PAGE_URL = "https://github.com/apflint/apflint/blob/main/rules/{id}.md"
"""URL of the page of a rule. The URL never changes, because IDs never change."""

DefaultSeverity = Literal["error", "warning", "info", "off"]
Stage = Literal["validation", "consistency", "analysis", "runtime"]
Fixable = Literal["safe", "unsafe"]

MARKER = r"# ~ (APF[0-9]{3}(?: APF[0-9]{3})*)[ \t]*$"
"""Marker at the end of a line of an example. The line has findings of these rules."""
MARKER_ABOVE = r"[ \t]*# ~v (APF[0-9]{3}(?: APF[0-9]{3})*)[ \t]*$"
"""Marker on a separate line of an example. The next line has findings of these rules."""


class Rule(NamedTuple):
    """A rule, as described on its page."""

    id: str
    name: str
    severity: DefaultSeverity
    """Severity of the findings, or `off` if the rule runs only when selected."""
    stage: Stage
    since: str
    """The first version of apflint with the rule."""
    summary: str
    references: tuple[str, ...]
    body: str
    """Markdown below the front matter, including the markers of the examples."""
    body_line: int = 1
    """1-based line of the page on which `body` starts."""
    fix: Fixable | None = None
    """`safe` if a finding of the rule can have a safe fix, `unsafe` if fixes are only unsafe, or None if there are no fixes."""

    @property
    def url(self) -> str:
        """Address of the page."""
        return PAGE_URL.format(id=self.id)


@cache
def list_ids() -> tuple[str, ...]:
    """Return all rule IDs in order. Lists the directory, but reads no page."""
    pages = (name for name in list_rule_pages() if name.startswith("APF"))
    return tuple(sorted(page.removesuffix(".md") for page in pages if page.endswith(".md")))


@cache
def read_rule(rule_id: str) -> Rule:
    """Return the rule with this ID, read from its page. Raises KeyError for an unknown ID."""
    if rule_id not in list_ids():
        raise KeyError(rule_id)
    return parse_page(read_shipped_text("rules", f"{rule_id}.md"))


def read_rules() -> tuple[Rule, ...]:
    """Return all rules, in the order of their IDs. Reads the page of each rule."""
    return tuple(map(read_rule, list_ids()))


@cache
def ids_by_name() -> dict[str, str]:
    """Return a mapping from the names of all rules to their IDs. Reads every page."""
    return {rule.name: rule.id for rule in read_rules()}


def find_id(text: str) -> str | None:
    """Return the ID of the rule with this name or ID (in upper or lower case), or None if there is no such rule."""
    return text.upper() if text.upper() in list_ids() else ids_by_name().get(text.lower())


def find_rule(text: str) -> Rule:
    """Return the rule with this name or ID (in upper or lower case). If there is none, raise UserError with suggestions."""
    rule_id = find_id(text)
    if rule_id is None:
        raise UserError(f'Unknown rule "{clipped(text)}".{_suggest(text)} `apflint rule` lists all rules.')
    return read_rule(rule_id)


def find_family(prefix: str) -> tuple[Rule, ...] | None:
    """Return the rules whose IDs start with a prefix such as `APF5`, in the order of their IDs.

    Return None if `prefix` is a complete ID, or if no ID starts with it.
    """
    prefix = prefix.upper()
    ids = [rule_id for rule_id in list_ids() if prefix.startswith("APF") and rule_id.startswith(prefix)]
    return None if not ids or ids == [prefix] else tuple(map(read_rule, ids))


def select_ids(selector: str) -> tuple[str, ...]:
    """Return the IDs of the rules that an ID, a prefix (`APF2`) or a name selects. Raises UserError if no rule is selected."""
    prefix = selector.upper()
    if prefix.startswith("APF") and (
        selected := tuple(rule_id for rule_id in list_ids() if rule_id.startswith(prefix))
    ):
        return selected
    rule_id = find_id(selector)
    if rule_id is None:
        raise UserError(f'No rule has the id, the prefix or the name "{clipped(selector)}".{_suggest(selector)}')
    return (rule_id,)


def _suggest(text: str) -> str:
    return suggest(text, list_ids(), 2) or suggest(text, ids_by_name(), 2)


def parse_page(text: str) -> Rule:
    """Return the rule that the text of a page describes.

    The page is parsed without a YAML parser, whose import takes 45 ms. Tests compare the result with that of a YAML
    parser.
    """
    front_matter, body = text.removeprefix("---\n").split("\n---\n", 1)
    values: dict[str, str] = {}
    references: list[str] = []
    for line in front_matter.split("\n"):
        if line.startswith("  - "):
            references.append(_unquote(line[4:]))
        else:
            key, _, value = line.partition(":")
            values[key] = _unquote(value.strip())
    return Rule(
        id=values["id"],
        name=values["name"],
        severity=cast("DefaultSeverity", values["severity"]),
        stage=cast("Stage", values["stage"]),
        since=values["since"],
        summary=values["summary"],
        references=tuple(references),
        body=body.strip("\n") + "\n",
        body_line=text.count("\n") - body.lstrip("\n").count("\n") + 1,
        fix=cast("Fixable | None", values.get("fix")),
    )


def _unquote(text: str) -> str:
    return text[1:-1].replace("''", "'") if text[:1] in ("'", '"') else text


def explain_markers(body: str) -> str:
    """Return the body of a rule page for readers.

    Markers such as `# ~ APF203` in examples become readable comments such as `# <- APF203`. Options after the language
    of a code fence are removed.
    """
    body = re.sub(MARKER_ABOVE, r"# \1: the next line", body, flags=re.MULTILINE)
    body = re.sub(MARKER, r"# <- \1", body, flags=re.MULTILINE)
    return re.sub(r"^(`{3,}\w+)[ \t].*$", r"\1", body, flags=re.MULTILINE)
