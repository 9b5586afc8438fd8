"""Decodes YAML scalars as Kubernetes does.

kube-apiserver and kubectl read YAML with go-yaml v2 (`sigs.k8s.io/yaml/goyaml.v2`, `resolve.go`). go-yaml follows YAML 1.1,
with two differences: the letters y and n are booleans, and sexagesimal numbers and dates are strings. The result is converted
to JSON, in which a float with an integral value is an integer.
"""

from __future__ import annotations

import re
from math import isfinite, isinf
from typing import Any

_TAG = "tag:yaml.org,2002:"
_BOOL, _FLOAT, _INT, _NULL, _STR, _BINARY, _TIMESTAMP = (
    _TAG + name for name in ("bool", "float", "int", "null", "str", "binary", "timestamp")
)
_RESOLVED_TAGS = frozenset({_BOOL, _FLOAT, _INT, _NULL, _TIMESTAMP})

_WORDS: dict[str, tuple[str, Any]] = {
    **dict.fromkeys(["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], (_BOOL, True)),
    **dict.fromkeys(["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], (_BOOL, False)),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (_NULL, None)),
    **{word: (_FLOAT, float("nan")) for word in (".nan", ".NaN", ".NAN")},
    **{word: (_FLOAT, float("inf")) for word in (".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF")},
    **{word: (_FLOAT, float("-inf")) for word in ("-.inf", "-.Inf", "-.INF")},
}
_NON_STRING_STARTS = frozenset("yYnNtTfFoO~.+-0123456789")
"""First characters that a plain scalar of another type than string can have."""

# Integers that Go's strconv.ParseInt and ParseUint accept with base 0, after go-yaml removes the underscores.
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]+|0|[1-9][0-9]*)\Z")
_FLOATING = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_DOT_FLOATING = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?\Z")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:[Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]*)?(?:Z|[-+][0-9]{2}:[0-9]{2})"
    r"| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]*)?)?\Z"
)
_MAX_SHOWN_CHARACTERS = 60
_FIRST_WITH_EXPONENT = 1e21  # from this number on, Go writes floats in JSON with an exponent (1e+21), not as integers


class ScalarError(Exception):
    """Raised if the tag of a scalar does not fit its text.

    For such a scalar, go-yaml fails, and the API server answers 400.
    """


def resolve_plain(text: str) -> object:
    """Return the value of a scalar without quotes and tag: str, bool, int, float or None."""
    if text and text[0] not in _NON_STRING_STARTS:
        return text
    return _to_json(_resolve(text)[1])


def resolve_key(text: str) -> object:
    """Return the value of a key without quotes, as go-yaml compares it with other keys.

    The keys `1` and `1.0` differ, although both become the JSON key "1".
    """
    if text and text[0] not in _NON_STRING_STARTS:
        return text
    return _resolve(text)[1]


def resolve_tagged(tag: str, text: str) -> object:
    """Return the value of a scalar with a tag. For an unknown tag, the value is a string.

    Raises ScalarError if the tag does not fit the scalar.
    """
    if tag == _BINARY:
        return _decode_base64(text)
    if tag not in _RESOLVED_TAGS:
        return text
    if tag == _TIMESTAMP:
        if not _TIME.match(text):
            raise ScalarError(f"`{shorten(text)}` has the tag !!timestamp, but is not a timestamp")
        return text
    actual, value = _resolve(text)
    if tag == _FLOAT and actual == _INT and value < 2**63:
        return _to_json(float(value))
    if actual != tag:
        name, actual_name = tag.removeprefix(_TAG), actual.removeprefix(_TAG)
        raise ScalarError(f"`{shorten(text)}` has the tag !!{name}, but YAML parses it as !!{actual_name}")
    return _to_json(value)


def json_key(value: object) -> str | None:
    """Return the JSON key of a decoded YAML key ("true" for `yes`), or None if Kubernetes rejects the key."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -(2**63) <= value < 2**63 else None
    return _float_key(value) if isinstance(value, float) else None


def shorten(text: str) -> str:
    """Return text from a manifest for a message, shortened to at most 60 characters."""
    return text if len(text) <= _MAX_SHOWN_CHARACTERS else text[: _MAX_SHOWN_CHARACTERS - 1] + "…"


def _resolve(text: str) -> tuple[str, Any]:
    """Return the tag and the value of a plain scalar."""
    word = _WORDS.get(text)
    if word is not None:
        return word
    first = text[:1]
    if first in "123456789" and len(text) < 19 and text.isascii() and text.isdigit():  # a shortcut for most numbers
        return _INT, int(text)
    if first not in ".+-0123456789" or _TIME.match(text):
        return _STR, text
    digits = text.replace("_", "")
    if first == ".":
        return _resolve_float(text, digits) if _DOT_FLOATING.match(text) else (_STR, text)
    if _INTEGER.match(digits):
        value = _parse_integer(digits)
        if -(2**63) <= value < 2**64:
            return _INT, value
    return _resolve_float(text, digits) if _FLOATING.match(digits) else (_STR, text)


def _resolve_float(text: str, digits: str) -> tuple[str, Any]:
    """Return the tag and the value of a number. A number beyond the range of floats is a string, as in go-yaml."""
    number = float(digits)
    return (_STR, text) if isinf(number) else (_FLOAT, number)


def _parse_integer(digits: str) -> int:
    body = digits.lstrip("+-")
    if body[0] == "0" and body.isdigit():
        return int(digits, 8)
    # go-yaml reads integers of more than 64 bits as floats. Return 2**64 for every long integer, because the time that
    # Python takes to parse an integer grows with the square of the number of digits.
    return int(digits, 0) if len(body) < 32 or body[0] == "0" else 2**64


def _to_json(value: Any) -> Any:
    """Convert a value as JSON does: a float with an integral value becomes an integer (`1e2` becomes 100)."""
    if isinstance(value, float) and abs(value) < _FIRST_WITH_EXPONENT and value.is_integer():
        return int(value)
    return value


def _float_key(value: float) -> str:
    """Format a float key like `convertToJSONableObject` of sigs.k8s.io/yaml, but without rounding to 32 bits."""
    if not isfinite(value):
        return ".nan" if value != value else f"{'-' if value < 0 else ''}.inf"  # noqa: PLR0124  # NaN
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _decode_base64(text: str) -> str:
    import base64  # imported on demand: binary values are rare
    import binascii

    try:
        data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ScalarError("the value with the tag !!binary is not valid base64") from error
    return data.decode("utf-8", "replace")
