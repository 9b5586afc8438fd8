"""Explanations why a FlowSchema matches or does not match a request, with the path of the decisive field.

If no rule matches, the explanation is about the closest rule: the rule with the fewest failed conditions. If a condition fails
only because of a small difference, the explanation contains a hint about this difference. `apflint.evaluate.match` decides
whether a rule matches, and `apflint.output.match_reasons` writes the explanations as sentences.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from apflint.evaluate.classify import matched_by
from apflint.evaluate.match import (
    ALL,
    SERVICE_ACCOUNT_PREFIX,
    match_policy_rule_api_group,
    match_policy_rule_namespace,
    match_policy_rule_non_resource_url,
    match_policy_rule_resource,
    match_policy_rule_verb,
    matches_a_subject,
    rs_join,
)
from apflint.evaluate.resources import find_resources, get_resource
from apflint.model import NonResourcePolicyRule
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from apflint.evaluate.classify import MatchedBy, Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.match import RequestDigest, UserInfo
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.location import Path
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, ResourcePolicyRule, Subject

Condition = Literal["subject", "verb", "resource", "group", "namespace", "path"]
HintKind = Literal[
    "account name",
    "other account of the namespace",
    "same account of another namespace",
    "literal",
    "letter case",
    "user subject with a group",
    "group subject with a user",
    "not the only item",
    "HTTP method",
    "no subresources",
    "other name of the resource",
    "core group",
    "group with version",
    "only paths below",
    "whole segments",
    "namespaces without clusterScope",
]
"""Kind of a hint: a name for the small difference between the request and the rule."""
_CONDITIONS: Mapping[bool, tuple[Condition, ...]] = {
    True: ("verb", "resource", "group", "namespace"),
    False: ("verb", "path"),
}
"""Maps True (resource requests) and False (non-resource requests) to the conditions that an entry has for such requests."""
_HTTP_VERBS = ("get", "head", "post", "put", "patch", "delete", "options", "trace", "connect")


class Hint(NamedTuple):
    """A small difference between a request and a rule that makes a condition of the rule fail."""

    kind: HintKind
    values: tuple[str, ...] = ()


class Mismatch(NamedTuple):
    """A condition of a rule that a request does not meet."""

    condition: Condition
    path: Path
    """Path of the field that contains the condition. The manifest may omit the field."""
    values: tuple[str, ...] = ()
    """All items of the field, none of which matches. Empty for subjects."""
    actual: str = ""
    """Value of the request that the condition tests: its verb, resource with subresource, API group, namespace or path."""
    subjects: tuple[Subject, ...] = ()
    hint: Hint | None = None
    missing: Literal["", "resourceRules", "nonResourceRules", "clusterScope"] = ""
    """The field that is missing. `resourceRules` or `nonResourceRules`: the rule has no entries for requests of this
    type. `clusterScope`: the entry does not set this field, but the request has no namespace. Empty if no field is
    missing."""
    scope: Literal["", "cluster-scoped", "no namespace", "all namespaces"] = ""
    """Reason why the request has no namespace, if `clusterScope` is missing. `actual` is then the resource."""


class Verdict(NamedTuple):
    """The result of matching a FlowSchema with a request, and the reason."""

    flow_schema: FlowSchema
    matching_part: MatchedBy | None
    """The rule, subject and entry that match, or None if the FlowSchema does not match."""
    path: Path
    """Path of the decisive field."""
    mismatches: tuple[Mismatch, ...] = ()
    """All conditions of the closest rule that fail. Empty if the FlowSchema matches or has no rules."""

    @property
    def matched(self) -> bool:
        """Return whether the FlowSchema matches."""
        return self.matching_part is not None


class SkippedFlowSchema(NamedTuple):
    """A FlowSchema that the server skips because its priority level does not exist or is unusable."""

    flow_schema: FlowSchema
    unusable: str | None
    """A verb phrase that states why the priority level is unusable, or None if the level does not exist."""
    path: Path = ("spec", "priorityLevelConfiguration", "name")


def explain_resolution(
    configuration: Configuration, digest: RequestDigest, resolution: Resolution
) -> Iterator[Verdict]:
    """Yield a verdict for each FlowSchema that the server tests for a request, in matching order.

    The server tests FlowSchemas until one of them matches, so only the last verdict is a match. If the
    server uses `catch-all` because no FlowSchema matches, no verdict is a match.
    """
    fell_back = resolution.matched_by is None
    tried = configuration.order if fell_back else configuration.order[: resolution.position + 1]
    for schema in tried:
        yield explain_match(schema, digest)


def explain_match(schema: FlowSchema, digest: RequestDigest) -> Verdict:
    """Explain why a FlowSchema matches or does not match a request.

    The field `matched` of the result is equal to `matches_flow_schema(digest, schema.spec)`.
    """
    part = matched_by(digest, schema)
    if part is not None:
        return Verdict(schema, part, _find_path(part))
    rules = schema.spec.rules
    if not rules:
        return Verdict(schema, None, ("spec", "rules"))
    # The closest rule has the fewest failed conditions. If several rules have the fewest failed
    # conditions, prefer a rule whose subjects match the user. If several of these rules remain, take
    # the first.
    mismatches = min(
        (_find_mismatches(rule, ("spec", "rules", number), digest) for number, rule in enumerate(rules)),
        key=lambda mismatches: (len(mismatches), mismatches[0].condition == "subject"),
    )
    return Verdict(schema, None, mismatches[0].path, mismatches)


def explain_skipped(configuration: Configuration) -> Iterator[SkippedFlowSchema]:
    """Yield each FlowSchema that the server skips because its priority level does not exist or is unusable."""
    for schema in configuration.dangling:
        yield SkippedFlowSchema(schema, configuration.unusable.get(schema.spec.priority_level_configuration))


def _find_path(part: MatchedBy) -> Path:
    if part.resource_rule is not None:
        return ("spec", "rules", part.rule, "resourceRules", part.resource_rule)
    return ("spec", "rules", part.rule, "nonResourceRules", part.non_resource_rule or 0)


def _find_mismatches(rule: PolicyRulesWithSubjects, path: Path, digest: RequestDigest) -> tuple[Mismatch, ...]:
    """Return the failed conditions of a rule that does not match. The result is not empty.

    If no subject of the rule matches the user, the mismatch of the subjects is the first item.
    """
    info, user = digest
    field: Literal["resourceRules", "nonResourceRules"] = "nonResourceRules"
    entries: Sequence[ResourcePolicyRule | NonResourcePolicyRule] = rule.non_resource_rules
    if info.is_resource_request:
        field, entries = "resourceRules", rule.resource_rules
    if entries:
        # No condition of a resource request tests the object name or the path. So clear both: more requests can then
        # use the same cached result of `_find_closest_entry`.
        info = info._replace(name="", path="") if info.is_resource_request else info
        mismatches = _find_closest_entry(info, entries, (*path, field))
    else:  # a rule without entries for this type of request matches no such request, so every condition fails
        conditions = _CONDITIONS[info.is_resource_request]
        mismatches = tuple(Mismatch(condition, (*path, field), missing=field) for condition in conditions)
    if matches_a_subject(user, rule.subjects):
        return mismatches
    return (_explain_subjects(user, rule.subjects, (*path, "subjects")), *mismatches)


@lru_cache(maxsize=4096)
def _find_closest_entry(
    info: RequestInfo, entries: Sequence[ResourcePolicyRule | NonResourcePolicyRule], path: Path
) -> tuple[Mismatch, ...]:
    """Return the failed conditions of the entry with the fewest failed conditions. `path` is the path of `entries`."""
    found = (tuple(_find_entry_mismatches(info, entry, (*path, number))) for number, entry in enumerate(entries))
    return min(found, key=len)


def _find_entry_mismatches(
    info: RequestInfo, entry: ResourcePolicyRule | NonResourcePolicyRule, path: Path
) -> Iterator[Mismatch]:
    """Yield the failed conditions of an entry (an item of `resourceRules` or `nonResourceRules`), in the server's order."""
    if not match_policy_rule_verb(entry.verbs, info.verb):
        yield _explain_value("verb", (*path, "verbs"), info.verb, entry.verbs, _find_verb_hint(info, entry.verbs))
    if isinstance(entry, NonResourcePolicyRule):
        urls = entry.non_resource_urls
        if not match_policy_rule_non_resource_url(urls, info.path):
            yield _explain_value("path", (*path, "nonResourceURLs"), info.path, urls, _find_path_hint(info.path, urls))
        return
    if not match_policy_rule_resource(entry.resources, info.resource, info.subresource):
        name, hint = rs_join(info.resource, info.subresource), _find_resource_hint(info, entry.resources)
        yield _explain_value("resource", (*path, "resources"), name, entry.resources, hint)
    if not match_policy_rule_api_group(entry.api_groups, info.api_group):
        hint = _find_group_hint(info.api_group, entry.api_groups)
        yield _explain_value("group", (*path, "apiGroups"), info.api_group, entry.api_groups, hint)
    if not match_policy_rule_namespace(entry, info.namespace):
        if info.namespace:
            hint = _find_namespace_hint(info.namespace, entry.namespaces)
            yield _explain_value("namespace", (*path, "namespaces"), info.namespace, entry.namespaces, hint)
        else:
            yield _explain_scope(info, entry, (*path, "clusterScope"))


