"""Reasons why no request matches a part of a FlowSchema, for APF501 and APF502, which have proved that none does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.authentication import SERVICE_ACCOUNTS, service_account
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.proofs.request_space import (
    authentic_user,
    is_resource_path,
    legal_resource,
    path_traits,
    resource_traits,
)
from apflint.wording import listed, quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.model import NonResourcePolicyRule, PolicyRulesWithSubjects, ResourcePolicyRule, Subject
    from apflint.proofs.parts import Part

_ACCOUNTS_OF = f"{SERVICE_ACCOUNTS}:"
_UNKNOWN = "no request that API Priority and Fairness classifies matches it"


def nothing(part: Part) -> str:
    """Return what the part asks for that no request has, as a clause; the mere fact if there is no single reason."""
    rules = part.schema.spec.rules if part.rule is None else (part.schema.spec.rules[part.rule],)
    reasons = [_rule(rule, part) for rule in rules]
    return _each(reasons) or _UNKNOWN


def _each(reasons: Iterable[str | None]) -> str | None:
    """All of the reasons, each once; None if there are none, or one of them is not known."""
    known = dict.fromkeys(reasons)
    return None if None in known else "; ".join(filter(None, known)) or None


def _rule(rule: PolicyRulesWithSubjects, part: Part) -> str | None:
    """Why a rule, or the entry of it that the part is, matches nothing."""
    subjects, resource, other = rule.subjects, rule.resource_rules, rule.non_resource_rules
    if part.entry is not None:
        one = slice(part.entry, part.entry + 1)
        if part.member == "subjects":
            subjects = subjects[one]
        else:
            resource = resource[one] if part.member == "resourceRules" else ()
            other = other[one] if part.member == "nonResourceRules" else ()
    return _each(map(_subject, subjects)) or _each([*map(_resource_rule, resource), *map(_non_resource_rule, other)])


def _subject(subject: Subject) -> str | None:
    if subject.kind == "User" and subject.user is not None and not authentic_user(subject.user):
        return (
            f"{quote(subject.user)} is not the user name of a service account ({SERVICE_ACCOUNT_PREFIX}NAMESPACE:NAME), and"
            " no other user name may begin with this prefix"
        )
    if subject.kind == "Group" and subject.group is not None and subject.group.startswith(_ACCOUNTS_OF):
        namespace = subject.group.removeprefix(_ACCOUNTS_OF)
        if service_account(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:default") is None:
            return f"nobody is in the group {quote(subject.group)}: {quote(namespace)} is not a valid namespace"
    return None


def _resource_rule(rule: ResourcePolicyRule) -> str | None:
    illegal = [name for name in rule.resources if not legal_resource(name)]
    unseen = [name for name in rule.resources if legal_resource(name) and resource_traits(name).watch_only]
    if len(illegal) + len(unseen) < len(rule.resources) or (unseen and {ALL, "watch"} & {*rule.verbs}):
        return None
    return _each([*_no_resources(illegal), *_long_running(unseen)])


def _non_resource_rule(rule: NonResourcePolicyRule) -> str | None:
    urls = rule.non_resource_urls
    paths = [url for url in urls if is_resource_path(f"{url.removesuffix(ALL)}x" if url.endswith(ALL) else url)]
    unseen = [url for url in urls if path_traits(url).watch_only]
    return _each([*_resource_paths(paths), *_long_running(unseen)]) if len(paths) + len(unseen) == len(urls) else None


def _no_resources(names: list[str]) -> list[str]:
    """A resource of a request is the piece of its path between two slashes, with a subresource after one more."""
    return [f"no request is for {listed(map(quote, names))}: write a resource as pods or pods/log"] if names else []


def _resource_paths(urls: list[str]) -> list[str]:
    if not urls:
        return []
    are = "is a resource path" if len(urls) == 1 else "are resource paths"
    return [f"{listed(map(quote, urls), 'and')} {are}, which only resourceRules match"]


def _long_running(what: list[str]) -> list[str]:
    if not what:
        return []
    return [
        f"requests for {listed(map(quote, what))} are long-running, and API Priority and Fairness does not classify them"
    ]
