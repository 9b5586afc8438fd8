"""Names of users and groups that probably no client has, and those that clients have."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.builders import findings, flow_schema, group, service_account, user

from apflint.checks.unknown_subjects import _measure_distance
from apflint.fix import Rename, Set


@pytest.mark.parametrize(
    ("subject", "kind", "name"),
    [
        (user("system:kube-schedule"), "User", "system:kube-scheduler"),
        (user("system:kube-sheduler"), "User", "system:kube-scheduler"),
        (user("system:Kube-Scheduler"), "User", "system:kube-scheduler"),
        (user("sytem:kube-scheduler"), "User", "system:kube-scheduler"),
        (user("system:kube-controler-manger"), "User", "system:kube-controller-manager"),
        (user("system:kubecontroller-manager"), "User", "system:kube-controller-manager"),
        (user("system:kube-prxoy"), "User", "system:kube-proxy"),
        (user("system:anonymus"), "User", "system:anonymous"),
        (user("system:nodes:worker-1"), "User", "system:node:worker-1"),
        (user("system:serviceaccounts:ci:runner"), "User", "system:serviceaccount:ci:runner"),
        (user("system:serviceaccounts:ci"), "Group", "system:serviceaccounts:ci"),
        (user("system:masters"), "Group", "system:masters"),
        (user("system:nodes"), "Group", "system:nodes"),
        (group("system:node"), "Group", "system:nodes"),
        (group("system:service-accounts"), "Group", "system:serviceaccounts"),
        (group("system:serviceaccount"), "Group", "system:serviceaccounts"),
        (group("system:serviceaccount:ci"), "Group", "system:serviceaccounts:ci"),
        (group("system:serviceaccount:ci:runner"), "User", "system:serviceaccount:ci:runner"),
        (group("system:authentcated"), "Group", "system:authenticated"),
        (group("system:unauthentificated"), "Group", "system:unauthenticated"),
        (group("system:master"), "Group", "system:masters"),
        (group("system:kube-scheduler"), "User", "system:kube-scheduler"),
        (service_account("kube-system", "kube-scheduler"), "User", "system:kube-scheduler"),
    ],
)
def test_misspelled_names_are_reported(subject: dict[str, Any], kind: str, name: str) -> None:
    (found,) = findings(flow_schema("mine", precedence=700, subjects=[subject]), only="APF512")
    assert f'"{name}"' in found.message or found.fix is not None
    assert found.fix is not None
    after = {
        operation.path[-1]: operation[-1] for operation in found.fix.operations if isinstance(operation, Set | Rename)
    }
    assert after.get("kind", subject["kind"]) == kind
    written = subject.get("user", subject.get("group", {})).get("name")
    assert after.get("name", written) == name


@pytest.mark.parametrize(
    "subject",
    [
        *map(
            user,
            (
                "system:kube-scheduler",
                "system:kube-controller-manager",
                "system:kube-proxy",
                "system:apiserver",
                "system:anonymous",
                "system:kube-apiserver",
                "system:node-proxier",
                "system:node-problem-detector",
                "system:node:worker-1",
                "system:serviceaccount:ci:runner",
                "system:bootstrap:abcdef",
                "system:cloud-controller-manager",
                "system:cluster-autoscaler",
                "system:konnectivity-server",
                "system:volume-scheduler",
                "system:admin",
                "system:openshift-master",
                "system:openshift:openshift-controller-manager",
                "system:serviceaccounts:",
                "system:nodes:",
                "kube-scheduler",
                "alice",
                "*",
                "",
            ),
        ),
        *map(
            group,
            (
                "system:authenticated",
                "system:authenticated:oauth",
                "system:unauthenticated",
                "system:masters",
                "system:nodes",
                "system:node-admins",
                "system:node-proxier",
                "system:serviceaccounts",
                "system:serviceaccounts:ci",
                "system:bootstrappers",
                "system:bootstrappers:kubeadm:default-node-token",
                "system:bootstrappers:worker",
                "system:monitoring",
                "system:cluster-admins",
                "system:cluster-readers",
                "system:openshift:scc:restricted",
                "kubeadm:cluster-admins",
                "oidc:nodes",
                "nodes",
                "masters",
            ),
        ),
        service_account("kube-system", "kube-proxy"),
        service_account("openshift-kube-scheduler", "kube-scheduler"),
    ],
)
def test_names_of_clients_are_not_reported(subject: dict[str, Any]) -> None:
    assert not findings(flow_schema("mine", precedence=700, subjects=[subject]), only="APF512")


@given(st.text("ab:", max_size=8), st.text("ab:", max_size=8))
def test_distances(one: str, other: str) -> None:
    assert _measure_distance(one, other) == _measure_distance(other, one) <= max(len(one), len(other))
    assert (_measure_distance(one, other) == 0) is (one == other)
    assert abs(len(one) - len(other)) <= _measure_distance(one, other)


@pytest.mark.parametrize(
    ("one", "other", "distance"), [("ab", "ba", 1), ("nodes", "node", 1), ("nodes", "noeds", 1), ("abc", "ca", 3)]
)
def test_distance_of_words(one: str, other: str, distance: int) -> None:
    assert _measure_distance(one, other) == distance


@pytest.mark.parametrize(
    ("subject", "told"),
    [
        ({"kind": "Group", "group": {"name": "system:kube-scheduler"}}, True),
        ({"kind": "User", "user": {"name": "x"}, "group": {"name": "system:kube-scheduler"}}, False),
        ({"kind": "Group"}, False),
        ({"kind": "ServiceAccount"}, False),
        ({"kind": "User", "serviceAccount": {"namespace": "kube-system", "name": "kube-scheduler"}}, False),
    ],
)
def test_only_the_member_of_the_kind_counts(subject: dict[str, Any], told: bool) -> None:
    assert bool(findings(flow_schema("a", subjects=[subject]), only="APF512")) is told
