"""The fast parser of block YAML returns the same values as the tree parser, and supports most manifests."""

from __future__ import annotations

import random
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from apflint.budgets import MAX_VALUES
from apflint.load import yaml as load_yaml
from apflint.load.block_yaml_parser import MAX_FAST_DEPTH, fast_value
from apflint.load.kubernetes_decoding import Decoded, decode
from apflint.load.tree import ParseError

from .test_laws import HEAD, PIECES, TEXTS, VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
MANIFEST = """---
# Wer darf: é
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema   # a kind
metadata:
  name: 'a'
  annotations: {}
  labels:

spec:
  matchingPrecedence: 1_0
  rules:
  - subjects:
      # of whom
      - kind: "User"
        user:
          name: system:kube-scheduler
    resourceRules:
    - verbs: [get, 'list', "*"]
      resources: []
      clusterScope: yes
  - - - 1e2
      - no (yes, it is), a:b
  -   a:
      b: http://x:80/y
"""
OTHERWISE = [
    "a: b\n c\n",
    "a: 'b'\n  c: d\n",
    "a:\n  b\n",
    "a: |\n  b\n",
    "a: &x b\n",
    "a: *x\n",
    "a: {b: c}\n",
    "a: [b\n",
    "a: [b,]\n",
    "a: 'it''s'\n",
    'a: "\\n"\n',
    "a: b: c\n",
    "a: b:\n",
    "a:\tb\n",
    "a: b\r\n",
    "a: 1\na: 2\n",
    "yes: a\n",
    "1: a\n",
    "'a': b\n",
    "<<: a\n",
    "? a\n",
    "a: .inf\n",
    "a: [.nan]\n",
    "a: b\n- c\n",
    "- a\nb: c\n",
    " a: b\nc: d\n",
    "a:\n  b: c\n d: e\n",
    "- a\n b\n",
    "-\n",
    "- # a\n",
    "a\n",
    "'a'\n",
    "",
    "# a\n",
    "--- a\n",
    "a: b\n...\n",
    "%YAML 1.1\n---\na: b\n",
    "a: b #\x01\n",
    "a: '\u2028'\n",
    "\ufeffa: b\n",
    "a: " + "b" * 1000,
]
VALUES_AS_WRITTEN = [
    *(" a", " b c", " 'it # is: so'", ' ""', " [a, '*']", "[]", " {}", " 1", " 0x1", " 1:2", " a:b", " -5", " .inf"),
    *(" no", " a #b", " #c", "", "  ", " a,b (c, d),", " a, #b", " ...", " -", "x"),
]
LINES = st.lists(
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["", " ", "  ", "    ", "      "]),
        st.sampled_from(["", "", "- ", "- - ", "-  "]),
        st.sampled_from(["", "a:", "b:", "yes:", "x.y/z-1:", "c :"]),
        st.sampled_from(VALUES_AS_WRITTEN),
    ),
    min_size=1,
    max_size=8,
).map("\n".join)


def value_of(text: str) -> Any:
    return fast_value(text, MAX_VALUES)


def value_of_tree(text: str) -> Decoded | None:
    """Return the value that the tree parser finds, or None if the text is invalid or empty."""
    try:
        root = load_yaml.parse_tree(text, 0, len(text))
        return None if root is None else decode(root)
    except ParseError:
        return None


def equals_tree(text: str, value: Any) -> bool:
    """Return whether the tree parser finds `value`. Compare by representation, because 1, 1.0 and True are equal in Python."""
    return repr(Decoded(value, (), ())) == repr(value_of_tree(text))


def has_value(text: str) -> bool:
    """Return whether the fast parser returns a value, and assert that the tree parser finds the same value."""
    value = value_of(text)
    assert value is None or equals_tree(text, value), text
    return value is not None


@settings(max_examples=400, deadline=None, derandomize=True)
@given(LINES | TEXTS | st.lists(PIECES, max_size=6).map(lambda pieces: HEAD + "".join(pieces)))
@example("y: n\nn: y\n")
@example("a:\n- b\n-  c:\n   - d\n   e:\nf: 017\n")
def test_values_equal_those_of_the_tree(text: str) -> None:
    value = value_of(text)
    assert value is None or equals_tree(text, value)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.dictionaries(st.sampled_from(["name", "spec", "rules"]), VALUES), st.sampled_from([True, False, None]))
