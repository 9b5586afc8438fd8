"""Files of apflint's own formats: each method of `Fields` reads valid values, and reports invalid values with their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from apflint.load.apflint_files import Fields, read_fields

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.load.apflint_files import FieldsFile


def read(data: bytes, name: str = "a.yaml") -> FieldsFile:
    return read_fields(name, data, "suite", "`tests`", "use one file for each suite")


def fields_of(text: str) -> Fields:
    found = read(text.encode()).fields
    assert found is not None
    return found


@pytest.mark.parametrize(("data", "message", "place"), [
    (b"", "the file is empty: a suite has `tests`", (1, 1, 1)),
    (b"# nothing\n---\n", "the file is empty: a suite has `tests`", (1, 1, 1)),
    (b"a\n", "a suite is a mapping with `tests`", (1, 1, 2)),
    (b"- a\n", "a suite is a mapping with `tests`", (1, 1, 4)),
    (b"a: 1\n---\nb: 2\n", "a suite has only one document: use one file for each suite", (2, 1, 2)),
    (b"a: 1\n---\nb: [\n", "missing value", (4, 1, 1)),
    (b"a: *b\n", "the alias `*b` has no anchor `&b` before it", (1, 4, 6)),
    (b"~: 1\n", "a key must be a string, number or boolean in Kubernetes", (1, 1, 2)),
    ("ä: \xff".encode("latin-1"), "this is not a text file in UTF-8", (1, 1, 2)),
    (b"\xff\xfea\x00\x00\xd8", "this is not a text file in UTF-8", (1, 2, 3)),
])  # fmt: skip
def test_file_that_is_not_a_mapping(data: bytes, message: str, place: tuple[int, int, int]) -> None:
    found = read(data)
    assert found.fields is None
    (mistake,) = found.find_mistakes()
    assert mistake.message.startswith(message)
    assert not mistake.message.endswith(".")
    assert (mistake.span.line, mistake.span.column, mistake.span.end_column) == place


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.yaml", b"\xef\xbb\xbfa: {b: 1}\n"),
        ("a.yaml", "a: {b: 1}\n".encode("utf-16")),
        ("a.yaml", b"\xfe\xff" + "a: {b: 1}\n".encode("utf-16-be")),
        ("a.json", b'{"a": {"b": 1}}'),
        ("a.yaml", b"---\n---\na: {b: 1}\n---\n"),
    ],
)
def test_encodings_and_languages(name: str, data: bytes) -> None:
    found = read(data, name)
    assert found.fields is not None
    assert found.find_mistakes() == ()
    assert found.fields.value(("a", "b")) == 1


def test_json_is_not_read_as_yaml() -> None:
    assert read(b"a: 1\n", "a.json").fields is None


def test_keys_that_are_set_twice_and_order_of_mistakes() -> None:
    found = read(b"a: x\nb: 1\nb: 2\n")
    assert found.fields is not None
    found.fields.reject(("a",), "late")
    assert [(item.message, item.span.line) for item in found.find_mistakes()] == [
        ("late", 1),
        ('key "b" is set twice', 3),
    ]


def describe(fields: Fields) -> list[tuple[str, int, int]]:
    return [(item.message, item.span.column, item.span.end_column) for item in fields.mistakes]


@pytest.mark.parametrize(("read_value", "text", "value", "mistake"), [
    (Fields.string, "v: a", "a", ""),
    (Fields.string, "w: a", "", ""),
    (Fields.string, "v: ''", "", "expected a string, not an empty string"),
    (Fields.string, "v: 1", "", 'YAML parses 1 as the number 1: quote it, "1"'),
    (Fields.string, "v: 1.50", "", 'YAML parses 1.50 as the number 1.5: quote it, "1.50"'),
    (Fields.string, "v: yes", "", 'YAML parses yes as a boolean: quote it, "yes"'),
    (Fields.string, "v: ~", "", "expected a string, not null"),
    (Fields.string, "v: [a]", "", "expected a string, not a list"),
    (Fields.string, "v: {a: b}", "", "expected a string, not a mapping"),
    (lambda fields, path: fields.string(path, may_be_empty=True), "v: ''", "", ""),
    (Fields.strings, "v: a", {("v",): "a"}, ""),
    (Fields.strings, "v: [a, b]", {("v", 0): "a", ("v", 1): "b"}, ""),
    (Fields.strings, "w: a", {}, ""),
    (Fields.strings, "v: []", {}, "the list is empty: remove it, or add an item"),
    (Fields.strings, "v: ['']", {}, "expected a string, not an empty string"),
    (lambda fields, path: fields.strings(path, may_be_empty=True), "v: ['']", {("v", 0): ""}, ""),
    (lambda fields, path: fields.choice(path, ("red", "green")), "v: red", "red", ""),
    (lambda fields, path: fields.choice(path, ("red", "green")), "w: red", "", ""),
    (
        lambda fields, path: fields.choice(path, ("red", "green")), "v: gren", "gren",
        '"gren" is not one of red, green. Did you mean "green"?',
    ),
    (lambda fields, path: fields.choice(path, ("red", "green")), "v: xyz", "xyz", '"xyz" is not one of red, green'),
    (Fields.integer, "v: 1", 1, ""),
    (Fields.integer, f"v: {2**31 - 1}", 2**31 - 1, ""),
    (Fields.integer, "w: 1", None, ""),
    (Fields.integer, "v: 0", None, "expected an integer of at least 1, not the number 0"),
    (Fields.integer, f"v: {2**31}", None, "expected an integer of at least 1, not the number 2147483648"),
    (Fields.integer, "v: 1.5", None, "expected an integer of at least 1, not the number 1.5"),
    (Fields.integer, "v: true", None, "expected an integer of at least 1, not a boolean"),
    (Fields.integer, "v: a", None, "expected an integer of at least 1, not a string"),
    (Fields.integer, "v: ~", None, "expected an integer of at least 1, not null"),
    (Fields.boolean, "v: true", True, ""),
    (Fields.boolean, "v: false", False, ""),
    (Fields.boolean, "w: true", None, ""),
    (Fields.boolean, "v: 1", None, "expected true or false, not the number 1"),
    (Fields.boolean, "v: ~", None, "expected true or false, not null"),
    (lambda fields, path: fields.check_keys(path, ("a", "b")), "v: {a: 1}", True, ""),
    (lambda fields, path: fields.check_keys(path, ("a", "b")), "v: 1", False, "expected a mapping with `a` or `b`, not the number 1"),
    (Fields.items, "v: [x, y]", [("v", 0), ("v", 1)], ""),
    (Fields.items, "v: x", [("v",)], ""),
    (Fields.items, "v: ~", [("v",)], ""),
    (Fields.items, "w: x", [], ""),
])  # fmt: skip
def test_value_and_mistake(
    read_value: Callable[[Fields, tuple[str]], object], text: str, value: object, mistake: str
) -> None:
    fields = fields_of(text)
    found = read_value(fields, ("v",))
    assert (found, type(found)) == (value, type(value))
    start = 5 if mistake and "['" in text else 4
    assert describe(fields) == ([(mistake, start, len(text) + 1 - (start - 4))] if mistake else [])


@pytest.mark.parametrize(("key", "hints", "advice"), [
    ("rats", None, 'Did you mean "rate"?'),
    ("xyz", None, "Keys here are rate, think"),
    ("rats", {"rats": "A rat is an animal"}, "A rat is an animal"),
])  # fmt: skip
def test_unknown_key(key: str, hints: dict[str, str] | None, advice: str) -> None:
    fields = fields_of(f"v: {{rate: 1, {key}: 2}}")
    assert fields.check_keys(("v",), ("rate", "think"), hints)
    assert describe(fields) == [(f'unknown key "{key}". {advice}', 14, 14 + len(key))]
