"""APF103, APF105, APF106: metadata, and lists that are sets."""

from __future__ import annotations

import json
from typing import Any

import pytest
from support.builders import ALL, findings, findings_in_text, flow_schema


def with_metadata(**metadata: Any) -> dict[str, Any]:
    """Return a FlowSchema with these fields in its metadata."""
    return {**flow_schema("x"), "metadata": {"name": "x", **metadata}}


@pytest.mark.parametrize(
    ("prefix", "is_accepted"),
    [
        ("a-", True),
        ("a", True),
        ("-", False),
        ("-a", False),
        ("A-", True),
        ("a.-", True),
        ("a--", True),
        ("a_", False),
    ],
)
def test_prefix_is_checked_as_the_server_masks_it(prefix: str, is_accepted: bool) -> None:
    # `maskTrailingDash` (apimachinery/pkg/api/validation/generic.go) replaces the last two characters with an `a`.
    found = findings(with_metadata(name="", generateName=prefix), only="APF103")
    fields = [finding.apiserver.field for finding in found if finding.apiserver]
    assert ("metadata.generateName" in fields) is not is_accepted
    assert {finding.field for finding in found} <= {"metadata.generateName"}
    messages = {finding.message for finding in found}
    assert (f'"{prefix}" is not a valid generateName' in messages) is not is_accepted


def test_long_prefix_is_cut_where_the_server_cuts_it() -> None:
    """The server counts bytes, and drops a character that it would cut in the middle."""
    assert findings(with_metadata(name="", generateName="a" + "\u00e9" * 40), only="APF103")
    assert not findings(with_metadata(name="", generateName="a" * 253), only="APF103")


@pytest.mark.parametrize(
    ("metadata", "fields"),
    [
        ({"name": ""}, ["metadata.name"]),
        ({"name": "A"}, ["metadata.name"]),
        ({"name": "", "generateName": "A-"}, ["metadata.generateName"]),
        ({"name": "", "generateName": "a-"}, []),
        ({"name": "", "generateName": "_"}, ["metadata.generateName", "metadata.generateName"]),
    ],
)
def test_missing_and_invalid_names(metadata: dict[str, str], fields: list[str]) -> None:
    assert [finding.field for finding in findings(with_metadata(**metadata), only="APF103")] == fields


@pytest.mark.parametrize(
    ("finalizers", "fields"),
    [
        (["example.com/a"], []),
        (["orphan"], []),
        (["foregroundDeletion"], []),
        (["kubernetes"], []),
        (["plain"], ["metadata.finalizers[0]"]),
        (["example.com/a", "plain"], ["metadata.finalizers[1]"]),
        (["foregroundDeletion", "orphan"], ["metadata.finalizers"]),
    ],
)
def test_finalizers(finalizers: list[str], fields: list[str]) -> None:
    found = findings(with_metadata(finalizers=finalizers), only="APF103")
    assert [finding.apiserver.field for finding in found if finding.apiserver] == fields


def test_finalizers_that_exclude_each_other_are_reported_at_orphan() -> None:
    manifest = with_metadata(finalizers=["foregroundDeletion", "example.com/a", "orphan"])
    (finding,) = findings(manifest, only="APF103")
    assert finding.field == "metadata.finalizers[2]"


@pytest.mark.parametrize(
    ("version", "is_accepted"), [("apps/v1", True), ("v1", True), ("a/b/c", False), ("apps/", False), ("", False)]
)
def test_api_version_of_an_owner(version: str, is_accepted: bool) -> None:
    owner = {"apiVersion": version, "kind": "Deployment", "name": "x", "uid": "y"}
    found = findings(with_metadata(ownerReferences=[owner]), only="APF103")
    fields = [] if is_accepted else ["metadata.ownerReferences[0].apiVersion"]
    assert [finding.field for finding in found] == fields
    assert all(finding.help == "write group and version, as in apps/v1" for finding in found)


