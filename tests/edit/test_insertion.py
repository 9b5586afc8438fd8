"""Places of new keys in block and flow style."""

from __future__ import annotations

import pytest

from apflint.edit import insertion
from apflint.edit.text_edits import CannotEditError, apply_edits

from .trees import parse


@pytest.mark.parametrize(
    ("text", "after"),
    [
        # Keys that are not fields of Kubernetes are added at the end.
        ("a:\n  c: 2\n", "a:\n  c: 2\n  b: 7\n"),
        ("a:\n  c: 2", "a:\n  c: 2\n  b: 7"),
        ("a:\n  c: 2 # x\n    # y\n  # z\nd: 1\n", "a:\n  c: 2 # x\n    # y\n  b: 7\n  # z\nd: 1\n"),
        ("a:\n  c: |+\n    x\n\n\nd: 1\n", "a:\n  c: |+\n    x\n\n\n  b: 7\nd: 1\n"),
        ("a:\n  c:\n    - d: |\n        # x\n\nd: 1\n", "a:\n  c:\n    - d: |\n        # x\n\n  b: 7\nd: 1\n"),
        ("a:\n  c:\n\nd: 1\n", "a:\n  c:\n  b: 7\n\nd: 1\n"),
        ("a:\n  ? c\n  : 2\n  e: 3\n", "a:\n  ? c\n  : 2\n  e: 3\n  b: 7\n"),
        ("a:\n  c: 2\n  <<: {d: 1}\n", "a:\n  c: 2\n  <<: {d: 1}\n  b: 7\n"),
        ("- c: 2\n", "- c: 2\n  b: 7\n"),
        ("a:\r\n    c: 2\r\n", "a:\r\n    c: 2\r\n    b: 7\r\n"),
        ("a: {c: 2}", "a: {c: 2, b: 7}"),
        ("a: {c: 2,}", "a: {c: 2, b: 7,}"),
        ("a: {c: }", "a: {c: , b: 7}"),
        ("a: {<<: {d: 1}}", "a: {<<: {d: 1}, b: 7}"),
        ('a: {\n  "c": 2\n}', 'a: {\n  "c": 2,\n  "b": 7\n}'),
        ("a: {\n  c: 2 # x\n}", "a: {\n  c: 2, # x\n  b: 7\n}"),
        ("a: {\r\n  c: 2, # x\r\n}", "a: {\r\n  c: 2, # x\r\n  b: 7,\r\n}"),
        ("a: {}", 'a: {"b": 7}'),
        # The mapping is empty: its value is null.
        ("a:\n", "a:\n  b: 7\n"),
        ("a: # x", "a: # x\n  b: 7"),
        ("a: ~ # x\n", "a: {b: 7} # x\n"),
        ('{"a": null}', '{"a": {"b": 7}}'),
    ],
)
def test_new_key_follows_its_neighbors(text: str, after: str) -> None:
    root = parse(text)
    path = (0, "b") if text.startswith("-") else ("a", "b")
    assert apply_edits(text, insertion.insert_entry(text, root, path, 7)) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("rules: []\n", "type: 7\nrules: []\n"),
        ("# x\n# y\nlimited: {}\n", "type: 7\n# x\n# y\nlimited: {}\n"),
        ("a: 1\n# x\n\n# y\nkind: K # z\n# t\nb: 2\n", "a: 1\n# x\n\n# y\nkind: K # z\ntype: 7\n# t\nb: 2\n"),
        ("{rules: [], kind: K}", "{rules: [], kind: K, type: 7}"),
        ("{kind: K, rules: []}", "{kind: K, type: 7, rules: []}"),
        ("{\n  kind: K, # x\n  # y\n  rules: []\n}", "{\n  kind: K, # x\n  type: 7,\n  # y\n  rules: []\n}"),
        ('{"kind": "K",\n "rules": []}', '{"kind": "K",\n "type": 7,\n "rules": []}'),
        ('{"rules": []}', '{"type": 7, "rules": []}'),
        ('{\n  "rules": []\n}', '{\n  "type": 7,\n  "rules": []\n}'),
    ],
)
def test_new_field_follows_the_order_of_kubernetes(text: str, after: str) -> None:
    root = parse(text)
    assert apply_edits(text, insertion.insert_entry(text, root, ("type",), 7)) == after


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("- limited: 1\n", "- type: 7\n  limited: 1\n"),
        ("-   limited: 1\n    z: 1\n", "-   type: 7\n    limited: 1\n    z: 1\n"),
        ("-\n  # x\n  limited: 1\n", "-\n  type: 7\n  # x\n  limited: 1\n"),
    ],
)
def test_new_first_field_of_a_list_item(text: str, after: str) -> None:
    root = parse(text)
    assert apply_edits(text, insertion.insert_entry(text, root, (0, "type"), 7)) == after


@pytest.mark.parametrize(
    ("text", "path", "reason"),
    [
        ("a: x", ("a", "b"), "there is no such mapping"),
        ("a: [x]", ("a", 0, "b"), "there is no such mapping"),
        ("a: !!map\n", ("a", "b"), "there is no such mapping"),
        ("{a: }", ("a", "b"), "the entry shares a line with other text"),
        ("? b\n: 1\n", ("c",), "the entry shares a line with other text"),
    ],
)
def test_impossible_insertion_is_refused(text: str, path: tuple[str | int, ...], reason: str) -> None:
    root = parse(text)
    with pytest.raises(CannotEditError, match=reason):
        insertion.insert_entry(text, root, path, 7)
