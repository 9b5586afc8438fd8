"""Documents of a stream, and their trees."""

from __future__ import annotations

import pytest

from apflint.budgets import MAX_DEPTH, MAX_DOCUMENT_CHARACTERS, MAX_VALUES
from apflint.load.tree import Mapping, ParsedDocument, ParseError, Scalar
from apflint.load.yaml import parse_documents, parse_tree


def pieces(text: str) -> list[str]:
    return [text[parse_document.start : parse_document.end] for parse_document in parse_documents(text)]


def error(text: str) -> ParseError:
    (found,) = [found.error for found in parse_documents(text) if found.error]
    return found


def place(text: str) -> str:
    """Return the text with `>>` and `<<` around the place of the syntax error."""
    found = error(text)
    return f"{text[: found.start]}>>{text[found.start : found.end]}<<{text[found.end :]}"


def roots(text: str) -> list[bool | None]:
    """Return for each document whether it has content, or None if it has a syntax error."""
    return [
        None if parse_document.error else parse_document.root is not None for parse_document in parse_documents(text)
    ]


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
def test_text_that_is_not_a_marker(text: str) -> None:
    assert len(pieces(text)) == 1
    assert None not in roots(text)


@pytest.mark.parametrize(
    "text", ["", "\n", "# note\n", "---\n", "---\n...\n", "---\n# note\n", "\ufeff", "--- # note\n"]
)
def test_empty_document(text: str) -> None:
    assert roots(text) == [False]


def test_explicit_null_is_not_an_empty_document() -> None:
    assert roots("--- ~\n") == [True]


def test_broken_document_does_not_affect_others() -> None:
    text = "a: 1\n---\nb: c: d\n---\nc: 'x\n---\nd: [1\n---\ne: 2\n"
    assert roots(text) == [True, None, None, None, True]


def test_offsets_of_later_documents() -> None:
    text = "a: 1\n---\nb: c: d\n---\né: 😀\nname: value\n"
    *_, last = parse_documents(text)
    assert isinstance(last.root, Mapping)
    assert [(text[k.start : k.end], text[v.start : v.end]) for k, v in last.root.pairs] == [
        ("é", "😀"),
        ("name", "value"),
    ]


def test_anchors_belong_to_one_document() -> None:
    assert roots("a: &x 1\n---\nb: *x\n") == [True, None]


@pytest.mark.parametrize("version", ["1.2", "1.0", "1.3"])
def test_other_versions_of_yaml(version: str) -> None:
    assert place(f"%YAML {version}\n---\na: 1\n") == f">>%YAML {version}<<\n---\na: 1\n"


def test_yaml_1_1_directive_is_accepted() -> None:
    assert roots("%YAML 1.1\n---\na: 1\n") == [True]


def test_text_after_the_end_of_a_document() -> None:
    assert place("a: 1\n...\nb: 2\n") == "a: 1\n...\n>>b<<: 2\n"


def test_unpaired_surrogate() -> None:
    assert place("a: \ud83d\n") == "a: >>\ud83d<<\n"


@pytest.mark.parametrize("opening", ["[", "{a: ", "- ", "? ", "? - "])
def test_maximum_depth(opening: str) -> None:
    found = error("x:\n " + opening * 2000)
    assert found.limit == "apflint"
    assert str(MAX_DEPTH) in str(found)


def test_maximum_depth_is_parsed() -> None:
    assert roots("[" * MAX_DEPTH + "]" * MAX_DEPTH) == [True]


@pytest.mark.slow
def test_maximum_number_of_values() -> None:
    found = error("[" + "a, " * (MAX_VALUES + 5) + "]")
    assert found.limit == "apflint"
    assert f"{MAX_VALUES:,}" in str(found)


def test_maximum_length() -> None:
    assert error("a: " + "b" * MAX_DOCUMENT_CHARACTERS).limit == "apflint"


def test_only_wanted_documents_are_parsed() -> None:
    found = list(parse_documents("a: 1\n---\nb: [\n---\nc: 2\n", lambda start, _: start != 5))
    assert [(document.start, document.error) for document in found] == [(0, None), (14, None)]


def test_document_parsed_again_is_equal() -> None:
    text = "a: 1\n---\nb: [x, {y: z}]\n---\nc: 2\n"
    for document in parse_documents(text):
        again = parse_tree(text, document.start, document.end)
        assert isinstance(again, Mapping)
        assert isinstance(document.root, Mapping)
        assert [(k.start, k.value, v.end) for k, v in again.pairs] == [
            (k.start, k.value, v.end) for k, v in document.root.pairs
        ]


def test_non_specific_tag_makes_a_string() -> None:
    for text in ("! yes", "&a ! yes", "!  5"):
        (document,) = parse_documents(text)
        assert isinstance(document, ParsedDocument)
        assert isinstance(document.root, Scalar)
        assert isinstance(document.root.value, str)
