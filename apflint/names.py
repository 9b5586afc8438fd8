"""The names that Kubernetes allows: `k8s.io/apimachinery/pkg/util/validation`. Lengths are in bytes of UTF-8, as in Go."""

from __future__ import annotations

import re

_LABEL = r"[a-z0-9](?:[-a-z0-9]*[a-z0-9])?"
_DNS_LABEL = re.compile(rf"{_LABEL}\Z")
_DNS_SUBDOMAIN = re.compile(rf"{_LABEL}(?:\.{_LABEL})*\Z")
_QUALIFIED = re.compile(r"(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z")
_LABEL_VALUE = re.compile(r"(?:(?:[A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?\Z")


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def dns_label(text: str) -> str | None:
    """What keeps `text` from being a DNS label (a namespace), in words; None if nothing does. `IsDNS1123Label`."""
    if _bytes(text) > 63:
        return f"it has {_bytes(text)} characters, and 63 are the most"
    if not _DNS_LABEL.match(text):
        return "only lower-case letters, digits and `-` are allowed, with a letter or digit first and last"
    return None


def dns_subdomain(text: str) -> str | None:
    """The same for a DNS subdomain (most object names). `IsDNS1123Subdomain`."""
    if _bytes(text) > 253:
        return f"it has {_bytes(text)} characters, and 253 are the most"
    if not _DNS_SUBDOMAIN.match(text):
        return (
            "only lower-case letters, digits, `-` and `.` are allowed, with a letter or digit first and last"
            " and on both sides of each `.`"
        )
    return None


def qualified_name(text: str) -> str | None:
    """The same for the key of a label or annotation: `name` or `prefix/name`. `IsQualifiedName`."""
    prefix, slash, name = text.rpartition("/")
    if "/" in prefix:
        return "it has more than one `/`"
    if slash and not prefix:
        return "there is nothing before the `/`"
    if prefix and (wrong := dns_subdomain(prefix)):
        return f"in the part before the `/` {wrong}"
    if not name:
        return "the name is empty"
    if _bytes(name) > 63:
        return f"the name has {_bytes(name)} characters, and 63 are the most"
    if not _QUALIFIED.match(name):
        return "only letters, digits, `-`, `_` and `.` are allowed, with a letter or digit first and last"
    return None


def label_value(text: str) -> str | None:
    """The same for the value of a label. `IsValidLabelValue`."""
    if _bytes(text) > 63:
        return f"it has {_bytes(text)} characters, and 63 are the most"
    if not _LABEL_VALUE.match(text):
        return "only letters, digits, `-`, `_` and `.` are allowed, with a letter or digit first and last"
    return None
