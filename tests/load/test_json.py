"""JSON: documents, values, syntax errors and their places."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from apflint.budgets import MAX_DEPTH
from apflint.load.json import parse_documents, parse_tree
from apflint.load.kubernetes_decoding import decode
from apflint.load.tree import Mapping, ParseError, Sequence


def values(text: str) -> list[Any]:
    return [
        parse_document.value if parse_document.root is None else decode(parse_document.root).value
        for parse_document in parse_documents(text)
        if not parse_document.error
    ]


def error(text: str) -> ParseError:
    (found,) = [found.error for found in parse_documents(text) if found.error]
    return found


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(JSON, st.sampled_from([None, 0, 1]), st.booleans())
def test_value_equals_json_loads(value: Any, indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    (found,) = values(text)
    assert found == json.loads(text)
    assert json.dumps(found) == json.dumps(json.loads(text))


@pytest.mark.parametrize("text", ["5.0", "1e2", "-0.0", "1.5E-3"])
def test_float_stays_a_float(text: str) -> None:
    (found,) = values(text)
    assert type(found) is float


def test_several_values_are_documents() -> None:
    text = ' {"a": 1}\n{"a": 2} [3]"x"'
    assert values(text) == [{"a": 1}, {"a": 2}, [3], "x"]
    assert [text[parse_document.start : parse_document.end] for parse_document in parse_documents(text)] == [
        '{"a": 1}',
        '{"a": 2}',
        "[3]",
        '"x"',
    ]


@pytest.mark.parametrize("text", ["", " ", "\n\t\r\n"])
def test_empty_text(text: str) -> None:
    assert list(parse_documents(text)) == []


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ('{"a": 1,}', 7),
        ("[1, 2, ]", 5),
        ('{"a" 1}', 5),
        ("{a: 1}", 1),
        ("{'a': 1}", 1),
        ('{"a": yes}', 6),
        ('{"a": NaN}', 6),
        ('{"a": Infinity}', 6),
        ('{"a": 01}', 7),
        ('{"a": +1}', 6),
        ('{"a": .5}', 6),
        ('{"a": 1 "b": 2}', 8),
        ('{"a": [1, 2}', 11),
        ('{"a": {"b": 1}', 0),
        ('{"a": [1, 2', 6),
        ('{"a": "b', 6),
        ('{"a": "\n"}', 7),
        ('{"a": "\\q"}', 7),
        ('{"a": // no\n 1}', 6),
        ('{"a": 1} x', 9),
        ('{"a":', 5),
    ],
)
def test_mistakes_and_their_places(text: str, at: int) -> None:
    assert error(text).start == at


def test_values_before_a_mistake_are_kept() -> None:
    assert values('{"a": 1} {"b": }') == [{"a": 1}]


def test_values_after_a_mistake_are_read_from_the_next_line_with_a_value() -> None:
    text = '{"a": 1}\n{\n  "b": {\n    "c": x\n  }\n}\n\n{"d": 4}\n{"e": \n'
    found = list(parse_documents(text))
    assert [text[document.start : document.end] for document in found] == [
        '{"a": 1}',
        '{\n  "b": {\n    "c": x\n  }\n}\n\n',
        '{"d": 4}',
        '{"e": \n',
    ]
    assert [document.error and document.error.start for document in found] == [None, text.index("x"), None, len(text)]


def test_unwanted_values_are_skipped() -> None:
    text = '{"a": 1} {"b": 2} {"c": x'
    asked = []

    def wanted(start: int, end: int, value: Any) -> bool:
        asked.append((text[start:end], value))
        return bool(value == {"b": 2})

    assert [parse_document.value for parse_document in parse_documents(text, wanted)] == [{"b": 2}]
    assert asked == [('{"a": 1}', {"a": 1}), ('{"b": 2}', {"b": 2}), ('{"c": x', None)]


SCALARS = [
    "0",
    "-0",
    "1.0",
    "1e5",
    "1E400",
    "NaN",
    "-Infinity",
    "9" * 500,
    '"\\ud800"',
    '"\\ud83d\\ude00"',
    '"é"',
    "null",
    "tru",
]
ODD = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: (
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(st.sampled_from(['"a"', '"b"', '"\\u0061"', '"<<"']), inner), max_size=3).map(
            lambda pairs: "{" + ",".join(f"{key}: {value}" for key, value in pairs) + "}"
        )
    ),
)


@given(ODD, st.integers(0, 120))
@example("[]", MAX_DEPTH)
@example("[]", MAX_DEPTH + 1)
@example("0", MAX_DEPTH + 1)
def test_ordinary_values_equal_the_tree(text: str, depth: int) -> None:
    text = "[" * depth + text + "]" * depth
    try:
        decoded = decode(parse_tree(text, 0, len(text)))
    except ParseError:
        decoded = None
    (found, *_) = parse_documents(text)
    if found.value is not None:
        assert decoded is not None
        assert repr(found.value) == repr(decoded.value)
        assert not decoded.duplicates
        assert not decoded.not_finite
    else:
        assert (found.error is None) == (decoded is not None)


def test_duplicate_keys_need_the_tree() -> None:
    (document,) = parse_documents('{"a": 1, "b": {"c": 1, "c": 2}}')
    assert document.root is not None
    assert [duplicate.path for duplicate in decode(document.root).duplicates] == [("b", "c")]


def test_escapes_and_surrogate_pairs() -> None:
    assert values(r'"\u00e9\n\ud83d\ude00"') == ["é\n😀"]


def test_unpaired_surrogate_is_replaced_as_in_go() -> None:
    assert values(r'["\ud83d", "\ude00x", "a\ud83d\u0041"]') == [["\ufffd", "\ufffdx", "a\ufffdA"]]


@pytest.mark.parametrize("text", ["[" * 10_000, '{"a":' * 10_000, "[" * 10_000 + "]" * 10_000])
def test_maximum_depth(text: str) -> None:
    assert error(text).limit == "apflint"
    assert str(MAX_DEPTH) in str(error(text))


def test_number_of_a_million_digits() -> None:
    assert "digits" in str(error('{"a": ' + "9" * 1_000_000 + "}"))


def test_number_beyond_floats_is_not_finite() -> None:
    (document,) = parse_documents('{"a": 1e999}')
    assert document.root is not None
    assert decode(document.root).not_finite == (("a",),)


def test_places_and_styles_of_all_kinds_of_values() -> None:
    texts = ["true", "null", "-1.5e3", '"x"', "[]", "{}", '[ 1 ,"y" ]', '{ "k" : false }']
    text = f" [{', '.join(texts)}]"
    root = parse_tree(text, 1, len(text))
    assert isinstance(root, Sequence)
    assert [text[item.start : item.end] for item in root.items] == texts
    assert (root.start, root.end, root.flow) == (1, len(text), True)
    *_, first, second, items, pairs = root.items
    assert isinstance(first, Sequence)
    assert isinstance(items, Sequence)
    assert isinstance(second, Mapping)
    assert isinstance(pairs, Mapping)
    assert all(node.flow for node in (first, second, items, pairs))
    ((key, value),) = pairs.pairs
    assert [text[node.start : node.end] for node in (key, value, *items.items)] == ['"k"', "false", "1", '"y"']


@pytest.mark.parametrize(
    ("text", "values"), [("1", 1), ("[1, 2]", 3), ('{"a": 1}', 3), ('{"a": [1, {"b": 2}]}', 7), ("[[], {}]", 3)]
)
def test_number_of_values_is_bounded(text: str, values: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The maximum number of values in a document includes the keys."""
    monkeypatch.setattr("apflint.load.json.MAX_VALUES", values)
    assert parse_tree(text, 0, len(text)) is not None
    monkeypatch.setattr("apflint.load.json.MAX_VALUES", values - 1)
    with pytest.raises(ParseError, match=f"more than {values - 1} values in one document"):
        parse_tree(text, 0, len(text))


def test_length_of_a_document_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apflint.load.json.MAX_DOCUMENT_CHARACTERS", 8)
    assert parse_tree("  [1, 2]  ", 2, 10) is not None
    with pytest.raises(ParseError, match="more than 8 characters in one document") as caught:
        parse_tree("  [1, 2]   ", 2, 11)
    assert (caught.value.start, caught.value.limit) == (2, "apflint")
