"""Values and positions in documents."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from apflint.load import load

if TYPE_CHECKING:
    from apflint.load.document import Document

HEAD = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\n"
RULE = "  - subjects: [{kind: Group, group: {name: a}}]\n    resourceRules: [{verbs: [get], resources: [pods, jobs]}]\n"


def value(text: str) -> Any:
    return load("a.yaml", text.encode()).documents[-1].value


def test_small_and_large_values_are_complete() -> None:
    rule = {
        "subjects": [{"kind": "Group", "group": {"name": "a"}}],
        "resourceRules": [{"verbs": ["get"], "resources": ["pods", "jobs"]}],
    }
    for count in (1, 500):
        text = f"{HEAD}spec:\n  rules:\n{RULE * count}"
        assert value(text)["spec"] == {"rules": [rule] * count}
    huge = f"{HEAD}spec: {{a: 0x{'f' * 15}, b: -.5, c: ~, d: on, e: é\U0001f600, f: {'[' * 90}{']' * 90}}}\n"
    assert list(value(huge)["spec"].values())[:5] == [16**15 - 1, -0.5, None, True, "é\U0001f600"]


@pytest.mark.parametrize(
    ("body", "more"),
    [
        ("metadata: {name: x}\n", False),
        ("metadata: {name: x, labels: {a: b}, annotations: {a: b}}\nspec: {status: 1}\n", False),
        ("metadata: {name: x, namespace: y}\n", True),
        ("metadata: {name: x, finalizers: []}\n", True),
        ("metadata: {name: x}\nstatus: {}\n", True),
        ("metadata: x\n", True),
        ("spec: {}\n", True),
    ],
)
def test_has_other_fields(body: str, more: bool) -> None:
    assert load("a.yaml", (HEAD + body).encode()).documents[0].has_other_fields is more


def test_places_of_a_manifest() -> None:
    (document,) = load("a.yaml", f"{HEAD}spec: {{rules: [a, null], b: null}}\n".encode()).documents
    assert document.at() == document.value
    assert (document.at("spec", "rules", 0), document.at("spec", "rules", 1)) == ("a", None)
    assert document.has("spec", "rules", 1)
    assert document.has("spec", "b")
    assert document.has()
    for path in (
        ("spec", "rules", 2),
        ("spec", "rules", -1),
        ("spec", "rules", "a"),
        ("spec", "c"),
        ("spec", "b", "c"),
    ):
        assert document.at(*path) is None
        assert not document.has(*path)


def test_paths_that_exist() -> None:
    (found,) = load("a.yaml", f"{HEAD}spec: {{rules: [a, null], b: null}}\n".encode()).documents
    exists = [(), ("spec",), ("spec", "rules"), ("spec", "rules", 0), ("spec", "rules", 1), ("spec", "b")]
    absent = [
        ("spec", "c"),
        ("spec", "rules", 2),
        ("spec", "rules", -1),
        ("spec", "rules", "a"),
        ("kind", 0),
        ("spec", "b", "x"),
    ]
    assert [path for path in (*exists, *absent) if found.has(*path)] == exists
    values = [found.at(*path) for path in (*exists[2:], *absent)]
    assert values == [["a", None], "a", None, None, *[None] * 6]


def document(text: str, name: str = "a.yaml") -> Document:
    loaded = load(name, text.encode("utf-8"))
    assert loaded.problems == ()
    return loaded.documents[-1]


def pointed(text: str, *path: str | int, key: bool = False, name: str = "a.yaml") -> str:
    """Return the text that a finding at `path` underlines."""
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
def test_offsets_of_value_and_key(body: str, path: tuple[str | int, ...], value: str, key: str) -> None:
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
def test_absent_value_is_reported_at_nearest_parent(body: str, path: tuple[str | int, ...], near: str) -> None:
    assert pointed(HEAD + body, *path) == near
    assert document(HEAD + body).text(path) == ""


def test_offsets_of_alias_and_of_value_inside_it() -> None:
    text = HEAD + "spec:\n  a: &x {b: 1}\n  c: *x\n  d: *x\n"
    assert pointed(text, "spec", "a") == "&x {b: 1}"
    assert pointed(text, "spec", "c") == "*x"
    assert pointed(text, "spec", "c", "b") == "1"


def test_offsets_of_merged_keys() -> None:
    text = HEAD + "spec:\n  r: &r {x: 1, y_: 2}\n  s: &s {x: 3, z: 4}\n  t:\n    <<: [*r, *s]\n    own: 5\n"
    assert [pointed(text, "spec", "t", name) for name in ("x", "z", "own")] == ["1", "4", "5"]


def test_own_key_precedes_merged_one() -> None:
    text = HEAD + "spec:\n  r: &r {x: 1}\n  t: {<<: *r, x: 2}\n"
    assert pointed(text, "spec", "t", "x") == "2"


def test_offsets_in_items_of_a_list() -> None:
    item = "- apiVersion: flowcontrol.apiserver.k8s.io/v1\n  kind: FlowSchema\n  metadata: {name: NAME}\n"
    text = "apiVersion: v1\nkind: List\nitems:\n" + item.replace("NAME", "one") + item.replace("NAME", "two")
    loaded = load("a.yaml", text.encode())
    assert [found.text(("metadata", "name")) for found in loaded.documents] == ["one", "two"]
    assert loaded.documents[1].span(("metadata", "name")) == (9, 20, 9, 23)
    assert loaded.documents[1].span(("spec",)) == (7, 3, 7, 46)
    assert loaded.documents[0].root is loaded.documents[1].root


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_spans_with_each_line_end(end: str) -> None:
    text = (HEAD + "spec:\n  é😀: [x, yy]\n").replace("\n", end)
    assert document(text).span(("spec", "é😀", 1)) == (4, 11, 4, 13)
    assert document(text).source.line(4) == "  é😀: [x, yy]"


def test_byte_order_mark_has_no_column() -> None:
    text = HEAD + "spec: 5\n"
    for encoded in (text.encode("utf-8-sig"), text.encode("utf-16"), b"\xfe\xff" + text.encode("utf-16-be")):
        (found,) = load("a.yaml", encoded).documents
        assert found.span(("apiVersion",), key=True) == (1, 1, 1, 11)
        assert found.span(("spec",)) == (3, 7, 3, 8)


def test_tab_is_one_column() -> None:
    assert document(HEAD + "spec:\t5\n").span(("spec",)) == (3, 7, 3, 8)


def test_offsets_in_kyaml() -> None:
    text = (
        '---\n{\n  apiVersion: "flowcontrol.apiserver.k8s.io/v1",\n  kind: "FlowSchema",\n'
        '  metadata: {\n    name: "x",\n  },\n  spec: {\n    rules: [{\n      subjects: [],\n    }],\n  },\n}\n'
    )
    found = document(text)
    assert found.value["spec"] == {"rules": [{"subjects": []}]}
    assert pointed(text, "metadata", "name") == '"x"'
    assert pointed(text, "spec", "rules", 0, "subjects") == "[]"
    assert pointed(text, "spec") == "spec"


def test_offsets_in_json() -> None:
    text = json.dumps({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "spec": {"a": [1, 2]}})
    assert pointed(text, "spec", "a", 1, name="a.json") == "2"
    assert pointed(text, "spec", "a", name="a.json") == "[1, 2]"
    assert pointed(text, "spec", "b", name="a.json") == '"spec"'


def test_offsets_in_second_document() -> None:
    text = "kind: ConfigMap\n---\n" + HEAD + "spec:\n  a: b\n"
    assert document(text).span(("spec", "a")) == (6, 6, 6, 7)


def test_name_is_a_string() -> None:
    assert document(HEAD + "metadata: {name: x}\n").name == "x"
    assert document(HEAD + "metadata: {name: 5}\n").name == ""
    assert document(HEAD + "metadata: []\n").name == ""
    assert document(HEAD).name == ""
