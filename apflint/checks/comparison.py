"""In which fields two specs differ, in Kubernetes' spelling, with the value that is right."""

from __future__ import annotations

from typing import Any

from apflint.model import shares_field
from apflint.wording import listed, quote

_SPELLING = {
    "priority_level_configuration": "priorityLevelConfiguration.name",
    "distinguisher_method": "distinguisherMethod.type",
    "non_resource_urls": "nonResourceURLs",
}


def differences(mine: object, fixed: object, version: str) -> str:
    """The fields of two typed values of the same kind that differ: `matchingPrecedence (10000 there, 5 here) and rules`."""
    return listed(_paths(mine, fixed, "", version), "and")


def _paths(mine: Any, fixed: Any, path: str, version: str) -> list[str]:
    if mine == fixed:
        return []
    fields = getattr(mine, "_fields", None)
    if fields is None or type(mine) is not type(fixed):
        plain = (str, int, type(None))
        shown = isinstance(mine, plain) and isinstance(fixed, plain)
        return [f"{path} ({_said(fixed)} there, {_said(mine)} here)" if shown else path]
    found: list[str] = []
    for name in fields:
        inner = f"{path}.{_spelled(name, version)}" if path else _spelled(name, version)
        found += _paths(getattr(mine, name), getattr(fixed, name), inner, version)
    return found


def _said(value: str | int | None) -> str:
    return "nothing" if value is None else quote(value)


def _spelled(name: str, version: str) -> str:
    if name == "shares":
        return shares_field(version)
    first, *rest = name.split("_")
    return _SPELLING.get(name) or first + "".join(word.capitalize() for word in rest)
