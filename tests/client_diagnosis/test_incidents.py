"""The answers about a culprit, a victim and another client of every recorded incident: FlowSchema, level, role and cause."""

from __future__ import annotations

import re
from contextlib import closing
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import pytest
from support.incidents import NAMES, find_files, read_label
from support.recordings import ROOT

from apflint.client_diagnosis.diagnosis import ClientDiagnosis, CommandWords, diagnose_client
from apflint.client_diagnosis.evidence import ClientEvidence, ConcernedClient, measure_servers
from apflint.client_diagnosis.log_evidence import ClientLog, read_log_evidence
from apflint.doctor.causes import conclude
from apflint.doctor.level_state import ServerState, compute_state
from apflint.doctor.snapshot import group_servers
from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.output.client_diagnosis import MAX_ROWS, count_rows, describe_answer, report_client_diagnosis
from apflint.releases import NEWEST
from apflint.replay.object_counts import parse_metrics
from apflint.replay.running import ReplayOptions, replay_sides
from apflint.request_explanation import Explainer
from apflint.requests.request_words import RequestArguments
from apflint.sources.audit_logs import find_audit_logs
from apflint.sources.server_state_files import read_parts
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from apflint.doctor.causes.conclusion import OverloadCause

LOGS = ROOT / "fixtures" / "simulate" / "incidents"
SERVICE_ACCOUNT = "system:serviceaccount:"
LONG_CONFIGURATION = "clusters/production/flowcontrol (19 objects) and built-in objects of 1.37"


class View(NamedTuple):
    """The expected answer about a client."""

    incident: str
    user: str
    role: str
    flow_schema: str
    level: str
    cause: str | None = ""
    """Name of the cause, "" for the cause in the incident's label, or None for no cause."""
    files: str = "servers"
    """`servers` (two snapshots and dumps), `metrics` (without dumps), `log`, or `servers log`."""
    request: tuple[str, ...] = ()


def account(name: str) -> str:
    """Return the user name of a service account `NAMESPACE:NAME`."""
    return SERVICE_ACCOUNT + name


LEASE = ("update", "leases.coordination.k8s.io")
LOW = ("service-accounts", "workload-low")
HIGH = ("kube-scheduler", "workload-high")
HUMAN = ("global-default", "global-default")
FRONTEND, TAGGER, SCHEDULER = account("web:frontend"), account("ci:image-tagger"), "system:kube-scheduler"
VIEWS = (
    View("catch-all", "partner-acme", "victim", "catch-all", "catch-all"),
    View("catch-all", "partner-bolt", "victim", "catch-all", "catch-all", request=("get", "configmaps")),
    View("catch-all", FRONTEND, "bystander", *LOW),
    View("client-timeouts", account("ops:healthcheck"), "culprit", "apps", "apps"),
    View("client-timeouts", account("ops:autoscaler"), "culprit", "apps", "apps", files="servers log"),
    View("client-timeouts", FRONTEND, "victim", "apps", "apps"),
    View("etcd-slow", FRONTEND, "victim", *LOW),
    View("etcd-slow", "jane", "victim", *HUMAN),
    View("etcd-slow", SCHEDULER, "victim", *HIGH),
    View("etcd-slow", "nobody", "victim", *HUMAN),
    View("etcd-slow", FRONTEND, "victim", *LOW, files="metrics"),
    View("etcd-slow", "jane", "victim", *HUMAN, "slow-service", files="log"),
    View("exempt-abuse", "ci-pipeline", "culprit", "exempt", "exempt"),
    View("exempt-abuse", FRONTEND, "victim", *LOW),
    View("exempt-abuse", SCHEDULER, "bystander", *HIGH),
    View("flood-one-flow", TAGGER, "culprit", *LOW),
    View("flood-one-flow", FRONTEND, "victim", *LOW),
    View("flood-one-flow", account("shop:orders"), "victim", *LOW),
    View("flood-one-flow", TAGGER, "affected", *LOW, files="metrics"),
    View("flood-one-flow", FRONTEND, "affected", *LOW, files="metrics"),
    View("flood-one-flow", SCHEDULER, "bystander", *HIGH),
    View("flood-one-flow/fixed", TAGGER, "culprit", "floodgate", "floodgate"),
    View("flood-one-flow/fixed", FRONTEND, "bystander", *LOW),
    View("healthy-busy", FRONTEND, "bystander", *LOW),
    View("imbalance", FRONTEND, "victim", *LOW),
    View("imbalance", account("ci:runner"), "victim", *LOW),
    View("imbalance", SCHEDULER, "bystander", *HIGH, request=("list", "pods")),
    View("inversion", account("policy:opa"), "victim", *LOW),
    View("inversion", account("shop:deployer"), "victim", *LOW),
    View("inversion", "jane", "bystander", *HUMAN),
    View(
        "leader-election-starved",
        "system:kube-controller-manager",
        "victim",
        "system-leader-election",
        "leader-election",
    ),
    View("leader-election-starved", SCHEDULER, "victim", "system-leader-election", "leader-election", request=LEASE),
    View("leader-election-starved", FRONTEND, "bystander", *LOW),
    View("leases-captured", account("kube-system:backup-agent"), "culprit", "platform-shared", "platform"),
    View("leases-captured", SCHEDULER, "victim", "platform-shared", "platform"),
    View("leases-captured", "system:node:worker-1", "victim", "platform-shared", "platform"),
    View("list-heavy", account("inventory:asset-sync"), "culprit", *LOW),
    View("list-heavy", account("inventory:asset-sync"), "culprit", *LOW, files="log"),
    View("list-heavy", FRONTEND, "victim", *LOW),
    View("list-heavy", SCHEDULER, "bystander", *HIGH),
    View(
        "list-heavy/fixed", account("inventory:asset-sync"), "culprit", "bulk-readers", "bulk-readers", "noisy-but-fair"
    ),
    View("list-heavy/fixed", FRONTEND, "bystander", *LOW, "noisy-but-fair"),
    View("old-incident", TAGGER, "bystander", *LOW),
    View("old-incident", FRONTEND, "victim", *LOW, "flood-one-flow", files="servers log"),
    View("restart", account("mesh:istiod"), "victim", *LOW),
    View("restart", "jane", "victim", *HUMAN),
    View("rollout-spike", account("deploy:argocd"), "bystander", *LOW),
    View("single-flow", "dora", "culprit", "batch", "batch"),
    View("single-flow", "emil", "victim", "batch", "batch"),
    View("single-flow", "jane", "bystander", *HUMAN),
    View("single-flow/fixed", "dora", "culprit", "batch", "batch"),
    View("single-flow/fixed", "emil", "bystander", "batch", "batch", files="servers log"),
    View("slow-webhook", account("payments:checkout-deployer"), "victim", *LOW),
    View("slow-webhook", account("shop:cart-api"), "victim", *LOW),
    View("slow-webhook", account("shop:cart-api"), "victim", *LOW, "slow-service", files="log"),
    View("slow-webhook", "jane", "bystander", *HUMAN),
    View("slow-webhook/fixed", account("payments:checkout-deployer"), "bystander", *LOW, None),
    View("small-level", account("bi:report-builder"), "victim", "reporting", "reporting"),
    View("small-level", account("bi:dashboard"), "victim", "reporting", "reporting", files="servers log"),
    View("small-level", FRONTEND, "bystander", *LOW),
    View("small-level/fixed", account("bi:dashboard"), "bystander", "reporting", "reporting", None),
    View("watch-init-storm", account("agents:node-agent"), "culprit", *LOW),
    View("watch-init-storm", FRONTEND, "victim", *LOW),
    View("watch-init-storm", SCHEDULER, "bystander", *HIGH),
)
NOT_CLIENT = {
    *("catch-all", "etcd-slow", "imbalance", "inversion", "leader-election-starved", "restart", "slow-service"),
    *("slow-webhook", "small-level"),
}
"""Causes other than clients."""