def _explain_value(condition: Condition, path: Path, actual: str, values: Sequence[str], hint: Hint | None) -> Mismatch:
    """Return the mismatch between the value `actual` of a request and the items `values` of a field.

    The result contains `hint`, with two exceptions. If `values` is empty, the result contains no hint.
    If `values` contains `*` and other items, the result contains a hint that `*` is a wildcard only as
    the only item.
    """
    if ALL in values:
        hint = Hint("not the only item")
    return Mismatch(condition, path, tuple(values), actual, hint=hint if values else None)


@lru_cache(maxsize=4096)  # a log has thousands of requests by the same users
def _explain_subjects(user: UserInfo, subjects: Sequence[Subject], path: Path) -> Mismatch:
    """Explain why none of `subjects` matches the user. `path` is the path of `subjects` in the FlowSchema.

    `Mismatch.path` is the path of the first subject for which there is a hint. If there is no hint, `Mismatch.path` is
    the path of the only subject, or `path` if there are several subjects.
    """
    for number, subject in enumerate(subjects):
        if hint := _find_subject_hint(user, subject):
            return Mismatch("subject", (*path, number), subjects=tuple(subjects), hint=hint)
    return Mismatch("subject", (*path, 0) if len(subjects) == 1 else path, subjects=tuple(subjects))


