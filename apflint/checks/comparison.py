"""In which fields two specs differ, in Kubernetes' spelling."""

from __future__ import annotations

from typing import Any

from apflint.checks.wording import listed

_SPELLING = {
    "priority_level_configuration": "priorityLevelConfiguration.name",
    "distinguisher_method": "distinguisherMethod",
    "non_resource_urls": "nonResourceURLs",
    "shares": "shares",
}


def differences(mine: Any, fixed: Any) -> str:
    """The fields of two typed values of the same kind that differ: `matchingPrecedence and rules`."""
    return listed(_paths(mine, fixed, ""), "and")


def _paths(mine: Any, fixed: Any, path: str) -> list[str]:
    if mine == fixed:
        return []
    fields = getattr(mine, "_fields", None)
    if fields is None or type(mine) is not type(fixed):
        return [path or "spec"]
    found: list[str] = []
    for name in fields:
        inner = f"{path}.{_spelled(name)}" if path else _spelled(name)
        found += _paths(getattr(mine, name), getattr(fixed, name), inner)
    return found


def _spelled(name: str) -> str:
    first, *rest = name.split("_")
    return _SPELLING.get(name) or first + "".join(word.capitalize() for word in rest)
