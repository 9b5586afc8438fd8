"""Field and label selectors, as far as they determine the name of a request.

A list whose field selector requires a name has that name, if the server can decode all selectors. Sources:
`fields.ParseSelector` in staging/src/k8s.io/apimachinery/pkg/fields/selector.go, `labels.Parse` in .../pkg/labels/selector.go.
"""

from __future__ import annotations

import re

_TERM = re.compile(r"((?:\\.|[^\\,])*\\?)(?:,|\Z)", re.DOTALL)
"""A term of a field selector, up to an unescaped comma."""
_OPERATOR = re.compile(r"!=|==|=")
_VALUE = re.compile(r"(?:\\[\\,=]|[^\\,=])*", re.DOTALL)
_UNESCAPE = re.compile(r"\\(.)", re.DOTALL)

_TOKEN = re.compile(r"==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+")
_DNS_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_NAME = "[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_KEY = rf"(?:(?=[^/]{{1,253}}/){_DNS_LABEL}(?:\.{_DNS_LABEL})*/)?{_NAME}"
# An empty value is valid, except as the bound of < and >; so are empty items of a list, but not an empty list.
_VALUES = rf"\( (?!\))(?:(?:{_NAME} )?, )*(?:{_NAME} )?\)"
_REQUIREMENT = rf"(?:! {_KEY}|{_KEY}(?: (?:in|notin) {_VALUES}| (?:==?|!=)(?: {_NAME})?| [<>] [0-9]{{1,19}})?)"
_LABEL_SELECTOR = re.compile(rf"(?:{_REQUIREMENT}(?: , {_REQUIREMENT})*)?")
"""A label selector whose tokens are separated by single spaces."""


def exact_field_match(selector: str, field: str) -> str | None:
    """Return the value that a field selector requires of `field`, or None if it requires none or is malformed."""
    # The server sorts the terms by bytes, as Python sorts strings, and uses the first one that applies.
    value: str | None = None
    for term in sorted(filter(None, _TERM.findall(selector))):
        operator = _OPERATOR.search(term)
        if operator is None or _VALUE.fullmatch(term, operator.end()) is None:
            return None
        if value is None and operator[0] != "!=" and term[: operator.start()] == field:
            value = _UNESCAPE.sub(r"\1", term[operator.end() :])
    return value


def is_label_selector(selector: str) -> bool:
    """Return whether the server can decode a label selector such as `app=web,tier in (a, b),!canary`."""
    return _LABEL_SELECTOR.fullmatch(" ".join(_TOKEN.findall(selector))) is not None
