"""Conversion of values to JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from apflint.output.sanitize import sanitize_json

if TYPE_CHECKING:
    from apflint.location import Span

SCHEMA = 1
"""Version of the JSON output of the commands, in the field `schema` of each printed object.

Reports of findings (`check`, `doctor`) have a separate version.
"""


def to_json(value: object, indent: int | None = None) -> str:
    """Return a value as JSON in ASCII, with a newline at the end.

    CI commands in strings are written with JSON escapes, so that no CI system executes them, and the value stays the
    same. GitHub's commands with `::` need no escape: they must begin a line, and no line of JSON begins with `::`.
    """
    return f"{sanitize_json(json.dumps(value, indent=indent))}\n"


def span_json(span: Span) -> dict[str, int]:
    """Return the start and the exclusive end of a span. Lines and columns start at 1. Columns count code points."""
    return {"line": span.line, "column": span.column, "endLine": span.end_line, "endColumn": span.end_column}
