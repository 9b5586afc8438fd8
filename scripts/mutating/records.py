"""Results of mutation testing: a line of JSON for each mutant."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

EQUAL = "same"
"""Verdict if the compiled code is equal: this is not a mutant and does not count."""
KILLED = ("killed", "timeout")
"""Verdicts if the tests detect the mutant."""


def read_records(path: Path) -> Iterator[dict[str, Any]]:
    """Read the records of an earlier run."""
    return map(json.loads, path.read_text().splitlines())


def identify(record: dict[str, Any]) -> tuple[str, ...]:
    """Return a key of a mutant that does not depend on line numbers."""
    return tuple(record[name] for name in ("file", "function", "old", "new"))
