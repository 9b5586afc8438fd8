"""Validation of strings as in Kubernetes: names, label values and timestamps.

The rules for names follow `k8s.io/apimachinery/pkg/util/validation`. Lengths are in bytes of UTF-8, as in Go.
"""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(rf"{_LABEL}\Z")
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\Z")
_QUALIFIED_NAME = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_LABEL_VALUE = re.compile(r"(?:(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")
_ALLOWED_CHARACTERS = "must consist of letters, digits, `-`, `_` and `.`, and start and end with a letter or digit"


def check_dns_label(text: str) -> str | None:
    """Return why `text` is not a valid DNS label, or None if it is valid. Names of namespaces are DNS labels. Source: `IsDNS1123Label`."""
    if too_long := _check_length(text, 63):
        return f"it {too_long}"
    if not _DNS_LABEL.match(text):
        return "it must consist of lower-case letters, digits and `-`, and start and end with a letter or digit"
    return None


def check_dns_subdomain(text: str) -> str | None:
    """Return why `text` is not a valid DNS subdomain, or None if it is valid. Names of most objects are DNS subdomains. Source: `IsDNS1123Subdomain`."""
    wrong = _check_subdomain(text)
    return f"it {wrong}" if wrong else None


def check_qualified_name(text: str) -> str | None:
    """Return why `text` is not a valid key of a label or annotation, or None if it is valid.

    Valid keys have the form `name` or `prefix/name`.

    Source: `IsQualifiedName`.
    """
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return "it has more than one `/`"
    if slash and not prefix:
        return "the part before the `/` is empty"
    if prefix and (wrong := _check_subdomain(prefix)):
        return f"the part before the `/` {wrong}"
    if not name:
        return "the name is empty"
    if too_long := _check_length(name, 63):
        return f"the name {too_long}"
    return None if _QUALIFIED_NAME.match(name) else f"the name {_ALLOWED_CHARACTERS}"


def check_label_value(text: str) -> str | None:
    """Return why `text` is not a valid label value, or None if it is valid. Source: `IsValidLabelValue`."""
    if too_long := _check_length(text, 63):
        return f"it {too_long}"
    return None if _LABEL_VALUE.match(text) else f"it {_ALLOWED_CHARACTERS}"


def _check_subdomain(text: str) -> str | None:
    if too_long := _check_length(text, 253):
        return too_long
    if not _DNS_SUBDOMAIN.match(text):
        return (
            "must consist of lower-case letters, digits, `-` and `.`, and each part between dots must start and end with a"
            " letter or digit"
        )
    return None


def _check_length(text: str, maximum: int) -> str | None:
    length = len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))
    return f"has {length} characters, but at most {maximum} are allowed" if length > maximum else None


# metav1.Time decodes with Go's time.Parse(time.RFC3339, ...). Unlike RFC 3339, Go accepts an hour of one digit and a comma
# before the fraction. Go rejects lower-case t and z, and second 60.
# Source: parse in Go's src/time/format.go (the comma: since Go 1.17, Kubernetes 1.23).
_TIMESTAMP = (
    r"(\d{4})-(\d\d)-(\d\d)T(?:[01]?\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d+)?(?:Z|[+-](?:[01]\d|2[0-4]):(?:[0-5]\d|60))"
)
_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_timestamp(text: str) -> bool:
    """Return whether kube-apiserver decodes `text` as a `metav1.Time`, such as `2026-11-21T10:00:00.5+01:00`."""
    match = re.fullmatch(_TIMESTAMP, text, re.ASCII)
    if not match:
        return False
    year, month, day = map(int, match.groups())
    if not 1 <= month <= 12:
        return False
    leap_day = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    return 1 <= day <= _DAYS[month - 1] + leap_day
