"""APF404, APF405: objects with the names of built-in objects."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import findings, findings_in_text, flow_schema, priority_level

from apflint.checks.duplicate_and_built_in_objects import find_differences
from apflint.model import LimitedPriorityLevelConfiguration, LimitResponse, QueuingConfiguration

if TYPE_CHECKING:
    from collections.abc import Callable


def test_server_deletes_objects_with_unknown_names() -> None:
    autoupdate = {"annotations": {"apf.kubernetes.io/autoupdate-spec": "true"}}
    ours = {**priority_level("workload-lo"), "metadata": {"name": "workload-lo", **autoupdate}}
    (found,) = findings(ours, only="APF405")
    assert "PriorityLevelConfiguration" in found.message
    for value in (priority_level("workload-low"), flow_schema("service-accounts")):
        same = {**value, "metadata": {**value["metadata"], **autoupdate}}
        assert not findings(same, only="APF405")
    # A FlowSchema with the name of a built-in priority level is not a built-in object.
    other = flow_schema("workload-low")
    (found,) = findings({**other, "metadata": {**other["metadata"], **autoupdate}}, only="APF405")
    assert "FlowSchema" in found.message


def test_help_for_a_leftover_of_an_earlier_release() -> None:
    leftover = flow_schema("endpoint-controller")
    leftover["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": "true"}
    (found,) = findings(leftover, only="APF405")
    assert "Kubernetes 1.33 is the last release with a built-in object of this name." in found.notes
    assert found.help == (
        'remove the object, or set the annotation apf.kubernetes.io/autoupdate-spec to "false" to keep the object'
    )


def test_changed_suggested_objects_are_reported() -> None:
    kept = flow_schema("service-accounts")
    kept["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": "false"}
    objects = (flow_schema("a"), kept, flow_schema("probes"), priority_level("x"), priority_level("workload-low", 77))
    found = findings(*objects, only="APF404")
    assert [finding.object.name for finding in found if finding.object] == ["probes", "workload-low"]


@pytest.mark.parametrize("value", ["1", "t", "T", "TRUE", "true", "True", "0", "f", "yes", "tRUE", "false", ""])
def test_annotation_is_parsed_as_the_server_parses_it(value: str) -> None:
    level = priority_level("workload-low", 77)
    level["metadata"]["annotations"] = {"apf.kubernetes.io/autoupdate-spec": value}
    found = findings(level, only="APF404")
    places = ["metadata.annotations[apf.kubernetes.io/autoupdate-spec]"]
    assert [finding.field for finding in found] == places * (value in ("1", "t", "T", "TRUE", "true", "True"))


def test_differences_of_specs_are_named_as_in_the_version() -> None:
    def limited(shares: int, queues: int | None, borrowing: int | None = None) -> LimitedPriorityLevelConfiguration:
        queuing = None if queues is None else QueuingConfiguration(queues, 6, 50)
        return LimitedPriorityLevelConfiguration(
            shares, LimitResponse("Queue" if queuing else "Reject", queuing), 0, borrowing
        )

    spec = limited(5, 64)
    for other, version, differences in (
        (spec, "v1", []),
        (limited(30, 64), "v1", ["nominalConcurrencyShares (5 instead of 30)"]),
        (limited(30, 64), "v1beta2", ["assuredConcurrencyShares (5 instead of 30)"]),
        (limited(5, 128), "v1", ["limitResponse.queuing.queues (64 instead of 128)"]),
        (limited(5, 64, 7), "v1", ["borrowingLimitPercent (absent instead of 7)"]),
        (limited(5, None), "v1", ['limitResponse.type ("Queue" instead of "Reject")', "limitResponse.queuing"]),
    ):
        assert list(find_differences(spec, other, version)) == differences


@pytest.mark.parametrize("build", [flow_schema, priority_level])
def test_changed_mandatory_object_is_reported_at_the_key_spec(build: Callable[[str], dict[str, Any]]) -> None:
    text = json.dumps(build("catch-all"))
    found = [finding for finding in findings_in_text(text) if finding.rule in ("APF215", "APF311")]
    assert [text[finding.span.column - 1 : finding.span.end_column - 1] for finding in found] == ['"spec"']


@pytest.mark.parametrize(
    ("version", "kubernetes", "field"),
    [("v1beta2", "1.28", "assuredConcurrencyShares"), ("v1beta3", "1.28", "nominalConcurrencyShares")],
)
def test_changed_shares_of_a_mandatory_level_are_named_as_in_their_version(
    version: str, kubernetes: str, field: str
) -> None:
    level = priority_level("catch-all", version=version)
    level["spec"]["limited"] = {field: 50, "limitResponse": {"type": "Reject"}}
    (finding,) = findings(level, only="APF311", kubernetes=kubernetes)
    assert finding.notes[0] == f"Different from the built-in object: limited.{field} (50 instead of 5)."
