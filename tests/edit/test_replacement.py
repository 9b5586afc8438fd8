"""Edits of keys and scalars in all styles."""

from __future__ import annotations

import pytest

from apflint.edit import replacement
from apflint.edit.text_edits import CannotEditError, apply_edits
from apflint.load.json import parse_tree as parse_json

from .trees import parse


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("b: 1", "b: 7"),
        ("b: &x !!int 1 # c", "b: &x !!int 7 # c"),
        ("b:", "b: 7"),
        ("b: # c", "b: 7 # c"),
        ("b: null", "b: 7"),
        ("{b: 0x0, c: 1}", "{b: 7, c: 1}"),
    ],
)
def test_number_replaces_scalar(text: str, after: str) -> None:
    root = parse(text)
    assert apply_edits(text, replacement.replace_scalar(text, root, ("b",), 7)) == after


@pytest.mark.parametrize(
    ("text", "new", "after"),
    [
        ("b: a # c", "workload-low", "b: workload-low # c"),
        ("b: a", "/metrics/cadvisor", "b: /metrics/cadvisor"),
        ("b: a", "/healthz/*", 'b: "/healthz/*"'),
        ("b: a", "false", 'b: "false"'),
        ("b: a", "", 'b: ""'),
        ("b: 'a'", "it's", "b: 'it''s'"),
        ('b: "a"', "c", 'b: "c"'),
        ("b: 1", "c", 'b: "c"'),
    ],
)
def test_string_replaces_scalar(text: str, new: str, after: str) -> None:
    root = parse(text)
    assert apply_edits(text, replacement.replace_scalar(text, root, ("b",), new)) == after


def test_keys_and_strings_keep_their_quotes() -> None:
    for text, after in (
        ("'b': g/v1x", "'c': g/v1"),
        ('&k "b": &a "g/v1x" # v1x', '&k "c": &a "g/v1" # v1x'),
        ("? b\n: 'g/v1x'", "? c\n: 'g/v1'"),
        ("b: >-\n  g/v1x\nd: 1", "c: >-\n  g/v1\nd: 1"),
        ('"\\x62": "g/\\x761x"', '"c": "g/v1"'),
    ):
        root = parse(text)
        edits = [
            *replacement.rename_key(text, root, ("b",), "c"),
            replacement.replace_part(text, root, ("b",), "v1x", "v1"),
        ]
        assert apply_edits(text, edits) == after
    text = '{"b": "g\\/v1x"}'
    assert (
        apply_edits(text, [replacement.replace_part(text, parse_json(text, 0, len(text)), ("b",), "v1x", "v1")])
        == '{"b": "g\\/v1"}'
    )


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("b: x # c\n", "b: {name: x} # c\n"),
        ("b: 'x: y'\n", "b: {name: 'x: y'}\n"),
        ("b: x, y\n", 'b: {name: "x, y"}\n'),
        ("b: &a system:x\n", "b: &a {name: system:x}\n"),
        ('{"b": "x"}', '{"b": {"name": "x"}}'),
    ],
)
def test_string_is_wrapped_in_a_mapping(text: str, after: str) -> None:
    root = parse(text)
    assert apply_edits(text, replacement.wrap_scalar(text, root, ("b",), "name")) == after


@pytest.mark.parametrize("text", ["b: 7", "b: |\n  x\n", "b: [x]", "b:", "c: x"])
def test_other_values_are_not_wrapped(text: str) -> None:
    root = parse(text)
    with pytest.raises(CannotEditError):
        replacement.wrap_scalar(text, root, ("b",), "name")
