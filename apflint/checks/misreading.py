"""What APF102 says: what is due at a place, what YAML made of the text there, and how to write it."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from apflint.fix import Fix, Set, Wrap
from apflint.wording import placeholder_hint, quote

if TYPE_CHECKING:
    from apflint.load.document import Document
    from apflint.location import Path
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
_INT64 = 2**63
_LONGEST = 40
"""Characters of a value that is shown as it is written."""
_LISTS = ("verbs", "apiGroups", "resources", "namespaces", "nonResourceURLs", "finalizers")
"""The lists of texts that a manifest has."""
_AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"
_ONLY_FIELD = {"distinguisherMethod": "type", "priorityLevelConfiguration": "name", "user": "name", "group": "name"}
"""Mappings for one text, and the field that it is in."""


def misreading(document: Document, violation: Violation) -> str:
    """A sentence or two on a value of the wrong type."""
    got, expected = violation.got, violation.expected
    written = document.text(violation.path)
    short = written if "\n" not in written and len(written) <= _LONGEST else ""
    due = f"{_whose(document, violation)} {_NOUNS.get(expected, expected)}"
    if isinstance(got, float) and not math.isfinite(got):
        return not_finite(written)
    if violation.what == "range":
        return f"{due} from {-_INT32:,} to {_INT32 - 1:,}; this is {_noun(got)}"
    if isinstance(got, bool | int | float) and expected in ("string", "date-time"):
        said, advice = (f"`{short}`", f': "{short}"') if short else ("it", "")
        return f"{due}, and YAML reads {said} as {_noun(got)}. Put it in quotes{advice}"
    if isinstance(got, str) and (hint := placeholder_hint(got)):
        return f"{due}; this is {_noun(got)}.{hint}"
    if isinstance(got, str) and expected in ("int32", "int64", "boolean"):
        return f"{due}; this is {_noun(got)}{_without_quotes(got, expected, short)}"
    if expected == "list" and isinstance(got, dict):
        return f"{due}; this is a mapping. Each item of a list starts with `- `"
    if expected == "list":
        return f"{due}; this is {_noun(got)}. A list of one is written in brackets{_in_brackets(document, violation)}"
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
        plain = _digits(text, expected)
    return f". Write it without quotes: {plain}" if plain else ""


def _digits(text: str, expected: str) -> str:
    """A text as the number that it is meant to be; "" where YAML would read another one (0500 is 320), or it is too large."""
    limit = _INT32 if expected == "int32" else _INT64
    plain = re.fullmatch("-?(0|[1-9][0-9]{0,18})", text, re.ASCII) is not None
    return text if plain and -limit <= int(text) < limit else ""


def _in_brackets(document: Document, violation: Violation) -> str:
    """The list as it is to be written: what YAML would read as no text again is in quotes."""
    from apflint.edit.places import literal, word  # only findings need it

    got, written = violation.got, document.text(violation.path)
    if isinstance(got, str) and "," in got:
        return f", each item apart: [{', '.join(word(part.strip()) for part in got.split(','))}]"
    if not isinstance(got, str):
        written = literal(new) if (new := as_written(document, violation.path)) else ""
    return f": [{written}]" if written and "\n" not in written and len(written) <= _LONGEST else ""


def _as_mapping(document: Document, violation: Violation, got: str) -> str:
    key, colon, rest = got.partition(":")
    last = str(violation.path[-1]) if violation.path else ""
    field = _ONLY_FIELD.get(last) if document.kind == "FlowSchema" else None
    if colon and rest and (key == field if field else key.isidentifier()):
        return " Is a blank missing after the colon?"
    return f" Write `{{{field}: {got.strip()}}}`" if field else ""


def retyped(document: Document, violation: Violation) -> Fix | None:
    """Writes the value as its field takes it; None where it is not plain how."""
    path, got, expected = violation.path, violation.got, violation.expected
    if expected == "string" and isinstance(got, bool | int | float):
        new = as_written(document, path)
        if path[-1] == _AUTOUPDATE and isinstance(got, bool):
            new = str(got).lower()  # the server reads this text as a boolean again, and knows fewer words than YAML
        return _set(path, new, f"put it in quotes: {quote(new)}") if new else None
    if expected in ("int32", "int64") and isinstance(got, str) and document.text(path).endswith(("'", '"')):
        digits = _digits(got.removesuffix("%") if str(path[-1]).endswith("Percent") else got, expected)
        return _set(path, int(digits), f"write it as a number: {digits}") if digits else None
    if expected == "boolean" and got in ("true", "false"):
        return _set(path, got == "true", f"write it without quotes: {got}")
    if expected == "list" and path[-1] in _LISTS:
        written = got if isinstance(got, str) else as_written(document, path)
        return _listed(path, written) if got == "" or written else None
    if expected == "object" and isinstance(got, str) and got and not placeholder_hint(got):
        field = _ONLY_FIELD.get(str(path[-1])) if document.kind == "FlowSchema" else None
        if field and "\n" not in got and not got.startswith(f"{field}:"):
            return Fix(f"write {{{field}: {quote(got)}}}", True, (Wrap(path, field),))
    return None


def _set(path: Path, new: Any, title: str) -> Fix:
    return Fix(title, True, (Set(path, new),))


def _listed(path: Path, written: str) -> Fix | None:
    """A list of the one item, or of those that commas part."""
    items = tuple(part.strip() for part in written.split(","))
    if any(re.search(r"[\s\[\]{}]", item) for item in items) or (len(items) > 1 and not all(items)):
        return None
    return _set(path, items, f"write a list: {quote(items)}")


def as_written(document: Document, path: Path) -> str:
    """A value that was read as no text, as it is written, without its anchor and tag; "" where it is more than a word."""
    from apflint.edit.lines import body  # only fixes need it
    from apflint.load.tree import Scalar, behind, walk

    node = behind(walk(document.root, document.prefix + path)[2])
    written = document.source.text[body(document.source.text, node) : node.end]
    return written if isinstance(node, Scalar) and "\n" not in written else ""
