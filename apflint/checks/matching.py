"""APF504, APF506: entries of rules that no request can match."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.evaluate import resources
from apflint.finding import Problem
from apflint.fixes import suggestions
from apflint.location import Place
from apflint.wording import listed, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.evaluate.resources import Resource
    from apflint.fix import Fix
    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import ResourcePolicyRule

_VERSION = r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?"
COLLECTION_VERBS = frozenset({"list", "watch", "deletecollection"})
"""Verbs that can be asked over all namespaces at once."""
# Non-resource requests have the HTTP method in lower case as their verb, and there are no methods LIST, CREATE, ...
_METHOD_VERBS = frozenset({"get", "delete", "patch", "*"})


def _resource_rules(effective: Effective) -> Iterator[tuple[Document, Path, ResourcePolicyRule]]:
    for schema in effective.own_flow_schemas:
        for i, rule in enumerate(schema.spec.rules):
            for j, part in enumerate(rule.resource_rules):
                yield schema.document, ("spec", "rules", i, "resourceRules", j), part


def impossible_match(effective: Effective) -> Iterator[Problem]:
    """APF504."""
    for document, path, rule in _resource_rules(effective):
        groups, named = frozenset(rule.api_groups), frozenset(rule.resources)
        if "*" not in groups:
            for number, group in enumerate(rule.api_groups):
                if message := _impossible_group(group):
                    at = (*path, "apiGroups", number)
                    yield Problem(Place(document, at), message, fix=_item_fix(at, group, _meant_group(group), groups))
        if "*" not in named:
            for number, name in enumerate(rule.resources):
                if message := _impossible_resource(name, groups):
                    at = (*path, "resources", number)
                    yield Problem(
                        Place(document, at), message, fix=_item_fix(at, name, _meant_resource(name, groups), named)
                    )
    yield from _impossible_methods(effective)


def _item_fix(path: Path, old: str, new: str | None, there: frozenset[str]) -> Fix | None:
    return None if new is None else suggestions.replace_item(path, old, new, there, safe=False)


def _impossible_methods(effective: Effective) -> Iterator[Problem]:
    for schema in effective.own_flow_schemas:
        for i, rule in enumerate(schema.spec.rules):
            for j, part in enumerate(rule.non_resource_rules):
                there = frozenset(part.verbs)
                if "*" in there:
                    continue
                for number, verb in enumerate(part.verbs):
                    if verb not in _METHOD_VERBS:
                        message = (
                            f"{quote(verb)} never matches here: outside of resources the verb is the HTTP method in lower"
                            " case, so that only get, delete and patch can be named. For HEAD, POST, PUT and all others"
                            " write ['*']"
                        )
                        at = ("spec", "rules", i, "nonResourceRules", j, "verbs", number)
                        # Reading a path once or for long is GET all the same, and that is there.
                        fix = None
                        if verb in ("list", "watch") and "get" in there:
                            fix = suggestions.remove_items(at[:-1], part.verbs, [number], 'beside "get"', safe=False)
                        yield Problem(Place(schema.document, at), message, fix=fix)


def _impossible_group(group: str) -> str | None:
    if group in ("core", "v1"):
        return f'{quote(group)} is no API group: the core group is "". Groups are compared as they are'
    if "/" in group:
        name = group.partition("/")[0]
        return f"{quote(group)} is no API group: a group has no version. Write {quote(name)}"
    if "*" in group:
        return f"{quote(group)} never matches: there are no patterns. Name each group, or write ['*'] for all"
    if group != group.lower() or " " in group:
        return f"{quote(group)} never matches: API groups are in lower case, and compared as they are"
    return None


def _meant_group(group: str) -> str | None:
    """The group that one which never matches was meant to be."""
    if group in ("core", "v1"):
        return ""
    if "*" in group or " " in group:
        return None
    name, slash, version = group.partition("/")
    if slash and (name in ("", "core") or not re.fullmatch(_VERSION, version)):
        return None
    return name.lower()


def _impossible_resource(name: str, groups: frozenset[str]) -> str | None:
    resource, slash, subresource = name.partition("/")
    if subresource == "*":
        known = resources.find_resources(resource)
        subresources = sorted({f"{resource}/{sub}" for found in known for sub in found.subresources})
        hint = f" Name them: {listed(subresources, 'and')}" if subresources else " Name each subresource"
        return f"{quote(name)} matches nothing: `*` stands for all resources only alone.{hint}"
    if resource == "*" and slash:
        return f"{quote(name)} matches nothing: `*` stands for all resources only alone. Name each, as in deployments/{subresource}"
    known = resources.find_resources(resource)
    if any(found.name == resource and found.group in groups for found in known):
        return None
    if resource != resource.lower():
        plural = _plural(resource)
        hint = f" Did you mean {quote(plural)}?" if plural else ""
        return f"{quote(name)} never matches: resources are named in the plural and in lower case, as in URLs.{hint}".rstrip(
            "."
        )
    if known and all(found.name != resource for found in known) and ("*" in groups or _in_groups(known, groups)):
        return f"{quote(name)} never matches: the resource is called {quote(known[0].name)}, as in URLs"
    return None


def _meant_resource(name: str, groups: frozenset[str]) -> str | None:
    """The resource that one which never matches was meant to be, where Kubernetes itself serves it in the rule's groups."""
    resource, slash, subresource = name.partition("/")
    if "*" in name:
        return None
    plurals = {found.name for found in resources.find_resources(resource) if "*" in groups or found.group in groups}
    return f"{plurals.pop()}{slash}{subresource.lower()}" if len(plurals) == 1 else None


