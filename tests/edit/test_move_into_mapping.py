"""Edits that move entries into a new mapping."""

from __future__ import annotations

import pytest

from apflint.edit import entry_locations, move_into_mapping
from apflint.edit.text_edits import CannotEditError, apply_edits

from .trees import parse


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("b: 1\nc: 2\nd: 3\n", "a:\n  b: 1\n  c: 2\nd: 3\n"),
        ("- b: 1 # x\n  # y\n\n  c: 2\n", "- a:\n    b: 1 # x\n    # y\n\n    c: 2\n"),
        ("b:\r\n  - x\r\nc: |\r\n  y\r\n\r\n   z\r\n", "a:\r\n  b:\r\n    - x\r\n  c: |\r\n    y\r\n\r\n     z\r\n"),
        ("c: {x: 1,\n  y: 2}\nb: 'u\n  v'\n", "a:\n  c: {x: 1,\n    y: 2}\n  b: 'u\n    v'\n"),
        ("{d: 3, b: 1, c: 2}", "{d: 3, a: {b: 1, c: 2}}"),
        ('{"b": 1,\n "c": [2]}', '{"a": {"b": 1,\n "c": [2]}}'),
        # An entry that is not adjacent to the first one moves together with its own comments.
        ("b: 1\nd: 3\nc: 2\n", "a:\n  b: 1\n  c: 2\nd: 3\n"),
        ("- c: 2 # x\n    # y\n  # z\n  d: 3\n  b: 1", "- a:\n    c: 2 # x\n    # y\n    b: 1\n  # z\n  d: 3\n"),
        (
            "b: 1\r\nd: 3\r\n\r\n# x\r\nc: # y\r\n- z\r\n\r\n  # u\r\ne: 4\r\n",
            "a:\r\n  b: 1\r\n  # x\r\n  c: # y\r\n  - z\r\nd: 3\r\n\r\n\r\n  # u\r\ne: 4\r\n",
        ),
        ("{b: 1, d: 3, c: 2}", "{a: {b: 1, c: 2}, d: 3}"),
        ('{"c": 2,\n "d": 3,\n "b": 1\n}', '{"a": {"c": 2, "b": 1},\n "d": 3\n}'),
    ],
)
def test_entries_are_nested_with_their_lines(text: str, after: str) -> None:
    root = parse(text)
    path = (0, "a") if text.startswith("-") else ("a",)
    assert apply_edits(text, move_into_mapping.nest_entries(text, root, path, ("b", "c"))) == after


@pytest.mark.parametrize(
    "text", ["{b: 1, d: 3, # x\n c: 2}", "b: 1\n", "? b\n: 1\nc: 2\n", "b: 1\nd: 3\n? c\n: 2\n", "<<: {b: 1}\nc: 2\n"]
)
def test_entries_that_share_lines_are_not_nested(text: str) -> None:
    root = parse(text)
    with pytest.raises(CannotEditError):
        move_into_mapping.nest_entries(text, root, ("a",), ("b", "c"))


def test_nesting_requires_a_mapping() -> None:
    text = "a: [b]\n"
    root = parse(text)
    for path in (("a", "x"), ("a", 0, "x"), ("z", "x")):
        with pytest.raises(CannotEditError, match="there is no such mapping"):
            move_into_mapping.nest_entries(text, root, path, ("b",))
    assert entry_locations.find_alias(root, ("z", "x")) is None
