"""Streams of documents, and what each of them holds where some cannot be read."""

from __future__ import annotations

import pytest

from apflint.budgets import MAX_DEPTH, MAX_DOCUMENT_CHARACTERS, MAX_VALUES
from apflint.load.tree import Mapping, ParsedDocument, ParseError, Scalar
from apflint.load.yaml import parse_documents, parse_tree


def pieces(text: str) -> list[str]:
    return [text[found.start : found.end] for found in parse_documents(text)]


def error(text: str) -> ParseError:
    (found,) = [found.error for found in parse_documents(text) if found.error]
    return found


def place(text: str) -> str:
    """What a syntax error points at, with `>>` and `<<` around it."""
    found = error(text)
    return f"{text[: found.start]}>>{text[found.start : found.end]}<<{text[found.end :]}"


def roots(text: str) -> list[bool | None]:
    """For each document: whether there is something in it; None for an error."""
    return [None if found.error else found.root is not None for found in parse_documents(text)]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a: 1\n", ["a: 1\n"]),
        ("a: 1\n---\nb: 2\n", ["a: 1\n", "---\nb: 2\n"]),
        ("---\na: 1\n---\n", ["---\na: 1\n", "---\n"]),
        ("--- {a: 1}\n--- # note\nb: 2\n", ["--- {a: 1}\n", "--- # note\nb: 2\n"]),
        ("a: 1\r\n---\r\nb: 2\r\n", ["a: 1\r\n", "---\r\nb: 2\r\n"]),
        ("a: 1\r---\rb: 2\r", ["a: 1\r", "---\rb: 2\r"]),
        ("a: 1\u2028---\u2028b: 2", ["a: 1\u2028", "---\u2028b: 2"]),
        ("a: 1\n...\n%YAML 1.1\n# note\n---\nb: 2\n", ["a: 1\n...\n", "%YAML 1.1\n# note\n---\nb: 2\n"]),
        ("%TAG ! !x\n---\na: 1\n", ["%TAG ! !x\n---\na: 1\n"]),
        ("a: 1\n# note\n---\nb: 2\n", ["a: 1\n# note\n", "---\nb: 2\n"]),
    ],
)
def test_documents_of_a_stream(text: str, parts: list[str]) -> None:
    assert pieces(text) == parts
    assert None not in roots(text)


@pytest.mark.parametrize(
    "text", ["a: ---\n", "a: |\n  ---\n  b\n", "a: '\n ---'\n", "---a: 1\n", "a:\n- ---\n", "a: b---\n"]
)
def test_what_is_no_marker(text: str) -> None:
    assert len(pieces(text)) == 1
    assert None not in roots(text)


@pytest.mark.parametrize(
    "text", ["", "\n", "# note\n", "---\n", "---\n...\n", "---\n# note\n", "\ufeff", "--- # note\n"]
)
def test_an_empty_document(text: str) -> None:
    assert roots(text) == [False]


def test_an_explicit_null_is_no_empty_document() -> None:
    assert roots("--- ~\n") == [True]


def test_a_broken_document_leaves_the_others_readable() -> None:
    text = "a: 1\n---\nb: c: d\n---\nc: 'x\n---\nd: [1\n---\ne: 2\n"
    assert roots(text) == [True, None, None, None, True]


def test_the_places_of_later_documents_are_offsets_into_the_whole_text() -> None:
    text = "a: 1\n---\nb: c: d\n---\né: 😀\nname: value\n"
    *_, last = parse_documents(text)
    assert isinstance(last.root, Mapping)
    assert [(text[k.start : k.end], text[v.start : v.end]) for k, v in last.root.pairs] == [
        ("é", "😀"),
        ("name", "value"),
    ]


def test_anchors_are_of_one_document() -> None:
    assert roots("a: &x 1\n---\nb: *x\n") == [True, None]


@pytest.mark.parametrize("version", ["1.2", "1.0", "1.3"])
def test_other_versions_of_yaml(version: str) -> None:
    assert place(f"%YAML {version}\n---\na: 1\n") == f">>%YAML {version}<<\n---\na: 1\n"


def test_yaml_1_1_may_be_said() -> None:
    assert roots("%YAML 1.1\n---\na: 1\n") == [True]


def test_text_after_the_end_of_a_document() -> None:
    assert place("a: 1\n...\nb: 2\n") == "a: 1\n...\n>>b<<: 2\n"


