"""Duplicates, merge keys and aliases, as go-yaml v2 and kube-apiserver treat them."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from apflint.load import load
from apflint.load.kubernetes_decoding import Decoded, _allowed_ratio, decode
from apflint.load.tree import ParseError
from apflint.load.yaml import parse_tree


def decoded(text: str) -> Decoded:
    root = parse_tree(text, 0, len(text))
    assert root is not None
    return decode(root)


def duplicates(text: str) -> list[tuple[Any, ...]]:
    return [duplicate.path for duplicate in decoded(text).duplicates]


def test_duplicate_key_keeps_the_last_and_both_places() -> None:
    found = decoded("a: 1\nb: {c: 1, c: 2}\na: 3\n")
    assert found.value == {"a": 3, "b": {"c": 2}}
    assert [(d.path, d.first.start, d.key.start, d.merged) for d in found.duplicates] == [
        (("b", "c"), 9, 15, False),
        (("a",), 0, 21, False),
    ]


def test_third_duplicate_refers_to_the_second() -> None:
    found = decoded("a: 1\na: 2\na: 3\n")
    assert [(d.first.start, d.key.start) for d in found.duplicates] == [(0, 5), (5, 10)]


@pytest.mark.parametrize("text", ["0x10: 1\n16: 2", "yes: 1\ntrue: 2", "a: 1\n'a': 2", "y: 1\nY: 2"])
def test_duplicate_key_in_two_spellings(text: str) -> None:
    assert len(duplicates(text)) == 1


@pytest.mark.parametrize("text", ["1: 1\n'1': 2", "1: 1\n1.0: 2", "yes: 1\n'true': 2", "a: 1\nA: 2"])
def test_keys_of_different_types_differ(text: str) -> None:
    assert duplicates(text) == []


@pytest.mark.parametrize("text", ["~: 1", "null: 1", "'': {~: 1}", "18446744073709551615: 1"])
def test_keys_that_json_does_not_have(text: str) -> None:
    with pytest.raises(ParseError, match="key"):
        decoded(text)


def test_merge_without_overlap() -> None:
    found = decoded("r: &r {x: 1, y_: 2}\ns: {<<: *r, z: 3}\n")
    assert found.value == {"r": {"x": 1, "y_": 2}, "s": {"x": 1, "y_": 2, "z": 3}}
    assert found.duplicates == ()


@pytest.mark.parametrize(
    ("text", "merged"),
    [
        ("r: &r {x: 1}\ns: {<<: *r, x: 2}\n", False),
        ("r: &r {x: 1}\ns: {x: 2, <<: *r}\n", True),
        ("r: &r {x: 1}\ns: {<<: *r, <<: *r}\n", True),
        ("r: &r {x: 1}\nt: &t {x: 2}\ns: {<<: [*r, *t]}\n", True),
        ("s: {<<: {x: 1}, x: 2}\n", False),
    ],
)
def test_overriding_merge_is_a_duplicate(text: str, merged: bool) -> None:
    found = decoded(text)
    assert [(d.path, d.merged) for d in found.duplicates] == [(("s", "x"), merged)]


def test_first_mapping_of_merged_list_takes_precedence() -> None:
    assert decoded("s: {<<: [{x: 1}, {x: 2}]}\n").value == {"s": {"x": 1}}


def test_merges_apply_in_order_among_the_keys() -> None:
    assert decoded("s: {x: 1, <<: {x: 2}}\n").value == {"s": {"x": 2}}
    assert decoded("s: {<<: {x: 2}, x: 1}\n").value == {"s": {"x": 1}}


@pytest.mark.parametrize("value", ["~", "1", "abc", "[1]", "[[{a: 1}]]", "*n"])
def test_invalid_merges(value: str) -> None:
    with pytest.raises(ParseError, match="<<"):
        decoded(f"n: &n 5\ns: {{<<: {value}}}\n")


def test_quoted_merge_key_is_an_ordinary_key() -> None:
    assert decoded("'<<': 1").value == {"<<": 1}


def test_alias_has_the_value_of_its_anchor() -> None:
    value: Any = decoded("a: &x [1, {b: yes}]\nc: *x\nd: &y on\n*y : 1\n").value
    assert value["c"] == [1, {"b": True}]


def test_anchor_may_be_redefined() -> None:
    assert decoded("a: &x 1\nb: *x\nc: &x 2\nd: *x\n").value == {"a": 1, "b": 1, "c": 2, "d": 2}


@pytest.mark.parametrize("text", ["a: &x {b: *x}", "a: &x [*x]", "a: &x {<<: *x}", "a: &x {b: &y {c: *x}}"])
def test_alias_inside_its_own_anchor(text: str) -> None:
    with pytest.raises(ParseError, match="inside the value") as caught:
        decoded(text)
    assert caught.value.limit is None


def test_alias_bomb_is_rejected_as_by_go_yaml() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 9)]
    with pytest.raises(ParseError, match="aliases") as caught:
        decoded("\n".join(lines))
    assert caught.value.limit == "server"


def test_many_small_aliases_are_accepted() -> None:
    text = "a: &a {x: 1}\nb:\n" + "- *a\n" * 1000
    assert decoded(text).value == {"a": {"x": 1}, "b": [{"x": 1}] * 1000}


@pytest.mark.parametrize("link", ["[{body}]", "{{k: {body}}}", "{{<<: {body}}}"])
def test_aliases_nested_too_deeply(link: str) -> None:
    """No line is nested deeply, but with all aliases resolved, the value would have 20,000 levels."""
    lines = ["a0: &a0 {x: 1}"]
    for i in range(1, 200):
        body = f"*a{i - 1}"
        for _ in range(100):
            body = link.format(body=body)
        lines.append(f"a{i}: &a{i} {body}")
    with pytest.raises(ParseError, match="levels deep") as caught:
        decoded("\n".join(lines))
    assert caught.value.limit == "apflint"


def test_path_of_infinity() -> None:
    assert decoded("a: [1, {b: .inf}]\nc: .nan\n").not_finite == (("a", 1, "b"), ("c",))


@pytest.mark.parametrize(
    ("values", "share"),
    [(1000, 0.99), (400_000, 0.99), (2_200_000, 0.545), (4_000_000, 0.10), (10**9, 0.10)],
)
def test_allowed_ratio_of_aliases(values: int, share: float) -> None:
    """The ratio falls from 99% to 10% between 400,000 and 4,000,000 values (go-yaml, decode.go, `allowedAliasRatio`)."""
    assert _allowed_ratio(values) == pytest.approx(share)


def count_garbage(text: str) -> int:
    """Return the number of objects in reference cycles, which only a garbage collection frees, after a text is loaded.

    The smallest of three counts: objects of earlier tests can become garbage at any time, for example when a full
    cache drops an entry.
    """
    counts = []
    gc.disable()
    try:
        for _ in range(3):
            gc.collect()
            loaded = load("a.yaml", text.encode())
            counts.append(gc.collect())
            assert loaded.problems
    finally:
        gc.enable()
    return min(counts)


@pytest.mark.parametrize("document", ["a: b: FlowSchema\n---\n", "a: *FlowSchema\n---\n"])
def test_garbage_does_not_grow_with_broken_documents(document: str) -> None:
    """apflint rarely collects garbage, so a reference cycle for each broken document would take much memory."""
    assert count_garbage(document * 100) < count_garbage(document * 10) + 50
