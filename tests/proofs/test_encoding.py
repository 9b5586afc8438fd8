"""Every model of the formula is a possible request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.builders import group, service_account, user
from support.configurations import schema

from apflint.proofs.encoding import Encoding
from apflint.proofs.request_space import Requesters, is_possible, usual_groups
from apflint.proofs.vocabulary import (
    build_vocabulary,
)

if TYPE_CHECKING:
    from apflint.model import FlowSchema, PolicyRulesWithSubjects


def rules(*schemas: FlowSchema) -> list[PolicyRulesWithSubjects]:
    return [rule for schema in schemas for rule in schema.spec.rules]


def test_models_have_the_groups_that_authentication_gives() -> None:
    found = Encoding(build_vocabulary(rules(schema(group("dev"))), "authenticated"))
    point = found.solve()
    assert point is not None
    assert {*usual_groups(point.user)} <= {*point.groups}
    assert is_possible(point, "authenticated")


def test_requests_by_a_set_without_some_users() -> None:
    found = Encoding(build_vocabulary(rules(schema(user("system:kube-proxy"))), "authenticated"))
    proxy = found.subject(schema(user("system:kube-proxy")).spec.rules[0].subjects[0])
    assert found.solve(proxy, by=Requesters("system")) is not None
    assert found.solve(proxy, by=Requesters("system", without=("system:kube-",))) is None


def test_no_system_users_without_authentication() -> None:
    node = schema(user("system:node:node-1"))
    found = Encoding(build_vocabulary(rules(node), "any"))
    matched = found.subject(node.spec.rules[0].subjects[0])
    assert found.solve(matched) is not None
    assert found.solve(matched, by=Requesters("system")) is None


def test_all_service_accounts_of_a_namespace_match_their_subject() -> None:
    accounts = schema(service_account("ci", "*"))
    found = Encoding(build_vocabulary(rules(accounts), "authenticated"))
    subject = found.subject(accounts.spec.rules[0].subjects[0])
    point = found.solve(subject)
    assert point is not None
    assert point.user.startswith("system:serviceaccount:ci:")
    other = found.solve(-subject)
    assert other is not None
    assert not other.user.startswith("system:serviceaccount:ci:")


@pytest.mark.parametrize(("scope", "namespace"), [(True, ""), (False, None)])
def test_resource_status_has_no_namespace(scope: bool, namespace: str | None) -> None:
    status = schema(user("alice"), resources=["status"], clusterScope=scope)
    found = Encoding(build_vocabulary(rules(status), "authenticated"))
    point = found.solve(found.rule(status.spec.rules[0]))
    assert (point and point.namespace) == namespace


@pytest.mark.parametrize(
    "what", [{"path": True, "nonResourceURLs": ["/debug/pprof/heap"]}, {"resources": ["pods/log"]}]
)
@pytest.mark.parametrize("verbs", [["*"], ["watch"]])
def test_long_running_requests_are_watches(what: dict[str, Any], verbs: list[str]) -> None:
    long_running = schema(user("alice"), **what, verbs=verbs)
    for watches, verb in ((True, "watch"), (False, None)):
        found = Encoding(build_vocabulary(rules(long_running), "authenticated", watches=watches))
        point = found.solve(found.rule(long_running.spec.rules[0]))
        assert (point and point.verb) == verb


def test_no_groups_other_than_those_of_the_model_are_reported() -> None:
    named = rules(schema(group("dev")), schema(group("ops")))
    found = Encoding(build_vocabulary(named, "any"))
    dev, ops = (found.subject(rule.subjects[0]) for rule in named)
    for wanted, literals in ((("dev",), (dev, -ops)), (("ops",), (ops, -dev)), ((), (-dev, -ops))):
        point = found.solve(*literals)
        assert point is not None
        assert point.groups == wanted
