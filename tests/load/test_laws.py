"""Properties of loading any text: no exceptions, every position is inside the text, and values survive a round trip."""

from __future__ import annotations

import io
import json
import sys
from math import isfinite
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from apflint.load import load, load_text
from apflint.load import yaml as load_yaml
from apflint.load.kubernetes_decoding import decode
from apflint.load.scalars import resolve_key
from apflint.load.source_text import Source
from apflint.load.tree import Alias, Mapping, Node, ParsedDocument, ParseError, Sequence

if TYPE_CHECKING:
    from apflint.location import Path

HEAD = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\n"

# Random text consists of YAML tokens, because other random text would fail at the first character.
TOKENS = (
    "\n·\r\n·\r·\u2028·\x85·\0·\x1b·\ud800·é·😀·\ufeff·---\n·...\n·  ·\t·: ·- ·? ·[·]·{·}·,·'·\"·#·&a ·*a·<<: ·!!int ·! ·|\n"
    "·>-\n·%YAML 1.2\n·%YAML·{{ x }}·${X}·a·a: b·spec:\n·x: 1\n·\\·`·@·kind: FlowSchema"
)
PIECES = st.sampled_from([HEAD, *TOKENS.split("·")])
RESOLVER: Any = yaml.resolver.Resolver()
TEXTS = st.lists(PIECES | st.text(max_size=3), max_size=30).map("".join)
WORDS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn", "Zl", "Zp"]), max_size=8) | st.sampled_from(
    ["yes", "no", "on", "y", "null", "~", "", "5", "0x10", "1e2", "1_0", "2001-01-01", "1:30", "<<", "*", "- a", "a: b"]
)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(WORDS, inner, max_size=4),
    max_leaves=15,
)


def nodes(root: Node) -> list[Node]:
    found: list[Node] = []
    todo = [root]
    while todo:
        node = todo.pop()
        found.append(node)
        if isinstance(node, Mapping):
            todo += [part for pair in node.pairs for part in pair] + [part for m in node.merges for part in m[1:]]
        elif isinstance(node, Sequence):
            todo += node.items
    return found


def whole_floats_as_integers(value: Any) -> Any:
    """Return a value with integers for integral floats, as after conversion to JSON. Go writes floats from 1e21 on as floats."""
    if isinstance(value, dict):
        return {name: whole_floats_as_integers(part) for name, part in value.items()}
    if isinstance(value, list):
        return [whole_floats_as_integers(part) for part in value]
    return int(value) if isinstance(value, float) and value.is_integer() and abs(value) < 1e21 else value


@settings(max_examples=400)
@given(TEXTS, st.sampled_from(["a.yaml", "a.json"]))
@example(HEAD + "\ud800", "a.yaml")
@example(HEAD + '"\ud800": "\ud800"', "a.json")
@example(HEAD + "a: &a [*a]", "a.yaml")
def test_loading_text_never_raises_and_places_are_inside_it(text: str, name: str) -> None:
    loaded = load_text(Source(name, text))
    for problem in loaded.problems:
        assert 0 <= problem.place.start <= problem.place.end <= len(text)
        assert problem.message
    for document in loaded.documents:
        for path in paths(document.value):
            for at_key in (True, False):
                start, end = document.offsets(path, key=at_key)
                assert 0 <= start <= end <= len(text)


def paths(value: Any, path: Path = ()) -> list[Path]:
    """Return all paths of a value and, for each of them, a path below it that does not exist."""
    found = [path, (*path, "absent"), (*path, 99)]
    if isinstance(value, dict):
        found += [below for name, part in value.items() for below in paths(part, (*path, name))]
    elif isinstance(value, list):
        found += [below for number, part in enumerate(value) for below in paths(part, (*path, number))]
    return found


