"""Alerts: their syntax, the metrics that they use, and their thresholds compared with the recorded server."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import builders
from support.recordings import TOTAL, read_moment, recorded_objects, state_of

from apflint.catalogue import list_ids
from apflint.doctor.alerts import MUST_NOT_REJECT, _quote, build_alerts, find_vital_levels
from apflint.effective import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.output.alerts import render_alerts
from apflint.releases import RELEASES, parse_release
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from apflint.doctor.alerts import Alert

promql_parser = pytest.importorskip("promql_parser", reason="promql-parser is not installed")
METRIC = re.compile(r"\b(apiserver_\w+)")


class InvalidRuleError(Exception):
    """Prometheus would not load the rule."""


def recorded_alerts() -> tuple[Alert, ...]:
    """Return the alerts for the objects of the recorded server."""
    items = {"items": recorded_objects("0-idle"), "apiVersion": "v1", "kind": "List"}
    workspace = build_workspace(load_inputs([("o.json", json.dumps(items).encode())]), parse_release("1.36"))
    return build_alerts(Effective(workspace, Assumptions(True, TOTAL, defaults=False)))


def built_in_alerts(release: str, *values: dict[str, Any]) -> tuple[Alert, ...]:
    inputs = [(f"{number}.json", json.dumps(value).encode()) for number, value in enumerate(values)]
    return build_alerts(Effective(build_workspace(load_inputs(inputs), parse_release(release))))


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
        assert group.keys() == {"name", "rules"}
        for rule in group["rules"]:
            assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
            if not re.fullmatch(r"[1-9]\d*m", str(rule["for"])):
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
    assert len(rules) > 20
    assert {rule["annotations"]["runbook_url"].rpartition("/")[2][:-3] for rule in rules} <= set(list_ids())


@pytest.mark.parametrize("change", [("[5m])", "[5m]"), (" > 0", " >"), ('="system"', "=system"), ("for: 1m", "for: 1")])
def test_invalid_rules_are_found(change: tuple[str, str]) -> None:
    text = render_alerts(built_in_alerts("1.36"), is_object=True)
    assert change[0] in text
    with pytest.raises(InvalidRuleError):
        check_rules(text.replace(*change), is_object=True)


def test_metrics_exist_on_the_recorded_server() -> None:
    text = next(part.source.text for part in read_moment("4-mixed") if part.kind == "metrics")
    used = {name for alert in recorded_alerts() for name in METRIC.findall(alert.expression)}
    assert len(used) == 5
    assert all(re.search(rf"^{name}\{{", text, re.MULTILINE) for name in used)


def test_thresholds_are_the_limits_of_the_recorded_server() -> None:
    """No level of the server differs from the expected limit, and demand can exceed what the level can get."""
    state = state_of("4-mixed")
    alerts = recorded_alerts()
    limits = {alert.level: int(alert.expression.split()[-1]) for alert in alerts if alert.name == "APFLimitDiffers"}
    assert limits == {level.name: level.nominal for level in state.levels if not level.is_exempt}
    attainable = {alert.level: int(alert.expression.split()[-1]) for alert in alerts if alert.name == "APFSaturated"}
    firing = {level.name for level in state.levels if (level.demand_smoothed or 0) > attainable.get(level.name, 999)}
    assert firing == {"batch", "empty", "slow", "solo"}


def test_alerts_by_the_needs_of_users() -> None:
    alerts = {
        (alert.name, alert.level): alert for alert in built_in_alerts("1.36", builders.priority_level("batch", 10))
    }
    for name in MUST_NOT_REJECT:
        assert alerts["APFRequestsRejected", name].severity == "critical"
        counter = f'apiserver_flowcontrol_rejected_requests_total{{priority_level="{name}"}}'
        rate, new = alerts["APFRequestsRejected", name].expression.split(" or ")
        assert rate == f"sum by (instance) (rate({counter}[5m])) > 0"
        # The first event creates the counter, which `rate` does not see.
        assert new.startswith(f"(sum by (instance) ({counter} unless {counter} offset 5m) and on (instance) ")
        assert alerts["APFLongWaits", name].expression.endswith(" > 1")
    assert alerts["APFRequestsRejected", "workload-low"].expression.endswith(" > 0.01")
    assert alerts["APFRequestsRejected", "catch-all"].expression.endswith(" > 0.1")
    assert alerts["APFLongWaits", "workload-low"].expression.endswith(" > 10")
    assert ("APFLongWaits", "catch-all") not in alerts  # it does not queue
    assert ("APFSaturated", "catch-all") not in alerts  # the demand of a full level is its limit
    assert ("APFSaturated", "workload-low") in alerts
    assert not [level for _, level in alerts if level == "exempt"]
    unknown = alerts["APFLevelUnknown", ""]
    assert "batch|" in unknown.expression or "|batch" in unknown.expression


def test_requests_are_counted_by_level() -> None:
    alerts = {(alert.name, alert.level): alert.expression for alert in built_in_alerts("1.36")}

    def rate(kind: str, level: str) -> str:
        return f'sum by (instance) (rate(apiserver_flowcontrol_{kind}_requests_total{{priority_level="{level}"}}[5m]))'

    rejected, dispatched = rate("rejected", "workload-low"), rate("dispatched", "workload-low")
    everything = f"({rejected} + ({dispatched} or 0 * {rejected}))"
    assert alerts["APFRequestsRejected", "workload-low"] == f"{rejected} / {everything} > 0.01"
    assert alerts["APFRequestsAtCatchAll", "catch-all"] == f"{rate('dispatched', 'catch-all')} > 0"


@pytest.mark.parametrize(("release", "saturated"), [("1.36", True), ("1.25", True), ("1.21", False)])
def test_alerts_of_each_level_have_names_and_severities(release: str, saturated: bool) -> None:
    alerts = built_in_alerts(release)
    always = {"APFRequestsRejected", "APFLongWaits", "APFLimitDiffers", "APFLevelMissing"}
    for level in ("system", "workload-low"):
        names = {alert.name for alert in alerts if alert.level == level}
        assert names == always | ({"APFSaturated"} if saturated else set())
    assert {alert.severity for alert in alerts} == {"critical", "warning"}


def test_level_that_gets_leases_must_not_reject() -> None:
    leases = {"verbs": ["*"], "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "namespaces": ["*"]}
    subjects = [builders.user("system:kube-scheduler")]
    schema = builders.flow_schema("leases", "batch", 90, subjects=subjects, resources=[leases])
    level = builders.priority_level("batch", 10, {"queues": 8, "handSize": 2, "queueLengthLimit": 9})
    alerts = {(alert.name, alert.level): alert for alert in built_in_alerts("1.36", level, schema)}
    assert alerts["APFRequestsRejected", "batch"].severity == "critical"
    assert alerts["APFLongWaits", "batch"].expression.endswith(" > 1")
    assert find_vital_levels(Effective(build_workspace([], parse_release("1.36")))) == {"leader-election", "node-high"}


@pytest.mark.parametrize(("release", "expected"), [
    ("1.36", {"nominal_limit_seats", "demand_seats_smoothed", "dispatched_requests_total"}),
    ("1.25", {"request_concurrency_limit", "request_concurrency_in_use", "dispatched_requests_total"}),
    ("1.22", {"request_concurrency_limit", "request_concurrency_in_use", "dispatched_requests_total"}),
    ("1.21", {"request_concurrency_limit", "dispatched_requests_total"}),
    ("1.19", {"request_concurrency_limit", "dispatched_requests_total"}),
])  # fmt: skip
def test_metrics_of_a_release(release: str, expected: set[str]) -> None:
    text = render_alerts(built_in_alerts(release), is_object=False)
    used = {name.removeprefix("apiserver_flowcontrol_") for name in METRIC.findall(text)}
    assert used == expected | {"rejected_requests_total", "request_wait_duration_seconds_bucket"}
    assert ("priorityLevel=" in text) == (release == "1.19")


def test_only_levels_with_leases_warn_of_lost_leases() -> None:
    """`system` has the other requests of kubelets, and `workload-high` those of controllers."""
    descriptions = {
        alert.level: alert.description for alert in built_in_alerts("1.36") if alert.name == "APFRequestsRejected"
    }
    assert {level for level, text in descriptions.items() if "lease" in text} == {"leader-election", "node-high"}


@pytest.mark.parametrize("release", ["1.19", "1.25", "1.36"])
def test_missing_level_needs_metrics_of_a_server(release: str) -> None:
    """`absent` has a result for every level if Prometheus reads no API server, so other levels must have the metric."""
    alerts = [alert for alert in built_in_alerts(release) if alert.name == "APFLevelMissing"]
    assert len(alerts) >= 6
    for alert in alerts:
        absent, other = alert.expression.split(" and on () ")
        name = absent.removeprefix("absent(").partition("{")[0]
        assert absent == f'absent({name}{{priority{"Level" if release == "1.19" else "_level"}="{alert.level}"}})'
        assert other == name
        assert "since its start" in alert.summary  # the metrics of a deleted level stay


def test_header_names_the_servers_that_the_expressions_select() -> None:
    """Metrics of aggregated API servers have the same names and labels, and no expression has a job or a cluster."""
    text = render_alerts(built_in_alerts("1.36"), is_object=True)
    comment = [line for line in text.splitlines() if line.startswith("#")]
    assert text.startswith("# ")
    assert 'job="kube-apiserver"' in " ".join(comment)
    assert not re.search(r"\b(job|cluster)\s*[=!]", "".join(alert.expression for alert in built_in_alerts("1.36")))


def test_names_are_quoted() -> None:
    """A name that the server rejects is still data: in PromQL, in regular expressions, and in templates."""
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
    assert _quote('a"b\\c\nd') == '"a\\"b\\\\c\\nd"'
