"""Explanations in words why a FlowSchema matches or does not match a request, with the path of the decisive field.

If no rule matches, the explanation describes the closest rule: the rule with the fewest failed conditions. A hint is added
if a condition nearly holds. `apflint.evaluate.match` decides whether a rule matches.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from apflint.evaluate.classify import matched_by
from apflint.evaluate.configuration import EXEMPT
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
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from apflint.evaluate.classify import MatchedBy, Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.match import RequestDigest, UserInfo
    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.location import Path
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, ResourcePolicyRule, Subject

Condition = Literal["subject", "verb", "resource", "group", "namespace", "path"]
MAX_LISTED_VALUES = 4
"""Maximum number of values of a list that an explanation names. Further values are only counted."""
_CONDITIONS: Mapping[str, tuple[Condition, ...]] = {
    "resource": ("verb", "resource", "group", "namespace"),
    "non-resource": ("verb", "path"),
}
_HTTP_VERBS = ("get", "head", "post", "put", "patch", "delete", "options", "trace", "connect")


class Mismatch(NamedTuple):
    """A condition of a rule that a request does not meet."""

    condition: Condition
    because: str
    """Why the request does not meet the condition: a clause without a period."""
    path: Path
    """Path of the field that contains the condition. The manifest may omit the field."""


class Verdict(NamedTuple):
    """The result of matching a FlowSchema with a request, and its explanation."""

    flow_schema: FlowSchema
    matched: bool
    because: str
    """The reason as a clause without a period: `verb "watch" is not among ["get", "list"]`, or `it matches group "dev", all
    verbs and resources`."""
    path: Path
    """Path of the field that `because` is about."""
    mismatches: tuple[Mismatch, ...] = ()
    """All conditions of the closest rule that fail. `because` describes the first. Empty if the FlowSchema matches."""


def explain_resolution(
    configuration: Configuration, digest: RequestDigest, resolution: Resolution
) -> Iterator[Verdict]:
    """Explain every FlowSchema that the server tries for a request, in matching order.

    Only the last FlowSchema matches. If the resolution fell back to `catch-all`, no FlowSchema matches.
    """
    fell_back = resolution.matched_by is None
    tried = configuration.order if fell_back else configuration.order[: resolution.position + 1]
    for schema in tried:
        yield explain_match(schema, digest)


def explain_match(schema: FlowSchema, digest: RequestDigest) -> Verdict:
    """Explain why a FlowSchema matches or does not match a request.

    The field `matched` of the result is equal to `matches_flow_schema(digest, schema.spec)`.
    """
    matching_part = matched_by(digest, schema)
    if matching_part is not None:
        return Verdict(schema, True, *_describe_part(schema, matching_part))
    rules = schema.spec.rules
    if not rules:
        return Verdict(schema, False, "it has no rules, so it matches nothing", ("spec", "rules"))
    # The closest rule has the fewest failed conditions. Of several such rules, prefer a rule for this user, then the first.
    mismatches = min(
        (_find_mismatches(rule, ("spec", "rules", number), digest) for number, rule in enumerate(rules)),
        key=lambda mismatches: (len(mismatches), mismatches[0].condition == "subject"),
    )
    return Verdict(schema, False, mismatches[0].because, mismatches[0].path, mismatches)


def explain_skipped(configuration: Configuration) -> Iterator[Verdict]:
    """Explain why the server skips each FlowSchema whose priority level does not exist or is unusable."""
    for schema in configuration.dangling:
        name = schema.spec.priority_level_configuration
        reason = configuration.unusable.get(name)
        why = "does not exist" if reason is None else f"{reason}, so it counts as absent"
        path = ("spec", "priorityLevelConfiguration", "name")
        yield Verdict(schema, False, f'the priority level "{name}" {why}', path)


def describe_fallback(resolution: Resolution) -> str | None:
    """Return why a request gets `catch-all` although no FlowSchema matches, or None if a FlowSchema matches."""
    if resolution.matched_by is not None:
        return None
    return (
        f'No FlowSchema matches, so the server falls back to "{resolution.flow_schema.name}". A real user is always in the'
        ' group "system:authenticated" or "system:unauthenticated".'
    )


def describe_imagined(configuration: Configuration) -> Iterator[str]:
    """Yield a sentence for each mandatory object that the server imagines, because it is missing or unusable."""
    for kind, name in sorted(configuration.imagined):
        if kind == "PriorityLevelConfiguration":
            yield f'The priority level "{name}" is missing; the server imagines it.'
        else:
            place = "before all others" if name == EXEMPT else "after all others"
            yield f'The FlowSchema "{name}" is missing or dangles; the server imagines it, {place}.'


def describe_subject(subject: Subject) -> str:
    """Return a subject as a noun: `group "dev"`, `service account "ci/runner"`, `a service account in "ci"`."""
    account = subject.service_account
    if subject.kind == "Group" and subject.group is not None:
        return "everybody" if subject.group == ALL else f'group "{subject.group}"'
    if subject.kind == "User" and subject.user is not None:
        return "everybody" if subject.user == ALL else f'user "{subject.user}"'
    if subject.kind == "ServiceAccount" and account is not None:
        if account.name == ALL:
            return f'a service account in "{account.namespace}"'
        return f'service account "{account.namespace}/{account.name}"'
    return f'a subject of kind "{subject.kind}" without a name'


def quote_list(values: Sequence[str]) -> str:
    """Return a list in YAML syntax with at most MAX_LISTED_VALUES values: `["a", "b", "c", "d", and 2 more]`."""
    quoted = [f'"{value}"' for value in values]
    return f"[{_join_some(quoted)}]"


def _join_some(words: Sequence[str]) -> str:
    more = len(words) - MAX_LISTED_VALUES
    return ", ".join((*words[:MAX_LISTED_VALUES], *([f"and {more} more"] if more > 0 else [])))


def _describe_part(schema: FlowSchema, part: MatchedBy) -> tuple[str, Path]:
    """Return a clause that describes the subject and the entry in `part`, and the path of the entry."""
    rule = schema.spec.rules[part.rule]
    who = describe_subject(rule.subjects[part.subject])
    path: Path = ("spec", "rules", part.rule)
    if part.resource_rule is not None:
        entry = rule.resource_rules[part.resource_rule]
        field, number, verbs = "resourceRules", part.resource_rule, entry.verbs
        what = "all resources" if entry.resources == (ALL,) else f"resources {quote_list(entry.resources)}"
    else:
        number = part.non_resource_rule or 0
        urls = rule.non_resource_rules[number].non_resource_urls
        field, verbs = "nonResourceRules", rule.non_resource_rules[number].verbs
        what = "all paths" if ALL in urls else f"paths {quote_list(urls)}"
    if verbs != (ALL,):
        what = f"verbs {quote_list(verbs)} on {what}"
    else:
        what = f"all verbs and {what[4:]}" if what.startswith("all ") else f"all verbs on {what}"
    return f"it matches {who}, {what}", (*path, field, number)


def _find_mismatches(rule: PolicyRulesWithSubjects, path: Path, digest: RequestDigest) -> tuple[Mismatch, ...]:
    """Return the failed conditions of a rule that does not match. A failed subject is first. The result is not empty."""
    info, user = digest
    field, noun = ("resourceRules", "resource") if info.is_resource_request else ("nonResourceRules", "non-resource")
    entries = rule.resource_rules if info.is_resource_request else rule.non_resource_rules
    if entries:
        # No condition is about the object name, nor about the path of a resource request.
        info = info._replace(name="", path="") if info.is_resource_request else info
        mismatches = _find_closest_entry(info, entries, (*path, field))
    else:  # no condition can hold, so every condition fails
        because = f"it has no {field}, and this is a {noun} request"
        mismatches = tuple(Mismatch(condition, because, (*path, field)) for condition in _CONDITIONS[noun])
    if matches_a_subject(user, rule.subjects):
        return mismatches
    return (_explain_subjects(user, rule.subjects, (*path, "subjects")), *mismatches)


@lru_cache(maxsize=4096)
def _find_closest_entry(
    info: RequestInfo, entries: Sequence[ResourcePolicyRule | NonResourcePolicyRule], path: Path
) -> tuple[Mismatch, ...]:
    """Return the failed conditions of the entry with the fewest failed conditions. `path` is the path of the list."""
    found = (tuple(_find_entry_mismatches(info, entry, (*path, number))) for number, entry in enumerate(entries))
    return min(found, key=len)


def _find_entry_mismatches(
    info: RequestInfo, entry: ResourcePolicyRule | NonResourcePolicyRule, path: Path
) -> Iterator[Mismatch]:
    """Yield the failed conditions of an entry (an item of `resourceRules` or `nonResourceRules`), in the server's order."""
    if not match_policy_rule_verb(entry.verbs, info.verb):
        yield Mismatch("verb", _explain_verb(info, entry.verbs), (*path, "verbs"))
    if isinstance(entry, NonResourcePolicyRule):
        if not match_policy_rule_non_resource_url(entry.non_resource_urls, info.path):
            yield Mismatch("path", _explain_path(info.path, entry.non_resource_urls), (*path, "nonResourceURLs"))
        return
    if not match_policy_rule_resource(entry.resources, info.resource, info.subresource):
        yield Mismatch("resource", _explain_resource(info, entry.resources), (*path, "resources"))
    if not match_policy_rule_api_group(entry.api_groups, info.api_group):
        yield Mismatch("group", _explain_api_group(info.api_group, entry.api_groups), (*path, "apiGroups"))
    if not match_policy_rule_namespace(entry, info.namespace):
        if info.namespace:
            because, field = _explain_namespace(info.namespace, entry.namespaces), "namespaces"
        else:
            because, field = _explain_scope(info, entry), "clusterScope"
        yield Mismatch("namespace", because, (*path, field))


