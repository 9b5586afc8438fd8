"""Objects of other groups that were meant for API Priority and Fairness, and manifests that only delete an object."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import yaml

from apflint.engine import Options, check

if TYPE_CHECKING:
    from apflint.finding import Finding

GROUP = "flowcontrol.apiserver.k8s.io"
FLOW_SCHEMA_SPEC = {"matchingPrecedence": 5000, "priorityLevelConfiguration": {"name": "workload-low"}}
LEVEL_SPEC = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}


def manifest(api_version: str, kind: str, spec: Any, **annotations: str) -> str:
    metadata = {"name": "x", "annotations": annotations}
    return yaml.safe_dump(
        {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}, sort_keys=False
    )


def findings(text: str) -> list[Finding]:
    return list(check([("a.yaml", text.encode())], Options()).findings)


@pytest.mark.parametrize(
    ("api_version", "correction"),
    [
        ("apiserver.config.k8s.io/v1", f"{GROUP}/v1"),
        ("apiserver.config.k8s.io/v1beta3", f"{GROUP}/v1beta3"),
        ("flows.example.com/v7", f"{GROUP}/v1"),
        ("etc", f"{GROUP}/v1"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "spec"), [("FlowSchema", FLOW_SCHEMA_SPEC), ("PriorityLevelConfiguration", LEVEL_SPEC)]
)
def test_another_group_with_a_spec_of_ours(api_version: str, correction: str, kind: str, spec: Any) -> None:
    (finding,) = findings(manifest(api_version, kind, spec))
    assert finding.rule == "APF005"
    assert (finding.span.line, finding.span.column) == (1, 13)
    assert f"`{api_version}`" in finding.message
    assert finding.fix is not None
    assert [edit.new for edit in finding.fix.edits] == [correction]
    assert not finding.fix.safe


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("FlowSchema", {"rules": []}),
        ("FlowSchema", None),
        ("FlowSchema", []),
        ("FlowSchema", LEVEL_SPEC),
        ("PriorityLevelConfiguration", {"type": "Fast", "limited": True}),
        ("PriorityLevelConfiguration", FLOW_SCHEMA_SPEC),
        ("FlowPlan", FLOW_SCHEMA_SPEC),
    ],
)
def test_another_group_with_a_spec_of_its_own(kind: str, spec: Any) -> None:
    assert not findings(manifest("flows.example.com/v1", kind, spec))


@pytest.mark.parametrize("kind", ["FlowSchema", "PriorityLevelConfiguration"])
@pytest.mark.parametrize("with_spec", [False, True])
def test_manifest_that_only_deletes_an_object_is_skipped(kind: str, with_spec: bool) -> None:
    spec = {"FlowSchema": FLOW_SCHEMA_SPEC, "PriorityLevelConfiguration": LEVEL_SPEC}[kind] if with_spec else None
    text = manifest(f"{GROUP}/v1", kind, spec, **{"release.openshift.io/delete": "true"})
    report = check([("a.yaml", text.encode())], Options())
    assert not report.findings
    assert report.objects == 0
    assert [(entry.reason, entry.documents) for entry in report.skipped] == [
        ("manifests that only delete an object: release.openshift.io/delete", 1)
    ]


@pytest.mark.parametrize("value", ["false", "True", ""])
def test_other_values_of_the_annotation_delete_nothing(value: str) -> None:
    text = manifest(f"{GROUP}/v1", "FlowSchema", FLOW_SCHEMA_SPEC, **{"release.openshift.io/delete": value})
    assert check([("a.yaml", text.encode())], Options()).objects == 1
