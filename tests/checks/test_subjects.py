"""APF207, APF208, APF512: subjects that the server rejects, and subjects that probably match no client."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.builders import findings, findings_in_text, flow_schema, group, service_account, user

from apflint.edit_operations import Rename, Set


@pytest.mark.parametrize(
    ("subject", "help_text"),
    [
        ({"kind": "User"}, "add user: {name: ...}"),
        ({"kind": "User", "group": {"name": "dev"}}, "add user: {name: ...}, or change kind to Group"),
        (
            {"kind": "ServiceAccount", "user": {"name": "alice"}},
            "add serviceAccount: {namespace: ..., name: ...}, or change kind to User",
        ),
        (
            {"kind": "ServiceAccount", "user": {"name": "system:serviceaccount:ci:runner"}},
            "add serviceAccount: {namespace: ci, name: runner}, or change kind to User",
        ),
        (
            {"kind": "User", "group": {"name": "dev"}, "serviceAccount": {"namespace": "a", "name": "b"}},
            "add user: {name: ...}",
        ),
    ],
)
def test_help_for_a_missing_member_depends_on_the_others(subject: dict[str, Any], help_text: str) -> None:
    missing, *others = findings(flow_schema("x", subjects=[subject]), only="APF207")
    member = missing.field.rpartition(".")[2]
    assert missing.message == f'subject of kind {subject["kind"]} requires the field "{member}"'
    assert missing.help == help_text
    assert len(others) == len(subject) - 1


def test_member_of_another_kind_is_reported_at_its_key() -> None:
    text = json.dumps(flow_schema("x", subjects=[{**user("alice"), "group": {"name": "dev"}}]))
    (finding,) = findings_in_text(text, only="APF207")
    assert text[finding.span.column - 1 : finding.span.end_column - 1] == '"group"'
    assert finding.fix is None


def test_kind_is_changed_to_that_of_the_only_member_by_an_unsafe_fix() -> None:
    found = findings(flow_schema("x", subjects=[{"kind": "User", "group": {"name": "dev"}}]), only="APF207")
    fixes = [finding.fix for finding in found if finding.fix]
    assert {(fix.title, fix.safe) for fix in fixes} == {('change "User" to "Group"', False)}


@pytest.mark.parametrize(("kind", "has_fix"), [("Gro", False), ("oup", False), ("Grou", True), ("group", True)])
def test_part_of_a_kind_is_completed_from_four_letters_on(kind: str, has_fix: bool) -> None:
    (finding,) = findings(flow_schema("x", subjects=[{"kind": kind, "group": {"name": "dev"}}]), only="APF207")
    assert (finding.fix is not None) is has_fix


@pytest.mark.parametrize(("namespace", "values"), [("", ["runner", "ci"]), ("ci", ["runner"])])
def test_user_name_of_a_service_account_is_split_by_an_unsafe_fix(namespace: str, values: list[str]) -> None:
    subject = service_account(namespace, "system:serviceaccount:ci:runner")
    found = findings(flow_schema("x", subjects=[subject]), only="APF208")
    (fix,) = (finding.fix for finding in found if finding.fix)
    assert fix.safe is False
    assert [getattr(operation, "value", None) for operation in fix.operations] == values


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


@pytest.mark.parametrize(
    ("subject", "reported"),
    [
        ({"kind": "Group", "group": {"name": "system:kube-scheduler"}}, True),
        ({"kind": "User", "user": {"name": "x"}, "group": {"name": "system:kube-scheduler"}}, False),
        ({"kind": "Group"}, False),
        ({"kind": "ServiceAccount"}, False),
        ({"kind": "User", "serviceAccount": {"namespace": "kube-system", "name": "kube-scheduler"}}, False),
    ],
)
def test_only_the_member_of_the_kind_counts(subject: dict[str, Any], reported: bool) -> None:
    assert bool(findings(flow_schema("a", subjects=[subject]), only="APF512")) is reported


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("system:mastrs", True),
        ("system:mastr", False),  # two letters of a short word are missing
        ("system:nodse", True),
        ("system:authenticted", True),
        ("system:authentictd", True),  # two letters of a long word are missing
        ("system:authntictd", False),
    ],
)
def test_short_words_have_one_wrong_letter_and_long_words_two(written: str, found: bool) -> None:
    assert bool(findings(flow_schema("mine", subjects=[group(written)]), only="APF512")) is found