@given(
    st.binary(max_size=200)
    | st.tuples(st.sampled_from([b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"]), st.binary()).map(b"".join)
)
def test_loading_bytes_never_raises(data: bytes) -> None:
    for name in ("a.yaml", "a.json", "<stdin>"):
        loaded = load(name, data + b"\n# FlowSchema")
        for problem in loaded.problems:
            assert 0 <= problem.place.start <= problem.place.end <= len(loaded.source.text)


@given(st.text(), st.integers(0, 50), st.integers(0, 50))
def test_position_determines_the_offset(text: str, start: int, length: int) -> None:
    source = Source("a.yaml", text)
    start = min(start, len(text))
    end = min(start + length, len(text))
    span = source.span(start, end)
    assert source.line_starts[span.line - 1] + span.column - 1 == start
    assert source.line_starts[span.end_line - 1] + span.end_column - 1 == end
    assert (span.line, span.column) <= (span.end_line, span.end_column)
    assert 1 <= span.end_line <= len(source.line_starts)


@given(st.text("ab\r\n\u2028\x0b"))
def test_lines_add_up_to_the_text(text: str) -> None:
    source = Source("a.yaml", text)
    lines = [source.line(number) for number in range(1, len(source.line_starts) + 1)]
    assert lines == text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    assert source.line(0) == source.line(len(lines) + 1) == ""


def manifest(value: Any) -> dict[str, Any]:
    return {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "spec": [value],  # in a list, because a spec with the key `$patch` would make the manifest a patch
    }


def loaded_value(text: str) -> Any:
    (document,) = load("a.yaml", text.encode()).documents
    assert document.duplicates == ()
    return document.at("spec", 0)


@given(VALUES, st.sampled_from([True, False, None]), st.booleans())
def test_yaml_of_pyyaml_round_trips(value: Any, flow: bool | None, raw: bool) -> None:
    assume(_same_words(value))
    text = yaml.safe_dump(manifest(value), allow_unicode=raw, default_flow_style=flow)
    assert loaded_value(text) == whole_floats_as_integers(value)


@given(VALUES)
def test_yaml_of_ruamel_round_trips(value: Any) -> None:
    assume(_same_words(value))
    out = io.StringIO()
    writer = YAML(typ="safe", pure=True)
    writer.version = (1, 1)  # in YAML 1.1, `yes` and `on` need quotes
    writer.dump(manifest(value), out)
    assert loaded_value(out.getvalue()) == whole_floats_as_integers(value)


@given(VALUES)
def test_json_is_yaml(value: Any) -> None:
    assert loaded_value(json.dumps(manifest(value), ensure_ascii=False)) == whole_floats_as_integers(value)


def _same_words(value: Any) -> bool:
    """Return whether go-yaml decodes each string in `value` as a string after a Python library has dumped it.

    For example, return False for `y` and `0E0`. Python libraries dump these strings without quotes, and
    go-yaml then decodes other types.
    """
    if isinstance(value, dict):
        return all(_same_words(part) for pair in value.items() for part in pair)
    if isinstance(value, list):
        return all(map(_same_words, value))
    if not isinstance(value, str) or resolve_key(value) == value:
        return True
    return bool(RESOLVER.resolve(yaml.ScalarNode, value, (True, False)) != "tag:yaml.org,2002:str")


MANIFESTS = [
    HEAD
    + "metadata:\n  name: x # note\n  labels: {a: 'b', c: \"d\"}\nspec:\n  rules:\n  - subjects:\n    - kind: User\n",
    HEAD + "a: &x [1, 2.5, yes, ~, 2001-01-01]\nb: *x\nc: {<<: {d: 1}}\n",
    HEAD + "a: |\n  text\n  more\n\nb: >-\n  folded\n  more\nc: ''\n",
    HEAD + "a: !!str 5\nb: !foo bar\nc: !!binary YWJj\nd: !!int '5'\n",
    HEAD.replace("\n", "\r\n") + "é: 😀\r\nk:\r\n- - a\r\n  - b\r\n- c: d\r\n",
    '---\n{\n  apiVersion: "flowcontrol.apiserver.k8s.io/v1",\n  kind: "FlowSchema",\n  spec: {a: [x, y,],},\n}\n',
    "a: 1\n---\n# nothing\n---\n" + HEAD + "...\n---\n" + HEAD,
]


@pytest.mark.parametrize("text", MANIFESTS)
def test_parser_without_libyaml_builds_equal_trees(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fast = [shape(document) for document in load_yaml.parse_documents(text)]
    monkeypatch.setitem(sys.modules, "yaml._yaml", None)
    slow = [shape(document) for document in load_yaml.parse_documents(text)]
    assert slow == fast


@pytest.mark.parametrize("text", ["a: [b\n", "a: 'b\n", "a: b: c\n", "a: *x\n", "\tb: c\n", "a: b\0\n", "a: [*]\n"])
def test_parser_without_libyaml_finds_mistakes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml._yaml", None)
    (problem,) = load("a.yaml", (HEAD + text).encode()).problems
    assert problem.kind == "syntax"
    assert problem.place.start >= len(HEAD)


def test_libyaml_is_preferred(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not isinstance(load_yaml._make_parser("a"), yaml.Loader)
    monkeypatch.setitem(sys.modules, "yaml._yaml", None)
    assert isinstance(load_yaml._make_parser("a"), yaml.Loader)


def shape(document: ParsedDocument) -> Any:
    """Return everything in a document that a finding may depend on."""
    assert document.error is None
    if document.root is None:
        return document.start, document.end
    found = decode(document.root)
    assert all(isfinite(part) for part in (document.start, document.end))
    places = [
        (type(node).__name__, node.start, node.end, None if isinstance(node, Alias) else getattr(node, "flow", None))
        for node in nodes(document.root)
    ]
    return document.start, document.end, found.value, found.duplicates, places


@given(VALUES)
def test_children_are_inside_and_flow_collections_have_brackets(value: Any) -> None:
    text = yaml.safe_dump(manifest(value), default_flow_style=None, width=10_000)
    (document,) = load("a.yaml", text.encode()).documents
    for node in nodes(document.root):
        assert document.root.start <= node.start <= node.end <= document.root.end
        if isinstance(node, Mapping | Sequence) and node.flow:
            assert text[node.start] + text[node.end - 1] in ("[]", "{}")


@settings(max_examples=200)
@given(
    st.lists(PIECES | st.sampled_from(["\n---\n", "\n--- ", "\na: b\n", "\n%YAML 1.1\n---\n"]), max_size=12).map(
        "".join
    )
)
@example("a: 1\n...\n%TAG !x! tag:x,1:\n# note\n\n---\nb: 2\n")
def test_splitting_a_stream_equals_parsing_it_as_a_whole(text: str) -> None:
    """If libyaml can parse a stream as a whole, its scalars have the same positions as in the documents that apflint splits."""
    # Any other `%` may be in a quoted string, which only parsing can distinguish from a directive.
    assume("%" not in text.replace("%YAML 1.1\n---", "").replace("%TAG !x! tag", ""))
    try:
        events: list[Any] = list(yaml.parse(text, Loader=yaml.CSafeLoader))
    except (yaml.YAMLError, UnicodeEncodeError):
        assume(False)
    found = list(load_yaml.parse_documents(text))
    assume(not any(document.error and _is_accepted_by_libyaml(document.error) for document in found))
    assert [document.error for document in found if document.error] == []
    scalars = [event for event in events if isinstance(event, yaml.ScalarEvent) and event.style is None and event.value]
    theirs: set[int] = {scalar.start_mark.index for scalar in scalars if scalar.start_mark}
    ours = {node.start for document in found if document.root for node in nodes(document.root)}
    assert theirs <= ours


def _is_accepted_by_libyaml(error: ParseError) -> bool:
    """Return whether libyaml accepts the text that apflint rejects with this error.

    Only apflint rejects aliases without an anchor, collections as keys, and tags that do not fit.
    """
    return any(words in str(error) for words in ("has no anchor", "a key must not be", "has the tag", "base64"))
