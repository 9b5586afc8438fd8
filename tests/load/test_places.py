"""Where a finding points: the spans of values, keys, list items, and of what is absent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from apflint.load import load

if TYPE_CHECKING:
    from apflint.load.document import Document

HEAD = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\n"


def document(text: str, name: str = "a.yaml") -> Document:
    loaded = load(name, text.encode("utf-8"))
    assert loaded.problems == ()
    return loaded.documents[-1]


def pointed(text: str, *path: str | int, key: bool = False, name: str = "a.yaml") -> str:
    """The text that a finding at `path` points at."""
    found = document(text, name)
    start, end = found.offsets(path, key=key)
    return found.source.text[start:end]


@pytest.mark.parametrize(
    ("body", "path", "value", "key"),
    [
        ("spec:\n  a: b\n", ("spec", "a"), "b", "a"),
        ("spec:\n  a: 'b c'  # note\n", ("spec", "a"), "'b c'", "a"),
        ('spec: {"a" : "b"}\n', ("spec", "a"), '"b"', '"a"'),
        ("spec:\n  a: [x, y]\n", ("spec", "a"), "[x, y]", "a"),
        ("spec:\n  a: [x, y]\n", ("spec", "a", 1), "y", "y"),
        ("spec:\n  a: [x,\n    y]\n", ("spec", "a"), "a", "a"),
        ("spec:\n  a:\n  - x\n  - y\n", ("spec", "a"), "a", "a"),
        ("spec:\n  a:\n  - x\n  - y\n", ("spec", "a", 1), "y", "y"),
        ("spec:\n- a: 1\n  b: 2\n", ("spec", 0), "a: 1", "a: 1"),
        ("spec:\n- a:\n    b: 2\n", ("spec", 0), "a", "a"),
        ("spec:\n- {a: 1,\n   b: 2}\n", ("spec", 0), "{a: 1,", "{a: 1,"),
        ("spec:\n- - a\n  - b\n", ("spec", 0), "- a", "- a"),
        ("spec:\n  a:\n  b: 1\n", ("spec", "a"), "a", "a"),
        ("spec:\n  a: ~\n", ("spec", "a"), "~", "a"),
        ("spec:\n  a: ''\n", ("spec", "a"), "''", "a"),
        ("spec:\n  a: |\n    x\n    y\n\n", ("spec", "a"), "|\n    x\n    y", "a"),
        ("spec:\n  a: >-\n    x\n", ("spec", "a"), ">-\n    x", "a"),
        ("spec:\n  a: x\n    y\n", ("spec", "a"), "x\n    y", "a"),
        ("spec:\n  a: !!str 5\n", ("spec", "a"), "!!str 5", "a"),
        ("spec:\n  yes: 5\n", ("spec", "true"), "5", "yes"),
        ("spec:\n  0x10: 5\n", ("spec", "16"), "5", "0x10"),
        ("spec:\n  a:\tb\n", ("spec", "a"), "b", "a"),
        ("spec:\n  é: 😀\n", ("spec", "é"), "😀", "é"),
        ("spec:\n  ? a\n  : b\n", ("spec", "a"), "b", "a"),
        ("spec:\n  a: 1\n  a: 2\n", ("spec", "a"), "2", "a"),
    ],
)
def test_a_value_and_its_key(body: str, path: tuple[str | int, ...], value: str, key: str) -> None:
    assert pointed(HEAD + body, *path) == value
    assert pointed(HEAD + body, *path, key=True) == key


@pytest.mark.parametrize(
    ("body", "path", "near"),
    [
        ("spec:\n  a: 1\n", ("spec", "b"), "spec"),
        ("spec:\n  a: 1\n", ("spec", "b", "c", 3), "spec"),
        ("spec:\n  a: [x]\n", ("spec", "a", 7), "a"),
        ("spec:\n- a: 1\n  b: 2\n", ("spec", 0, "c"), "a: 1"),
        ("spec: 5\n", ("spec", "a"), "spec"),
        ("metadata: {}\n", ("spec",), "apiVersion: flowcontrol.apiserver.k8s.io/v1"),
        ("spec: {}\n", ("spec", "a"), "spec"),
    ],
)
def test_what_is_absent_is_missed_from_the_nearest_that_is_there(
    body: str, path: tuple[str | int, ...], near: str
) -> None:
    assert pointed(HEAD + body, *path) == near
    assert document(HEAD + body).text(path) == ""


def test_an_alias_is_pointed_at_itself_and_what_is_in_it_at_the_anchor() -> None:
    text = HEAD + "spec:\n  a: &x {b: 1}\n  c: *x\n  d: *x\n"
    assert pointed(text, "spec", "a") == "&x {b: 1}"
    assert pointed(text, "spec", "c") == "*x"
    assert pointed(text, "spec", "c", "b") == "1"


def test_merged_keys_are_pointed_at_where_they_are_written() -> None:
    text = HEAD + "spec:\n  r: &r {x: 1, y_: 2}\n  s: &s {x: 3, z: 4}\n  t:\n    <<: [*r, *s]\n    own: 5\n"
    assert [pointed(text, "spec", "t", name) for name in ("x", "z", "own")] == ["1", "4", "5"]


def test_a_key_of_its_own_comes_before_a_merged_one() -> None:
    text = HEAD + "spec:\n  r: &r {x: 1}\n  t: {<<: *r, x: 2}\n"
    assert pointed(text, "spec", "t", "x") == "2"


def test_the_items_of_a_list() -> None:
    item = "- apiVersion: flowcontrol.apiserver.k8s.io/v1\n  kind: FlowSchema\n  metadata: {name: NAME}\n"
    text = "apiVersion: v1\nkind: List\nitems:\n" + item.replace("NAME", "one") + item.replace("NAME", "two")
    loaded = load("a.yaml", text.encode())
    assert [found.text(("metadata", "name")) for found in loaded.documents] == ["one", "two"]
    assert loaded.documents[1].span(("metadata", "name")) == (9, 20, 9, 23)
    assert loaded.documents[1].span(("spec",)) == (7, 3, 7, 46)
    assert loaded.documents[0].root is loaded.documents[1].root


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_and_columns_whatever_ends_a_line(end: str) -> None:
    text = (HEAD + "spec:\n  é😀: [x, yy]\n").replace("\n", end)
    assert document(text).span(("spec", "é😀", 1)) == (4, 11, 4, 13)
    assert document(text).source.line(4) == "  é😀: [x, yy]"


def test_a_byte_order_mark_takes_no_column() -> None:
    text = HEAD + "spec: 5\n"
    for encoded in (text.encode("utf-8-sig"), text.encode("utf-16"), b"\xfe\xff" + text.encode("utf-16-be")):
        (found,) = load("a.yaml", encoded).documents
        assert found.span(("apiVersion",), key=True) == (1, 1, 1, 11)
        assert found.span(("spec",)) == (3, 7, 3, 8)


def test_tabs_are_one_column() -> None:
    assert document(HEAD + "spec:\t5\n").span(("spec",)) == (3, 7, 3, 8)


def test_kyaml() -> None:
    text = (
        '---\n{\n  apiVersion: "flowcontrol.apiserver.k8s.io/v1",\n  kind: "FlowSchema",\n'
        '  metadata: {\n    name: "x",\n  },\n  spec: {\n    rules: [{\n      subjects: [],\n    }],\n  },\n}\n'
    )
    found = document(text)
    assert found.value["spec"] == {"rules": [{"subjects": []}]}
    assert pointed(text, "metadata", "name") == '"x"'
    assert pointed(text, "spec", "rules", 0, "subjects") == "[]"
    assert pointed(text, "spec") == "spec"


def test_json() -> None:
    text = json.dumps({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "spec": {"a": [1, 2]}})
    assert pointed(text, "spec", "a", 1, name="a.json") == "2"
    assert pointed(text, "spec", "a", name="a.json") == "[1, 2]"
    assert pointed(text, "spec", "b", name="a.json") == '"spec"'


def test_the_second_document_of_a_text() -> None:
    text = "kind: ConfigMap\n---\n" + HEAD + "spec:\n  a: b\n"
    assert document(text).span(("spec", "a")) == (6, 6, 6, 7)


def test_the_name() -> None:
    assert document(HEAD + "metadata: {name: x}\n").name == "x"
    assert document(HEAD + "metadata: {name: 5}\n").name == ""
    assert document(HEAD + "metadata: []\n").name == ""
    assert document(HEAD).name == ""
