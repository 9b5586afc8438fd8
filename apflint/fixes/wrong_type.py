"""Messages, help and fixes for values of a wrong type (APF102)."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from apflint.edit_operations import Fix, Set, Wrap
from apflint.fixes.yaml_values import scalar_text
from apflint.load.templates import suggest_rendering
from apflint.wording import quote

if TYPE_CHECKING:
    from apflint.edit_operations import Value
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.schema_violations import Violation

_TYPES = {
    "int32": "an integer",
    "int64": "an integer",
    "boolean": "true or false",
    "string": "a string",
    "list": "a list",
    "object": "a mapping",
    "date-time": "a timestamp like 2026-01-31T12:00:00Z",
}
_INT32_END = 2**31
_INT64_END = 2**63
_MAX_SHOWN_LENGTH = 40
"""Maximum number of characters of a value that a message shows."""
_STRING_LISTS = ("verbs", "apiGroups", "resources", "namespaces", "nonResourceURLs", "finalizers")
_AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"
_ONLY_FIELD = {"distinguisherMethod": "type", "priorityLevelConfiguration": "name", "user": "name", "group": "name"}
"""Maps fields of a FlowSchema whose value is a mapping with a single field to the name of this single field."""


def describe_wrong_type(document: Document, violation: Violation) -> str:
    """Return a message about a value of a wrong type."""
    got, expected = violation.got, violation.expected
    written = document.text(violation.path)
    if isinstance(got, float) and not math.isfinite(got):
        return describe_not_finite(written)
    bounds = f" from {-_INT32_END:,} to {_INT32_END - 1:,}" if violation.what == "range" else ""
    problem = f"expected {_TYPES.get(expected, expected)}{bounds} {_describe_place(document, violation)}"
    if isinstance(got, bool | int | float) and expected in ("string", "date-time"):
        shown = f"`{written}`" if "\n" not in written and len(written) <= _MAX_SHOWN_LENGTH else "it"
        return f"{problem}, but YAML parses {shown} as {_describe_value(got)}"
    return f"{problem}, got {_describe_value(got)}"


def describe_not_finite(written: str) -> str:
    """Return a message about a value that YAML parses as infinity or NaN, such as `.inf` or `.nan`."""
    return f"YAML parses `{written}` as infinity or NaN, which JSON, and so Kubernetes, cannot represent"


def suggest_type(document: Document, violation: Violation) -> str | None:
    """Return a help text about a value that has a wrong type, or None if no help is known.

    Call this function only if `fix_wrong_type` returns no fix for the value.
    """
    got, expected = violation.got, violation.expected
    if isinstance(got, str) and (question := suggest_rendering(got)):
        return question
    if expected == "list":
        return "start each item of a list with `- `"
    if expected == "object" and isinstance(got, str):
        key, colon, rest = got.partition(":")
        field = _find_only_field(document, violation.path)
        if colon and rest and (key == field if field else key.isidentifier()):
            return "is a space missing after the colon?"
    return None


def fix_wrong_type(document: Document, violation: Violation) -> Fix | None:
    """Return a fix that converts a value to the type of its field, or None if the intended value is not certain."""
    path, got, expected = violation.path, violation.got, violation.expected
    if expected == "string" and isinstance(got, bool | int | float):
        string = scalar_text(document, path)
        if path[-1] == _AUTOUPDATE and isinstance(got, bool):
            # The API server parses the string of this annotation as a boolean. It accepts `true`, but not `yes`, for
            # example.
            string = str(got).lower()
        return _set(path, string, f"quote it: {quote(string)}") if string else None
    if expected in ("int32", "int64") and isinstance(got, str) and document.text(path).endswith(("'", '"')):
        digits = _integer_text(got.removesuffix("%") if str(path[-1]).endswith("Percent") else got, expected)
        return _set(path, int(digits), f"remove the quotes: {digits}") if digits else None
    if expected == "boolean" and isinstance(got, str) and got.lower() in ("true", "false"):
        return _set(path, got.lower() == "true", f"remove the quotes: {got.lower()}")
    if expected == "list" and path[-1] in _STRING_LISTS:
        string = got if isinstance(got, str) else scalar_text(document, path)
        return _set_list(path, string) if got == "" or string else None
    if expected == "object" and isinstance(got, str) and got and not suggest_rendering(got):
        field = _find_only_field(document, path)
        if field and "\n" not in got and not got.startswith(f"{field}:"):
            return Fix(f"write {{{field}: {quote(got)}}}", True, (Wrap(path, field),))
    return None


def _set(path: Path, value: Value, title: str) -> Fix:
    return Fix(title, True, (Set(path, value),))


def _set_list(path: Path, written: str) -> Fix | None:
    """Return a fix that splits a string at its commas, and replaces the string by the list of these items.

    For example, `get,list` becomes `["get", "list"]`, and `get` becomes `["get"]`. Return None if the
    intention is not certain: an item contains spaces, brackets or braces, or one of several items is
    empty.
    """
    items = tuple(part.strip() for part in written.split(","))
    if any(re.search(r"[\s\[\]{}]", item) for item in items) or (len(items) > 1 and not all(items)):
        return None
    return _set(path, items, f"write a list: {quote(items)}")


def _describe_place(document: Document, violation: Violation) -> str:
    last = violation.path[-1] if violation.path else document.kind
    if isinstance(last, str):
        return f"for {quote(last)}"
    return f"in {quote(next(step for step in reversed(violation.path) if isinstance(step, str)))}"


def _describe_value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return f"the boolean {'true' if value else 'false'}"
    if isinstance(value, int | float):
        return f"the number {quote(value)}"
    if isinstance(value, str):
        return f"the string {quote(value)}"
    return "a list" if isinstance(value, list) else "a mapping"


def _integer_text(value: str, expected: str) -> str:
    """Return `value` if it is a decimal integer in YAML (0500 is octal) within the range of `expected`, or else ""."""
    end = _INT32_END if expected == "int32" else _INT64_END
    is_integer = re.fullmatch("-?(0|[1-9][0-9]{0,18})", value, re.ASCII) is not None
    return value if is_integer and -end <= int(value) < end else ""


def _find_only_field(document: Document, path: Path) -> str | None:
    return _ONLY_FIELD.get(str(path[-1])) if path and document.kind == "FlowSchema" else None