@lru_cache(maxsize=4096)  # a log has thousands of requests of the same users
def _explain_subjects(user: UserInfo, subjects: Sequence[Subject], path: Path) -> Mismatch:
    """Explain why none of `subjects` matches the user. `path` is the path of the list.

    The path of the result is the path of the first subject that nearly matches, or of the only subject. If there is no such
    subject, it is the path of the list.
    """
    if not subjects:
        return Mismatch("subject", "the rule has no subjects", path)
    kinds = {subject.kind for subject in subjects}
    names = [(subject.group if subject.kind == "Group" else subject.user) or "" for subject in subjects]
    is_single = len(subjects) == 1
    if kinds == {"Group"}:
        because = f'not in the group "{names[0]}"' if is_single else f"in none of the groups {quote_list(names)}"
    elif kinds == {"User"}:
        because = f'not "{names[0]}"' if is_single else f"not among {quote_list(names)}"
    elif is_single:
        because = f"not {describe_subject(subjects[0])}"
    else:
        because = f"none of the {len(subjects)} subjects: {_join_some([*map(describe_subject, subjects)])}"
    because = f"the user is {because}"
    for number, subject in enumerate(subjects):
        if hint := _explain_near_subject(user, subject):
            return Mismatch("subject", f"{because}; {hint}", (*path, number))
    return Mismatch("subject", because, (*path, 0) if is_single else path)


