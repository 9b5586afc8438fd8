"""Writes values as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from apflint.output.sanitize import sanitize_json

if TYPE_CHECKING:
    from apflint.location import Span


def to_json(value: object, indent: int | None = None) -> str:
    """Return a value as JSON in ASCII, with a newline at its end.

    Commands of CI systems in names and messages become escapes, so the value stays the same. No line begins with `::`, as
    no JSON does.
    """
    return f"{sanitize_json(json.dumps(value, indent=indent))}\n"


def span_json(span: Span) -> dict[str, int]:
    """Return lines and columns from 1, columns in code points, the end exclusive."""
    return {"line": span.line, "column": span.column, "endLine": span.end_line, "endColumn": span.end_column}
