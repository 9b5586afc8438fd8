"""Reduces a configuration to the smallest configuration that still shows a difference."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .configurations import Configuration

Path = tuple[str | int, ...]


def reduce(configuration: Configuration, holds: Callable[[Configuration], bool]) -> Configuration:
    """Remove objects and items of lists, one after the other, as long as `holds` is true for the remaining
    configuration."""
    changed = True
    while changed:
        changed = False
        for smaller in _smaller(configuration):
            if holds(smaller):
                configuration, changed = smaller, True
                break
    return configuration


def _smaller(configuration: Configuration) -> Iterator[Configuration]:
    for at in range(len(configuration.context)):
        yield configuration._replace(context=configuration.context[:at] + configuration.context[at + 1 :])
    for at in range(len(configuration.manifests)):
        rest = configuration.manifests[:at] + configuration.manifests[at + 1 :]
        yield configuration._replace(manifests=rest)
    for at, manifest in enumerate(configuration.manifests):
        for path in _lists(manifest["spec"], ()):
            smaller = copy.deepcopy(manifest)
            items = _at(smaller["spec"], path[:-1])
            del items[path[-1]]
            rest = (*configuration.manifests[:at], smaller, *configuration.manifests[at + 1 :])
            yield configuration._replace(manifests=rest)


def _lists(value: Any, path: Path) -> Iterator[Path]:
    """Return the paths of removable items: items of lists with several items, and optional lists of rules."""
    if isinstance(value, dict):
        if value.get("resourceRules") and value.get("nonResourceRules"):
            yield from ((*path, member) for member in ("resourceRules", "nonResourceRules"))
        for key, inner in value.items():
            yield from _lists(inner, (*path, key))
    elif isinstance(value, list):
        if len(value) > 1:
            yield from ((*path, at) for at in range(len(value)))
        for at, inner in enumerate(value):
            yield from _lists(inner, (*path, at))


def _at(value: Any, path: Path) -> Any:
    for step in path:
        value = value[step]
    return value


def as_yaml(configuration: Configuration, *comments: str) -> str:
    """Return the manifests as a YAML file with comments at the top. The manifests of the context come first."""
    world = " --complete" if configuration.complete else ""
    head = [f"apflint check --kubernetes {configuration.kubernetes}{world}", *comments]
    if configuration.context:
        head.append(f"the first {len(configuration.context)} are --context")
    lines = (line for comment in head for line in comment.splitlines())
    # Copy the manifests, so that PyYAML finds no shared objects and writes no anchors.
    manifests = json.loads(json.dumps(configuration.objects))
    text = yaml.safe_dump_all(manifests, sort_keys=False, default_flow_style=None, width=140)
    return "".join(f"# {line}\n" for line in lines) + text
