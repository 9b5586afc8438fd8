"""Goals of proposals: the clients that they name, and clients for which no proposal is possible."""

from __future__ import annotations

import pytest

from apflint.model import ServiceAccountSubject, Subject
from apflint.propose.goals import Protection, find_refusal, parse_protection, parse_subject, write_subject
from apflint.user_error import UserError


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("user:alice", "user:alice"),
        ("user:oidc:alice@example.com", "user:oidc:alice@example.com"),
        ("group:dev team", "group:dev team"),
        ("serviceaccount:shop/operator", "serviceaccount:shop/operator"),
        ("ServiceAccount:shop/*", "serviceaccount:shop/*"),
        # All forms of a client's name are converted to one form.
        ("user:system:serviceaccount:shop:operator", "serviceaccount:shop/operator"),
        ("group:system:serviceaccounts:shop", "serviceaccount:shop/*"),
    ],
)
def test_subject(text: str, written: str) -> None:
    subject = parse_subject(text)
    assert write_subject(subject) == written
    assert parse_subject(written) == subject
    assert find_refusal(subject) is None


@pytest.mark.parametrize(
    "text",
    [
        *("", "alice", "user:", "team:dev", "serviceaccount:shop", "serviceaccount:shop/", "serviceaccount:Shop/a"),
        *("serviceaccount:/a", "serviceaccount:*/a", "user:a\nb", "user:\udce4"),
    ],
)
def test_text_that_is_not_a_subject(text: str) -> None:
    with pytest.raises(UserError):
        parse_subject(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("group:system:authenticated", "clients of all kinds"),
        ("group:system:unauthenticated", "clients of all kinds"),
        ("group:system:serviceaccounts", "clients of all kinds"),
        ("group:*", "clients of all kinds"),
        ("user:*", "clients of all kinds"),
        ("group:system:masters", "exempt"),
        ("group:system:nodes", "kubelets"),
        ("user:system:node:worker-1", "kubelets"),
        ("user:system:kube-scheduler", "component of the platform"),
        ("user:system:apiserver", "component of the platform"),
        ("serviceaccount:kube-system/*", "component of the platform"),
        ("serviceaccount:kube-system/replicaset-controller", "component of the platform"),
        ("serviceaccount:openshift-monitoring/prometheus", "component of the platform"),
        ("group:system:serviceaccounts:kube-system", "component of the platform"),
        ("user:system:anonymous", "reserves"),
        ("group:system:monitoring", "reserves"),
        ("user:system:serviceaccount:shop", "is not the user name of a service account"),
    ],
)
def test_refused_subject(text: str, reason: str) -> None:
    found = find_refusal(parse_subject(text))
    assert found is not None
    assert reason in found


def test_protection() -> None:
    levels = ("leader-election", "a=1s")
    tenants = Subject("Group", None, "tenants", None)
    assert parse_protection("group:tenants=1.5s", levels) == Protection(tenants, 1.5)
    assert parse_protection("group:tenants=500ms", levels) == Protection(tenants, 0.5)
    assert parse_protection("group:tenants", levels) == Protection(tenants, None)
    assert parse_protection("leader-election=2m", levels) == Protection("leader-election", 120)
    assert parse_protection("leader-election", levels) == Protection("leader-election", None)
    account = ServiceAccountSubject("shop", "*")
    assert parse_protection("serviceaccount:shop/*=1s", levels).target == Subject("ServiceAccount", None, None, account)
    for text in ("missing", "missing=1s", "group:tenants=1h", "group:tenants="):
        with pytest.raises(UserError):
            parse_protection(text, levels)
