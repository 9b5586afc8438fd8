"""APF406 and APF705: the order of objects in a file, and objects that an earlier release created."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from test_rules_whole_set import DANGLING, UNUSED, findings, flow_schema, level

from apflint.engine import Options, check

if TYPE_CHECKING:
    from apflint.finding import Finding

SOURCE = "# Source: chart/templates/apf.yaml\n"


def in_order(*objects: dict[str, Any], name: str = "apf.yaml", comment: str = "") -> list[Finding]:
    """What APF406 reports on documents of one file, each below a comment."""
    text = "".join(f"---\n{comment}{json.dumps(value)}\n" for value in objects)
    return [finding for finding in check([(name, text.encode())], Options()).findings if finding.rule == "APF406"]


def test_level_after_its_flow_schema_is_reported_with_the_place_of_the_level() -> None:
    (finding,) = in_order(DANGLING, UNUSED)
    assert finding.field == "spec.priorityLevelConfiguration.name"
    assert [related.message for related in finding.related] == ["the priority level"]
    assert not in_order(UNUSED, DANGLING)
    assert not findings(DANGLING, UNUSED, only="APF406")  # in two files the order is not that of the names


@pytest.mark.parametrize(("name", "reported"), [("workload-low", False), ("x", True)])
def test_built_in_level_may_come_after_its_flow_schema(name: str, reported: bool) -> None:
    assert bool(in_order(flow_schema("a", name), level(name))) is reported


def test_order_on_standard_input_is_not_reported() -> None:
    assert not in_order(DANGLING, UNUSED, name="<stdin>")
    assert not in_order(DANGLING, UNUSED, name="<stdin>", comment=SOURCE)


def test_order_in_saved_output_of_helm_is_not_reported() -> None:
    assert not in_order(DANGLING, UNUSED, comment=SOURCE)


@pytest.mark.parametrize("kind", ["List", "FlowSchemaList"])
def test_order_in_a_list_is_not_reported(kind: str) -> None:
    if kind == "List":
        assert not findings({"kind": kind, "apiVersion": "v1", "items": [DANGLING, UNUSED]}, only="APF406")
    else:
        schemas = {"kind": kind, "apiVersion": "flowcontrol.apiserver.k8s.io/v1", "items": [DANGLING]}
        assert not in_order(schemas, UNUSED)


@pytest.mark.parametrize(("annotation", "rule"), [("true", "APF405"), ("false", "APF705"), (None, "APF705")])
def test_leftover_of_an_earlier_release_has_one_finding(annotation: str | None, rule: str) -> None:
    leftover = flow_schema("endpoint-controller", "workload-high")
    if annotation is not None:
        leftover["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": annotation}
    found = findings(leftover, kubernetes="1.36")
    assert [finding.rule for finding in found if finding.rule in ("APF405", "APF705")] == [rule]
