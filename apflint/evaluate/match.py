"""Does a request match? One small yes/no function for each type of the API.

This is staging/src/k8s.io/apiserver/pkg/util/flowcontrol/rule.go, function by function, under the same names in
Python's spelling and in the same order, so that the two can be read side by side. Why a request does not match is in
`apflint.evaluate.why`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.model import (
        FlowSchemaSpec,
        NonResourcePolicyRule,
        PolicyRulesWithSubjects,
        ResourcePolicyRule,
        Subject,
    )

SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"
"""What the user names of service accounts begin with; namespace, colon and name follow."""
ALL = "*"


class UserInfo(NamedTuple):
    """Who asks: the user and all groups, as authentication and impersonation leave them."""

    name: str
    groups: tuple[str, ...] = ()


class RequestDigest(NamedTuple):
    """All that API Priority and Fairness looks at when it classifies a request."""

    request_info: RequestInfo
    user: UserInfo


def matches_flow_schema(digest: RequestDigest, spec: FlowSchemaSpec) -> bool:
    """`matchesFlowSchema`: whether any rule of a FlowSchema matches. Without rules it matches nothing."""
    return any(matches_policy_rule(digest, policy_rule) for policy_rule in spec.rules)


def matches_policy_rule(digest: RequestDigest, policy_rule: PolicyRulesWithSubjects) -> bool:
    """`matchesPolicyRule`: one of the subjects asks, for what one of the rules of the request's type covers."""
    if not matches_a_subject(digest.user, policy_rule.subjects):
        return False
    if digest.request_info.is_resource_request:
        return matches_a_resource_rule(digest.request_info, policy_rule.resource_rules)
    return matches_a_non_resource_rule(digest.request_info, policy_rule.non_resource_rules)


def matches_a_subject(user: UserInfo, subjects: Sequence[Subject]) -> bool:
    """`matchesASubject`."""
    return any(matches_subject(user, subject) for subject in subjects)


def matches_subject(user: UserInfo, subject: Subject) -> bool:
    """`matchesSubject`: names are literal but for a lone `*`; a service account is told by its user name alone."""
    match subject.kind:
        case "User":
            return subject.user is not None and subject.user in (ALL, user.name)
        case "Group":
            return subject.group is not None and (subject.group == ALL or subject.group in user.groups)
        case "ServiceAccount":
            account = subject.service_account
            if account is None:
                return False
            if account.name == ALL:
                return service_account_matches_namespace(account.namespace, user.name)
            return user.name == f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}"
        case _:
            return False


def service_account_matches_namespace(namespace: str, username: str) -> bool:
    """`serviceAccountMatchesNamespace`: a test of the prefix only; what follows the second colon may be anything."""
    return username.startswith(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:")


def matches_a_resource_rule(info: RequestInfo, rules: Sequence[ResourcePolicyRule]) -> bool:
    """`matchesAResourceRule`."""
    return any(matches_resource_policy_rule(info, rule) for rule in rules)


def matches_resource_policy_rule(info: RequestInfo, policy_rule: ResourcePolicyRule) -> bool:
    """`matchesResourcePolicyRule`: verb, resource, API group and namespace all fit."""
    return (
        match_policy_rule_verb(policy_rule.verbs, info.verb)
        and match_policy_rule_resource(policy_rule.resources, info.resource, info.subresource)
        and match_policy_rule_api_group(policy_rule.api_groups, info.api_group)
        and match_policy_rule_namespace(policy_rule, info.namespace)
    )


def match_policy_rule_namespace(policy_rule: ResourcePolicyRule, request_namespace: str) -> bool:
    """The end of `matchesResourcePolicyRule`: without a namespace it takes `clusterScope: true`, whatever `namespaces` says."""
    if not request_namespace:
        return policy_rule.cluster_scope
    return contains_string(request_namespace, policy_rule.namespaces, ALL)


def matches_a_non_resource_rule(info: RequestInfo, rules: Sequence[NonResourcePolicyRule]) -> bool:
    """`matchesANonResourceRule`."""
    return any(matches_non_resource_policy_rule(info, rule) for rule in rules)


def matches_non_resource_policy_rule(info: RequestInfo, policy_rule: NonResourcePolicyRule) -> bool:
    """`matchesNonResourcePolicyRule`: verb and path fit."""
    return match_policy_rule_verb(policy_rule.verbs, info.verb) and match_policy_rule_non_resource_url(
        policy_rule.non_resource_urls, info.path
    )


def match_policy_rule_verb(policy_rule_verbs: Sequence[str], request_verb: str) -> bool:
    """`matchPolicyRuleVerb`."""
    return contains_string(request_verb, policy_rule_verbs, ALL)


def match_policy_rule_non_resource_url(policy_rule_request_urls: Sequence[str], request_path: str) -> bool:
    """`matchPolicyRuleNonResourceURL`: each entry is a path, and the folder of that name with all in it."""
    for rule_path in policy_rule_request_urls:
        if rule_path in (ALL, request_path):
            return True
        rule_prefix = rule_path.removesuffix(ALL)
        if not rule_prefix.endswith("/"):
            rule_prefix += "/"
        if request_path.startswith(rule_prefix):
            return True
    return False


def match_policy_rule_api_group(policy_rule_api_groups: Sequence[str], request_api_group: str) -> bool:
    """`matchPolicyRuleAPIGroup`."""
    return contains_string(request_api_group, policy_rule_api_groups, ALL)


def rs_join(request_resource: str, request_subresource: str) -> str:
    """`rsJoin`: `pods`, or `pods/log`."""
    return f"{request_resource}/{request_subresource}" if request_subresource else request_resource


def match_policy_rule_resource(
    policy_rule_request_resources: Sequence[str], request_resource: str, request_subresource: str
) -> bool:
    """`matchPolicyRuleResource`: literally; `pods` does not cover `pods/log`, and `pods/*` is no pattern."""
    return contains_string(rs_join(request_resource, request_subresource), policy_rule_request_resources, ALL)


def contains_string(x: str, strings: Sequence[str], wildcard: str) -> bool:
    """`containsString`: whether `x` is in the list, or the wildcard is all there is in it."""
    return (len(strings) == 1 and strings[0] == wildcard) or x in strings
