"""APF504, APF506: values and scopes that no request has, so that a rule matches nothing by them."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from apflint.evaluate import resources
from apflint.evaluate.match import ALL
from apflint.finding import Problem
from apflint.fixes.suggestions import remove_items, replace_item, set_field
from apflint.record import NamedTuple
from apflint.wording import join_some, join_words, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apflint.effective import Effective
    from apflint.evaluate.resources import Resource
    from apflint.location import Place
    from apflint.model import ResourcePolicyRule

_VERSION = r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?"
COLLECTION_VERBS = frozenset({"list", "watch", "deletecollection"})
"""Verbs of requests that can span all namespaces."""
_METHOD_VERBS = frozenset({"get", "delete", "patch"})
"""Verbs of non-resource requests that the API server accepts by name. They are HTTP methods in lower case."""

_MAX_NAMED = 3
"""Maximum number of resources that a message names."""


class _Mistake(NamedTuple):
    """Why no request has a value."""

    reason: str
    help: str | None
    intended: str | None = None
    """The value that was certainly intended."""


def impossible_match(effective: Effective) -> Iterator[Problem]:
    """APF504."""
    for place, rule in effective.own.resource_rules():
        yield from _impossible_values(place / "apiGroups", "API group", rule.api_groups, _diagnose_group)
        diagnose = partial(_diagnose_resource, groups=frozenset(rule.api_groups))
        yield from _impossible_values(place / "resources", "resource", rule.resources, diagnose)
    for place, paths in effective.own.non_resource_rules():
        verbs, at = paths.verbs, place / "verbs"
        has_get = "get" in verbs
        for index, verb in enumerate(verbs if ALL not in verbs else ()):
            if verb not in _METHOD_VERBS:
                is_read = has_get and verb in ("list", "watch")  # reading a path is always GET
                yield Problem(
                    at / index,
                    f"verb {quote(verb)} matches no non-resource request",
                    fix=remove_items(at.path, verbs, [index], 'beside "get"', safe=False) if is_read else None,
                    notes=("The verb of a non-resource request is its HTTP method in lower case.",),
                    help='use get, delete or patch, or ["*"] for all methods',
                )


def _impossible_values(
    place: Place, kind: str, values: Sequence[str], diagnose: Callable[[str], _Mistake | None]
) -> Iterator[Problem]:
    present = frozenset(values)
    for index, value in enumerate(values if ALL not in present else ()):
        if (mistake := diagnose(value)) is not None:
            at, intended = place / index, mistake.intended
            yield Problem(
                at,
                f"{kind} {quote(value)} matches no request: {mistake.reason}",
                fix=None if intended is None else replace_item(at.path, value, intended, present, safe=False),
                help=mistake.help,
            )


def _diagnose_group(group: str) -> _Mistake | None:
    if group in ("core", "v1"):
        return _Mistake('the core group is ""', 'use ""', intended="")
    name, slash, version = group.partition("/")
    if slash:
        certain = name not in ("", "core") and re.fullmatch(_VERSION, version) and not {"*", " "} & {*name}
        help_ = 'use ""' if name == "core" else f"use {quote(name)}"
        return _Mistake("a group has no version", help_, name.lower() if certain else None)
    if "*" in group:
        return _Mistake("patterns are not supported", 'list each group, or use ["*"] for all groups')
    if group != group.lower() or " " in group:
        intended = None if " " in group else group.lower()
        return _Mistake("API groups are in lower case", intended and f"use {quote(intended)}", intended)
    return None


def _diagnose_resource(name: str, groups: frozenset[str]) -> _Mistake | None:
    resource, slash, subresource = name.partition("/")
    known = resources.find_resources(resource)
    if subresource == "*":
        names = sorted({f"{resource}/{each}" for entry in known for each in entry.subresources})
        return _Mistake(
            "patterns are not supported", f"list {join_words(names, 'and') if names else 'each subresource'}"
        )
    if resource == "*" and slash:
        return _Mistake("patterns are not supported", f"list each resource, such as deployments/{subresource}")
    if any(entry.name == resource and entry.group in groups for entry in known):
        return None
    served = {entry.name for entry in known if "*" in groups or entry.group in groups}
    intended = f"{min(served)}{slash}{subresource.lower()}" if len(served) == 1 and "*" not in name else None
    if resource != resource.lower():
        plural = next((entry.name for entry in known or resources.find_resources(resource.lower())), None)
        question = plural and f"did you mean {quote(intended or plural)}?"
        return _Mistake("resources are plural and in lower case", question, intended)
    if served and all(entry.name != resource for entry in known):
        return _Mistake(
            f"the resource is named {quote(known[0].name)}", f"use {quote(intended or known[0].name)}", intended
        )
    return None


def namespaced_rule_for_cluster_resource(effective: Effective) -> Iterator[Problem]:
    """APF506."""
    for place, rule in effective.own.resource_rules():
        known = known_resources(rule)
        if not known:
            continue
        names = join_some([quote(name) for name in rule.resources], _MAX_NAMED)
        if are_cluster_scoped(known) and rule.namespaces and not rule.cluster_scope:
            path = (*place.path, "clusterScope")
            yield Problem(
                place / "namespaces",
                f"rule matches no request: requests for {names} have no namespace",
                fix=set_field(place.document, path, True, "write clusterScope: true", safe=False),
                help="add clusterScope: true",
            )
        creates = "create" in rule.verbs  # a request to create a namespace has no namespace
        namespaced = all(resource.namespaced or (is_namespaces(resource) and not creates) for resource in known)
        single = COLLECTION_VERBS.isdisjoint(rule.verbs) and ALL not in rule.verbs
        if namespaced and single and rule.cluster_scope and not rule.namespaces:
            path = (*place.path, "namespaces")
            yield Problem(
                (place / "clusterScope").at_key(),
                f"rule matches no request: requests to {join_words(rule.verbs)} {names} have a namespace",
                fix=set_field(place.document, path, (ALL,), 'write namespaces: ["*"]', safe=False),
                help='add namespaces: ["*"]',
            )


def known_resources(rule: ResourcePolicyRule) -> list[Resource] | None:
    """Return the resources of a rule, or None if Kubernetes itself does not serve one of them, or for `*`."""
    known: list[Resource] = []
    groups = frozenset(rule.api_groups)
    for name in rule.resources:
        resource = name.partition("/")[0]
        served = [
            entry
            for entry in resources.find_resources(resource)
            if entry.name == resource and (ALL in groups or entry.group in groups)
        ]
        if not served:
            return None
        known += served
    return known


def are_cluster_scoped(known: Iterable[Resource]) -> bool:
    """Return whether no request for these resources has a namespace. Requests for a Namespace object are in that namespace."""
    return all(not resource.namespaced and not is_namespaces(resource) for resource in known)


def is_namespaces(resource: Resource) -> bool:
    """Return whether this is the resource of Namespace objects."""
    return (resource.name, resource.group) == ("namespaces", "")
