"""The tests for promtool that `apflint alerts` writes: they pass for every release, and fail if an alert is wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support import builders
from support.promtool import needs_promtool, run_test_file

from apflint.effective_configuration import Effective
from apflint.engine import load_inputs
from apflint.monitoring.alert_tests import build_tests, find_target
from apflint.monitoring.alerts import Thresholds, build_alerts
from apflint.monitoring.queries import Queries, parse_selector
from apflint.output.alerts import render_alerts, render_yaml
from apflint.releases import parse_release
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_promtool
QUEUES = {"queues": 4, "handSize": 1, "queueLengthLimit": 20}


def write_files(
    directory: Path,
    release: str,
    values: list[dict[str, Any]],
    thresholds: Thresholds = Thresholds(),  # noqa: B008  # a frozen value
    selector: str = 'job="kube-apiserver"',
    evaluation: str = "1m",
) -> Path:
    """Write rules and their tests, and return the path of the tests.

    `evaluation` is the time between two evaluations of the rules, which decides how long promtool takes. The tests that
    `apflint alerts` writes evaluate the rules every 15 seconds, as Prometheus does.
    """
    inputs = [(f"{number}.json", json.dumps(value).encode()) for number, value in enumerate(values)]
    effective = Effective(build_workspace(load_inputs(inputs), parse_release(release)))
    matchers = parse_selector(selector)
    source = Queries(effective.release, tuple(map(str, matchers)))
    rules = render_alerts(build_alerts(effective, thresholds, source), is_object=False)
    (directory / "a.rules.yaml").write_text(rules, encoding="utf-8")
    tests = build_tests(effective, thresholds, source, matchers, "a.rules.yaml") | {"evaluation_interval": evaluation}
    (directory / "a.tests.yaml").write_text(render_yaml(tests), encoding="utf-8")
    return directory / "a.tests.yaml"


@pytest.mark.parametrize("release", ["1.18", "1.21", "1.22", "1.25", "1.26", "1.28", "1.32", "1.37"])
def test_pass_in_every_release(release: str, tmp_path: Path) -> None:
    """The tests pass for one release of each set of metric names."""
    assert run_test_file(write_files(tmp_path, release, [builders.priority_level("batch", 10, QUEUES)])) == ""


def test_pass_with_other_thresholds_and_odd_names(tmp_path: Path) -> None:
    level = builders.priority_level('a"b.{{c}}', 10, QUEUES)
    schema = builders.flow_schema("a", 'a"b.{{c}}', 3000, subjects=[builders.group("x")])
    thresholds = Thresholds(0.5, 0.9, 0.2, 20, 29, 7, 2, 3, 1.5, 0.5)
    assert (
        run_test_file(write_files(tmp_path, "1.36", [level, schema], thresholds, 'job=~"a|b",zone!="c"', "15s")) == ""
    )


CHANGES = {
    "rejections": ("> 0.01\nand", "> 1.01\nand"),
    "one rejection": ("and sum by (cluster, instance, priority_level) (apiserver_flowcontrol_rejected", "or sum by (cluster, instance, priority_level) (apiserver_flowcontrol_rejected"),
    "cluster": ("by (cluster, instance", "by (instance"),
    "job": ('job="kube-apiserver", ', ""),
    "waits": ("0.99, sum", "0, sum"),
    "deleted level": ("unless sum by (cluster, instance, priority_level) (rate", "and sum by (cluster, instance, priority_level) (rate"),
    "exempt": ('priority_level=~"exempt"', 'priority_level=~"nothing"'),
    "etcd": ("etcd_request", "etcd3_request"),
    "webhook": ("admission_webhook", "admission_webhooks"),
    "catch-all": ('dispatched_requests_total{job="kube-apiserver", priority_level=~"catch-all"', 'x{job=""'),
    "limit": (") != ", ") == "),
    "missing": ("unless on (cluster, instance) max", "and on (cluster, instance) max"),
    "unknown": ('!~"catch-all|exempt|', '=~"catch-all|exempt|'),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_fail_if_an_alert_is_wrong(change: str, tmp_path: Path) -> None:
    tests = write_files(tmp_path, "1.36", [builders.priority_level("batch", 10, QUEUES)])
    rules = tmp_path / "a.rules.yaml"
    values = yaml.safe_load(rules.read_text("utf-8"))
    before, after = CHANGES[change]
    changed = [rule for rule in values["groups"][0]["rules"] if before in rule["expr"]]
    assert changed
    for rule in changed:
        rule["expr"] = rule["expr"].replace(before, after)
    values["groups"][0]["rules"] = changed
    rules.write_text(yaml.safe_dump(values), encoding="utf-8")
    keep_alerts(tests, {rule["alert"] for rule in changed})
    assert "FAILED" in run_test_file(tests)


def keep_alerts(tests: Path, names: set[str]) -> None:
    """Expect only the alerts `names`. The rules of all alerts would take promtool twice as long."""
    values = yaml.safe_load(tests.read_text("utf-8"))
    for expected in (part for test in values["tests"] for part in test["promql_expr_test"]):
        expected["exp_samples"] = [
            sample
            for sample in expected["exp_samples"]
            if any(f'alertname="{name}"' in sample["labels"] for name in names)
        ]
    tests.write_text(yaml.safe_dump(values), encoding="utf-8")


def test_target_that_the_selector_matches() -> None:
    matchers = parse_selector('job=~"a\\\\.b|c",cluster!="x",zone="y"')
    assert find_target(matchers) == {"instance": "192.0.2.1:6443", "job": "a.b", "zone": "y"}
