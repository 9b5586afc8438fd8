"""Writes values as YAML, and finds the text of a scalar in a manifest."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from apflint.load.scalars import resolve_plain
from apflint.load.tree import Scalar, resolve_alias, walk

if TYPE_CHECKING:
    from apflint.load.document import Document
    from apflint.load.tree import Node
    from apflint.location import Path

# Matches strings that need no quotes in YAML.
_WORD = re.compile(r"/?[A-Za-z_][A-Za-z0-9_-]*(?:[/:.][A-Za-z0-9_-]+)*\Z")
# Matches an anchor and a tag before a scalar. The start of a scalar in libyaml is the start of its anchor or tag, so this
# pattern finds the start of the value.
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)+")


def write_literal(value: object) -> str:
    """Return a string, number, boolean, null or list of these as text that is valid in both YAML and JSON."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(write_literal, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def write_string(value: str) -> str:
    """Return a string as YAML text, with quotes only if the string needs quotes."""
    return value if _WORD.match(value) and resolve_plain(value) == value else write_literal(value)


def value_start(text: str, node: Node) -> int:
    """Return the offset at which a value starts, after its anchor and tag."""
    properties = _PROPERTIES.match(text, node.start, node.end)
    return properties.end() if properties else node.start


def scalar_text(document: Document, path: Path) -> str:
    """Return the text of a scalar without its anchor and tag, or "" for other values and multi-line scalars."""
    text = document.source.text
    node = resolve_alias(walk(document.root, document.prefix + path)[2])
    written = text[value_start(text, node) : node.end]
    return written if isinstance(node, Scalar) and "\n" not in written else ""