@lru_cache
def read_states(name: str, *, dumps: bool) -> tuple[ServerState, ...]:
    """Return the states of the servers during an incident."""
    parts = read_parts(map(str, find_files(name, "12", dumps=dumps)))
    return tuple(map(compute_state, group_servers(parts)))


@lru_cache
def read_objects(name: str) -> Effective:
    """Return the configuration that was in force."""
    path = LOGS / f"{name.replace('/', '-')}.objects.json"
    workspace = build_workspace(load_inputs([(path.name, path.read_bytes())]), NEWEST)
    seats = read_label(name)["server_flags"]["total_seats"]
    return Effective(workspace, Assumptions(server_concurrency=seats))


def read_log(name: str, client: ConcernedClient, *, counts: bool = True) -> ClientLog:
    """Return what the audit log shows about a client."""
    stem = LOGS / name.replace("/", "-")
    metrics = parse_metrics(stem.with_suffix(".metrics.txt").read_text("utf-8")) if counts else None
    options = ReplayOptions(by=("namespace",), counts=metrics, calls=True)
    with closing(replay_sides(find_audit_logs([f"{stem}.log.gz"]), [read_objects(name)], options)) as replays:
        return read_log_evidence(next(replays), client)


def diagnose(view: View, *, counts: bool = True) -> ClientDiagnosis:
    """Return the answer about the client of a view."""
    known = read_objects(view.incident)
    words = RequestArguments(view.user, view.request or ("list", "pods"), namespace="kube-system")
    request = words.to_request()
    client = ConcernedClient(view.user, request if view.request else None)
    states = read_states(view.incident, dumps="servers" in view.files) if view.files != "log" else ()
    evidence = ClientEvidence(
        measure_servers(states),
        conclude(states) if states else None,
        read_log(view.incident, client, counts=counts) if "log" in view.files else None,
        explanation=Explainer(known).explain(request, reasons=False),
        known=known,
    )
    return diagnose_client(client, evidence, CommandWords(("--as", view.user), ("audit.log",), ("-f", "apf.yaml")))


