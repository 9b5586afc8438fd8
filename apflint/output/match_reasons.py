"""Sentences about verdicts: why a FlowSchema matches or does not match a request, and why the server skips it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from apflint.evaluate.configuration import EXEMPT
from apflint.evaluate.match import ALL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.evaluate.classify import MatchedBy, Resolution
    from apflint.evaluate.match_reasons import Condition, HintKind, Mismatch, SkippedFlowSchema, Verdict
    from apflint.model import FlowSchema, Subject

_MAX_LISTED_VALUES = 4
"""Maximum number of values of a list that a sentence names. Further values are only counted."""
_NOUNS: dict[Condition, str] = {"group": "API group"}
_HINTS: dict[HintKind, str] = {
    "account name": "the name of a service account is the part of its user name after the last colon",
    "other account of the namespace": "the namespace is the same, the name differs",
    "same account of another namespace": "the name is the same, the namespace differs",
    "literal": '"{0}" is matched literally, not as a pattern',
    "letter case": '"{0}" and "{1}" differ in upper and lower case',
    "user subject with a group": '"{0}" is a group of the user, but the subject is a user',
    "group subject with a user": '"{0}" is the user, but the subject is a group',
    "not the only item": '"*" matches everything only if it is the only item',
    "HTTP method": "the verb of a non-resource request is its HTTP method in lower case",
    "no subresources": '"{0}" does not match its subresources',
    "other name of the resource": 'in requests, the resource "{0}" has the name "{1}"',
    "core group": 'the core group is written ""',
    "group with version": '"{0}" includes a version, which does not belong here',
    "only paths below": '"{0}" matches only paths below "{1}"',
    "whole segments": '"{0}" matches only whole segments of a path',
    "namespaces without clusterScope": 'namespaces: ["*"] matches only requests to a single namespace',
}


def describe_verdict(verdict: Verdict, *, has_subjects: bool = True) -> str:
    """Return the reason of a verdict as a clause without a period, such as `verb "watch" is not among ["get", "list"]`.

    If `has_subjects` is false, and there are several subjects, the clause contains only their number.
    """
    if verdict.matching_part is not None:
        return f"it matches {describe_match(verdict.flow_schema, verdict.matching_part)}"
    if not verdict.mismatches:
        return "it has no rules, so it matches nothing"
    return describe_mismatch(verdict.mismatches[0], has_subjects=has_subjects)


def describe_match(schema: FlowSchema, part: MatchedBy) -> str:
    """Describe the subject, verbs and resources that match, such as `group "dev", all verbs and resources`."""
    rule = schema.spec.rules[part.rule]
    who = describe_subject(rule.subjects[part.subject])
    if part.resource_rule is not None:
        entry = rule.resource_rules[part.resource_rule]
        noun, names, has_all, verbs = "resources", entry.resources, entry.resources == (ALL,), entry.verbs
    else:
        other = rule.non_resource_rules[part.non_resource_rule or 0]
        noun, names, has_all, verbs = "paths", other.non_resource_urls, ALL in other.non_resource_urls, other.verbs
    what = f"all {noun}" if has_all else f"{noun} {quote_list(names)}"
    if verbs != (ALL,):
        return f"{who}, verbs {quote_list(verbs)} on {what}"
    return f"{who}, all verbs and {noun}" if has_all else f"{who}, all verbs on {what}"


@lru_cache(maxsize=4096)  # many requests of a log have the same reasons
def describe_mismatch(mismatch: Mismatch, *, has_subjects: bool = True) -> str:
    """Return why a request does not meet a condition, as a clause without a period."""
    if mismatch.missing == "clusterScope":
        scopes = {
            "cluster-scoped": f'"{mismatch.actual}" is cluster-scoped',
            "no namespace": "the request has no namespace",
        }
        scope = scopes.get(mismatch.scope, "the request is for all namespaces")
        return _add_hint(f"no clusterScope: true, and {scope}", mismatch)
    if mismatch.missing:
        noun = "resource" if mismatch.missing == "resourceRules" else "non-resource"
        return f"the rule has no {mismatch.missing}, but the request is a {noun} request"
    if mismatch.condition == "subject":
        if not mismatch.subjects:
            return "the rule has no subjects"
        return _add_hint(f"the user is {_exclude(mismatch.subjects, has_names=has_subjects)}", mismatch)
    noun = _NOUNS.get(mismatch.condition, mismatch.condition)
    if mismatch.condition == "verb" and mismatch.values and not mismatch.actual:
        return f'this HTTP method maps to no verb, so only ["*"] matches it, not {quote_list(mismatch.values)}'
    if not mismatch.values:
        wanted = f', and the request is for namespace "{mismatch.actual}"' if noun == "namespace" else ""
        return f"the rule has no {noun}s{wanted}"
    core = " (core)" if mismatch.condition == "group" and not mismatch.actual else ""
    return _add_hint(f'{noun} "{mismatch.actual}"{core} is not among {quote_list(mismatch.values)}', mismatch)


def _add_hint(clause: str, mismatch: Mismatch) -> str:
    return clause if mismatch.hint is None else f"{clause}; {_HINTS[mismatch.hint.kind].format(*mismatch.hint.values)}"


def _exclude(subjects: Sequence[Subject], *, has_names: bool) -> str:
    """Return a phrase for users whom none of the subjects matches, such as `in none of the groups ["a", "b"]`."""
    kinds = {subject.kind for subject in subjects}
    names = [(subject.group if subject.kind == "Group" else subject.user) or "" for subject in subjects]
    is_single = len(subjects) == 1
    if kinds == {"Group"}:
        return f'not in the group "{names[0]}"' if is_single else f"in none of the groups {quote_list(names)}"
    if kinds == {"User"}:
        return f'not "{names[0]}"' if is_single else f"not among {quote_list(names)}"
    if is_single:
        return f"not {describe_subject(subjects[0])}"
    listed = f": {_join_some([*map(describe_subject, subjects)])}" if has_names else ""
    return f"none of the {len(subjects)} subjects{listed}"


def describe_skipped(skipped: SkippedFlowSchema) -> str:
    """Return why the server skips a FlowSchema, as a clause without a period."""
    why = "does not exist" if skipped.unusable is None else f"{skipped.unusable}, so it counts as absent"
    return f'the priority level "{skipped.flow_schema.spec.priority_level_configuration}" {why}'


def describe_fallback(resolution: Resolution) -> str | None:
    """Return why a request gets `catch-all` although no FlowSchema matches, or None if a FlowSchema matches."""
    if resolution.matched_by is not None:
        return None
    return (
        f'No FlowSchema matches, so the server falls back to "{resolution.flow_schema.name}". The groups of'
        ' the request may be incomplete: a real user is always in the group "system:authenticated" or'
        ' "system:unauthenticated".'
    )


def describe_imagined(imagined: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a sentence for each (kind, name) of a missing mandatory object, for which the API server uses a substitute."""
    for kind, name in sorted(imagined):
        if kind == "PriorityLevelConfiguration":
            yield f'The priority level "{name}" is missing; the server uses a built-in substitute.'
        else:
            place = "before all others" if name == EXEMPT else "after all others"
            yield f'The FlowSchema "{name}" or its priority level is missing. Instead, the server uses the built-in FlowSchema, and checks it {place}.'


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
    more = len(words) - _MAX_LISTED_VALUES
    return ", ".join((*words[:_MAX_LISTED_VALUES], *([f"and {more} more"] if more > 0 else [])))
