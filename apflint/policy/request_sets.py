"""Sets of requests in policy tests: parser and descriptions of the values of `never`, `always` and `except`.

A set of requests is represented by a FlowSchema rule that matches the requests. All keys except `subject` are fields of
such rules. A key that is omitted does not restrict the set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.match import ALL
from apflint.evaluate.resources import find_resources
from apflint.model import (
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    ResourcePolicyRule,
    ServiceAccountSubject,
    Subject,
)
from apflint.output.match_reasons import describe_subject, quote_list
from apflint.requests.request import VERBS
from apflint.requests.request_words import infer_resource
from apflint.spelling import suggest
from apflint.string_formats import check_dns_label, check_dns_subdomain
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.load.apflint_files import Fields
    from apflint.location import Path

_SUBJECT_KEYS = ("user", "group", "serviceAccount")
_RESOURCE_KEYS = ("apiGroups", "resources", "namespaces", "clusterScope")
KEYS = ("subject", "verbs", *_RESOURCE_KEYS, "nonResourceURLs")
_HTTP_VERBS = ("get", "head", "post", "put", "patch", "delete", "options")
"""Verbs of non-resource requests, which are HTTP methods in lower case."""
HINTS = {
    "user": "Write `subject: {user: NAME}`",
    "group": "Write `subject: {group: NAME}`",
    "serviceAccount": "Write `subject: {serviceAccount: NAMESPACE/NAME}`",
    "as": "Write `subject: {user: NAME}`",
    "groups": "Write `subject: {group: NAME}`",
    **dict.fromkeys(
        ("flowSchema", "priorityLevel", "minSeats", "nominalSeats", "whenFull"), "Move it inside `reaches`"
    ),
}
_SUBJECT_HINTS = dict.fromkeys(
    ("kind", "name"), "Write `user: NAME`, `group: NAME` or `serviceAccount: NAMESPACE/NAME`"
)
_EVERYBODY = Subject("User", ALL, None, None)


def parse_requests(fields: Fields, path: Path) -> PolicyRulesWithSubjects:
    """Return the set of requests that the mapping at `path` describes, and report its invalid values.

    Before the call, the caller must check that the value at `path` is a mapping with known keys.
    """
    subjects = tuple(_parse_subjects(fields, (*path, "subject"))) if fields.has((*path, "subject")) else (_EVERYBODY,)
    has_paths = fields.has((*path, "nonResourceURLs"))
    has_resources = any(fields.has((*path, key)) for key in _RESOURCE_KEYS)
    is_any = has_paths == has_resources
    known = (VERBS if has_resources or is_any else ()) + (_HTTP_VERBS if has_paths or is_any else ())
    verbs = _parse_values(fields, (*path, "verbs"))
    for item, verb in verbs.items():
        if verb not in (*known, ALL):
            hint = suggest(verb, known).lstrip() or f"Verbs are {', '.join(dict.fromkeys(known))}"
            fields.reject(item, f'requests of this set never have the verb "{verb}". {hint}')
    urls = fields.strings((*path, "nonResourceURLs"))
    for item, url in urls.items():
        if url != ALL and not url.startswith("/"):
            fields.reject(item, f'"{url}" is not a path: it must start with /')
    all_verbs = tuple(verbs.values()) or (ALL,)
    return PolicyRulesWithSubjects(
        subjects,
        _parse_resource_rules(fields, path, all_verbs) if has_resources or not has_paths else (),
        (NonResourcePolicyRule(all_verbs, tuple(urls.values()) or (ALL,)),) if has_paths or not has_resources else (),
    )


def _parse_values(fields: Fields, path: Path, *, may_be_empty: bool = False) -> dict[Path, str]:
    """Return {path of a string: string} for the list at `path`.

    Report a mistake if a list contains both `*` and other items.
    """
    values = fields.strings(path, may_be_empty=may_be_empty)
    if ALL in values.values() and len(values) > 1:
        fields.reject(path, '"*" matches everything: remove "*", or remove all other items')
    return values


def _parse_resource_rules(fields: Fields, path: Path, verbs: tuple[str, ...]) -> tuple[ResourcePolicyRule, ...]:
    namespaces = _parse_values(fields, (*path, "namespaces"))
    for item, namespace in namespaces.items():
        if namespace != ALL and (problem := check_dns_label(namespace)):
            fields.reject(item, f'"{namespace}" is not a valid namespace: {problem}')
    has_namespaces, cluster_scope = fields.has((*path, "namespaces")), fields.boolean((*path, "clusterScope"))
    scope = not has_namespaces if cluster_scope is None else cluster_scope
    names = (tuple(namespaces.values()) or (ALL,)) if has_namespaces or not cluster_scope else ()
    return tuple(
        ResourcePolicyRule(verbs, groups, resources, scope, names)
        for groups, resources in _parse_resources(fields, path).items()
    )


def _parse_resources(fields: Fields, path: Path) -> dict[tuple[str, ...], tuple[str, ...]]:
    """Return {API groups: names of resources in these groups}. If the key `apiGroups` is absent, infer the groups from the names."""
    resources = _parse_values(fields, (*path, "resources"))
    has_groups = fields.has((*path, "apiGroups"))
    groups = _parse_api_groups(fields, (*path, "apiGroups"))
    if not resources or ALL in resources.values():
        return {groups: (ALL,)}
    by_groups: dict[tuple[str, ...], tuple[str, ...]] = {}
    for item, text in resources.items():
        if text.endswith(("/*", "/")):
            example = f"{text.partition('/')[0]}/status"
            fields.reject(item, f'"{text}" does not name a subresource: write its full name, as in "{example}"')
            continue
        try:
            key, name = (groups, _check_plural(text)) if has_groups else _infer_groups(text)
        except UserError as error:
            fields.reject(item, str(error))
            continue
        by_groups[key] = (*by_groups.get(key, ()), name)
    return by_groups


def _parse_api_groups(fields: Fields, path: Path) -> tuple[str, ...]:
    """Return the API groups at `path`, with the core group (an empty string) first. Return `("*",)` if the key is absent."""
    groups = _parse_values(fields, path, may_be_empty=True)
    for item, group in groups.items():
        if "/" in group:
            fields.reject(item, f'"{group}" includes a version: write "{group.partition("/")[0]}" only')
    return tuple(sorted(groups.values(), key=bool)) or (ALL,)


def _check_plural(text: str) -> str:
    """Return `text` unchanged.

    Raises UserError if `text` is the singular name, a short name or the kind of a resource, if it names an API group, or
    if it contains upper-case letters.
    """
    resource, slash, subresource = text.partition("/")
    known = find_resources(resource)
    if "." in resource:
        raise UserError(f'"{text}" includes an API group: remove `apiGroups`')
    if known and all(other.name != resource for other in known):
        raise UserError(
            f'"{text}" is not a resource name: requests name the resource "{known[0].name}{slash}{subresource}"'
        )
    if text != text.lower():
        raise UserError(f'"{text}" has upper-case letters; names of resources have none')
    return text


def _infer_groups(text: str) -> tuple[tuple[str, ...], str]:
    """Return (API groups, name) of `RESOURCE[.GROUP][/SUBRESOURCE]`. Raises UserError if the group cannot be inferred."""
    resource, slash, subresource = text.partition("/")
    target = infer_resource(resource)
    groups: tuple[str, ...] = (target.group,)
    if "." not in resource:  # no group is named, and several groups can have the resource, for example events
        groups = tuple(known.group for known in find_resources(resource) if known.name == target.name)
    return groups, f"{target.name}{slash}{subresource}"


def _parse_subjects(fields: Fields, path: Path) -> Iterator[Subject]:
    if fields.value(path) == []:
        fields.reject(path, "an empty list matches nobody: to match everybody, remove the key `subject`")
    for item in fields.items(path):
        if not fields.check_keys(item, _SUBJECT_KEYS, _SUBJECT_HINTS):
            continue
        subject = fields.value(item)
        if isinstance(subject, dict) and len(subject) != 1 and all(key in _SUBJECT_KEYS for key in subject):
            fields.reject(item, "a subject is one user, group or service account: write a list of subjects")
        for name in fields.strings((*item, "user")).values():
            yield Subject("User", name, None, None)
        for name in fields.strings((*item, "group")).values():
            yield Subject("Group", None, name, None)
        for account_path, text in fields.strings((*item, "serviceAccount")).items():
            namespace, _, name = text.partition("/")
            problem = check_dns_label(namespace) or (None if name == ALL else check_dns_subdomain(name))
            if not name:
                problem = "write NAMESPACE/NAME, or NAMESPACE/* for all service accounts of a namespace"
            if problem:
                fields.reject(account_path, f'"{text}" is not a service account: {problem}')
            yield Subject("ServiceAccount", None, None, ServiceAccountSubject(namespace, name))


def describe_requests(rule: PolicyRulesWithSubjects) -> str:
    """Return a phrase for a set of requests, which can follow `no` or `every`.

    For example, the phrase is `request of group "dev" to get for pods in namespace dev`.
    """
    text = "request"
    if rule.subjects != (_EVERYBODY,):
        text += f" of {' or '.join(describe_subject(subject) for subject in rule.subjects)}"
    if rule.resource_rules and rule.non_resource_rules and rule.non_resource_rules[0].non_resource_urls == (ALL,):
        return text + _describe_verbs(rule.resource_rules[0].verbs)
    parts = [_describe_resources(entry) for entry in rule.resource_rules]
    for entry in rule.non_resource_rules:
        urls = "any path" if entry.non_resource_urls == (ALL,) else " or ".join(entry.non_resource_urls)
        parts.append(f"{_describe_verbs(entry.verbs)} for {urls}")
    return text + " or".join(parts)


def _describe_resources(entry: ResourcePolicyRule) -> str:
    groups = entry.api_groups
    if entry.resources == (ALL,):
        resources = "any resource" + ("" if groups == (ALL,) else f" in API groups {quote_list(groups)}")
    elif len(groups) == 1 and groups != (ALL,):
        resources = " or ".join(f"{name}.{groups[0]}" if groups[0] else name for name in entry.resources)
    else:
        where = "any API group" if groups == (ALL,) else f"API groups {quote_list(groups)}"
        resources = f"{' or '.join(entry.resources)} in {where}"
    scopes = []
    if entry.namespaces == (ALL,) and not entry.cluster_scope:
        scopes = ["in a namespace"]
    elif entry.namespaces not in ((), (ALL,)):
        noun = "namespace" if len(entry.namespaces) == 1 else "namespaces"
        scopes = [f"in {noun} {', '.join(entry.namespaces)}"]
    if entry.cluster_scope and entry.namespaces != (ALL,):
        scopes.append("in no namespace")
    return f"{_describe_verbs(entry.verbs)} for {resources}{' ' if scopes else ''}{' or '.join(scopes)}"


def _describe_verbs(verbs: tuple[str, ...]) -> str:
    return "" if verbs == (ALL,) else f" to {', '.join(verbs)}"
