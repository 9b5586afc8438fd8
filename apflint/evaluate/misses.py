"""The conditions of a rule that a request does not meet, each in words, with a hint where the two nearly agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from apflint.evaluate.match import (
    ALL,
    SERVICE_ACCOUNT_PREFIX,
    match_policy_rule_api_group,
    match_policy_rule_namespace,
    match_policy_rule_non_resource_url,
    match_policy_rule_resource,
    match_policy_rule_verb,
    rs_join,
)
from apflint.evaluate.resources import lookup, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.evaluate.match import UserInfo
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.location import Path
    from apflint.model import NonResourcePolicyRule, ResourcePolicyRule, Subject

Condition = Literal["subject", "verb", "resource", "group", "namespace", "path"]
SHOWN = 4
"""How many values of a list a sentence names."""
_METHODS = ("get", "head", "post", "put", "patch", "delete", "options", "trace", "connect")


class Miss(NamedTuple):
    """A condition that is not met."""

    condition: Condition
    because: str
    """A clause without a full stop."""
    path: Path
    """The field that says so, or would."""


def resource_misses(info: RequestInfo, rule: ResourcePolicyRule, path: Path) -> tuple[Miss, ...]:
    """What fails in a resource rule, in the order in which the server looks."""
    misses = []
    if not match_policy_rule_verb(rule.verbs, info.verb):
        misses.append(Miss("verb", _verb(info, rule.verbs), (*path, "verbs")))
    if not match_policy_rule_resource(rule.resources, info.resource, info.subresource):
        misses.append(Miss("resource", _resource(info, rule.resources), (*path, "resources")))
    if not match_policy_rule_api_group(rule.api_groups, info.api_group):
        misses.append(Miss("group", _group(info, rule.api_groups), (*path, "apiGroups")))
    if not match_policy_rule_namespace(rule, info.namespace):
        misses.append(_namespace(info, rule, path))
    return tuple(misses)


def non_resource_misses(info: RequestInfo, rule: NonResourcePolicyRule, path: Path) -> tuple[Miss, ...]:
    """What fails in a non-resource rule, in the order in which the server looks."""
    misses = []
    if not match_policy_rule_verb(rule.verbs, info.verb):
        misses.append(Miss("verb", _verb(info, rule.verbs), (*path, "verbs")))
    if not match_policy_rule_non_resource_url(rule.non_resource_urls, info.path):
        misses.append(Miss("path", _url(info, rule.non_resource_urls), (*path, "nonResourceURLs")))
    return tuple(misses)


def no_rules_of_type(info: RequestInfo, path: Path) -> tuple[Miss, ...]:
    """All conditions of a rule that has nothing for requests of this type: each counts, as none can be met."""
    if info.is_resource_request:
        conditions: tuple[Condition, ...] = ("verb", "resource", "group", "namespace")
        because, field = "it has no resourceRules, and the request is for a resource", "resourceRules"
    else:
        conditions = ("verb", "path")
        because, field = "it has no nonResourceRules, and the request is for no resource", "nonResourceRules"
    return tuple(Miss(condition, because, (*path, field)) for condition in conditions)


def subject_miss(user: UserInfo, subjects: Sequence[Subject], path: Path) -> Miss:
    """No subject is the user. Points at the only subject, or the one that nearly is, or all of them."""
    if not subjects:
        return Miss("subject", "the rule has no subjects", path)
    for at, subject in enumerate(subjects):
        hint = _subject_hint(user, subject)
        if hint:
            return Miss("subject", f"{_not_among(subjects)}; {hint}", (*path, at))
    return Miss("subject", _not_among(subjects), (*path, 0) if len(subjects) == 1 else path)


def subject_in_words(subject: Subject) -> str:
    """A subject as a noun: `group "dev"`, `service account "ci/runner"`, `a service account in "ci"`."""
    account = subject.service_account
    if subject.kind == "Group" and subject.group is not None:
        return "everybody" if subject.group == ALL else f'group "{subject.group}"'
    if subject.kind == "User" and subject.user is not None:
        return "everybody" if subject.user == ALL else f'user "{subject.user}"'
    if subject.kind == "ServiceAccount" and account is not None:
        if account.name == ALL:
            return f'a service account in "{account.namespace}"'
        return f'service account "{account.namespace}/{account.name}"'
    return f'a subject of kind "{subject.kind}" that names nobody'


def quoted(values: Sequence[str]) -> str:
    """A list in a sentence: `["get", "list"]`, cut after a few."""
    shown = ", ".join(f'"{value}"' for value in values[:SHOWN])
    return f"[{shown}, and {len(values) - SHOWN} more]" if len(values) > SHOWN else f"[{shown}]"


def _not_among(subjects: Sequence[Subject]) -> str:
    nouns = [subject_in_words(subject) for subject in subjects]
    shown = ", ".join(nouns[:SHOWN]) + (f", and {len(nouns) - SHOWN} more" if len(nouns) > SHOWN else "")
    kinds = {subject.kind for subject in subjects}
    if kinds == {"Group"}:
        names = [subject.group or "" for subject in subjects]
        one, more = f'the user is not in the group "{names[0]}"', f"the user is in none of the groups {quoted(names)}"
    elif kinds == {"User"}:
        names = [subject.user or "" for subject in subjects]
        one, more = f'the user is not "{names[0]}"', f"the user is not among {quoted(names)}"
    else:
        one, more = f"the user is not {shown}", f"the user is none of the {len(subjects)} subjects: {shown}"
    return one if len(subjects) == 1 else more


def _subject_hint(user: UserInfo, subject: Subject) -> str:
    wanted, have = {"User": (subject.user, (user.name,)), "Group": (subject.group, user.groups)}.get(
        subject.kind, (None, ())
    )
    if wanted is not None:
        if wanted.endswith(ALL) and any(name.startswith(wanted[:-1]) for name in have):
            return f'"{wanted}" is taken literally, not as a pattern'
        close = next((name for name in have if name.lower() == wanted.lower()), None)
        if close is not None:
            return f'"{wanted}" and "{close}" differ in upper and lower case'
        if subject.kind == "User" and wanted in user.groups:
            return f'"{wanted}" is one of the groups, but the subject is a user'
        if subject.kind == "Group" and wanted == user.name:
            return f'"{wanted}" is the user, but the subject is a group'
    account = subject.service_account
    if subject.kind == "ServiceAccount" and account is not None:
        inside = user.name.startswith(f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:")
        same_name = user.name.startswith(SERVICE_ACCOUNT_PREFIX) and user.name.endswith(f":{account.name}")
        if user.name == account.name:
            return "the name of a service account here is the part after the last colon"
        if inside:
            return "the namespace is the same, the name differs"
        if same_name and account.name != ALL:
            return "the name is the same, the namespace differs"
    return ""


def _verb(info: RequestInfo, verbs: Sequence[str]) -> str:
    if not verbs:
        return "the rule names no verbs"
    text = (
        f'verb "{info.verb}" is not among {quoted(verbs)}'
        if info.verb
        else f'a method like this has no verb, so only a lone "*" covers it, not {quoted(verbs)}'
    )
    if ALL in verbs:
        return f'{text}; "*" counts only when it stands alone'
    if not info.is_resource_request and not any(verb in _METHODS for verb in verbs):
        return f"{text}; the verb of a request for no resource is its HTTP method"
    return text


def _resource(info: RequestInfo, resources: Sequence[str]) -> str:
    if not resources:
        return "the rule names no resources"
    wanted = rs_join(info.resource, info.subresource)
    text = f'resource "{wanted}" is not among {quoted(resources)}'
    if ALL in resources:
        return f'{text}; "*" counts only when it stands alone'
    if info.subresource:
        if info.resource in resources:
            return f'{text}; "{info.resource}" does not cover its subresources'
        pattern = next((each for each in (f"{info.resource}/*", f"*/{info.subresource}") if each in resources), None)
        if pattern:
            return f'{text}; "{pattern}" is taken literally, not as a pattern'
        return text
    for each in resources:
        if each != info.resource and any(known.name == info.resource for known in named(each)):
            return f'{text}; "{each}" is no resource, it is called "{info.resource}"'
    return text


def _group(info: RequestInfo, groups: Sequence[str]) -> str:
    if not groups:
        return "the rule names no API groups"
    core = "" if info.api_group else " (core)"
    text = f'API group "{info.api_group}"{core} is not among {quoted(groups)}'
    if ALL in groups:
        return f'{text}; "*" counts only when it stands alone'
    if not info.api_group and any(each in ("core", "v1", "core/v1", "api") for each in groups):
        return f'{text}; the core group is written ""'
    versioned = next((each for each in groups if info.api_group and each.startswith(f"{info.api_group}/")), None)
    if versioned:
        return f'{text}; "{versioned}" is a group and a version, and only the group belongs here'
    return text


def _namespace(info: RequestInfo, rule: ResourcePolicyRule, path: Path) -> Miss:
    if not info.namespace:
        known = lookup(info.resource, info.api_group)
        if known is not None and not known.namespaced:
            what = f'"{info.resource}" is cluster-scoped'
        elif known is None and info.verb not in ("list", "watch", "deletecollection"):
            what = "the request is in no namespace"
        else:
            what = "the request is for all namespaces"
        hint = '; namespaces: ["*"] does not cover that' if rule.namespaces == (ALL,) else ""
        return Miss("namespace", f"no clusterScope: true, and {what}{hint}", (*path, "clusterScope"))
    field = (*path, "namespaces")
    if not rule.namespaces:
        return Miss(
            "namespace", f'the rule names no namespaces, and the request is for namespace "{info.namespace}"', field
        )
    text = f'namespace "{info.namespace}" is not among {quoted(rule.namespaces)}'
    pattern = next(
        (
            each
            for each in rule.namespaces
            if len(each) > 1 and each.endswith(ALL) and info.namespace.startswith(each[:-1])
        ),
        None,
    )
    if ALL in rule.namespaces:
        text += '; "*" counts only when it stands alone'
    elif pattern:
        text += f'; "{pattern}" is taken literally, not as a pattern'
    return Miss("namespace", text, field)


def _url(info: RequestInfo, urls: Sequence[str]) -> str:
    if not urls:
        return "the rule names no paths"
    text = f'path "{info.path}" is not among {quoted(urls)}'
    folder = next((each for each in urls if each.rstrip("*").rstrip("/") == info.path), None)
    if folder:
        return f'{text}; "{folder}" is what lies below "{info.path}" only'
    begun = next((each for each in urls if len(each) > 1 and info.path.startswith(each.removesuffix(ALL))), None)
    if begun:
        return f'{text}; "{begun}" covers whole segments of a path only'
    return text