@pytest.mark.parametrize(
    "marked",
    [
        'a: 1\nb: >>"<<abc\nc: d\n',
        "a: 1\nb: >>'<<abc\nc: d\n",
        "a: 1\nb: >>'<<abc\nc: d\n---\nx: y\n",
        "a: 1\nb: >>[<<a, b\nc: d\n",
        "a: 1\nb: >>[<<a, b\n",
        "a: 1\nb: >>{<<a: b\nc: d\n",
        "x:\n- a: >>[<<b\n- c\n",
        "a: [a b c: d e>>:<< f]\n",
        '{\n  a: "x"\n  >>b<<: "y",\n}\n',
        "spec:\n  name: x\n  >>rules<<\n  - a\n",
        "a: 1\n>>b:2<<\nc: d\n",
        "a: 1\n>>b<<\nc: d\n",
        "a: b>>:<< c\n",
        "a: b\n  >>c<<: d\n",
        "a:\n  b: 1\n   >>c<<: 2\n",
        "a:\n  b: 1\n>>\t<<c: 1\n",
        "a:\n>>\t<<b: 1\n",
        "a: >>@<<foo\n",
        "a: >>`<<foo`\n",
        "a: [>>*<<]\n",
        "a: >>*<<\n",
        "a: >>*foo<<\n",
        "a: >>&<< \n",
        "a:\n   b: 1\n  >>c<<: 2\n",
        "a:\n  - b\n  >>c<<: d\n",
        "a: [b]>>]<<\n",
        'a: "b" >>c d<<\n',
        'a: "é>>\\<<q"\n',
        "é: b>>\0<<c\n",
        "😀: b\nx: >>\x01<<\n",
        ">>[<<a]: 1\n",
        "a: >>!!int x<<\n",
        "a: |>>x<<\n  b\n",
    ],
)
def test_a_syntax_error_is_where_a_person_would_point(marked: str) -> None:
    text = marked.replace(">>", "").replace("<<", "")
    assert place(text) == marked


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [b\n", "this `[` is not closed"),
        ("a: {b: c\nd: e\n", "`}` is missing"),
        ("a: [b]]\n", "`]` closes nothing"),
        ('a: "b" c\n', "after the closing quote"),
        ("a: b\n  c: d\n", "indented below a line that already has a value"),
        ("a: *x\n", "no anchor `&x`"),
        ("? [a]\n: b\n", "a key must not be a list"),
    ],
)
def test_what_a_syntax_error_says(text: str, words: str) -> None:
    assert words in str(error(text))


def test_half_a_surrogate_pair() -> None:
    assert place("a: \ud83d\n") == "a: >>\ud83d<<\n"


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "? - "])
def test_depth_has_a_limit(opening: str) -> None:
    found = error("x:\n " + opening * 2000)
    assert found.limit == "apflint"
    assert str(MAX_DEPTH) in str(found)


def test_depth_up_to_the_limit_is_read() -> None:
    assert roots("[" * MAX_DEPTH + "]" * MAX_DEPTH) == [True]


def test_values_have_a_limit() -> None:
    found = error("[" + "a, " * (MAX_VALUES + 5) + "]")
    assert found.limit == "apflint"
    assert f"{MAX_VALUES:,}" in str(found)


def test_length_has_a_limit() -> None:
    assert error("a: " + "b" * MAX_DOCUMENT_CHARACTERS).limit == "apflint"


def test_only_the_wanted_documents_are_read() -> None:
    found = list(parse_documents("a: 1\n---\nb: [\n---\nc: 2\n", lambda start, _: start != 5))
    assert [(document.start, document.error) for document in found] == [(0, None), (14, None)]


def test_a_document_read_again_is_the_same() -> None:
    text = "a: 1\n---\nb: [x, {y: z}]\n---\nc: 2\n"
    for document in parse_documents(text):
        again = parse_tree(text, document.start, document.end)
        assert isinstance(again, Mapping)
        assert isinstance(document.root, Mapping)
        assert [(k.start, k.value, v.end) for k, v in again.pairs] == [
            (k.start, k.value, v.end) for k, v in document.root.pairs
        ]


def test_the_tag_that_makes_a_string() -> None:
    for text in ("! yes", "&a ! yes", "!  5"):
        (document,) = parse_documents(text)
        assert isinstance(document, ParsedDocument)
        assert isinstance(document.root, Scalar)
        assert isinstance(document.root.value, str)
