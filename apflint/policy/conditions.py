"""Sets of requests, as `never`, `always` and `except` write them, made into a rule of a FlowSchema.

The keys are those of the rules of a FlowSchema. What is left out means everything there is, unlike there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.errors import UserError
from apflint.evaluate.explanation import describe_subject, quote_list
from apflint.evaluate.match import ALL
from apflint.evaluate.resources import find_resources
from apflint.formats import check_dns_label, check_dns_subdomain
from apflint.model import (
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    ResourcePolicyRule,
    ServiceAccountSubject,
    Subject,
)
from apflint.requests.request import VERBS
from apflint.requests.words import infer_resource
from apflint.wording import suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.location import Path
    from apflint.policy.reading import Fields

SUBJECT_KEYS = ("user", "group", "serviceAccount")
RESOURCE_KEYS = ("apiGroups", "resources", "namespaces", "clusterScope")
KEYS = ("subject", "verbs", *RESOURCE_KEYS, "nonResourceURLs")
HTTP_VERBS = ("get", "head", "post", "put", "patch", "delete", "options")
"""Verbs of requests that are for no resource: HTTP methods in lower case."""
HINTS = {
    "user": "Write `subject: {user: NAME}`",
    "group": "Write `subject: {group: NAME}`",
    "serviceAccount": "Write `subject: {serviceAccount: NAMESPACE/NAME}`",
    "as": "Write `subject: {user: NAME}`",
    "groups": "Write `subject: {group: NAME}`",
    "flowSchema": "It belongs inside `reaches`",
    "priorityLevel": "It belongs inside `reaches`",
    "minSeats": "It belongs inside `reaches`",
    "whenFull": "It belongs inside `reaches`",
}
_RBAC = {
    "kind": "Write `user: NAME`, `group: NAME` or `serviceAccount: NAMESPACE/NAME`",
    "name": "Write `user: NAME`, `group: NAME` or `serviceAccount: NAMESPACE/NAME`",
}
EVERYBODY = Subject("User", ALL, None, None)


def requests(fields: Fields, path: Path) -> PolicyRulesWithSubjects:
    """The requests that the mapping at `path` speaks of; its keys are known to be right."""
    subjects = tuple(_subjects(fields, (*path, "subject"))) if fields.has((*path, "subject")) else (EVERYBODY,)
    paths = fields.texts((*path, "nonResourceURLs"))
    for_resources = any(fields.has((*path, key)) for key in RESOURCE_KEYS)
    for_paths = fields.has((*path, "nonResourceURLs"))
    verbs = _values(fields, (*path, "verbs"))
    both = for_resources == for_paths
    known = (VERBS if for_resources or both else ()) + (HTTP_VERBS if for_paths or both else ())
    for place, verb in fields.places((*path, "verbs")):
        if verb not in (*known, ALL):
            hint = suggest(verb, known).lstrip() or f"Verbs are {', '.join(dict.fromkeys(known))}"
            fields.wrong(place, f'no such request has the verb "{verb}". {hint}')
    for place, url in fields.places((*path, "nonResourceURLs")):
        if url != ALL and not url.startswith("/"):
            fields.wrong(place, f'"{url}" is no path: it does not begin with /')
    return PolicyRulesWithSubjects(
        subjects,
        _resource_rules(fields, path, verbs) if for_resources or not for_paths else (),
        (NonResourcePolicyRule(verbs, paths or (ALL,)),) if for_paths or not for_resources else (),
    )


def _values(fields: Fields, path: Path) -> tuple[str, ...]:
    """A list in which `*` stands alone; everything where nothing is written."""
    found = fields.texts(path)
    if ALL in found and len(found) > 1:
        fields.wrong(path, '"*" is everything already: leave it, or the others, out')
    return found or (ALL,)


def _resource_rules(fields: Fields, path: Path, verbs: tuple[str, ...]) -> tuple[ResourcePolicyRule, ...]:
    for place, group in fields.places((*path, "apiGroups")):
        if "/" in group:
            fields.wrong(place, f'"{group}" is a group and a version: write "{group.partition("/")[0]}" alone')
    for place, namespace in fields.places((*path, "namespaces")):
        if namespace != ALL and (wrong := check_dns_label(namespace)):
            fields.wrong(place, f'"{namespace}" is no namespace: {wrong}')
    in_namespaces, cluster_scope = fields.has((*path, "namespaces")), fields.boolean((*path, "clusterScope"))
    namespaces = _values(fields, (*path, "namespaces"))
    scope = (
        not in_namespaces if cluster_scope is None else cluster_scope,
        namespaces if in_namespaces or not cluster_scope else (),
    )
    return tuple(ResourcePolicyRule(verbs, groups, names, *scope) for groups, names in _things(fields, path).items())


def _things(fields: Fields, path: Path) -> dict[tuple[str, ...], tuple[str, ...]]:
    """API groups -> resources in them. Without `apiGroups` names are read as `kubectl` and `apflint explain` do."""
    names = _values(fields, (*path, "resources"))
    literal = fields.has((*path, "apiGroups"))
    groups = _api_groups(fields, (*path, "apiGroups"))
    if ALL in names:
        return {groups: names}
    found: dict[tuple[str, ...], tuple[str, ...]] = {}
    for place, text in fields.places((*path, "resources")):
        try:
            where, name = (groups, _literal(text)) if literal else _kubectl(text)
        except UserError as error:
            fields.wrong(place, str(error))
            continue
        found[where] = (*found.get(where, ()), name)
    return found


def _api_groups(fields: Fields, path: Path) -> tuple[str, ...]:
    """The core group is the empty text, alone or in a list."""
    value = fields.value(path)
    if value == "":
        return ("",)
    if isinstance(value, list) and "" in value and ALL not in value:
        others = [at for at, group in enumerate(value) if group != ""]
        return ("", *(fields.text((*path, at)) for at in others))
    return _values(fields, path)


def _literal(text: str) -> str:
    """A name beside `apiGroups`, as a FlowSchema has it. ValueError for one that no request has, or hardly the one meant."""
    resource, slash, subresource = text.partition("/")
    found = find_resources(resource)
    if "." in resource:
        raise UserError(f'"{text}" has its API group in it already: leave `apiGroups` out')
    if found and all(each.name != resource for each in found):
        raise UserError(f'"{text}" is what people call it: a request is for "{found[0].name}{slash}{subresource}"')
    if text != text.lower():
        raise UserError(f'"{text}" has upper-case letters, and no resource has')
    return _no_pattern(text)


def _kubectl(text: str) -> tuple[tuple[str, ...], str]:
    """The groups and the name of `RESOURCE[.GROUP][/SUBRESOURCE]`. ValueError, fit to be shown."""
    resource, slash, subresource = _no_pattern(text).partition("/")
    target = infer_resource(resource)
    groups: tuple[str, ...] = (target.group,)
    if "." not in resource:  # a name that Kubernetes serves in several groups (events) means all of them
        groups = tuple(each.group for each in find_resources(resource) if each.name == target.name)
    return groups, f"{target.name}{slash}{subresource}"


def _no_pattern(text: str) -> str:
    if text.endswith(("/*", "/")):
        resource = text.partition("/")[0]
        raise UserError(f'"{text}" is no pattern: a subresource is named in full, as in "{resource}/status"')
    return text


def _subjects(fields: Fields, path: Path) -> Iterator[Subject]:
    value = fields.value(path)
    paths: list[Path] = [(*path, at) for at in range(len(value))] if isinstance(value, list) else [path]
    if not paths:
        fields.wrong(path, "the list is empty, so nobody is meant: leave it out for everybody")
    for each in paths:
        if not fields.keys(each, SUBJECT_KEYS, _RBAC):
            continue
        subject = fields.value(each)
        if isinstance(subject, dict) and len(subject) != 1 and all(key in SUBJECT_KEYS for key in subject):
            message = "a subject is a user, a group or a service account; for several write a list of subjects"
            fields.wrong(each, message)
        for key in SUBJECT_KEYS:
            fields.texts((*each, key))
            for place, name in fields.places((*each, key)):
                yield _subject(fields, place, key, name)


def _subject(fields: Fields, place: Path, key: str, name: str) -> Subject:
    if key == "user":
        return Subject("User", name, None, None)
    if key == "group":
        return Subject("Group", None, name, None)
    namespace, _, account = name.partition("/")
    wrong = check_dns_label(namespace) or (None if account == ALL else check_dns_subdomain(account))
    if not account:
        fields.wrong(
            place, f'"{name}" is no service account: write NAMESPACE/NAME, or NAMESPACE/* for all of a namespace'
        )
    elif wrong:
        fields.wrong(place, f'"{name}" is no service account: {wrong}')
    return Subject("ServiceAccount", None, None, ServiceAccountSubject(namespace, account))


def in_words(rule: PolicyRulesWithSubjects) -> str:
    """Such requests, as the end of a sentence: `request of group "dev" for resources ["pods"]`."""
    text = "request"
    if rule.subjects != (EVERYBODY,):
        text += f" of {' or '.join(describe_subject(subject) for subject in rule.subjects)}"
    if rule.resource_rules and rule.non_resource_rules and rule.non_resource_rules[0].non_resource_urls == (ALL,):
        return text + _verbs(rule.resource_rules[0].verbs)
    parts = [_resources_in_words(each) for each in rule.resource_rules]
    for each in rule.non_resource_rules:
        paths = "any path" if each.non_resource_urls == (ALL,) else " or ".join(each.non_resource_urls)
        parts.append(f"{_verbs(each.verbs)} for {paths}")
    return text + " or".join(parts)


def _resources_in_words(rule: ResourcePolicyRule) -> str:
    if rule.resources == (ALL,):
        groups = "" if rule.api_groups == (ALL,) else f" in API groups {quote_list(rule.api_groups)}"
        resources = f"any resource{groups}"
    elif len(rule.api_groups) == 1 and rule.api_groups != (ALL,):
        (group,) = rule.api_groups
        resources = " or ".join(f"{name}.{group}" if group else name for name in rule.resources)
    else:
        where = "any API group" if rule.api_groups == (ALL,) else f"API groups {quote_list(rule.api_groups)}"
        resources = f"{' or '.join(rule.resources)} in {where}"
    scopes = []
    if rule.namespaces == (ALL,) and not rule.cluster_scope:
        scopes = ["in a namespace"]
    elif rule.namespaces not in ((), (ALL,)):
        scopes = [f"in {'namespace' if len(rule.namespaces) == 1 else 'namespaces'} {', '.join(rule.namespaces)}"]
    if rule.cluster_scope and rule.namespaces != (ALL,):
        scopes.append("in no namespace")
    return f"{_verbs(rule.verbs)} for {resources}{' ' if scopes else ''}{' or '.join(scopes)}"


def _verbs(verbs: tuple[str, ...]) -> str:
    return "" if verbs == (ALL,) else f" to {', '.join(verbs)}"
