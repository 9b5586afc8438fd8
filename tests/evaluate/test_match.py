"""Matching of requests in cases in which the documentation differs from servers."""

from __future__ import annotations

import pytest

from apflint.evaluate.match import (
    UserInfo,
    contains_string,
    match_policy_rule_non_resource_url,
    match_policy_rule_resource,
    matches_resource_policy_rule,
    matches_subject,
)
from apflint.evaluate.requestinfo import parse_request_info
from apflint.model import ResourcePolicyRule, ServiceAccountSubject, Subject


def account(namespace: str, name: str) -> Subject:
    return Subject("ServiceAccount", None, None, ServiceAccountSubject(namespace, name))


@pytest.mark.parametrize(
    ("subject", "user", "matches"),
    [
        (Subject("User", "alice", None, None), UserInfo("alice"), True),
        (Subject("User", "*", None, None), UserInfo("system:anonymous"), True),
        (Subject("User", "eve*", None, None), UserInfo("eve1"), False),
        (Subject("User", None, "dev", None), UserInfo("alice", ("dev",)), False),
        (Subject("Group", None, "dev", None), UserInfo("alice", ("ops", "dev")), True),
        (Subject("Group", None, "*", None), UserInfo("alice"), True),
        (Subject("Group", None, "alice", None), UserInfo("alice"), False),
        (account("dev", "a"), UserInfo("system:serviceaccount:dev:a"), True),
        (account("dev", "a"), UserInfo("system:serviceaccount:dev:a:b"), False),
        (account("dev", "*"), UserInfo("system:serviceaccount:dev:"), True),
        (account("dev", "*"), UserInfo("system:serviceaccount:dev:a:b"), True),
        (account("dev", "*"), UserInfo("system:serviceaccount:dev-2:a"), False),
        (account("dev", "*"), UserInfo("alice", ("system:serviceaccounts:dev",)), False),
        (account("*", "a"), UserInfo("system:serviceaccount:dev:a"), False),
        (Subject("Robot", "*", "*", None), UserInfo("alice"), False),
    ],
)
def test_subjects(subject: Subject, user: UserInfo, matches: bool) -> None:
    assert matches_subject(user, subject) is matches


@pytest.mark.parametrize(
    ("urls", "path", "matches"),
    [
        (("/hea",), "/hea", True),
        (("/hea",), "/hea/x", True),
        (("/hea",), "/health", False),
        (("/healthz",), "/healthz/etcd", True),
        (("/healthz/*",), "/healthz", False),
        (("/healthz/*",), "/healthz/etcd", True),
        (("/healthz/",), "/healthz", False),
        (("/healthz*",), "/healthz", False),
        (("/",), "//healthz", True),
        (("/*",), "/version", True),
        (("/healthz",), "//healthz", False),
        (("/x", "*"), "/version", True),
        (("*",), "*", True),
        ((), "/", False),
    ],
)
def test_paths(urls: tuple[str, ...], path: str, matches: bool) -> None:
    assert match_policy_rule_non_resource_url(urls, path) is matches


def test_service_account_without_a_name_matches_nobody() -> None:
    subject = Subject("ServiceAccount", None, None, None)
    assert not matches_subject(UserInfo("system:serviceaccount::"), subject)


def test_wildcard_must_be_the_only_item() -> None:
    assert contains_string("x", ("*",), "*")
    assert not contains_string("x", ("*", "y"), "*")
    assert contains_string("x", ("*", "x"), "*")


@pytest.mark.parametrize(
    ("resources", "subresource", "matches"),
    [
        (("pods",), "log", False),
        (("pods/*",), "log", False),
        (("*/log",), "log", False),
        (("pods/log",), "log", True),
        (("*",), "log", True),
        (("pods/log",), "", False),
    ],
)
def test_subresource_must_be_named(resources: tuple[str, ...], subresource: str, matches: bool) -> None:
    assert match_policy_rule_resource(resources, "pods", subresource) is matches


@pytest.mark.parametrize(
    ("url", "cluster_scope", "namespaces", "matches"),
    [
        ("/api/v1/pods", False, ("*",), False),
        ("/api/v1/pods", True, (), True),
        ("/api/v1/namespaces/dev/pods", True, (), False),
        ("/api/v1/namespaces/dev/pods", False, ("*",), True),
        ("/api/v1/namespaces/dev", True, (), False),
        ("/api/v1/namespaces/dev", False, ("dev",), True),
        ("/api/v1/namespaces", False, ("*",), False),
    ],
)
def test_scope(url: str, cluster_scope: bool, namespaces: tuple[str, ...], matches: bool) -> None:
    rule = ResourcePolicyRule(("*",), ("*",), ("*",), cluster_scope, namespaces)
    assert matches_resource_policy_rule(parse_request_info("GET", url), rule) is matches
