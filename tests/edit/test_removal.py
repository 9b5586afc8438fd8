"""Removal of entries and items, with their comments and commas."""

from __future__ import annotations

import pytest

from apflint.edit import entry_locations, removal
from apflint.edit.text_edits import CannotEditError, apply_edits

from .trees import parse


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("a:\n  b: 1 # c\n  c: 2\n", "a:\n  # c\n  c: 2\n"),
        ("a:\n  b: 'x # y' # c\n  c: 2\n", "a:\n  # c\n  c: 2\n"),
        ("a:\r\n  b: 1\r\n  c: 2\r\n", "a:\r\n  c: 2\r\n"),
        ("a:\n  b: 1\nz: 1\n", "z: 1\n"),
        ("a:\n  c: 2\n  b: |\n    x\n  d: 1", "a:\n  c: 2\n  d: 1"),
        ("a: {b: 1, c: 2}", "a: {c: 2}"),
        ("a: {c: 2, b: 1}", "a: {c: 2}"),
        ("a: {b: 1}\nz: 1", "z: 1"),
        ("{x: 1, a: {b: 1}, z: 1}", "{x: 1, z: 1}"),
    ],
)
def test_entry_is_removed_with_its_lines(text: str, after: str) -> None:
    root = parse(text)
    assert apply_edits(text, removal.remove_entries(text, root, [("a", "b")])) == after


@pytest.mark.parametrize("text", ["x: &x {b: 1, c: 1}\na:\n  <<: *x\n", "x: &x {b: 1}\na: *x\n"])
def test_shared_entry_is_not_removed(text: str) -> None:
    root = parse(text)
    with pytest.raises(CannotEditError):
        removal.remove_entries(text, root, [("a", "b")])
    assert entry_locations.find_alias(root, ("a", "b")) is not None
    assert entry_locations.find_alias(root, ("x", "b")) is None


@pytest.mark.parametrize(
    ("text", "path", "after"),
    [
        ("a: {x: [1, 2, 3]}", ("a", "x", 1), "a: {x: [1, 3]}"),
        ("- b: 1\n  c: 2\n", (0, "b"), "- c: 2\n"),
        ("- b: 1 # why\n  # more\n  c: 2\n", (0, "b"), "- # why\n  # more\n  c: 2\n"),
        ("a:\r\n- b: 1\r\n  c: 2\r\n", ("a", 0, "b"), "a:\r\n- c: 2\r\n"),
        ("a:\n  - x # why\n  - y\n", ("a", 0), "a:\n  # why\n  - y\n"),
    ],
)
def test_items_and_first_entries_of_items(text: str, path: tuple[str | int, ...], after: str) -> None:
    root = parse(text)
    assert apply_edits(text, removal.remove_entries(text, root, [path])) == after


@pytest.mark.parametrize(
    ("text", "paths", "reason"),
    [
        ("a: [x, y]", [("a", 0), ("a", 1)], "the list would be empty"),
        ("a: [x]", [("a", 0)], "the list would be empty"),
        ("a: [x]", [("a", 1)], "there is no such list"),
        ("a: [x]", [("a", "x")], "there is no such list"),
        ("a: x", [("a", 0)], "there is no such list"),
        ("- b: {c: 1}\n", [(0, "b")], "the entry shares a line with other text"),
        ("- {b: 1}\n", [(0, "b")], "the mapping or list would be empty"),
        ("- - a\n  - b\n", [(0, 0)], "the entry shares a line with other text"),
        ("a: {b: 1}\n", [("a", "x")], "there is no `x`"),
        ("a: {b: 1}\n", [("x", "b", "c")], "there is no such mapping"),
    ],
)
def test_impossible_removal_is_refused(text: str, paths: list[tuple[str | int, ...]], reason: str) -> None:
    root = parse(text)
    with pytest.raises(CannotEditError, match=reason):
        removal.remove_entries(text, root, paths)
