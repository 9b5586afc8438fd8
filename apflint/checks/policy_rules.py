"""APF206, APF209 to APF214, APF504, APF506: resource and non-resource rules (`ValidateFlowSchemaResourcePolicyRule`).

APF504 and APF506 find values and scopes that no request has.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from apflint.checks.metadata import reject_name
from apflint.evaluate import resources
from apflint.evaluate.match import ALL
from apflint.finding import Problem, invalid, not_supported, required
from apflint.fixes.field_fixes import remove_items, replace_item, replace_items, set_field
from apflint.named_tuple import NamedTuple
from apflint.spelling import did_you_mean, find_intended
from apflint.string_formats import check_dns_label
from apflint.wording import join_words, quote, quote_some

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from apflint.effective_configuration import Effective
    from apflint.evaluate.resources import Resource
    from apflint.load.document import Document
    from apflint.location import Place
    from apflint.model import ResourcePolicyRule
    from apflint.workspace import Workspace

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy")
"""Verbs that the API server accepts in resource rules and in non-resource rules."""
_KNOWN_VERBS = frozenset(VERBS)
_RBAC_VERBS = ("use", "bind", "escalate", "impersonate", "approve", "sign", "attest")
_MAX_NAMED_VERBS = 5
_VERSION = r"v[0-9]+(?:(?:alpha|beta)[0-9]+)?"
COLLECTION_VERBS = frozenset({"list", "watch", "deletecollection"})
"""Verbs of requests that can span all namespaces."""
_METHOD_VERBS = frozenset({"get", "delete", "patch"})
"""Verbs of non-resource requests that the API server accepts by name. These verbs are HTTP methods in lower case."""
_MAX_NAMED_RESOURCES = 3
_METHODS = {"post": "create", "put": "update", "head": "get", "options": "*"}


def rule_without_requests(workspace: Workspace) -> Iterator[Problem]:
    """APF206: report rules that have neither resourceRules nor nonResourceRules."""
    for place, rule in workspace.rules():
        if not rule.resource_rules and not rule.non_resource_rules:
            yield required(
                place,
                "rule has no resourceRules and no nonResourceRules",
                notes=("Absent lists do not mean all requests.",),
                help="add resourceRules to match requests for resources, or nonResourceRules to match other paths",
            )


def empty_match_list(workspace: Workspace) -> Iterator[Problem]:
    """APF209: report each field of a rule whose list is missing or empty, such as `verbs: []`."""
    for place, name, items in workspace.string_lists():
        if not items and name != "namespaces":
            core = 'for the core group (pods, services, nodes) use [""], ' if name == "apiGroups" else ""
            yield required(place / name, f"{name} is missing or empty", help=f'{core}for all {name} use ["*"]')


def wildcard_with_others(workspace: Workspace) -> Iterator[Problem]:
    """APF210: report lists that contain `"*"` and other items."""
    for place, name, items in workspace.string_lists():
        if len(items) > 1 and "*" in items:
            star, strings, is_repeated = items.index("*"), place / name, set(items) == {"*"}
            others = [index for index in range(len(items)) if index != star]
            yield invalid(
                strings / star,
                f'{name} contains "*" {"more than once" if is_repeated else "and other items"}',
                field=strings.field,
                notes=('"*" already matches every value.',),
                help='list "*" once' if is_repeated else 'remove the other items, or "*"',
                fix=remove_items(strings.path, items, others, 'next to "*"', safe=True),
            )


def unknown_verb(workspace: Workspace) -> Iterator[Problem]:
    """APF211: report unknown verbs.

    All unknown verbs of a list are one finding, because the API server reports the list once. However, verbs with a
    safe fix, verbs with an unsafe fix, and verbs without a fix are separate findings.
    """
    for place, name, items in workspace.string_lists():
        if name == "verbs" and "*" not in items and not _KNOWN_VERBS.issuperset(items):
            yield from _reject_verbs(place / name, items, is_resource="resourceRules" in place.path)


def _reject_verbs(place: Place, verbs: tuple[str, ...], *, is_resource: bool) -> Iterator[Problem]:
    wrong = {index: verb for index, verb in enumerate(verbs) if verb not in _KNOWN_VERBS}
    # The API server always gives POST requests the verb create, and PUT requests the verb update (RequestInfoFactory).
    # `methods` omits methods with several possible verbs: a GET request can have the verb get, list or watch.
    methods = {
        index: _METHODS[verb.lower()]
        for index, verb in wrong.items()
        if is_resource and verb.lower() in ("post", "put")
    }
    near = {index: find_intended(verb, VERBS) for index, verb in wrong.items() if index not in methods}
    misspelled = {index: verb for index, verb in near.items() if verb is not None}
    others = [index for index, verb in near.items() if verb is None]
    for indices, fix in (
        ([*misspelled], replace_items(place.path, verbs, misspelled, safe=True)),
        ([*methods], replace_items(place.path, verbs, methods, safe=False)),
        (others, None),
    ):
        if indices:
            unknown = quote_some([verbs[index] for index in indices], _MAX_NAMED_VERBS)
            notes, suggestion = _explain_verb(verbs[indices[0]], is_resource=is_resource)
            yield not_supported(
                place / indices[0],
                f"unknown {'verb' if len(indices) == 1 else 'verbs'} {unknown}",
                field=place.field,
                notes=notes,
                help=suggestion,
                fix=fix,
            )


def _explain_verb(verb: str, *, is_resource: bool) -> tuple[tuple[str, ...], str]:
    """Return (notes, help) for an unknown verb."""
    if "," in verb or " " in verb.strip():
        return (), "write each verb as a separate item"
    if question := did_you_mean(verb, VERBS):
        return (), question
    if verb.lower() == "all":
        return (), 'for all verbs use ["*"]'
    method = _METHODS.get(verb.lower())
    if method is not None and not is_resource:
        return ('In nonResourceRules, only ["*"] matches HEAD, POST, PUT and OPTIONS requests.',), 'use ["*"]'
    if method not in (None, "*"):
        note = f"The verb of {verb.upper()} requests for resources is {quote(method)}."
        return (note,), f"did you mean {quote(method)}?"
    notes = (f"{quote(verb)} is a verb of RBAC only.",) if verb in _RBAC_VERBS else ()
    return notes, f"use {join_words(VERBS)}"


def no_namespace_nor_cluster_scope(workspace: Workspace) -> Iterator[Problem]:
    """APF212: report resource rules that have neither namespaces nor clusterScope."""
    for place, rule in workspace.resource_rules():
        if not rule.namespaces and not rule.cluster_scope:
            yield required(
                place / "namespaces",
                "rule has neither namespaces nor clusterScope: true",
                notes=(
                    'namespaces: ["*"] matches requests in any namespace, but no request without a namespace.',
                    "clusterScope: true matches requests for cluster-scoped resources, and list and watch requests across all namespaces.",
                ),
                help='add namespaces: ["*"], clusterScope: true, or both',
            )


def invalid_namespace(workspace: Workspace) -> Iterator[Problem]:
    """APF213: report names in `namespaces` that are not valid."""
    for place, rule in workspace.resource_rules():
        if "*" in rule.namespaces:
            continue
        namespaces = frozenset(rule.namespaces)
        for index, namespace in enumerate(rule.namespaces):
            if not (wrong := check_dns_label(namespace)):
                continue
            item, lower = place / "namespaces" / index, namespace.lower()
            fix, suggestion = None, None
            if not namespace:
                suggestion = 'for requests without a namespace, use clusterScope: true; for requests in all namespaces, use namespaces: ["*"]'
            elif "*" in namespace:
                suggestion = 'list each namespace; only "*" on its own is a wildcard'
            elif check_dns_label(lower) is None:
                suggestion = f"did you mean {quote(lower)}?"
                fix = replace_item(item.path, namespace, lower, namespaces, safe=False)
            yield reject_name(item, "namespace", namespace, wrong, suggestion=suggestion, fix=fix)


def invalid_non_resource_url(workspace: Workspace) -> Iterator[Problem]:
    """APF214: report paths in `nonResourceURLs` that are not valid."""
    for place, rule in workspace.non_resource_rules():
        urls = rule.non_resource_urls
        known = frozenset(urls)
        for index, url in enumerate(urls if "*" not in known else ()):
            if wrong := _check_url(url):
                item, fix = place / "nonResourceURLs" / index, None
                suggestion = "write the path without the host" if "://" in url else None if url else "remove the item"
                if url and _check_url(f"/{url}") is None:
                    suggestion = f"did you mean {quote(f'/{url}')}?"
                    fix = replace_item(item.path, url, f"/{url}", known, safe=False)
                message = f"{quote(url)} is not a valid path: {wrong}" if url else "path is empty"
                yield invalid(item, message, help=suggestion, fix=fix)


def _check_url(url: str) -> str | None:
    """Return why the API server rejects a non-resource URL (`ValidateNonResourceURLPath`), or None for a valid URL."""
    if url == "/":
        return None
    if not url.startswith("/"):
        return 'it does not start with "/"'
    if " " in url:
        return "it contains a space"
    if "//" in url:
        return 'it contains "//"'
    is_valid = "*" not in url or (url.count("*") == 1 and url.endswith("/*"))
    return None if is_valid else '"*" is allowed only as the last segment, as in "/healthz/*"'


class _Mistake(NamedTuple):
    """A mistake in a rule: why a value matches no request, advice, and the intended value if it is certain."""

    reason: str
    help: str | None
    intended: str | None = None
    """The value that was certainly intended, or None if the intention is not certain."""


def impossible_match(effective: Effective) -> Iterator[Problem]:
    """APF504: report values that match no request."""
    for problem in _find_impossible_values(effective):
        yield _raise_severity(problem, has_effect=problem.place.document not in effective.unreachable_documents)


def _raise_severity(problem: Problem, *, has_effect: bool) -> Problem:
    """Return `problem`, with severity `error` if no request reaches the FlowSchema (`has_effect` is false)."""
    return problem if has_effect else problem._replace(severity="error")


def _find_impossible_values(effective: Effective) -> Iterator[Problem]:
    for place, rule in effective.own.resource_rules():
        if mistakes := _diagnose_groups(rule.api_groups):
            yield from _impossible_values(place, "apiGroups", "API group", rule.api_groups, mistakes)
        if mistakes := _diagnose_resources(rule.resources, rule.api_groups):
            yield from _impossible_values(place, "resources", "resource", rule.resources, mistakes)
    for place, paths in effective.own.non_resource_rules():
        verbs = paths.verbs
        has_get = "get" in verbs
        for index, verb in enumerate(verbs if ALL not in verbs else ()):
            if verb not in _METHOD_VERBS:
                at = place / "verbs"
                is_read = has_get and verb in ("list", "watch")  # a non-resource GET request always has the verb `get`
                yield Problem(
                    at / index,
                    f"verb {quote(verb)} matches no non-resource request",
                    fix=remove_items(at.path, verbs, [index], 'next to "get"', safe=False) if is_read else None,
                    notes=("The verb of a non-resource request is its HTTP method in lower case.",),
                    help='use get, delete or patch, or ["*"] for all methods',
                )


def _impossible_values(
    place: Place, field: str, kind: str, values: Sequence[str], mistakes: Mapping[int, _Mistake]
) -> Iterator[Problem]:
    """Yield a problem for each item in `mistakes`, which maps the index of a value in `values` to the mistake."""
    present = frozenset(values)
    for index, mistake in mistakes.items():
        at, value, intended = place / field / index, values[index], mistake.intended
        yield Problem(
            at,
            f"{kind} {quote(value)} matches no request: {mistake.reason}",
            fix=None if intended is None else replace_item(at.path, value, intended, present, safe=False),
            help=mistake.help,
        )


# The results are cached, because thousands of rules may have equal lists.
@lru_cache(maxsize=1024)
def _diagnose_groups(groups: tuple[str, ...]) -> Mapping[int, _Mistake]:
    """Return a mapping from the index of each wrong item of `apiGroups` to the mistake."""
    diagnosed = {} if ALL in groups else {index: _diagnose_group(group) for index, group in enumerate(groups)}
    return {index: mistake for index, mistake in diagnosed.items() if mistake is not None}


@lru_cache(maxsize=1024)
def _diagnose_resources(names: tuple[str, ...], api_groups: tuple[str, ...]) -> Mapping[int, _Mistake]:
    """Return a mapping from the index of each wrong item of `resources` to the mistake."""
    groups = frozenset(api_groups)
    diagnosed = {} if ALL in names else {index: _diagnose_resource(name, groups) for index, name in enumerate(names)}
    return {index: mistake for index, mistake in diagnosed.items() if mistake is not None}


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
    """APF506: report resource rules that match no request, because their scope does not fit their resources."""
    problems: list[Problem] = []
    alive: set[Document | None] = {place.document for place, _ in effective.own.non_resource_rules()}
    for place, rule in effective.own.resource_rules():
        known = known_resources(rule)
        if found := [*_find_wrong_scopes(place, rule, known)] if known else []:
            problems += found
        else:
            alive.add(place.document)
    for problem in problems:
        yield _raise_severity(problem, has_effect=problem.place.document in alive)


def _find_wrong_scopes(place: Place, rule: ResourcePolicyRule, known: Sequence[Resource]) -> Iterator[Problem]:
    names = quote_some(rule.resources, _MAX_NAMED_RESOURCES)
    if are_cluster_scoped(known) and rule.namespaces and not rule.cluster_scope:
        path = (*place.path, "clusterScope")
        yield Problem(
            place / "namespaces",
            f"rule matches no request: requests for {names} have no namespace",
            fix=set_field(place.document, path, True, "add clusterScope: true", safe=False),
            help="add clusterScope: true",
        )
    creates = "create" in rule.verbs  # a request for a single Namespace object has a namespace, except create
    namespaced = all(resource.namespaced or (is_namespaces(resource) and not creates) for resource in known)
    single = COLLECTION_VERBS.isdisjoint(rule.verbs) and ALL not in rule.verbs
    if namespaced and single and rule.cluster_scope and not rule.namespaces:
        path = (*place.path, "namespaces")
        yield Problem(
            (place / "clusterScope").at_key(),
            f"rule matches no request: requests to {join_words(rule.verbs)} {names} have a namespace",
            notes=("The API server treats a request for a Namespace object as a request in this namespace.",)
            if any(map(is_namespaces, known))
            else (),
            fix=set_field(place.document, path, (ALL,), 'add namespaces: ["*"]', safe=False),
            help='add namespaces: ["*"]',
        )


def known_resources(rule: ResourcePolicyRule) -> Sequence[Resource] | None:
    """Return the Kubernetes resources that a rule names. An entry such as `pods/log` names `pods`.

    Return None if an entry of `resources` is a wildcard such as `*`, or if Kubernetes defines no
    resource with the name of the entry in the API groups of the rule.
    """
    return _known_resources(rule.api_groups, rule.resources)


@lru_cache(maxsize=1024)  # the results are cached, because thousands of rules may have equal lists
def _known_resources(api_groups: tuple[str, ...], names: tuple[str, ...]) -> tuple[Resource, ...] | None:
    known: list[Resource] = []
    groups = frozenset(api_groups)
    for name in names:
        resource = name.partition("/")[0]
        served = [
            entry
            for entry in resources.find_resources(resource)
            if entry.name == resource and (ALL in groups or entry.group in groups)
        ]
        if not served:
            return None
        known += served
    return tuple(known)


def are_cluster_scoped(known: Iterable[Resource]) -> bool:
    """Return whether requests for these resources never have a namespace.

    Return False if the resource `namespaces` is among them, because a request for a Namespace object has a namespace.
    """
    return all(not resource.namespaced and not is_namespaces(resource) for resource in known)


def is_namespaces(resource: Resource) -> bool:
    """Return whether this resource is `namespaces` of the core group."""
    return (resource.name, resource.group) == ("namespaces", "")
