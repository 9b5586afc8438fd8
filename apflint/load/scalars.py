"""What a YAML scalar means to Kubernetes.

kube-apiserver and kubectl read YAML with go-yaml v2 (`sigs.k8s.io/yaml/goyaml.v2`, `resolve.go`): YAML 1.1 plus the single
letters y and n as booleans, less the sexagesimal numbers and dates, which stay strings. Then everything goes through
JSON, where a float that holds a whole number and an integer are the same.
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
# The first character tells whether a plain scalar can be anything but a string.
_WORD_STARTS = frozenset("yYnNtTfFoO~.+-0123456789")

# Go's strconv.ParseInt and ParseUint with base 0, underscores already gone.
_INTEGER = re.compile(r"[-+]?(?:0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO][0-7]+|0[0-7]+|0|[1-9][0-9]*)\Z")
_FLOATING = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z")
_DOT_FLOATING = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?\Z")
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}"
    r"(?:[Tt][0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]*)?(?:Z|[-+][0-9]{2}:[0-9]{2})"
    r"| [0-9]{1,2}:[0-9]{1,2}:[0-9]{1,2}(?:\.[0-9]*)?)?\Z"
)
_SHOWN = 60  # characters of a manifest that a message quotes
_LARGEST_EXACT = 1e21  # from here on Go writes a float as 1e+21, which no integer field reads


class ScalarError(ValueError):
    """A tag that its scalar does not fit: go-yaml stops there, so the API server answers 400."""


def plain(text: str) -> object:
    """The value of an untagged plain scalar: str, bool, int, float or None."""
    if text and text[0] not in _WORD_STARTS:
        return text
    return _json(_resolve(text)[1])


def key(text: str) -> object:
    """The same for a key, as go-yaml compares it with others: `1` and `1.0` are two keys, though both become "1"."""
    if text and text[0] not in _WORD_STARTS:
        return text
    return _resolve(text)[1]


def tagged(tag: str, text: str) -> object:
    """The value of a scalar with an explicit tag; a tag that YAML does not know leaves a string, and runs nothing.

    Raises ScalarError.
    """
    if tag == _BINARY:
        return _binary(text)
    if tag not in _RESOLVED_TAGS:
        return text
    if tag == _TIMESTAMP:
        if not _TIME.match(text):
            raise ScalarError(f"`{shown(text)}` is tagged as a timestamp and is none")
        return text
    found, value = _resolve(text)
    if tag == _FLOAT and found == _INT and value < 2**63:
        return _json(float(value))
    if found != tag:
        raise ScalarError(
            f"`{shown(text)}` is tagged !!{tag.removeprefix(_TAG)} and YAML reads !!{found.removeprefix(_TAG)}"
        )
    return _json(value)


def key_text(value: object) -> str | None:
    """The JSON key that a YAML key becomes (`yes: 1` has the key "true"); None where Kubernetes refuses the key."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if -(2**63) <= value < 2**63 else None
    return _float_key(value) if isinstance(value, float) else None


def shown(text: str) -> str:
    """Text of a manifest inside a message: its start, where it is long."""
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _resolve(text: str) -> tuple[str, Any]:
    word = _WORDS.get(text)
    if word is not None:
        return word
    first = text[:1]
    if first in "123456789" and len(text) < 19 and text.isascii() and text.isdigit():  # as nearly all numbers are
        return _INT, int(text)
    if first not in ".+-0123456789" or _TIME.match(text):
        return _STR, text
    digits = text.replace("_", "")
    if first == ".":
        return _floating(text, digits) if _DOT_FLOATING.match(text) else (_STR, text)
    if _INTEGER.match(digits):
        value = _integer(digits)
        if -(2**63) <= value < 2**64:
            return _INT, value
    return _floating(text, digits) if _FLOATING.match(digits) else (_STR, text)


def _floating(text: str, digits: str) -> tuple[str, Any]:
    """The number, or the text where it is beyond a float: there Go's ParseFloat fails."""
    number = float(digits)
    return (_STR, text) if isinf(number) else (_FLOAT, number)


def _integer(digits: str) -> int:
    sign = -1 if digits[0] == "-" else 1
    body = digits.lstrip("+-")
    prefix = body[:2].lower()
    if prefix in ("0x", "0b", "0o"):
        return sign * int(body[2:], {"0x": 16, "0b": 2, "0o": 8}[prefix])
    if len(body) > 1 and body[0] == "0":
        return sign * int(body, 8)
    # Longer than any 64-bit number: do not let Python spend time on it (go-yaml reads it as a float).
    return sign * (int(body) if len(body) < 32 else 2**64)


def _json(value: Any) -> Any:
    """After the way through JSON a float with a whole value is an integer (`1e2` is 100)."""
    if isinstance(value, float) and abs(value) < _LARGEST_EXACT and value.is_integer():
        return int(value)
    return value


def _float_key(value: float) -> str:
    """As sigs.k8s.io/yaml writes it (`convertToJSONableObject`), but for what a 32-bit float would lose."""
    if not isfinite(value):
        return ".nan" if value != value else f"{'-' if value < 0 else ''}.inf"  # noqa: PLR0124  # NaN
    short = f"{value:g}"
    return short if float(short) == value else repr(value)


def _binary(text: str) -> str:
    import base64  # hardly any manifest has one
    import binascii

    try:
        data = base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ScalarError("the value tagged !!binary is no base64") from error
    return data.decode("utf-8", "replace")