def test_values_of_dumped_yaml_equal_those_of_the_tree(value: Any, flow: bool | None) -> None:
    text = yaml.safe_dump(value, default_flow_style=flow, allow_unicode=True)
    read = value_of(text)
    assert read is None or equals_tree(text, read)


def examples() -> Iterator[str]:
    """Yield the YAML of the rule pages and the fixtures."""
    for path in sorted(ROOT.glob("fixtures/**/*.yaml")):
        text = path.read_text(errors="replace")
        yield from (text[start:end] for start, end in load_yaml.split_documents(text) if end - start < 3000)
    for path in sorted(ROOT.glob("rules/*.md")):
        yield from re.findall(r"```yaml[^\n]*\n(.*?)```", path.read_text(), re.DOTALL)


def test_most_examples_are_read_and_equal_the_tree() -> None:
    every = sorted(set(examples()))
    assert len(every) > 100
    assert sum(map(has_value, every)) > 0.7 * len(every)


def test_examples_with_mistakes_equal_the_tree() -> None:
    chance = random.Random(1040)
    every = sorted(set(examples()))
    bits = [
        "",
        " ",
        "  ",
        "- ",
        ": ",
        "\n",
        "\n  ",
        "#",
        " # ",
        "'",
        '"',
        "[",
        "]",
        "{}",
        ", ",
        "~",
        "yes",
        "a: b\n",
        "\n- ",
        ":\n",
        "é",
    ]
    count = 0
    for _ in range(4000):
        lines = chance.choice(every).split("\n")
        start = chance.randrange(len(lines))
        text = "\n".join(lines[start : start + chance.randrange(1, 12)])
        for _ in range(chance.randrange(3)):
            at = chance.randrange(len(text) + 1)
            text = text[:at] + chance.choice(bits) + text[at + chance.randrange(3) :]
        count += has_value(text)
    assert count > 400


def test_manifest_has_value() -> None:
    assert has_value(MANIFEST)
    assert value_of("a:\n- b\n") == {"a": ["b"]}


@pytest.mark.parametrize("text", OTHERWISE, ids=range(len(OTHERWISE)))
def test_unsupported_style_has_no_value(text: str) -> None:
    assert value_of(text) is None


def test_maximum_depth_has_value() -> None:
    assert has_value("- " * (MAX_FAST_DEPTH) + "a\n")
    assert value_of("- " * (MAX_FAST_DEPTH + 1) + "a\n") is None


def test_values_are_not_shared() -> None:
    text = "a: [b]\nc: {}\n"
    first: Any = value_of(text)
    second = value_of(text)
    first["a"].append(1)
    first["c"]["d"] = 1
    assert second == value_of(text) == {"a": ["b"], "c": {}}


def test_documents_have_values_only_on_request() -> None:
    (document,) = load_yaml.parse_documents("a: b\n")
    assert (document.value, document.root is None) == (None, False)
    (document,) = load_yaml.parse_documents("a: b\n", values=True)
    assert (document.value, document.root is None) == ({"a": "b"}, True)
    (document,) = load_yaml.parse_documents("a: &x b\n", values=True)
    assert (document.value, document.root is None) == (None, False)


ENTRY = "- name: team-a\n  verbs: [get, list]\n  rules:\n  - user: 'a: b'\n"


def test_long_list_equals_the_tree() -> None:
    text = "items:\n" + ENTRY * (MAX_VALUES // len(ENTRY) + 1)
    assert len(text) > MAX_VALUES
    assert has_value(text)


@pytest.mark.parametrize("line", ["- a\n", "a{}: b\n", "- [a,b,c,d]\n", "- - - a\n", "a{}:\n"])
def test_document_with_too_many_values_needs_the_tree(line: str) -> None:
    """If a document exceeds MAX_VALUES, the fast parser must return None, so that the tree parser reports the bound."""
    text = "".join(line.format(number) for number in range(10_000))
    builder = load_yaml._YamlTreeBuilder(text, 0, len(text))
    builder.build()
    values = MAX_VALUES - builder.values_left
    assert fast_value(text, values - 1) is None
    assert fast_value(text, 10 * values) is not None
