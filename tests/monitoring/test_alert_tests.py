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

    `evaluation` is the time between two evaluations of the rules, which decides how long promtool takes. With more than
    a minute, promtool would not see a request that is rejected only once. The tests that `apflint alerts` writes evaluate
    the rules every 15 seconds, as Prometheus does.
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


def test_pass_in_every_release(tmp_path: Path) -> None:
    """The tests pass for one release of each set of metric names. Equal files of several releases are tested once."""
    distinct: dict[tuple[str, str], Path] = {}
    for release in ("1.18", "1.21", "1.22", "1.25", "1.26", "1.28", "1.32", "1.37"):
        (tmp_path / release).mkdir()
        tests = write_files(tmp_path / release, release, [builders.priority_level("batch", 10, QUEUES)])
        distinct.setdefault((tests.with_name("a.rules.yaml").read_text("utf-8"), tests.read_text("utf-8")), tests)
    outputs = {tests.parent.name: run_test_file(tests) for tests in distinct.values()}
    assert set(outputs.values()) == {""}, outputs


def test_pass_with_other_thresholds_and_odd_names(tmp_path: Path) -> None:
    level = builders.priority_level('a"b.{{c}}', 10, QUEUES)
    schema = builders.flow_schema("a", 'a"b.{{c}}', 3000, subjects=[builders.group("x")])
    thresholds = Thresholds(0.5, 0.9, 0.2, 20, 29, 7, 2, 3, 1.5, 0.5)
    assert (
        run_test_file(write_files(tmp_path, "1.36", [level, schema], thresholds, 'job=~"a|b",zone!="c"', "15s")) == ""
    )


CHANGES = {
    "rejections": ("> 0.01\nand", "> 1.01\nand", '"batch" rejects requests'),
    "one rejection": ("and sum by (cluster, instance, priority_level) (apiserver_flowcontrol_rejected", "or sum by (cluster, instance, priority_level) (apiserver_flowcontrol_rejected", '"batch" rejects one request at a low rate of requests'),
    "cluster": ("by (cluster, instance", "by (instance", 'two clusters, one of them with "leader-election" rejects requests'),
    "job": ('job="kube-apiserver", ', "", 'servers that job="kube-apiserver" does not select'),
    "waits": ("0.99, sum", "0, sum", 'requests of "batch" wait'),
    "deleted level": ("unless sum by (cluster, instance, priority_level) (rate", "and sum by (cluster, instance, priority_level) (rate", "a deleted level, whose metrics stay"),
    "exempt": ('priority_level=~"exempt"', 'priority_level=~"nothing"', "exempt requests use more seats than the other levels can lend"),
    "etcd": ("etcd_request", "etcd3_request", "etcd is slow"),
    "webhook": ("admission_webhook", "admission_webhooks", "a webhook is slow"),
    "catch-all": ('dispatched_requests_total{job="kube-apiserver", priority_level=~"catch-all"', 'x{job=""', "most requests are at catch-all"),
    "limit": (") != ", ") == ", '"batch" has another limit'),
    "missing": ("unless on (cluster, instance) max", "and on (cluster, instance) max", 'one of two servers without "batch"'),
    "unknown": ('!~"catch-all|exempt|', '=~"catch-all|exempt|', "a healthy server"),
}  # fmt: skip
"""Changes that make an alert wrong: (expression before, expression after, name of a test that fails)."""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the content of a rule file and of its tests. Reading the YAML once for all changes saves a second."""
    tests = write_files(tmp_path_factory.mktemp("files"), "1.36", [builders.priority_level("batch", 10, QUEUES)])
    rules = tests.with_name("a.rules.yaml")
    return yaml.safe_load(rules.read_text("utf-8")), yaml.safe_load(tests.read_text("utf-8"))


@pytest.mark.parametrize("change", CHANGES)
def test_fail_if_an_alert_is_wrong(change: str, files: tuple[dict[str, Any], dict[str, Any]], tmp_path: Path) -> None:
    """One of the tests finds the change. All tests of all alerts would take promtool many times as long."""
    rules, tests = files
    before, after, name = CHANGES[change]
    (group,) = rules["groups"]
    changed = [
        rule | {"expr": rule["expr"].replace(before, after)} for rule in group["rules"] if before in rule["expr"]
    ]
    assert changed
    test = keep_alerts(next(test for test in tests["tests"] if test["name"] == name), changed)
    (tmp_path / "a.rules.yaml").write_text(yaml.safe_dump({"groups": [group | {"rules": changed}]}), "utf-8")
    (tmp_path / "a.tests.yaml").write_text(yaml.safe_dump(tests | {"tests": [test]}), "utf-8")
    assert "FAILED" in run_test_file(tmp_path / "a.tests.yaml")


def keep_alerts(test: dict[str, Any], rules: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a test that expects only the alerts of some rules."""
    names = [f'alertname="{rule["alert"]}"' for rule in rules]
    (part,) = test["promql_expr_test"]
    samples = [sample for sample in part["exp_samples"] if any(name in sample["labels"] for name in names)]
    return test | {"promql_expr_test": [part | {"exp_samples": samples}]}


def test_target_that_the_selector_matches() -> None:
    matchers = parse_selector('job=~"a\\\\.b|c",cluster!="x",zone="y"')
    assert find_target(matchers) == {"instance": "192.0.2.1:6443", "job": "a.b", "zone": "y"}
