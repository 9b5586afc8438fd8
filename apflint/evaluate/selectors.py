"""Field and label selectors, as far as they determine the name of a request.

A list whose field selector requires a name has that name, if the server can decode all selectors. Sources:
`fields.ParseSelector` in staging/src/k8s.io/apimachinery/pkg/fields/selector.go, `labels.Parse` in .../pkg/labels/selector.go.
"""

from __future__ import annotations

import re

_TERM = re.compile(r"(?:\\.|[^\\,])*(?:\\\Z)?", re.DOTALL)
_OPERATOR = re.compile(r"!=|==|=")
_VALUE = re.compile(r"(?:\\[\\,=]|[^\\,=])*", re.DOTALL)
_UNESCAPE = re.compile(r"\\(.)", re.DOTALL)

_TOKEN = re.compile(r"[ \t\r\n]*(==|!=|[=!(),<>]|[^ \t\r\n=!(),<>]+|\Z)")
_WORD = r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)"
_LABEL_VALUE = re.compile(rf"{_WORD}?", re.ASCII)
_LABEL_NAME = re.compile(_WORD, re.ASCII)
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*", re.ASCII)
_INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)
_SYMBOLS = frozenset(("==", "!=", "=", "!", "(", ")", ",", "<", ">"))


def exact_field_match(selector: str, field: str) -> str | None:
    """Return the value that a field selector requires of `field`, or None if it requires none or is malformed."""
    # The server sorts the terms by bytes, as Python sorts strings, and uses the first one that applies.
    value: str | None = None
    for term in sorted(_split_terms(selector)):
        if not term:
            continue
        operator = _OPERATOR.search(term)
        if operator is None or _VALUE.fullmatch(term, operator.end()) is None:
            return None
        if value is None and operator[0] != "!=" and term[: operator.start()] == field:
            value = _UNESCAPE.sub(r"\1", term[operator.end() :])
    return value


def is_label_selector(selector: str) -> bool:
    """Return whether the server can decode a label selector such as `app=web,tier in (a, b),!canary`."""
    return _parse_requirements(_TOKEN.findall(selector))


def _split_terms(selector: str) -> list[str]:
    """Return the terms of a field selector, split at unescaped commas."""
    terms, start = [], 0
    while True:
        match = _TERM.match(selector, start)
        end = match.end() if match else start
        terms.append(selector[start:end])
        if end >= len(selector):
            return terms
        start = end + 1


def _parse_requirements(tokens: list[str]) -> bool:
    """Return whether tokens are a label selector (`labels.Parse`). The last token is the empty end of the text."""
    at = 0
    if tokens[at] == "":
        return True
    while True:
        end = _parse_requirement(tokens, at)
        if end is None:
            return False
        if tokens[end] == "":
            return True
        if tokens[end] != ",":
            return False
        at = end + 1


def _parse_requirement(tokens: list[str], at: int) -> int | None:
    """Return the index of the token after a requirement, or None if there is no requirement."""
    negated = tokens[at] == "!"
    at += negated
    key = tokens[at]
    if key == "" or key in _SYMBOLS or not _is_label_key(key):
        return None
    operator = tokens[at + 1]
    if negated or operator in ("", ","):
        return at + 1
    if operator in ("in", "notin"):
        return _parse_value_set(tokens, at + 2)
    if operator not in ("=", "==", "!=", "<", ">"):
        return None
    value = tokens[at + 2]
    if value in ("", ","):
        # An empty value is valid, except as the bound of < and >.
        return None if operator in ("<", ">") else at + 2
    if value in _SYMBOLS or not _LABEL_VALUE.fullmatch(value):
        return None
    if operator in ("<", ">") and not _INTEGER.fullmatch(value):
        return None
    return at + 3


def _parse_value_set(tokens: list[str], at: int) -> int | None:
    """Return the index after `(a, b)`, or None if there is no such list or it is empty."""
    if tokens[at] != "(" or tokens[at + 1] == ")":
        return None
    at += 1
    expect_value = True
    while tokens[at] != ")":
        if tokens[at] == ",":
            expect_value = True
        elif tokens[at] in _SYMBOLS or tokens[at] == "" or not expect_value or not _LABEL_VALUE.fullmatch(tokens[at]):
            return None
        else:
            expect_value = False
        at += 1
    return at + 1


def _is_label_key(key: str) -> bool:
    prefix, slash, name = key.rpartition("/")
    if slash and not (len(prefix) <= 253 and _DNS_SUBDOMAIN.fullmatch(prefix)):
        return False
    return _LABEL_NAME.fullmatch(name) is not None