def _explain_near_subject(user: UserInfo, subject: Subject) -> str:
    """Return a hint how a nearly matching subject differs from the user, or an empty string if no hint applies."""
    account = subject.service_account
    if subject.kind == "ServiceAccount" and account is not None:
        if user.name == account.name:
            return "the name of a service account is the part of its user name after the last colon"
        if user.name.startswith(f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:"):
            return "the namespace is the same, the name differs"
        same_name = user.name.startswith(SERVICE_ACCOUNT_PREFIX) and user.name.endswith(f":{account.name}")
        return "the name is the same, the namespace differs" if same_name and account.name != ALL else ""
    name = {"User": subject.user, "Group": subject.group}.get(subject.kind)
    if name is None:
        return ""
    known = (user.name,) if subject.kind == "User" else user.groups
    if name.endswith(ALL) and any(other.startswith(name[:-1]) for other in known):
        return f'"{name}" is matched literally, not as a pattern'
    same = next((other for other in known if other.lower() == name.lower()), None)
    if same is not None:
        return f'"{name}" and "{same}" differ in upper and lower case'
    if subject.kind == "User" and name in user.groups:
        return f'"{name}" is a group of the user, but the subject is a user'
    if subject.kind == "Group" and name == user.name:
        return f'"{name}" is the user, but the subject is a group'
    return ""


def _explain_value(noun: str, value: str, values: Sequence[str], hint: str | None = None) -> str:
    """Return a clause such as `verb "get" is not among ["list"]; HINT`, with the hint only if a hint applies."""
    if not values:
        return f"the rule has no {noun}s"
    text = f"{noun} {value} is not among {quote_list(values)}"
    if ALL in values:
        hint = '"*" matches everything only if it is the only item'
    return f"{text}; {hint}" if hint else text


def _explain_literal(pattern: str | None) -> str | None:
    return pattern and f'"{pattern}" is matched literally, not as a pattern'


def _explain_verb(info: RequestInfo, verbs: Sequence[str]) -> str:
    if verbs and not info.verb:
        return f'this HTTP method maps to no verb, so only ["*"] matches it, not {quote_list(verbs)}'
    hint = None
    if not info.is_resource_request and not any(verb in _HTTP_VERBS for verb in verbs):
        hint = "the verb of a non-resource request is its HTTP method in lower case"
    return _explain_value("verb", f'"{info.verb}"', verbs, hint)


def _explain_resource(info: RequestInfo, resources: Sequence[str]) -> str:
    hint = None
    if info.subresource and info.resource in resources:
        hint = f'"{info.resource}" does not match its subresources'
    elif info.subresource:
        patterns = (f"{info.resource}/*", f"*/{info.subresource}")
        hint = _explain_literal(next((pattern for pattern in patterns if pattern in resources), None))
    else:
        other_names = (
            name for name in resources if info.resource in (resource.name for resource in find_resources(name))
        )
        if other := next(other_names, None):
            hint = f'the name of "{other}" in requests is "{info.resource}"'
    return _explain_value("resource", f'"{rs_join(info.resource, info.subresource)}"', resources, hint)


def _explain_api_group(group: str, groups: Sequence[str]) -> str:
    hint = None
    if not group and any(other in ("core", "v1", "core/v1", "api") for other in groups):
        hint = 'the core group is written ""'
    elif group and (versioned := next((other for other in groups if other.startswith(f"{group}/")), None)):
        hint = f'"{versioned}" includes a version, which does not belong here'
    return _explain_value("API group", f'"{group}"' if group else '"" (core)', groups, hint)


def _explain_scope(info: RequestInfo, entry: ResourcePolicyRule) -> str:
    resource = get_resource(info.resource, info.api_group)
    if resource is not None and not resource.namespaced:
        what = f'"{info.resource}" is cluster-scoped'
    elif resource is None and info.verb not in ("list", "watch", "deletecollection"):
        what = "the request has no namespace"
    else:
        what = "the request is for all namespaces"
    hint = '; namespaces: ["*"] does not match that' if entry.namespaces == (ALL,) else ""
    return f"no clusterScope: true, and {what}{hint}"


def _explain_namespace(namespace: str, namespaces: Sequence[str]) -> str:
    if not namespaces:
        return f'the rule has no namespaces, and the request is for namespace "{namespace}"'
    patterns = (name for name in namespaces if name.endswith(ALL) and namespace.startswith(name[:-1]))
    return _explain_value("namespace", f'"{namespace}"', namespaces, _explain_literal(next(patterns, None)))


def _explain_path(path: str, urls: Sequence[str]) -> str:
    hint = None
    directory = next((url for url in urls if url.rstrip("*").rstrip("/") == path), None)
    prefix = next((url for url in urls if len(url) > 1 and path.startswith(url.removesuffix(ALL))), None)
    if directory:
        hint = f'"{directory}" matches only paths below "{path}"'
    elif prefix:
        hint = f'"{prefix}" matches only whole segments of a path'
    return _explain_value("path", f'"{path}"', urls, hint)
