"""Results of mutation testing: a line of JSON for each mutant."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EQUAL = "same"
"""Verdict for a mutant whose compiled code equals the original. Such a mutant is not counted."""
KILLED = ("killed", "timeout")
"""Verdicts for mutants that the tests detect."""


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Read the records of an earlier run."""
    return map(json.loads, path.read_text().splitlines())


def identify(record: dict[str, Any]) -> tuple[str, ...]:
    """Return a key that identifies a mutant without line numbers."""
    return tuple(record[name] for name in ("file", "function", "old", "new"))
