"""Alerts: their syntax, the metrics that they use, and their thresholds compared with the recorded server."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import builders
from support.recordings import TOTAL, read_moment, recorded_objects, state_of

from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.monitoring.alerts import (
    MUST_NOT_REJECT,
    Thresholds,
    build_alerts,
    find_vital_levels,
    group_levels,
    parse_thresholds,
)
from apflint.monitoring.labels import parse_labels
from apflint.monitoring.queries import Queries, match_any, parse_label_name, parse_selector, quote
from apflint.output.alerts import render_alerts
from apflint.releases import RELEASES, parse_release
from apflint.rule_catalogue import list_ids
from apflint.user_error import UserError
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from apflint.monitoring.alerts import Alert

promql_parser = pytest.importorskip("promql_parser", reason="promql-parser is not installed")
METRIC = re.compile(r"\b(apiserver_\w+)")


class InvalidRuleError(Exception):
    """Prometheus would not load the rule."""


def recorded_alerts() -> tuple[Alert, ...]:
    """Return the alerts for the objects of the recorded server."""
    items = {"items": recorded_objects("0-idle"), "apiVersion": "v1", "kind": "List"}
    workspace = build_workspace(load_inputs([("o.json", json.dumps(items).encode())]), parse_release("1.36"))
    return build_alerts(Effective(workspace, Assumptions(True, TOTAL, defaults=False)))


def effective_of(release: str, *values: dict[str, Any]) -> Effective:
    inputs = [(f"{number}.json", json.dumps(value).encode()) for number, value in enumerate(values)]
    return Effective(build_workspace(load_inputs(inputs), parse_release(release)))


def built_in_alerts(release: str, *values: dict[str, Any]) -> tuple[Alert, ...]:
    return build_alerts(effective_of(release, *values))


def check_rules(text: str, *, is_object: bool) -> list[dict[str, Any]]:
    """Check the structure and the syntax of rules as Prometheus does, and return the rules. Raises InvalidRuleError."""
    value = yaml.safe_load(text)
    if is_object:
        assert value.keys() == {"apiVersion", "kind", "metadata", "spec"}
        assert (value["apiVersion"], value["kind"]) == ("monitoring.coreos.com/v1", "PrometheusRule")
        value = value["spec"]
    assert value.keys() == {"groups"}
    rules: list[dict[str, Any]] = []
    for group in value["groups"]:
        assert group.keys() == {"name", "interval", "rules"}
        for rule in group["rules"]:
            assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
            if not re.fullmatch(r"[1-9]\d*[ms]", str(rule["for"])):
                raise InvalidRuleError(rule["for"])
            try:
                promql_parser.parse(rule["expr"])
            except ValueError as error:
                raise InvalidRuleError(str(error)) from None
            for name, text_value in {**rule["labels"], **rule["annotations"]}.items():
                assert re.fullmatch(r"[a-zA-Z_]\w*", name)
                assert isinstance(text_value, str)
            rules.append(rule)
    return rules


@pytest.mark.parametrize("release", [release.name for release in RELEASES])
@pytest.mark.parametrize("is_object", [True, False])
def test_syntax_in_every_release(release: str, is_object: bool) -> None:
    rules = check_rules(render_alerts(built_in_alerts(release), is_object=is_object), is_object=is_object)
    assert 10 <= len(rules) <= 12  # without manifests, no alert is about a single level
    assert {rule["annotations"]["runbook_url"].rpartition("/")[2][:-3] for rule in rules} <= set(list_ids())


@pytest.mark.parametrize(
    "change", [("[2m])", "[2m]"), (" > 0\n", " >\n"), ('="kube-apiserver"', "=kube-apiserver"), ("for: 1m", "for: 1")]
)
def test_invalid_rules_are_found(change: tuple[str, str]) -> None:
    text = render_alerts(built_in_alerts("1.36"), is_object=True)
    assert change[0] in text
    with pytest.raises(InvalidRuleError):
        check_rules(text.replace(*change), is_object=True)


def test_metrics_exist_on_the_recorded_server() -> None:
    text = next(part.source.text for part in read_moment("4-mixed") if part.kind == "metrics")
    used = {name for alert in recorded_alerts() for name in METRIC.findall(alert.expression)}
    # This recording has no metrics of webhooks, so skip their names. The recording `slow-webhook` in
    # test_recorded_incidents.py has these metrics.
    missing = {name for name in used if not re.search(rf"^{name}\{{", text, re.MULTILINE) and "webhook" not in name}
    assert len(used) >= 12
    assert not missing


def test_limits_are_those_of_the_recorded_server() -> None:
    """No level of the server differs from the expected limit, and only the levels of the manifests have alerts about drift."""
    limits = {
        alert.expression.partition('priority_level="')[2].partition('"')[0]: int(alert.expression.split()[-1])
        for alert in recorded_alerts()
        if alert.name == "APFLimitDiffers"
    }
    assert limits.keys() > {"slow", "strict", "tenant"}
    assert not limits.keys() & {"workload-low", "leader-election", "catch-all"}
    state = state_of("4-mixed")
    assert limits == {level.name: level.nominal for level in state.levels if level.name in limits}


def test_levels_by_the_needs_of_users() -> None:
    groups = group_levels(effective_of("1.36", builders.priority_level("batch", 10)))
    assert set(groups.vital) == MUST_NOT_REJECT
    assert set(groups.leases) == {"leader-election", "node-high"}
    assert groups.rejecting == ("batch", "catch-all")
    assert groups.contained == groups.shared == ()
    alerts = built_in_alerts("1.36", builders.priority_level("batch", 10))
    severities = [(alert.severity, alert.expression) for alert in alerts if alert.name == "APFRequestsRejected"]
    assert [severity for severity, _ in severities] == ["critical", "warning"]
    assert 'priority_level=~"leader-election|node-high|system|workload-high"' in severities[0][1]
    assert 'priority_level=~"batch|catch-all"' in severities[1][1]
    (unknown,) = [alert for alert in alerts if alert.name == "APFLevelUnknown"]
    assert '!~"catch-all|exempt|' in unknown.expression
    assert '|batch"' in unknown.expression


def test_level_that_gets_leases_must_not_reject() -> None:
    leases = {"verbs": ["*"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]}
    subjects = [builders.user("system:kube-scheduler")]
    schema = builders.flow_schema("leases", "batch", 90, subjects=subjects, resources=[leases])
    level = builders.priority_level("batch", 10, {"queues": 8, "handSize": 2, "queueLengthLimit": 9})
    groups = group_levels(effective_of("1.36", level, schema))
    assert "batch" in groups.leases
    assert "batch" in groups.vital
    assert find_vital_levels(effective_of("1.36")) == {"leader-election", "node-high"}


QUEUES = {"queues": 4, "handSize": 1, "queueLengthLimit": 20}


@pytest.mark.parametrize(("subjects", "borrowing", "expected"), [
    ([builders.user("ci")], 0, True),
    ([builders.service_account("ci", "runner")], 0, True),
    ([builders.user("ci"), builders.user("ci")], 0, True),
    ([builders.user("ci")], None, False),
    ([builders.user("ci")], 50, False),
    ([builders.user("ci"), builders.user("cd")], 0, False),
    ([builders.user("*")], 0, False),
    ([builders.user("system:kube-proxy")], 0, False),
    ([builders.service_account("ci", "*")], 0, False),
    ([builders.group("ci")], 0, False),
])  # fmt: skip
def test_level_that_contains_one_client(subjects: list[dict[str, Any]], borrowing: int | None, expected: bool) -> None:
    """A level that limits a single client rejects requests on purpose, so it has no alerts. Every other level has alerts."""
    level = builders.priority_level("gate", 10, QUEUES)
    if borrowing is not None:
        level["spec"]["limited"]["borrowingLimitPercent"] = borrowing
    groups = group_levels(effective_of("1.36", level, builders.flow_schema("gate", "gate", 3000, subjects=subjects)))
    assert (groups.contained == ("gate",)) == expected
    assert "gate" not in (*groups.vital, *groups.rejecting)


@pytest.mark.parametrize(("method", "subjects", "expected"), [
    (None, [builders.group("a")], True),
    (None, [builders.user("a"), builders.user("b")], True),
    (None, [builders.user("a")], False),
    ("ByUser", [builders.group("a")], False),
])  # fmt: skip
def test_level_where_clients_share_a_flow(method: str | None, subjects: list[dict[str, Any]], expected: bool) -> None:
    schema = builders.flow_schema("batch", "batch", 3000, subjects=subjects)
    schema["spec"].pop("distinguisherMethod", None)
    if method is not None:
        schema["spec"]["distinguisherMethod"] = {"type": method}
    groups = group_levels(effective_of("1.36", builders.priority_level("batch", 10, QUEUES), schema))
    assert (groups.shared == ("batch",)) == expected


COMMON = {"rejected_requests_total", "dispatched_requests_total", "request_wait_duration_seconds_bucket",
          "current_inqueue_requests", "request_execution_seconds_sum", "request_execution_seconds_count"}  # fmt: skip


@pytest.mark.parametrize(("release", "expected"), [
    ("1.36", {"nominal_limit_seats", "lower_limit_seats", "current_limit_seats", "demand_seats_average"}),
    ("1.26", {"current_limit_seats", "demand_seats_average"}),
    ("1.25", {"request_concurrency_limit", "request_concurrency_in_use"}),
    ("1.22", {"request_concurrency_limit", "request_concurrency_in_use"}),
    ("1.21", {"request_concurrency_limit", "current_executing_requests"}),
    ("1.19", {"request_concurrency_limit", "current_executing_requests"}),
])  # fmt: skip
def test_metrics_of_a_release(release: str, expected: set[str]) -> None:
    text = render_alerts(built_in_alerts(release), is_object=False)
    used = set(re.findall(r"apiserver_flowcontrol_(\w+)", text))
    assert used == expected | COMMON
    label = "priorityLevel" if release == "1.19" else "priority_level"
    assert f"by (cluster, instance, {label})" in text
    assert f"$labels.{label} " in text


@pytest.mark.parametrize("release", [release.name for release in RELEASES])
def test_every_expression_selects_the_servers_and_keeps_their_cluster(release: str) -> None:
    """Without the cluster label in `by` and `on`, servers of two clusters with the same address would count as one server."""
    effective = effective_of(release, builders.priority_level("batch", 10))
    source = Queries(effective.release, ('job="api"', 'zone=~"a|b"'), "prom_cluster")
    for alert in build_alerts(effective, selection=source):
        metrics = re.findall(r"\b(?:apiserver|etcd)_\w+(\{[^}]*)", alert.expression)
        assert metrics
        assert all(metric.startswith('{job="api", zone=~"a|b"') for metric in metrics)
        groupings = re.findall(r"\b(?:by|on) \(([^)]*)\)", alert.expression)
        assert groupings
        assert all(grouping.startswith("prom_cluster, instance") for grouping in groupings)
        assert "absent(" not in alert.expression


def test_messages_name_the_level_and_the_value() -> None:
    for alert in built_in_alerts("1.36", builders.priority_level("batch", 10)):
        text = alert.summary + alert.description
        assert "{{ $labels.instance }}" in text
        assert "$value" in text or alert.name == "APFLevelUnknown"
        assert "{{ with $labels.cluster }}" in text


def test_thresholds() -> None:
    thresholds = parse_thresholds(["wait=2", "rejected=5%", "lease-wait=0.5"])
    assert thresholds == Thresholds(wait=2, rejected=0.05, lease_wait=0.5)
    text = "".join(alert.expression for alert in build_alerts(effective_of("1.36"), thresholds))
    assert "> 2\n" in text
    assert "> 0.05\n" in text
    assert "> 0.5\n" in text


@pytest.mark.parametrize(
    "text", ["wait", "waits=1", "wait=x", "wait=-1", "wait=inf", "wait=nan", "wait=30", "rejected="]
)
def test_invalid_thresholds(text: str) -> None:
    with pytest.raises(UserError, match=re.escape(text)):
        parse_thresholds([text])


@pytest.mark.parametrize(("text", "expected"), [
    ("", []),
    ("{}", []),
    ('job="a"', ['job="a"']),
    ('{job="a", cluster!~"x|y",}', ['job="a"', 'cluster!~"x|y"']),
    ("job='a'", ["job='a'"]),
    (r'job="a\"},b"', [r'job="a\"},b"']),
])  # fmt: skip
def test_selector(text: str, expected: list[str]) -> None:
    assert [str(matcher) for matcher in parse_selector(text)] == expected
    promql_parser.parse(f"up{{{','.join(expected)}}}")


@pytest.mark.parametrize(
    "text", ["job", "job=a", 'job="a', 'job="a"}) or vector(1', 'job=="a"', '{job="a"', 'job="a" x="b"']
)
def test_invalid_selectors(text: str) -> None:
    with pytest.raises(UserError, match="not a selector"):
        parse_selector(text)


def test_labels() -> None:
    assert parse_labels(["team=a=b", "severity=page", "empty="]) == {"team": "a=b", "severity": "page", "empty": ""}
    for text in ("team", "a-b=c", "=x", "priority_level=x", "alertname=x"):
        with pytest.raises(UserError):
            parse_labels([text])
    with pytest.raises(UserError):
        parse_label_name("a b")


def test_names_are_quoted() -> None:
    """Even invalid names are quoted in PromQL, in regular expressions and in Go templates."""
    name = 'a"b\\c.{{d}}'
    alerts = built_in_alerts("1.36", builders.priority_level(name, 10))
    rules = check_rules(render_alerts(alerts, is_object=False), is_object=False)
    template = 'a"b\\c.{{"{{"}}d}}'
    (rule,) = [
        rule
        for rule in rules
        if rule["labels"].get("priority_level") == template and rule["alert"] == "APFLevelMissing"
    ]
    assert '="a\\"b\\\\c.{{d}}"})' in rule["expr"]
    assert '{{"{{"}}d}}' in rule["annotations"]["summary"]


def test_output(snapshot: SnapshotAssertion) -> None:
    assert render_alerts(recorded_alerts(), is_object=True) == snapshot


def test_strings_of_promql_are_escaped() -> None:
    assert quote('a"b\\c\nd') == '"a\\"b\\\\c\\nd"'
    assert match_any(["a.b", "c|d"]) == '"a\\\\.b|c\\\\|d"'