def _find_subject_hint(user: UserInfo, subject: Subject) -> Hint | None:
    """Return a hint about the small difference between a subject and the user, or None if no hint applies."""
    account = subject.service_account
    if subject.kind == "ServiceAccount" and account is not None:
        if user.name == account.name:
            return Hint("account name")
        if user.name.startswith(f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:"):
            return Hint("other account of the namespace")
        same_name = user.name.startswith(SERVICE_ACCOUNT_PREFIX) and user.name.endswith(f":{account.name}")
        return Hint("same account of another namespace") if same_name and account.name != ALL else None
    name = {"User": subject.user, "Group": subject.group}.get(subject.kind)
    if name is None:
        return None
    known = (user.name,) if subject.kind == "User" else user.groups
    if name.endswith(ALL) and any(other.startswith(name[:-1]) for other in known):
        return Hint("literal", (name,))
    same = next((other for other in known if other.lower() == name.lower()), None)
    if same is not None:
        return Hint("letter case", (name, same))
    if subject.kind == "User" and name in user.groups:
        return Hint("user subject with a group", (name,))
    if subject.kind == "Group" and name == user.name:
        return Hint("group subject with a user", (name,))
    return None


def _find_verb_hint(info: RequestInfo, verbs: Sequence[str]) -> Hint | None:
    if not info.is_resource_request and not any(verb in _HTTP_VERBS for verb in verbs):
        return Hint("HTTP method")
    return None


def _find_resource_hint(info: RequestInfo, resources: Sequence[str]) -> Hint | None:
    if info.subresource and info.resource in resources:
        return Hint("no subresources", (info.resource,))
    if info.subresource:
        patterns = (f"{info.resource}/*", f"*/{info.subresource}")
        return _find_literal(pattern for pattern in patterns if pattern in resources)
    for name in resources:
        if info.resource in (resource.name for resource in find_resources(name)):
            return Hint("other name of the resource", (name, info.resource)) if name else None
    return None


def _find_literal(patterns: Iterator[str]) -> Hint | None:
    pattern = next(patterns, None)
    return None if pattern is None else Hint("literal", (pattern,))


def _find_group_hint(group: str, groups: Sequence[str]) -> Hint | None:
    if not group:
        is_core = any(other in ("core", "v1", "core/v1", "api") for other in groups)
        return Hint("core group") if is_core else None
    versioned = next((other for other in groups if other.startswith(f"{group}/")), None)
    return None if versioned is None else Hint("group with version", (versioned,))


def _explain_scope(info: RequestInfo, entry: ResourcePolicyRule, path: Path) -> Mismatch:
    resource = get_resource(info.resource, info.api_group)
    scope: Literal["cluster-scoped", "no namespace", "all namespaces"] = "all namespaces"
    if resource is not None and not resource.namespaced:
        scope = "cluster-scoped"
    elif resource is None and info.verb not in ("list", "watch", "deletecollection"):
        scope = "no namespace"
    hint = Hint("namespaces without clusterScope") if entry.namespaces == (ALL,) else None
    return Mismatch("namespace", path, entry.namespaces, info.resource, hint=hint, missing="clusterScope", scope=scope)


def _find_namespace_hint(namespace: str, namespaces: Sequence[str]) -> Hint | None:
    return _find_literal(name for name in namespaces if name.endswith(ALL) and namespace.startswith(name[:-1]))


def _find_path_hint(path: str, urls: Sequence[str]) -> Hint | None:
    directory = next((url for url in urls if url.rstrip("*").rstrip("/") == path), None)
    if directory:
        return Hint("only paths below", (directory, path))
    prefix = next((url for url in urls if len(url) > 1 and path.startswith(url.removesuffix(ALL))), None)
    return Hint("whole segments", (prefix,)) if prefix else None