@pytest.mark.parametrize("controllers", [0, 1, 2, 3])
def test_second_controller_is_reported_beside_the_first(controllers: int) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
    owners = [owner | {"uid": str(index), "controller": index < controllers} for index in range(3)]
    found = findings(with_metadata(ownerReferences=owners), only="APF103")
    assert [finding.field for finding in found] == ["metadata.ownerReferences[1].controller"] * (controllers > 1)
    assert all(len(finding.related) == 1 for finding in found)
    assert all(finding.help == "keep controller: true in one owner reference" for finding in found)


def test_invalid_keys_and_large_annotations_are_reported_at_keys() -> None:
    for metadata, keys in (
        ({"annotations": {"a b": "c"}, "labels": {"d e": "f"}}, ['"a b"', '"d e"']),
        ({"annotations": {"a": "x" * 256 * 1024}}, ['"annotations"']),
    ):
        text = json.dumps(with_metadata(**metadata))
        found = findings_in_text(text, only="APF103")
        assert sorted(text[finding.span.column - 1 : finding.span.end_column - 1] for finding in found) == keys
    assert found[0].help == "shorten or remove annotations"


@pytest.mark.parametrize("name", ["verbs", "apiGroups", "resources", "namespaces"])
def test_duplicate_list_entry_is_removed(name: str) -> None:
    (finding,) = findings(flow_schema("x", resources=[{**ALL, name: ["get", "list", "get"]}]), only="APF106")
    assert finding.field == f"spec.rules[0].resourceRules[0].{name}[2]"
    assert [related.message for related in finding.related] == ["the first one"]
    assert finding.fix is not None
    assert finding.fix.title == 'remove the second "get"'
    assert finding.fix.safe


def test_duplicate_entries_of_non_resource_rules_and_finalizers() -> None:
    paths = {"verbs": ["get", "get"], "nonResourceURLs": ["/a", "/a"]}
    assert [finding.field for finding in findings(flow_schema("x", paths=[paths]), only="APF106")] == [
        "spec.rules[0].nonResourceRules[0].verbs[1]",
        "spec.rules[0].nonResourceRules[0].nonResourceURLs[1]",
    ]
    for finalizer in ("example.com/a", "*"):
        found = findings(with_metadata(finalizers=[finalizer, finalizer]), only="APF106")
        assert [finding.field for finding in found] == ["metadata.finalizers[1]"]


def test_repeated_wildcard_is_left_to_another_rule() -> None:
    assert not findings(flow_schema("x", resources=[{**ALL, "verbs": ["*", "*"]}]), only="APF106")


@pytest.mark.parametrize("status", [{}, {"conditions": []}, {"conditions": None}, None])
def test_empty_status_is_not_reported(status: Any) -> None:
    assert not findings({**flow_schema("x"), "status": status}, only="APF105")


def test_status_with_a_condition_is_reported() -> None:
    status = {"conditions": [{"type": "Dangling", "status": "False"}]}
    (finding,) = findings({**flow_schema("x"), "status": status}, only="APF105")
    assert finding.field == "status"


@pytest.mark.parametrize("absent", ["kind", "name", "uid"])
def test_missing_field_of_an_owner(absent: str) -> None:
    owner = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y", absent: ""}
    (finding,) = findings(with_metadata(ownerReferences=[owner]), only="APF103")
    assert finding.message == f"owner reference has no {absent}"
    assert finding.field == f"metadata.ownerReferences[0].{absent}"
    assert finding.help == f"add the {absent}, or remove the reference"


@pytest.mark.parametrize(
    ("version", "kind", "reported"),
    [("v1", "Event", True), ("events.k8s.io/v1", "Event", False), ("v1", "ConfigMap", False)],
)
def test_event_of_the_core_group_cannot_be_an_owner(version: str, kind: str, reported: bool) -> None:
    owner = {"apiVersion": version, "kind": kind, "name": "x", "uid": "y"}
    found = findings(with_metadata(ownerReferences=[owner]), only="APF103")
    assert [finding.message for finding in found] == ["an Event cannot own another object"] * reported