def name_view(view: View) -> str:
    return f"{view.incident}-{view.user.removeprefix(SERVICE_ACCOUNT)}-{view.files}"


@pytest.mark.parametrize("view", VIEWS, ids=name_view)
def test_answer_about_a_client(view: View) -> None:
    diagnosis = diagnose(view)
    assert diagnosis.placement is not None
    assert (diagnosis.role, diagnosis.placement.flow_schema, diagnosis.placement.level) == (
        view.role,
        view.flow_schema,
        view.level,
    )
    cause = diagnosis.cause.name if diagnosis.cause is not None else None
    assert cause == (read_label(view.incident)["cause"] if view.cause == "" else view.cause)
    assert diagnosis.cause is None or diagnosis.cause.name not in NOT_CLIENT or not diagnosis.cause.is_client
    assert describe_answer(diagnosis).startswith("Healthy now, and overloaded in the log.") == (
        view.incident == "old-incident" and "log" in view.files
    )
    check_agreement(diagnosis)
    check_text(diagnosis)


def check_agreement(diagnosis: ClientDiagnosis) -> None:
    """Check that the answer agrees with the verdict of doctor."""
    conclusion = diagnosis.evidence.conclusion
    if conclusion is None:
        return
    assert diagnosis.cause is not None or not conclusion.causes
    if diagnosis.cause is not None and diagnosis.cause.source == "servers":
        named: dict[str, OverloadCause] = {cause.cause: cause for cause in conclusion.causes}
        assert diagnosis.cause.message == named[diagnosis.cause.name].message
        known = {action.text for cause in conclusion.causes for action in cause.actions}
        assert (
            all(
                any(
                    action.text == text
                    or re.fullmatch(rf"{re.escape(text)}\. [\d,]+ shares give [\d,]+ seats?", action.text)
                    for text in known
                )
                for action in diagnosis.actions
            )
            or diagnosis.role in ("bystander", "unknown")
            or not diagnosis.cause.actions
        )
    if conclusion.verdict == "not-apf":
        assert not diagnosis.is_apf
        assert diagnosis.role != "culprit"


def check_text(diagnosis: ClientDiagnosis) -> None:
    """Check that the answer fits into a terminal, and states whether a client is the cause."""
    assert count_rows(list(report_client_diagnosis(diagnosis, LONG_CONFIGURATION))) <= MAX_ROWS
    cause, answer = diagnosis.cause, describe_answer(diagnosis)
    if diagnosis.role == "victim" and cause is not None:
        is_known = diagnosis.evidence.has_dump or diagnosis.evidence.log is not None
        assert ("No client is the cause" in answer) == (cause.name in NOT_CLIENT and is_known)
        assert ("No dump and no log shows which clients send the requests" in answer) == (
            cause.name in NOT_CLIENT and not is_known
        )
    if diagnosis.role in ("victim", "culprit") and cause is not None and cause.is_client:
        assert cause.clients[0] in answer or diagnosis.client.user in answer
    assert diagnosis.actions, "there is always something to do"
    assert diagnosis.certainty.basis


def test_every_incident_is_viewed_by_all_clients_of_its_label() -> None:
    for name in NAMES:
        label = read_label(name)
        views = [view for view in VIEWS if view.incident == name]
        assert views, name
        users = {view.user for view in views if view.role == "culprit"}
        culprit = (label["culprit"] or {}).get("user")
        assert culprit is None or culprit in users or label["cause"] in NOT_CLIENT | {"rollout-spike"}, name
        victims = {victim for victim in label["victims"] if victim.startswith("system:") and "*" not in victim}
        assert not victims or label["healthy"] or victims & {view.user for view in views}, name


def test_log_without_object_counts_does_not_accuse_for_certain() -> None:
    """Without the number of objects, each list of the culprit counts as 1 seat. So a victim looks like the culprit."""
    view = View("exempt-abuse", FRONTEND, "", *LOW, files="log")
    accused = diagnose(view, counts=False)
    assert accused.role == "culprit"
    assert "is probably the cause" in describe_answer(accused)
    assert "add metrics" in accused.certainty.gaps[0].text
    with_counts = diagnose(view)
    assert (with_counts.role, with_counts.cause and with_counts.cause.name) == ("victim", "exempt-abuse")


def test_log_of_another_time_confirms_nothing() -> None:
    """A log of an overload that is not the overload in the metrics does not confirm a cause.

    Here, the log was recorded before a fix, and the metrics after the fix.
    """
    view = View("flood-one-flow", FRONTEND, "", *LOW)
    states, known = read_states("flood-one-flow", dumps=False), read_objects("flood-one-flow")
    log = read_log("old-incident", ConcernedClient(FRONTEND))
    evidence = ClientEvidence(measure_servers(states), conclude(states), log, known=known)
    assert log.cause is not None
    assert log.cause.cause == "flood-one-flow"
    assert evidence.matching_log is None
    diagnosis = diagnose_client(ConcernedClient(view.user), evidence, CommandWords())
    assert (diagnosis.role, diagnosis.cause and diagnosis.cause.users, diagnosis.shares) == ("affected", (), ())
