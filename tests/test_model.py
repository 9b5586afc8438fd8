"""Typed objects of decoded manifests: absent fields, null and 0 get the defaults of the servers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from apflint.model import (
    ExemptPriorityLevelConfiguration,
    FlowSchema,
    FlowSchemaSpec,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    NonResourcePolicyRule,
    ObjectMeta,
    OwnerReference,
    PolicyRulesWithSubjects,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationSpec,
    QueuingConfiguration,
    ResourcePolicyRule,
    ServiceAccountSubject,
    Subject,
    build_flow_schema,
    build_priority_level,
)
from apflint.releases import API_VERSIONS, RELEASES, parse_release
from apflint.schema_violations import find_violations

if TYPE_CHECKING:
    from apflint.load.document import Document

NOTHING = ObjectMeta(name="", generate_name="", labels={}, annotations={}, finalizers=(), owner_references=())


def written_in(version: str) -> Document:
    # `build_flow_schema` and `build_priority_level` read only the version of a document.
    return cast("Document", SimpleNamespace(version=version))


def level(spec: dict[str, Any], kubernetes: str = "1.36", version: str = "v1") -> PriorityLevelConfigurationSpec:
    return build_priority_level({"spec": spec}, written_in(version), parse_release(kubernetes)).spec


@pytest.mark.parametrize("value", [{}, {"metadata": None, "spec": None}, {"metadata": {}, "spec": {"rules": None}}])
def test_empty_flow_schema(value: dict[str, Any]) -> None:
    document = written_in("v1")
    # defaults.go: only matchingPrecedence has a default value (1000). Other fields have Go's zero values.
    assert build_flow_schema(value, document) == FlowSchema(NOTHING, FlowSchemaSpec("", 1000, None, ()), document)


def test_precedence_0_is_the_default() -> None:
    # The field has `omitempty` and is not a pointer, so 0 equals an absent field. The minimum is 1.
    precedences = [
        build_flow_schema({"spec": {"matchingPrecedence": at}}, written_in("v1")).spec for at in (0, None, 1, 10000)
    ]
    assert [spec.matching_precedence for spec in precedences] == [1000, 1000, 1, 10000]


def test_distinguisher_method_without_type() -> None:
    methods = [{}, {"type": None}, {"type": "ByUser"}, None]
    specs = [build_flow_schema({"spec": {"distinguisherMethod": method}}, written_in("v1")).spec for method in methods]
    assert [spec.distinguisher_method for spec in specs] == ["", "", "ByUser", None]


def test_null_in_metadata_is_empty() -> None:
    owner = {"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u", "controller": True}
    metadata = {
        "name": "a",
        "generateName": "a-",
        "labels": {"app": "x", "none": None},
        "annotations": {"note": "y", "none": None},
        "finalizers": ["example.com/f", None],
        "ownerReferences": [owner, {}, None],
    }
    assert build_flow_schema({"metadata": metadata}, written_in("v1")).metadata == ObjectMeta(
        name="a",
        generate_name="a-",
        labels={"app": "x", "none": ""},
        annotations={"note": "y", "none": ""},
        finalizers=("example.com/f", ""),
        owner_references=(
            OwnerReference("v1", "Node", "n", "u", True),
            OwnerReference("", "", "", "", False),
            OwnerReference("", "", "", "", False),
        ),
    )


def test_complete_rules() -> None:
    account = {"namespace": "ci", "name": "runner"}
    rule = {
        "subjects": [
            {"kind": "User", "user": {"name": "u"}},
            {"kind": "Group", "group": {"name": "g"}},
            {"kind": "ServiceAccount", "serviceAccount": account},
        ],
        "resourceRules": [
            {"verbs": ["get"], "apiGroups": ["apps"], "resources": ["r"], "clusterScope": True, "namespaces": ["n"]}
        ],
        "nonResourceRules": [{"verbs": ["post"], "nonResourceURLs": ["/x"]}],
    }
    assert build_flow_schema({"spec": {"rules": [rule]}}, written_in("v1")).spec.rules == (
        PolicyRulesWithSubjects(
            (
                Subject("User", "u", None, None),
                Subject("Group", None, "g", None),
                Subject("ServiceAccount", None, None, ServiceAccountSubject("ci", "runner")),
            ),
            (ResourcePolicyRule(("get",), ("apps",), ("r",), True, ("n",)),),
            (NonResourcePolicyRule(("post",), ("/x",)),),
        ),
    )


def test_empty_rules() -> None:
    subjects: list[Any] = [None, {}, {"kind": "User", "user": {}}, {"group": {}}, {"serviceAccount": {}}]
    rule = {"subjects": subjects, "resourceRules": [None, {"verbs": [None]}], "nonResourceRules": [None, {}]}
    assert build_flow_schema({"spec": {"rules": [None, rule]}}, written_in("v1")).spec.rules == (
        PolicyRulesWithSubjects((), (), ()),
        PolicyRulesWithSubjects(
            (
                Subject("", None, None, None),
                Subject("", None, None, None),
                Subject("User", "", None, None),
                Subject("", None, "", None),
                Subject("", None, None, ServiceAccountSubject("", "")),
            ),
            (ResourcePolicyRule((), (), (), False, ()), ResourcePolicyRule(("",), (), (), False, ())),
            (NonResourcePolicyRule((), ()), NonResourcePolicyRule((), ())),
        ),
    )


def test_empty_level() -> None:
    document = written_in("v1")
    assert build_priority_level({}, document, parse_release("1.36")) == PriorityLevelConfiguration(
        NOTHING, PriorityLevelConfigurationSpec("", None, None), document
    )
    assert level({"limited": {}, "exempt": {}}) == PriorityLevelConfigurationSpec(
        "",
        LimitedPriorityLevelConfiguration(30, LimitResponse("", None), 0, None),
        ExemptPriorityLevelConfiguration(0, 0),
    )


def test_queues_have_the_defaults_of_every_version() -> None:
    def queuing(**fields: int | None) -> QueuingConfiguration | None:
        spec = level({"limited": {"limitResponse": {"type": "Queue", "queuing": fields}}})
        assert spec.limited is not None
        return spec.limited.limit_response.queuing

    assert queuing() == queuing(queues=0, handSize=0, queueLengthLimit=None) == QueuingConfiguration(64, 8, 50)
    assert queuing(queues=1, handSize=2, queueLengthLimit=3) == QueuingConfiguration(1, 2, 3)


@pytest.mark.parametrize(
    ("kubernetes", "version", "exempt", "borrowing"),
    [("1.25", "v1beta2", False, False), ("1.27", "v1beta3", False, True), ("1.28", "v1beta3", True, True)],
)
def test_unknown_fields_of_a_release_are_ignored(kubernetes: str, version: str, exempt: bool, borrowing: bool) -> None:
    limited = {"lendablePercent": 20, "borrowingLimitPercent": 40}
    spec = level({"exempt": {"nominalConcurrencyShares": 7, "lendablePercent": 9}}, kubernetes, version)
    assert spec.exempt == (ExemptPriorityLevelConfiguration(7, 9) if exempt else None)
    spec = level({"limited": limited}, kubernetes, version)
    assert spec.limited is not None
    assert (spec.limited.lendable_percent, spec.limited.borrowing_limit_percent) == (
        (20, 40) if borrowing else (0, None)
    )


@pytest.mark.parametrize("field", ["lendablePercent", "borrowingLimitPercent", "nominalConcurrencyShares", "exempt"])
def test_unknown_field_is_ignored(field: str) -> None:
    def spec(**fields: Any) -> dict[str, Any]:
        return fields if field == "exempt" else {"limited": fields}

    known = set()
    for version in [life.name for life in API_VERSIONS]:
        for kubernetes in RELEASES:
            written = {"spec": spec(**{field: "x"})}
            (found,) = find_violations(written, "PriorityLevelConfiguration", version, kubernetes)
            known.add(found.what)
            if found.what == "unknown":
                assert level(spec(**{field: "x"}), kubernetes.name, version) == level(spec(), kubernetes.name, version)
            elif version in kubernetes.served:
                value = {"lendablePercent": 7} if field == "exempt" else 7
                assert level(spec(**{field: value}), kubernetes.name, version) != level(
                    spec(), kubernetes.name, version
                )
    assert known == {"unknown", "type"}