def _plural(name: str) -> str | None:
    found = resources.find_resources(name) or resources.find_resources(name.lower())
    return found[0].name if found else None


def _in_groups(known: tuple[Resource, ...], groups: frozenset[str]) -> bool:
    return any(found.group in groups for found in known)


def _cluster_scope(document: Document, path: Path) -> Fix:
    return suggestions.set_field(document, (*path, "clusterScope"), True, "write clusterScope: true", safe=False)


def known_resources(rule: ResourcePolicyRule) -> list[Resource] | None:
    """The resources that a rule names, where Kubernetes itself serves each of them; None where one is unknown or `*`."""
    found: list[Resource] = []
    groups = frozenset(rule.api_groups)
    for name in rule.resources:
        resource = name.partition("/")[0]
        matches = [
            one
            for one in resources.find_resources(resource)
            if one.name == resource and ("*" in groups or one.group in groups)
        ]
        if not matches:
            return None
        found += matches
    return found


def namespaced_rule_for_cluster_resource(effective: Effective) -> Iterator[Problem]:
    """APF506."""
    for document, path, rule in _resource_rules(effective):
        known = known_resources(rule)
        if not known:
            continue
        # A request for one namespace is in that namespace for the server, so `namespaces` may go with it.
        cluster = [found for found in known if not found.namespaced and not is_namespaces(found)]
        if len(cluster) == len(known) and rule.namespaces and not rule.cluster_scope:
            said = listed(map(quote, rule.resources), "and")
            message = (
                f"{said}: requests for them are in no namespace, so this rule never matches. Write `clusterScope: true`"
            )
            yield Problem(Place(document, (*path, "namespaces")), message, fix=_cluster_scope(document, path))
        creates = "create" in rule.verbs  # of a namespace: it is in none yet
        namespaced = all(found.namespaced or (is_namespaces(found) and not creates) for found in known)
        one_by_one = not any(verb in COLLECTION_VERBS or verb == "*" for verb in rule.verbs)
        if namespaced and one_by_one and rule.cluster_scope and not rule.namespaces:
            said = listed(map(quote, rule.resources), "and")
            message = (
                f"{said}: requests with {listed(map(quote, rule.verbs), 'or')} for them are always in a namespace, so this rule"
                " never matches. Write `namespaces: ['*']`"
            )
            fix = suggestions.set_field(document, (*path, "namespaces"), ("*",), 'write namespaces: ["*"]', safe=False)
            yield Problem(Place(document, (*path, "clusterScope"), key=True), message, fix=fix)


def is_namespaces(resource: Resource) -> bool:
    """Whether this is the resource of Namespace objects."""
    return (resource.name, resource.group) == ("namespaces", "")
