"""APF002, APF101, APF102: objects that the API server cannot decode."""

from __future__ import annotations

import json
from functools import reduce
from operator import getitem
from typing import Any

import pytest
from support.builders import ALL, findings, findings_in_text, flow_schema, manifest, user

LEVEL = "PriorityLevelConfiguration"


def with_resource_rule(**fields: Any) -> dict[str, Any]:
    """Return a FlowSchema with one resource rule."""
    return flow_schema("x", resources=[{**ALL, **fields}])


def with_spec(**fields: Any) -> dict[str, Any]:
    """Return a FlowSchema with other fields in its spec."""
    schema = flow_schema("x")
    return {**schema, "spec": {**schema["spec"], **fields}}


def test_key_that_a_merge_adds_again_is_a_duplicate() -> None:
    text = json.dumps(flow_schema("x")).replace('{"name": "x"}', "{name: x, <<: {name: y}}")
    (finding,) = findings_in_text(text, only="APF002")
    assert finding.message == 'duplicate key "name", merged by <<'
    assert finding.notes[0] == "The API server treats the override of a merged key as a duplicate."


@pytest.mark.parametrize(
    ("written", "intended"),
    [
        ("precedence", "matchingPrecedence"),
        ("priority", "matchingPrecedence"),
        ("priorityLevel", "priorityLevelConfiguration"),
        ("distinguisher", "distinguisherMethod"),
    ],
)
def test_synonym_of_a_field_of_a_flow_schema(written: str, intended: str) -> None:
    (finding,) = findings(with_spec(**{written: {}}), only="APF101")
    assert finding.help == f'did you mean "{intended}"?'


def test_synonym_of_a_field_of_a_rule_and_of_a_priority_level() -> None:
    paths = {"verbs": ["get"], "nonResourceURLs": ["/a"], "paths": ["/b"]}
    (finding,) = findings(flow_schema("x", paths=[paths]), only="APF101")
    assert finding.help == 'did you mean "nonResourceURLs"?'
    for name in ("concurrencyShares", "shares"):
        level = manifest(LEVEL, {"type": "Limited", "limited": {name: 5, "limitResponse": {"type": "Reject"}}})
        (finding,) = findings(level, only="APF101")
        assert finding.help == 'did you mean "nominalConcurrencyShares"?'


@pytest.mark.parametrize(
    ("level_type", "owner"), [("Limited", "limited"), ("Exempt", "exempt"), ("Other", None), (None, None)]
)
def test_field_of_limited_and_exempt_is_moved_as_the_type_says(level_type: str | None, owner: str | None) -> None:
    (finding,) = findings(manifest(LEVEL, {"type": level_type, "lendablePercent": 5}), only="APF101")
    assert finding.help == "does it belong in spec.exempt or spec.limited?"
    paths = [operation.path for operation in finding.fix.operations] if finding.fix else None
    assert paths == (owner and [("spec", owner)])


@pytest.mark.parametrize(
    ("kubernetes", "added", "spec"),
    [
        ("1.27", "1.28", {"type": "Exempt", "exempt": {}}),
        ("1.24", "1.26", {"type": "Limited", "limited": {"lendablePercent": 5}}),
        ("1.25", "1.26", {"type": "Limited", "limited": {"lendablePercent": 5}}),
        ("1.25", "1.26", {"type": "Limited", "limited": {"borrowingLimitPercent": 5}}),
    ],
)
def test_field_of_a_later_release_names_the_release(kubernetes: str, added: str, spec: dict[str, Any]) -> None:
    (finding,) = findings(manifest(LEVEL, spec, version="v1beta2"), only="APF101", kubernetes=kubernetes)
    assert finding.notes[0] == f"The field was added in Kubernetes {added}."
    elsewhere = findings(manifest("FlowSchema", spec, version="v1beta2"), only="APF101", kubernetes=added)
    assert elsewhere
    assert not any("was added" in note for finding in elsewhere for note in finding.notes)


