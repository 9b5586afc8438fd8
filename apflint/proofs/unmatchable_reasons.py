"""Reasons why no request matches a part of a FlowSchema. Call the functions only if it is proven that no request matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import parse_service_account
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.proofs.request_space import (
    SERVICE_ACCOUNTS_OF,
    is_authentic_user,
    is_long_running_path,
    is_resource_path,
    is_valid_resource,
    resource_traits,
)
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.model import NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject
    from apflint.proofs.one_configuration import FlowSchemaPart

Reasons = tuple[str, ...]
"""Reasons as clauses of a sentence. Empty if no reason is known."""


def find_reasons(part: FlowSchemaPart, *, watches: bool = True) -> Reasons:
    """Return why no request matches the part. `watches` is `Configuration.classifies_watches`."""
    return _combine(_rule(rule, watches=watches) for rule in part.only)


def _combine(reasons: Iterable[Reasons]) -> Reasons:
    """Return all reasons without duplicates.

    An empty item of `reasons` means an unknown reason. If there is an empty item, return ().
    """
    known = list(reasons)
    return tuple(dict.fromkeys(reason for each in known for reason in each)) if all(known) else ()


def _rule(rule: PolicyRulesWithSubjects, *, watches: bool) -> Reasons:
    return _combine(map(_subject, rule.subjects)) or _combine(
        [
            *(_resource_rule(entry, watches=watches) for entry in rule.resource_rules),
            *map(_non_resource_rule, rule.non_resource_rules),
        ]
    )


def _subject(subject: Subject) -> Reasons:
    if subject.kind == "User" and subject.user is not None and not is_authentic_user(subject.user):
        form = f"{SERVICE_ACCOUNT_PREFIX}NAMESPACE:NAME"
        return (f"{quote(subject.user)} is not a valid user name of a service account ({form})",)
    if subject.kind == "Group" and subject.group is not None and subject.group.startswith(SERVICE_ACCOUNTS_OF):
        namespace = subject.group.removeprefix(SERVICE_ACCOUNTS_OF)
        if parse_service_account(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:default") is None:
            return (
                f"group {quote(subject.group)} has no members, because {quote(namespace)} is not a valid namespace",
            )
    return ()


def _resource_rule(rule: ResourcePolicyRule, *, watches: bool) -> Reasons:
    if not watches and {*rule.verbs} == {"watch"}:
        return ("API Priority and Fairness classifies watches only from Kubernetes 1.22 on",)
    illegal = [name for name in rule.resources if not is_valid_resource(name)]
    unseen = [name for name in rule.resources if is_valid_resource(name) and resource_traits(name).watch_only]
    if len(illegal) + len(unseen) < len(rule.resources) or (unseen and watches and {ALL, "watch"} & {*rule.verbs}):
        return ()
    # The resource of a request is one segment of its path, and the subresource is one further segment. So a name with more
    # slashes is in no URL.
    invalid = (f"no URL has the resource {join_words(map(quote, illegal))}",) if illegal else ()
    return (*invalid, *_long_running(unseen))


def _non_resource_rule(rule: NonResourcePolicyRule) -> Reasons:
    urls = rule.non_resource_urls
    paths = [url for url in urls if is_resource_path(f"{url.removesuffix(ALL)}x" if url.endswith(ALL) else url)]
    unseen = [*filter(is_long_running_path, urls)]
    if len(paths) + len(unseen) < len(urls):
        return ()
    verb = "is a path of resources" if len(paths) == 1 else "are paths of resources"
    resources = (f"{join_words(map(quote, paths), 'and')} {verb}, which only resourceRules match",) if paths else ()
    return (*resources, *_long_running(unseen))


def _long_running(names: list[str]) -> Reasons:
    if not names:
        return ()
    return (
        f"the server does not classify long-running requests, such as those for {join_words(map(quote, names), 'and')}",
    )
