"""The short way to the value of a plain document: it gives what the long way gives, or nothing."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_load_laws import HEAD, PIECES, TEXTS, VALUES

from apflint.load import yaml as load_yaml
from apflint.load.decode import Decoded, DecodeError, decode
from apflint.load.plain_yaml import DEEPEST, MAX_EVENTS_LENGTH, plain_value, value_by_events

SPECIAL = [
    "a: &x 1\n",
    "a: &x 1\nb: *x\n",
    "a: !!str 1\n",
    "a: ! yes\n",
    "<<: {a: b}\n",
    "a: 1\na: 2\n",
    "1: a\n",
    "yes: a\n",
    "? [a]\n: b\n",
    "a: .inf\n",
    "a: .nan\n",
    "%YAML 1.2\n---\na: b\n",
    "a: [b\n",
    "a: \ud800\n",
    "a\n",
    "5\n",
    "",
    "# nothing\n",
    "a: b\n...\nc: d\n",
    "a: " + "[" * (DEEPEST + 1) + "]" * (DEEPEST + 1) + "\n",
    "a: " + "x" * MAX_EVENTS_LENGTH + "\n",
]


def short(text: str) -> Any:
    """By the events, which all that is read by lines agrees with."""
    value = value_by_events(text, load_yaml._parser)
    either = plain_value(text, load_yaml._parser, load_yaml.MAX_VALUES)
    assert value is None or len(text) > MAX_EVENTS_LENGTH or repr(either) == repr(value)
    return value if len(text) <= MAX_EVENTS_LENGTH else either


def long(text: str) -> Decoded | None:
    """What the tree gives; None for what cannot be read, or nothing."""
    try:
        root = load_yaml.compose(text, 0, len(text))
        return None if root is None else decode(root)
    except (load_yaml.YamlError, DecodeError):
        return None


@settings(max_examples=300, deadline=None, derandomize=True)
@given(TEXTS | st.lists(PIECES, max_size=6).map(lambda pieces: HEAD + "".join(pieces)))
@example("y: n\nn: y\n")
@example("a: 0x10\nb: 1_0\nc: 017\nd: 1e2\ne: 1.5\nf: ''\ng:\nh: ~\ni: 2001-01-01\n")
def test_whatever_it_gives_is_what_the_tree_gives(text: str) -> None:
    found = short(text)
    if found is not None:
        assert repr(Decoded(found, (), ())) == repr(long(text))  # 1, 1.0 and True are three


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(["name", "spec", "rules"]), VALUES), st.sampled_from([True, False, None]))
def test_the_same_for_manifests_as_they_are_written(value: Any, flow: bool | None) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    found = short(text)
    if found is not None:
        assert repr(Decoded(found, (), ())) == repr(long(text))


def test_a_manifest_is_plain() -> None:
    text = (
        HEAD
        + "metadata:\n  name: 'a'  # 1\n  labels: {a: \"b\"}\nspec:\n  rules:\n  - - |\n      x\n    - [1, true, 1.5]\n"
    )
    found = short(text)
    assert found is not None
    assert found["spec"] == {"rules": [["x\n", [1, True, 1.5]]]}


@pytest.mark.parametrize("text", SPECIAL, ids=range(len(SPECIAL)))
def test_what_is_special_is_left_to_the_tree(text: str) -> None:
    assert short(text) is None


def test_the_deepest_is_read() -> None:
    depth = DEEPEST
    assert short("[" * depth + "]" * depth) is not None


def test_documents_have_a_value_only_where_it_is_asked_for() -> None:
    (document,) = load_yaml.documents("a: b\n")
    assert (document.value, document.root is None) == (None, False)
    (document,) = load_yaml.documents("a: b\n", values=True)
    assert (document.value, document.root is None) == ({"a": "b"}, True)
    (document,) = load_yaml.documents("a: &x b\n", values=True)
    assert (document.value, document.root is None) == (None, False)


ENTRY = "- name: team-a\n  verbs: [get, list]\n  rules:\n  - user: 'a: b'\n"


def test_a_long_list_is_read_by_lines_as_by_the_tree() -> None:
    text = "items:\n" + ENTRY * (MAX_EVENTS_LENGTH // len(ENTRY) + 1)
    assert len(text) > MAX_EVENTS_LENGTH
    found = plain_value(text, load_yaml._parser, load_yaml.MAX_VALUES)
    assert found is not None
    assert repr(Decoded(found, (), ())) == repr(long(text))


@pytest.mark.parametrize("line", ["- a\n", "a{}: b\n", "- [a,b,c,d]\n", "- - - a\n", "a{}:\n"])
def test_a_document_of_too_many_values_is_not_read_by_lines(line: str) -> None:
    """The tree has more values than this bound allows, so the bound must not let the short way read them."""
    text = "".join(line.format(number) for number in range(MAX_EVENTS_LENGTH // len(line) + 1))
    assert len(text) > MAX_EVENTS_LENGTH
    values = load_yaml.MAX_VALUES - count_left(text)
    assert plain_value(text, load_yaml._parser, values - 1) is None
    assert plain_value(text, load_yaml._parser, 10 * values) is not None


def count_left(text: str) -> int:
    """Return how many values the tree may have besides those of a document."""
    composer = load_yaml._Composer(text, 0, len(text))
    composer.root()
    return composer.left