@pytest.mark.parametrize(("path", "parent"), [((), ""), (("metadata",), "metadata."), (("spec",), "spec.")])
@pytest.mark.parametrize("name", ["more", "a/b", "a b"])
def test_server_names_the_path_of_an_unknown_field(path: tuple[str, ...], parent: str, name: str) -> None:
    written = flow_schema("x")
    place: Any = reduce(getitem, path, written)
    place[name] = 1
    (finding,) = findings(written, only="APF101")
    assert finding.apiserver is not None
    assert finding.apiserver.field == f"{parent}{name}"


def test_no_break_spaces_are_named() -> None:
    text = json.dumps(with_spec(more=1)).replace("more", "\u00a0rules")
    (finding,) = findings_in_text(text, only="APF101")
    assert finding.notes[0] == "YAML reads no-break spaces (U+00A0) as part of the key."
    assert finding.help == "indent the line with spaces"


def test_subjects_as_in_rbac_are_shown_nested() -> None:
    def helps(subject: dict[str, Any]) -> dict[str, str | None]:
        found = findings(flow_schema("x", subjects=[subject]), only="APF101")
        return {finding.field.rpartition(".")[2]: finding.help for finding in found}

    nested = 'unlike in RBAC, write serviceAccount: {namespace: "ci", name: "runner"}'
    account = {"kind": "ServiceAccount", "name": "runner", "namespace": "ci", "apiGroup": ""}
    assert helps(account) == {
        "name": nested,
        "namespace": 'move it to "serviceAccount" with the name',
        "apiGroup": "remove it",
    }
    misspelled = helps({**account, "kind": "serviceaccounts"})  # another rule reports the wrong kind
    assert misspelled["name"] == nested
    assert str(helps({"kind": "ServiceAccount", "namespace": "ci"})["namespace"]).endswith(
        '{namespace: "ci", name: "..."}'
    )
    of_user = helps({"kind": "User", "name": "alice", "namespace": "ci"})
    assert of_user["name"] == 'unlike in RBAC, write user: {name: "alice"}'
    assert "RBAC" not in str(of_user["namespace"])
    for kind in ("Robot", 5):
        assert "RBAC" not in str(helps({"kind": kind, "name": "alice"})["name"])


@pytest.mark.parametrize(
    ("name", "quoted"), [("yes", '"yes"'), ("&x 2.10", '"2.10"'), ("no", '"no"'), ("0", '"0"'), ("", '"..."')]
)
def test_name_beside_its_kind_is_shown_as_it_is_written(name: str, quoted: str) -> None:
    text = json.dumps(flow_schema("x", subjects=[{"kind": "Group", "name": "HERE"}])).replace('"HERE"', name)
    (finding,) = findings_in_text(text, only="APF101")
    assert finding.help == f"unlike in RBAC, write group: {{name: {quoted}}}"


@pytest.mark.parametrize(("kind", "member"), [("ServiceAccount", "serviceAccount"), ("Group", None), ("User", None)])
def test_namespace_is_moved_into_service_accounts_only(kind: str, member: str | None) -> None:
    (finding,) = findings(flow_schema("x", subjects=[{"kind": kind, "namespace": "ci"}]), only="APF101")
    assert (finding.fix and finding.fix.title) == (member and f'move "namespace" into "{member}"')


def test_ambiguous_fields_have_no_fix() -> None:
    unnamed = flow_schema("x")
    unnamed["spec"] = {
        "name": "workload-low",
        "rules": unnamed["spec"]["rules"],
    }  # `name` may belong to the level or to the object, so there is no fix
    resources = with_spec(rules=[{"subjects": [user("alice")], "resources": ["pods"]}])
    for schema, field in (
        (unnamed, "spec.name"),
        (resources, "spec.rules[0].resources"),
        ({**flow_schema("x"), "conditions": []}, "conditions"),
    ):
        fixes = {finding.field: finding.fix for finding in findings(schema, only="APF101")}
        assert fixes[field] is None


@pytest.mark.parametrize(
    ("written", "got", "help_text"),
    [
        ("maybe", 'the string "maybe"', None),
        ("'maybe'", 'the string "maybe"', None),
        ("'TRUE'", 'the string "TRUE"', "remove the quotes: true"),
        ("'true'", 'the string "true"', "remove the quotes: true"),
        ("'false'", 'the string "false"', "remove the quotes: false"),
        ("[]", "a list", None),
        ("{}", "a mapping", None),
    ],
)
def test_wrong_boolean(written: str, got: str, help_text: str | None) -> None:
    text = json.dumps(with_resource_rule(clusterScope="HERE")).replace('"HERE"', written)
    (finding,) = findings_in_text(text, only="APF102")
    assert finding.message == f'expected true or false for "clusterScope", got {got}'
    assert finding.help == help_text
    values = [getattr(operation, "value", None) for operation in finding.fix.operations] if finding.fix else None
    assert values == {"'TRUE'": [True], "'true'": [True], "'false'": [False]}.get(written)


