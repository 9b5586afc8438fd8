"""Writes values as JSON."""

from __future__ import annotations

import json

from apflint.output.sanitize import sanitize_json


def to_json(value: object, indent: int | None = None) -> str:
    """Return a value as JSON in ASCII, with a newline at its end.

    Commands of CI systems in names and messages become escapes, so the value stays the same. No line begins with `::`, as
    no JSON does.
    """
    return f"{sanitize_json(json.dumps(value, indent=indent))}\n"
