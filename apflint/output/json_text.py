"""The one writer of JSON that is printed."""

from __future__ import annotations

import json

from apflint.output.sanitize import sanitize_json


def to_json(value: object, indent: int | None = None) -> str:
    """Return a value as JSON in ASCII, with a newline at its end.

    Names and messages are text that somebody else wrote, and the log of a CI system acts on some of it. What would be a
    command there is an escape, so the value stays the same. No line begins with `::`, as no JSON does.
    """
    return f"{sanitize_json(json.dumps(value, indent=indent))}\n"
