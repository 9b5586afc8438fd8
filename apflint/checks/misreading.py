"""What APF102 says: what is due at a place, what YAML made of the text there, and how to write it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from apflint.checks.wording import placeholder_hint, quote

if TYPE_CHECKING:
    from apflint.load.document import Document
    from apflint.schema import Violation

_NOUNS = {
    "int32": "a whole number",
    "int64": "a whole number",
    "boolean": "true or false",
    "string": "a text",
    "list": "a list",
    "object": "a mapping",
    "date-time": "a point in time like 2026-01-31T12:00:00Z",
}
_INT32 = 2**31


def misreading(document: Document, violation: Violation) -> str:
    """A sentence or two on a value of the wrong type."""
    got, expected = violation.got, violation.expected
    written = document.text(violation.path)
    short = written if "\n" not in written and len(written) <= 40 else ""
    due = f"{_whose(document, violation)} {_NOUNS.get(expected, expected)}"
    if isinstance(got, float) and not math.isfinite(got):
        return not_finite(written)
    if violation.what == "range":
        return f"{due} from {-_INT32:,} to {_INT32 - 1:,}; this is {_noun(got)}"
    if isinstance(got, bool | int | float) and expected in ("string", "date-time"):
        return f'{due}, and YAML reads `{short or got}` as {_noun(got)}. Put it in quotes: "{short or got}"'
    if isinstance(got, str) and (hint := placeholder_hint(got)):
        return f"{due}; this is {_noun(got)}.{hint}"
    if isinstance(got, str) and expected in ("int32", "int64", "boolean"):
        return f"{due}; this is {_noun(got)}{_without_quotes(got, expected, short)}"
    if expected == "list" and isinstance(got, dict):
        return f"{due}; this is a mapping. Each item of a list starts with `- `"
    if expected == "list":
        return f"{due}; this is {_noun(got)}. A list of one is written in brackets{_in_brackets(got, short)}"
    if expected == "object" and isinstance(got, str):
        return f"{due}; this is {_noun(got)}.{_as_mapping(document, violation, got)}"
    return f"{due}; this is {_noun(got)}"


def not_finite(written: str) -> str:
    """A sentence on `.inf` and `.nan`."""
    return f"YAML reads `{written}` as a number without an end or no number, which JSON and so Kubernetes cannot hold"


def _whose(document: Document, violation: Violation) -> str:
    """`"verbs" takes`, or of an item `an item of "verbs" is`."""
    *_, last = violation.path or (document.kind,)
    if isinstance(last, str):
        return f"{quote(last)} takes"
    name = next(str(step) for step in reversed(violation.path) if isinstance(step, str))
    return f"an item of {quote(name)} is"


def _noun(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {'true' if value else 'false'}"
    if isinstance(value, int | float):
        return f"the number {quote(value)}"
    if isinstance(value, str):
        return f"the text {quote(value)}"
    return "a list" if isinstance(value, list) else "a mapping"


def _without_quotes(text: str, expected: str, written: str) -> str:
    if not written.startswith(("'", '"')):
        return ""
    if expected == "boolean":
        plain = text.lower() if text.lower() in ("true", "false") else ""
    else:
        plain = text if text.lstrip("-").isdigit() else ""
    return f". Write it without quotes: {plain}" if plain else ""


def _in_brackets(got: Any, written: str) -> str:
    if isinstance(got, str) and "," in got:
        return f", each item apart: [{', '.join(part.strip() for part in got.split(','))}]"
    return f": [{written}]" if written else ""


def _as_mapping(document: Document, violation: Violation, got: str) -> str:
    key, colon, rest = got.partition(":")
    if colon and rest and key.isidentifier():
        return " Is a blank missing after the colon?"
    last = violation.path[-1] if violation.path else ""
    if last == "distinguisherMethod":
        return f" Write `{{type: {got}}}`"
    if last in ("priorityLevelConfiguration", "user", "group") and document.kind == "FlowSchema":
        return f" Write `{{name: {got}}}`"
    return ""
