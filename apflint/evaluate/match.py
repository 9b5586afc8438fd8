"""Predicates that compare a request with a FlowSchema, a rule or an item of a rule, and a user with a subject.

The module translates staging/src/k8s.io/apiserver/pkg/util/flowcontrol/rule.go function by function. The functions have the
same order and the same names, except for underscores. So this module and the Go file can be read side by side. The summary
of a function begins with its name in Go. `apflint.evaluate.match_reasons` explains mismatches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple

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
"""Prefix of the user names of service accounts: `system:serviceaccount:NAMESPACE:NAME`."""
ALL = "*"


class UserInfo(NamedTuple):
    """The user of a request and all groups, after authentication and impersonation."""

    name: str
    groups: tuple[str, ...] = ()


class RequestDigest(NamedTuple):
    """The attributes of a request, and its user: the input of the classification."""

    request_info: RequestInfo
    user: UserInfo


def matches_flow_schema(digest: RequestDigest, spec: FlowSchemaSpec) -> bool:
    """`matchesFlowSchema`: return whether at least one rule matches the request."""
    return any(matches_policy_rule(digest, policy_rule) for policy_rule in spec.rules)


def matches_policy_rule(digest: RequestDigest, policy_rule: PolicyRulesWithSubjects) -> bool:
    """`matchesPolicyRule`: return whether the rule matches the request.

    The rule matches if at least one of its subjects matches the user, and at least one of its
    `resourceRules` (for a resource request) or `nonResourceRules` (for any other request) matches the
    attributes of the request.
    """
    if not matches_a_subject(digest.user, policy_rule.subjects):
        return False
    if digest.request_info.is_resource_request:
        return matches_a_resource_rule(digest.request_info, policy_rule.resource_rules)
    return matches_a_non_resource_rule(digest.request_info, policy_rule.non_resource_rules)


def matches_a_subject(user: UserInfo, subjects: Sequence[Subject]) -> bool:
    """`matchesASubject`: return whether at least one subject matches the user."""
    return any(matches_subject(user, subject) for subject in subjects)


def matches_subject(user: UserInfo, subject: Subject) -> bool:
    """`matchesSubject`: return whether the subject matches the user. `*` matches all names. All other names are literal."""
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
    """`serviceAccountMatchesNamespace`: return whether the user name begins with the prefix of the namespace."""
    return username.startswith(f"{SERVICE_ACCOUNT_PREFIX}{namespace}:")


def matches_a_resource_rule(info: RequestInfo, rules: Sequence[ResourcePolicyRule]) -> bool:
    """`matchesAResourceRule`: return whether at least one rule matches the request."""
    return any(matches_resource_policy_rule(info, rule) for rule in rules)


def matches_resource_policy_rule(info: RequestInfo, policy_rule: ResourcePolicyRule) -> bool:
    """`matchesResourcePolicyRule`: return whether verb, resource, API group and namespace match the rule."""
    return (
        match_policy_rule_verb(policy_rule.verbs, info.verb)
        and match_policy_rule_resource(policy_rule.resources, info.resource, info.subresource)
        and match_policy_rule_api_group(policy_rule.api_groups, info.api_group)
        and match_policy_rule_namespace(policy_rule, info.namespace)
    )


def match_policy_rule_namespace(policy_rule: ResourcePolicyRule, request_namespace: str) -> bool:
    """Last part of `matchesResourcePolicyRule`: return whether the rule matches the namespace of the request.

    If the request has no namespace, the rule matches only with `clusterScope: true`.
    """
    if not request_namespace:
        return policy_rule.cluster_scope
    return contains_string(request_namespace, policy_rule.namespaces, ALL)


def matches_a_non_resource_rule(info: RequestInfo, rules: Sequence[NonResourcePolicyRule]) -> bool:
    """`matchesANonResourceRule`: return whether at least one rule matches the request."""
    return any(matches_non_resource_policy_rule(info, rule) for rule in rules)


def matches_non_resource_policy_rule(info: RequestInfo, policy_rule: NonResourcePolicyRule) -> bool:
    """`matchesNonResourcePolicyRule`: return whether verb and path match the rule."""
    return match_policy_rule_verb(policy_rule.verbs, info.verb) and match_policy_rule_non_resource_url(
        policy_rule.non_resource_urls, info.path
    )


def match_policy_rule_verb(policy_rule_verbs: Sequence[str], request_verb: str) -> bool:
    """`matchPolicyRuleVerb`: return whether `policy_rule_verbs` contains `request_verb` or consists of `*`."""
    return contains_string(request_verb, policy_rule_verbs, ALL)


def match_policy_rule_non_resource_url(policy_rule_request_urls: Sequence[str], request_path: str) -> bool:
    """`matchPolicyRuleNonResourceURL`: return whether at least one URL of the rule matches the path.

    `*` matches all paths, `/healthz` matches `/healthz` and `/healthz/etcd`, and `/healthz/*` matches `/healthz/etcd`.
    """
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
    """`matchPolicyRuleAPIGroup`: return whether the list contains `request_api_group` or consists of `*`."""
    return contains_string(request_api_group, policy_rule_api_groups, ALL)


def rs_join(request_resource: str, request_subresource: str) -> str:
    """`rsJoin`: return `pods` or, with a subresource, `pods/log`."""
    return f"{request_resource}/{request_subresource}" if request_subresource else request_resource


def match_policy_rule_resource(
    policy_rule_request_resources: Sequence[str], request_resource: str, request_subresource: str
) -> bool:
    """`matchPolicyRuleResource`: return whether the list has `RESOURCE[/SUBRESOURCE]` or consists of `*`. `pods/*` is literal."""
    return contains_string(rs_join(request_resource, request_subresource), policy_rule_request_resources, ALL)


def contains_string(x: str, strings: Sequence[str], wildcard: str) -> bool:
    """`containsString`: return whether the list contains `x`, or the wildcard is the only item of the list."""
    return (len(strings) == 1 and strings[0] == wildcard) or x in strings
