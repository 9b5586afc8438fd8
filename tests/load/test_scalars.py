"""Values of plain and tagged scalars in go-yaml v2, as recorded on kube-apiserver 1.21 to 1.36."""

from __future__ import annotations

from math import isinf, isnan
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.load.scalars import ScalarError, json_key, resolve_key, resolve_plain, resolve_tagged, shorten

TAG = "tag:yaml.org,2002:"

BOOLEANS = {
    True: "y Y yes Yes YES true True TRUE on On ON",
    False: "n N no No NO false False FALSE off Off OFF",
}


@pytest.mark.parametrize(
    ("text", "value"), [(word, value) for value, words in BOOLEANS.items() for word in words.split()]
)
def test_yaml_1_1_booleans_and_the_single_letters(text: str, value: bool) -> None:
    assert resolve_plain(text) is value


@pytest.mark.parametrize("text", ["tRUE", "yES", "oN", "nO", "yeS", "t", "f", "True ", "enabled"])
def test_other_casings_are_strings(text: str) -> None:
    assert resolve_plain(text) == text


@pytest.mark.parametrize("text", ["", "~", "null", "Null", "NULL"])
def test_null(text: str) -> None:
    assert resolve_plain(text) is None


@pytest.mark.parametrize("text", ["nULL", "None", "nil", "~~"])
def test_strings_that_resemble_null(text: str) -> None:
    assert resolve_plain(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("5", 5),
        ("+5", 5),
        ("-0", 0),
        ("0", 0),
        ("5.0", 5),
        ("5.", 5),
        ("1e2", 100),
        ("1E2", 100),
        ("1.0e2", 100),
        ("0x10", 16),
        ("0X1f", 31),
        ("-0x10", -16),
        ("0b11", 3),
        ("0B11", 3),
        ("0o17", 15),
        ("017", 15),
        ("-017", -15),
        ("08", 8),
        ("1_0", 10),
        ("1__0_", 10),
        ("2147483648", 2147483648),
        ("2147483647.0", 2147483647),
        ("9223372036854775808", 2**63),
        ("18446744073709551615", 2**64 - 1),
    ],
)
def test_integers(text: str, value: int) -> None:
    found = resolve_plain(text)
    assert found == value
    assert type(found) is int


@pytest.mark.parametrize(
    ("text", "value"), [("5.5", 5.5), (".5", 0.5), ("1e-2", 0.01), ("-1.5", -1.5), ("+.5", 0.5), (".5_1", 0.51)]
)
def test_fractions(text: str, value: float) -> None:
    found = resolve_plain(text)
    assert found == value
    assert type(found) is float


def test_number_beyond_64_bits_is_a_float() -> None:
    assert resolve_plain("18446744073709551616") == 18446744073709551616
    assert resolve_plain("1" + "0" * 25) == 1e25
    assert type(resolve_plain("1" + "0" * 25)) is float


@pytest.mark.parametrize(
    "text",
    [
        "1:30",
        "190:20:30",
        "1k",
        "50%",
        "1,000",
        "0x",
        "0xg",
        "0b12",
        "0o8",
        "1e",
        "e5",
        ".",
        "..",
        "-",
        "+",
        "--5",
        "1.2.3",
        "5 5",
        "0x1.8p1",
        ".1__1",
        "1e999",
        ".1e999",
        "-1e999",
        "=",
        "<<",
        "\u0665",
        "5\n",
    ],
)
def test_strings_that_look_like_numbers(text: str) -> None:
    assert resolve_plain(text) == text


@pytest.mark.parametrize(
    "text",
    ["2001-01-01", "2001-1-1", "2001-12-14t21:59:43.10-05:00", "2001-12-14T21:59:43Z", "2001-12-14 21:59:43.10"],
)
def test_dates_stay_strings(text: str) -> None:
    assert resolve_plain(text) == text


def test_infinity_and_not_a_number() -> None:
    for text in (".inf", ".Inf", ".INF", "+.inf", "-.inf", "-.INF"):
        value: Any = resolve_plain(text)
        assert isinf(value)
    for text in (".nan", ".NaN", ".NAN"):
        value = resolve_plain(text)
        assert isnan(value)
    assert resolve_plain("inf") == "inf"
    assert resolve_plain("nan") == "nan"


@pytest.mark.parametrize(
    ("tag", "text", "value"),
    [
        ("str", "null", "null"),
        ("str", "5", "5"),
        ("int", "5", 5),
        ("float", "5", 5),
        ("float", "5.5", 5.5),
        ("bool", "yes", True),
        ("null", "~", None),
        ("null", "", None),
        ("binary", "YWJj", "abc"),
        ("binary", "Yf9i", "a\ufffdb"),
        ("binary", "YW\nJj", "abc"),
        ("timestamp", "2001-01-01", "2001-01-01"),
        ("map", "abc", "abc"),
        ("python/object/apply:os.system", "echo", "echo"),
    ],
)
def test_tags(tag: str, text: str, value: Any) -> None:
    found = resolve_tagged(TAG + tag, text)
    assert found == value
    assert type(found) is type(value)


def test_unknown_tag_is_ignored() -> None:
    assert resolve_tagged("!foo", "5") == "5"


@pytest.mark.parametrize(
    ("tag", "text"),
    [
        ("int", "abc"),
        ("int", "5.5"),
        ("int", ""),
        ("float", "abc"),
        ("float", "18446744073709551615"),
        ("bool", "1"),
        ("null", "abc"),
        ("timestamp", "yesterday"),
        ("binary", "not base64"),
        ("binary", "YWJ"),
    ],
)
def test_tag_that_does_not_fit(tag: str, text: str) -> None:
    with pytest.raises(ScalarError, match=f"the tag !!{tag}"):
        resolve_tagged(TAG + tag, text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("name", "name"),
        ("y", "true"),
        ("off", "false"),
        ("0x10", "16"),
        ("1.0", "1"),
        ("1.5", "1.5"),
        ("1e6", "1e+06"),
        (".inf", ".inf"),
        ("-.inf", "-.inf"),
        (".nan", ".nan"),
        ("~", None),
        ("18446744073709551615", None),
        ("9223372036854775807", "9223372036854775807"),
        ("9223372036854775808", None),
        ("-9223372036854775808", "-9223372036854775808"),
        ("2001-01-01", "2001-01-01"),
    ],
)
def test_json_key_of_a_yaml_key(text: str, expected: str | None) -> None:
    assert json_key(resolve_key(text)) == expected


def test_keys_are_compared_before_conversion_to_json() -> None:
    assert type(resolve_key("1.0")) is not type(resolve_key("1"))
    assert resolve_key("0x10") == resolve_key("16")
    assert resolve_key("yes") is resolve_key("true")


def test_long_text_is_shortened() -> None:
    assert shorten("x" * 60) == "x" * 60
    assert shorten("x" * 61) == "x" * 59 + "…"


@given(st.text())
def test_every_string_has_a_value(text: str) -> None:
    value = resolve_plain(text)
    assert value is None or isinstance(value, bool | int | float | str)
    if isinstance(value, str):
        assert value == text


@given(st.integers(-(2**63), 2**64 - 1))
def test_every_64_bit_integer_in_every_base(number: int) -> None:
    for text in (f"{number}", f"{number:#x}", f"{number:#o}", f"{number:#b}"):
        assert resolve_plain(text) == number


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_keeps_its_value(number: float) -> None:
    assert resolve_plain(repr(number)) == number