def test_expected_types_have_names() -> None:
    found = findings(with_spec(matchingPrecedence="x", rules={}, priorityLevelConfiguration=[]), only="APF102")
    assert sorted(finding.message.partition(",")[0] for finding in found) == [
        'expected a list for "rules"',
        'expected a mapping for "priorityLevelConfiguration"',
        'expected an integer for "matchingPrecedence"',
    ]
    (finding,) = findings({**flow_schema("x"), "metadata": {"name": "x", "creationTimestamp": []}}, only="APF102")
    assert finding.message.startswith("expected a timestamp like ")


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1, 2**70])
def test_integer_out_of_range_names_the_range(number: int) -> None:
    (finding,) = findings(with_spec(matchingPrecedence=number), only="APF102")
    assert finding.message.startswith(
        'expected an integer from -2,147,483,648 to 2,147,483,647 for "matchingPrecedence", got the number '
    )


def test_infinity_and_nan_are_reported_once_in_known_and_unknown_fields() -> None:
    text = json.dumps(with_spec(matchingPrecedence=-11.0, more={"x": -22.0}))
    found = findings_in_text(text.replace("-11.0", ".inf").replace("-22.0", ".NaN"), only="APF102")
    message = "YAML parses `{}` as infinity or NaN, which JSON, and so Kubernetes, cannot represent"
    assert [(finding.field, finding.message) for finding in found] == [
        ("spec.matchingPrecedence", message.format(".inf")),
        ("spec.more.x", message.format(".NaN")),
    ]
    assert [finding.apiserver.field for finding in found if finding.apiserver] == [
        "spec.matchingPrecedence",
        "spec.more.x",
    ]


@pytest.mark.parametrize(
    ("field", "text", "number"),
    [
        ("generation", "5000000000", 5_000_000_000),
        ("generation", "9223372036854775807", 2**63 - 1),
        ("generation", "-9223372036854775808", -(2**63)),
        ("generation", "9223372036854775808", None),
        ("generation", "007", None),
        ("generation", "1e3", None),
        ("deletionGracePeriodSeconds", "5", 5),
    ],
)
def test_quotes_of_an_integer_are_removed_if_it_fits(field: str, text: str, number: int | None) -> None:
    schema = flow_schema("x")
    schema["metadata"][field] = text
    (finding,) = findings(schema, only="APF102")
    values = [getattr(operation, "value", None) for operation in finding.fix.operations] if finding.fix else [None]
    assert values == [number]


@pytest.mark.parametrize(
    ("text", "number"), [("2147483647", 2**31 - 1), ("2147483648", None), ("-2147483648", -(2**31))]
)
def test_quotes_of_a_small_integer_are_removed_if_it_fits(text: str, number: int | None) -> None:
    (finding,) = findings(with_spec(matchingPrecedence=text), only="APF102")
    values = [getattr(operation, "value", None) for operation in finding.fix.operations] if finding.fix else [None]
    assert values == [number]


@pytest.mark.parametrize(
    ("written", "help_text"),
    [
        ("name", 'write {name: "name"}'),
        ("name:x", "is a space missing after the colon?"),
        ("x:y", 'write {name: "x:y"}'),
        ("name:", None),
    ],
)
def test_help_for_a_string_in_place_of_a_mapping_with_one_field(written: str, help_text: str) -> None:
    (finding,) = findings(with_spec(priorityLevelConfiguration=written), only="APF102")
    assert finding.help == help_text


def test_string_in_place_of_a_mapping_with_many_fields_has_no_help() -> None:
    (finding,) = findings(manifest(LEVEL, {"type": "Limited", "limited": "30"}), only="APF102")
    assert finding.message == 'expected a mapping for "limited", got the string "30"'
    assert finding.help is None
