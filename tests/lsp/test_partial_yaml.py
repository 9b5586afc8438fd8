"""Structure of incomplete documents.

The structure of valid documents equals the structure that the YAML parser finds.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.budgets import MAX_COMPLETION_CHARACTERS
from apflint.load.tree import Mapping, Scalar, Sequence
from apflint.load.yaml import parse_tree
from apflint.lsp.cursor import insertion_point
from apflint.lsp.partial_yaml import document_at, read_entries, scalars_by_path

HALF_TYPED = """\
# a comment
kind: FlowSchema   # another
metadata:
  name: "a b"
  annotations:
    x: |
      foo: bar
      - baz

    y: z
spec:
  rules:
  - subjects:
    - kind: User
      user: {name: alice, }
    - kind: Gr
    resourceRules:
      - verbs: [get, "list",
          watch]
        resources:
        - pods
        - '*'
        apiGroups: [""
        namespaces: [a
  something half
  last:
"""


def test_incomplete_document() -> None:
    entries = read_entries(HALF_TYPED, 0)
    rule: tuple[Any, ...] = ("spec", "rules", 0)
    assert scalars_by_path(entries) == {
        ("kind",): "FlowSchema",
        ("metadata",): "",
        ("metadata", "name"): "a b",
        ("metadata", "annotations"): "",
        ("metadata", "annotations", "x"): "|\n      foo: bar\n      - baz",
        ("metadata", "annotations", "y"): "z",
        ("spec",): "",
        ("spec", "rules"): "",
        (*rule, "subjects"): "",
        (*rule, "subjects", 0, "kind"): "User",
        (*rule, "subjects", 0, "user", "name"): "alice",
        (*rule, "subjects", 1, "kind"): "Gr",
        (*rule, "resourceRules"): "",
        (*rule, "resourceRules", 0, "verbs", 0): "get",
        (*rule, "resourceRules", 0, "verbs", 1): "list",
        (*rule, "resourceRules", 0, "verbs", 2): "watch",
        (*rule, "resourceRules", 0, "resources"): "",
        (*rule, "resourceRules", 0, "resources", 0): "pods",
        (*rule, "resourceRules", 0, "resources", 1): "*",
        (*rule, "resourceRules", 0, "apiGroups", 0): "",
        (*rule, "resourceRules", 0, "namespaces", 0): "a",
        ("spec", "last"): "",
    }
    assert [HALF_TYPED[slice(*entry.key)] for entry in entries if entry.path[-1:] == ("name",)] == ["name", "name"]


def _scalars(node: Any, path: tuple[str | int, ...] = ()) -> dict[tuple[str | int, ...], tuple[int, int]]:
    if isinstance(node, Mapping):
        return {at: span for key, value in node.pairs for at, span in _scalars(value, (*path, str(key.value))).items()}
    if isinstance(node, Sequence):
        return {at: span for i, item in enumerate(node.items) for at, span in _scalars(item, (*path, i)).items()}
    assert isinstance(node, Scalar)
    return {path: (node.start, node.end)}


WORDS = st.sampled_from(["a", "b1", "c d", "kube-system", "x:y", '"q: #"', "'it''s'", "/healthz", "a#b"])
KEYS = st.sampled_from(["k", "kind", '"quoted"', "a-b", "x/y.z", "0"])


def _block(value: Any, column: int, *, deeper: bool) -> str:
    pad = " " * column
    if isinstance(value, str):
        return f" {value}\n"
    if isinstance(value, tuple):
        flow = _flow(value)
        return f" {flow}\n"
    if isinstance(value, dict):
        inner = [f"{pad}{key}:{_block(child, column + 2, deeper=deeper)}" for key, child in value.items()]
        return "\n" + "".join(inner)
    dashes = column if deeper else column - 2
    out = "\n"
    for child in value:
        body = _block(child, dashes + 2, deeper=deeper)
        out += f"{' ' * dashes}-{' ' + body.lstrip() if isinstance(child, dict) else body}"
    return out


def _flow(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return "{" + ", ".join(f"{key}: {_flow(child)}" for key, child in value.items()) + "}"


FLOWS = st.lists(WORDS | st.dictionaries(KEYS, WORDS, min_size=1), min_size=1, max_size=3).map(tuple)
TREES = st.recursive(
    WORDS | FLOWS,
    lambda inner: (
        st.dictionaries(KEYS, inner, min_size=1, max_size=4)
        | st.lists(st.dictionaries(KEYS, inner, min_size=1, max_size=3) | WORDS, min_size=1, max_size=3)
    ),
    max_leaves=12,
)


@given(st.dictionaries(KEYS, TREES, min_size=1, max_size=4), st.booleans())
def test_entries_of_a_valid_document_equal_its_tree(value: dict[str, Any], deeper: bool) -> None:
    text = _block(value, 0, deeper=deeper).lstrip("\n")
    tree = _scalars(parse_tree(text, 0, len(text)))
    entries = read_entries(text, 0)
    assert {entry.path: entry.value for entry in entries if entry.text} == tree


@given(
    st.text(alphabet=st.sampled_from(list("ab:-#[]{},'\"| \n\t\r>*&!?\u00e9\U0001f600\ud800\0%")), max_size=60),
    st.integers(0, 60),
)
def test_any_text_can_be_read(text: str, offset: int) -> None:
    offset = min(offset, len(text))
    for entry in read_entries(text, offset):
        assert 0 <= entry.key[0] <= entry.key[1] <= len(text)
        assert 0 <= entry.value[0] <= entry.value[1] <= len(text)
    for json in (False, True):
        here = insertion_point(text, offset, json=json)
        assert here is None or here.start <= here.end <= len(text)
        assert here is None or here.start <= offset <= here.end


@pytest.mark.parametrize(
    ("text", "path", "is_key", "word", "quote"),
    [
        ('{"a": {"b', ("a",), True, "b", '"'),
        ("{a: {b: c, ", ("a",), True, "", ""),
        ("{a: {b: x", ("a", "b"), False, "x", ""),
        ("[a, {x", (1,), True, "x", ""),
        ('{"a":"', ("a",), False, "", '"'),
        ("['*', ", (1,), False, "", ""),
        ("[a, # [b\n", (1,), False, "", ""),
    ],
)
def test_end_of_unclosed_flow_collections(
    text: str, path: tuple[str | int, ...], is_key: bool, word: str, quote: str
) -> None:
    point = insertion_point(text, len(text))
    assert point is not None
    assert (point.path, point.is_key, text[point.start :], point.quote) == (path, is_key, word, quote)


@pytest.mark.parametrize("text", ["[a, # [b", "{a: b}  # c", "- a # b", "a: |\n  # b", "a:\n  # b", "# b"])
def test_nothing_is_inserted_in_comments_and_block_scalars(text: str) -> None:
    assert insertion_point(text, len(text)) is None


def test_documents_of_a_stream() -> None:
    text = "a: 1\n---\nb: 2\n--- # c\nd: ---\n---x: 3\n"
    found = {text[slice(*part)] for offset in range(len(text)) if (part := document_at(text, offset))}
    assert found == {"a: 1\n", "---\nb: 2\n", "--- # c\nd: ---\n---x: 3\n"}
    assert document_at("---\na: 1", 8) == (0, 8)
    assert document_at("x" * (MAX_COMPLETION_CHARACTERS + 1), 5) is None
