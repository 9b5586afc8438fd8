"""What became of mutants: a line of JSON for each."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAME = "same"
"""The verdict where the compiler makes the same code of it: that is no mutant, and does not count."""
DEAD = ("killed", "timeout")
"""Verdicts that are as they should be."""


def records(path: Path) -> Iterator[dict[str, Any]]:
    """The lines of an earlier run."""
    return map(json.loads, path.read_text().splitlines())


def key(record: dict[str, Any]) -> tuple[str, ...]:
    """What a mutant is known by after other lines have changed."""
    return tuple(record[name] for name in ("file", "function", "was", "now"))
