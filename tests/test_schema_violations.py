"""`find_violations` finds the same violations as jsonschema finds in the whole object."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.validators import extend

from apflint import schema_violations
from apflint.budgets import MAX_VIOLATIONS
from apflint.load import load
from apflint.releases import NEWEST, parse_release
from apflint.schema import load_schema, schema_for_release
from apflint.schema_violations import Violation, find_violations
from apflint.string_formats import is_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

VERSIONS = ("v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1")
KINDS = ("FlowSchema", "PriorityLevelConfiguration")
RELEASES = ("1.18", "1.21", "1.24", "1.25", "1.26", "1.28", NEWEST.name)

FLOW_SCHEMA: dict[str, Any] = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "FlowSchema",
    "metadata": {
        "name": "example",
        "labels": {"app": "example"},
        "ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "y", "controller": True}],
        "managedFields": [{"manager": "kubectl", "time": "2026-11-21T10:00:00Z", "fieldsV1": {"f:spec": {}}}],
    },
    "spec": {
        "priorityLevelConfiguration": {"name": "workload-low"},
        "matchingPrecedence": 500,
        "distinguisherMethod": {"type": "ByUser"},
        "rules": [
            {
                "subjects": [{"kind": "Group", "group": {"name": "system:authenticated"}}],
                "resourceRules": [
                    {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "clusterScope": True},
                ],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["/healthz"]}],
            },
        ],
    },
    "status": {"conditions": [{"type": "Dangling", "status": "False", "lastTransitionTime": "2026-11-21T10:00:00Z"}]},
}
LEVEL: dict[str, Any] = {
    "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
    "kind": "PriorityLevelConfiguration",
    "metadata": {"name": "example"},
    "spec": {
        "type": "Limited",
        "limited": {
            "nominalConcurrencyShares": 10,
            "lendablePercent": 50,
            "borrowingLimitPercent": 100,
            "limitResponse": {"type": "Queue", "queuing": {"queues": 64, "handSize": 6, "queueLengthLimit": 50}},
        },
    },
}
EXAMPLES = {"FlowSchema": FLOW_SCHEMA, "PriorityLevelConfiguration": LEVEL}


def replaced(value: dict[str, Any], path: tuple[str | int, ...], new: Any) -> dict[str, Any]:
    """Return a copy with `new` at `path`."""
    changed = copy.deepcopy(value)
    inner: Any = changed
    for step in path[:-1]:
        inner = inner[step]
    inner[path[-1]] = new
    return changed


# jsonschema accepts 5.0 as an integer, but a server does not.
VALIDATOR = extend(  # type: ignore[no-untyped-call]  # jsonschema does not annotate this function
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int),
)
FORMATS = FormatChecker(formats=())
FORMATS.checks("date-time")(lambda value: not isinstance(value, str) or is_timestamp(value))
WHAT: dict[str, Any] = {"type": "type", "minimum": "range", "maximum": "range", "format": "format"}


def validate_whole(value: Any, kind: str, version: str, name: str) -> list[Violation]:
    """Return the violations that jsonschema finds in the whole object, in the order in which a server decodes fields."""
    schema = schema_for_release(kind, version, parse_release(name).minor)
    violations = []
    for error in VALIDATOR(schema, format_checker=FORMATS).iter_errors(value):
        path, got = tuple(error.absolute_path), error.instance
        if error.validator == "additionalProperties":
            known = tuple(error.schema["properties"])
            violations += [Violation("unknown", (*path, key), "", got[key], known) for key in got if key not in known]
        elif error.validator == "type" or not isinstance(got, float):  # a float violates the type, so ignore its range
            expected = schema_violations._expected_type(error.schema)
            violations.append(Violation(WHAT[error.validator], path, expected, got))
    return sorted(violations, key=schema_violations._sort_key)


def same(found: Iterable[Violation], wanted: Iterable[Violation]) -> bool:
    """Return whether violations are equal, including the types of values. In Python, True equals 1."""
    return repr(list(found)) == repr(list(wanted))


def paths_in(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of all values inside a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [inner for step, item in pairs for inner in ((*path, step), *paths_in(item, (*path, step)))]


# Values of all types of YAML and JSON, with the limits of each type.
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 2**31 - 1, 2**31, -(2**31), -(2**31) - 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**30]),
    st.floats(),
    st.sampled_from(
        ["", "5", "true", "*", "2026-11-21T10:00:00Z", "2026-11-21T1:00:00,5+24:60", "2026-11-31T10:00:00Z"]
    ),
    st.text(max_size=3),
    st.lists(
        st.one_of(st.none(), st.text(max_size=2), st.integers(), st.dictionaries(st.text(max_size=2), st.none())),
        max_size=2,
    ),
    st.dictionaries(
        st.sampled_from(["name", "type", "foo", "", "metadata", "f:x"]),
        st.one_of(st.none(), st.text(max_size=2), st.booleans()),
        max_size=2,
    ),
)


@st.composite
def objects(draw: st.DrawFn, kind: str, version: str, mistakes: int) -> Any:
    """Draw an object that fits the schema. With a probability of `mistakes` in 30, replace each value by a random value."""
    root: Any = load_schema(kind, version)

    def value(node: dict[str, Any]) -> Any:
        chance = draw(st.integers(0, 29))
        if chance < mistakes:
            return draw(JUNK)
        if chance == 29:
            return None
        if "$ref" in node:
            return value(root["$defs"][node["$ref"].rsplit("/", 1)[-1]])
        types = node.get("type")
        match types if isinstance(types, str) else types and types[0]:
            case "object" if "properties" in node:
                mapping = {name: value(field) for name, field in node["properties"].items() if draw(st.booleans())}
                if mistakes and draw(st.integers(0, 19)) == 0:
                    mapping[draw(st.text(max_size=4))] = draw(JUNK)
                return mapping
            case "object":
                return draw(st.dictionaries(st.text(max_size=3), st.one_of(st.none(), st.text(max_size=3)), max_size=2))
            case "array":
                return [value(node["items"]) for _ in range(draw(st.integers(0, 2)))]
            case "integer":
                return draw(st.integers(node["minimum"], node["maximum"]))
            case "boolean":
                return draw(st.booleans())
            case "string":
                return "2024-02-29T23:59:59.5-07:30" if node.get("format") == "date-time" else draw(st.text(max_size=3))
        return draw(JUNK)

    return {name: value(field) for name, field in root["properties"].items() if draw(st.booleans())}


@pytest.mark.slow
@settings(max_examples=300)
@given(st.data(), st.sampled_from(KINDS), st.sampled_from(VERSIONS), st.sampled_from(RELEASES), st.integers(0, 3))
def test_violations_are_those_of_jsonschema(
    data: st.DataObject, kind: str, version: str, name: str, mistakes: int
) -> None:
    value = data.draw(objects(kind, version, mistakes))
    found = find_violations(value, kind, version, parse_release(name))
    assert same(found, validate_whole(value, kind, version, name))


def test_jsonschema_is_used_as_published() -> None:
    assert type(schema_violations._validator("FlowSchema", "v1", NEWEST.minor)) is Draft202012Validator


@given(st.data(), st.sampled_from(KINDS), st.sampled_from(VERSIONS))
def test_generated_objects_have_no_violations(data: st.DataObject, kind: str, version: str) -> None:
    value = data.draw(objects(kind, version, 0))
    unknown = {"clusterName", "subresource", "shardInfo"}
    assert all(
        violation.path[-1] in unknown for violation in find_violations(value, kind, version, parse_release("1.28"))
    )


@given(st.data(), st.sampled_from(KINDS), st.sampled_from(VERSIONS))
def test_other_validators_accept_objects_without_violations(data: st.DataObject, kind: str, version: str) -> None:
    """Validators that do not know the formats of Kubernetes accept every object without violations.

    Other tools use the published schemas with such validators.
    """
    value = data.draw(objects(kind, version, 1))
    if not find_violations(value, kind, version, parse_release("1.28")):
        assert Draft202012Validator(load_schema(kind, version)).is_valid(value)


@given(st.data(), st.sampled_from(KINDS))
def test_each_violation_is_in_the_object(data: st.DataObject, kind: str) -> None:
    value = data.draw(objects(kind, "v1", 3))
    for violation in find_violations(value, kind, "v1", NEWEST):
        inner: Any = value
        for step in violation.path:
            inner = inner[step]
        assert inner is violation.got


VALUES: list[Any] = [
    *(
        None,
        True,
        False,
        0,
        -1,
        2**31 - 1,
        2**31,
        -(2**31),
        -(2**31) - 1,
        2**63 - 1,
        2**63,
        -(2**63) - 1,
        5.0,
        0.5,
        1e300,
    ),
    *(
        "",
        "5",
        "2026-11-21T10:00:00Z",
        "2026-11-31T10:00:00Z",
        [],
        [None],
        [5],
        [True],
        ["x"],
        ["x", 5],
        [[]],
        [{}],
        [{"foo": 1}],
    ),
    *({}, {"foo": None}, {"foo": "x"}, {"foo": True}),
]


@pytest.mark.parametrize("kind", KINDS)
def test_violations_of_each_value_in_each_place(kind: str) -> None:
    """Replace each value of an example by each sort of value, because random objects rarely contain deep fields."""
    verdicts = set()
    for path in paths_in(EXAMPLES[kind]):
        for junk in VALUES:
            value = replaced(EXAMPLES[kind], path, junk)
            wanted = validate_whole(value, kind, "v1", NEWEST.name)
            assert same(find_violations(value, kind, "v1", NEWEST), wanted), (path, junk)
            verdicts.add(not wanted)
    assert verdicts == {True, False}


@pytest.mark.parametrize("kind", KINDS)
def test_examples_have_no_violations(kind: str) -> None:
    assert find_violations(EXAMPLES[kind], kind, "v1", NEWEST) == ()


@pytest.mark.parametrize(
    ("kind", "path", "value", "what", "expected"),
    [
        ("FlowSchema", ("spec", "matchingPrecedence"), "5", "type", "int32"),
        ("FlowSchema", ("spec", "matchingPrecedence"), True, "type", "int32"),
        ("FlowSchema", ("spec", "matchingPrecedence"), 5.0, "type", "int32"),
        ("FlowSchema", ("spec", "matchingPrecedence"), 2**31, "range", "int32"),
        ("FlowSchema", ("spec", "matchingPrecedence"), -(2**31) - 1, "range", "int32"),
        ("FlowSchema", ("metadata", "generation"), 2**63, "range", "int64"),
        ("FlowSchema", ("metadata", "generation"), "1", "type", "int64"),
        ("FlowSchema", ("metadata", "name"), 1, "type", "string"),
        ("FlowSchema", ("metadata", "labels"), [], "type", "map of strings"),
        ("FlowSchema", ("metadata", "labels", "app"), True, "type", "string"),
        ("FlowSchema", ("metadata", "creationTimestamp"), "", "format", "date-time"),
        ("FlowSchema", ("metadata", "creationTimestamp"), 5, "type", "date-time"),
        ("FlowSchema", ("metadata", "ownerReferences", 0, "controller"), "yes", "type", "boolean"),
        ("FlowSchema", ("metadata", "managedFields", 0, "time"), "soon", "format", "date-time"),
        ("FlowSchema", ("spec", "rules", 0, "resourceRules", 0, "clusterScope"), 1, "type", "boolean"),
        ("FlowSchema", ("spec", "rules", 0, "resourceRules", 0, "verbs"), "get", "type", "list"),
        ("FlowSchema", ("spec", "rules", 0, "resourceRules", 0, "verbs", 1), False, "type", "string"),
        ("FlowSchema", ("spec", "rules", 0, "subjects", 0), "me", "type", "object"),
        ("FlowSchema", ("spec", "rules"), {}, "type", "list"),
        ("FlowSchema", ("spec",), [], "type", "object"),
        ("FlowSchema", ("status", "conditions", 0, "status"), False, "type", "string"),
        ("PriorityLevelConfiguration", ("spec", "limited", "limitResponse", "queuing"), "x", "type", "object"),
        ("PriorityLevelConfiguration", ("spec", "limited", "lendablePercent"), 0.5, "type", "int32"),
    ],
)
def test_wrong_value(kind: str, path: tuple[str | int, ...], value: Any, what: Any, expected: str) -> None:
    changed = replaced(EXAMPLES[kind], path, value)
    assert find_violations(changed, kind, "v1", NEWEST) == (Violation(what, path, expected, value),)


def test_unknown_field_lists_the_known_fields() -> None:
    changed = replaced(LEVEL, ("spec", "limited", "queuing"), {"queues": 5})
    known = ("borrowingLimitPercent", "lendablePercent", "limitResponse", "nominalConcurrencyShares")
    path = ("spec", "limited", "queuing")
    assert find_violations(changed, "PriorityLevelConfiguration", "v1", NEWEST) == (
        Violation("unknown", path, "", {"queues": 5}, known),
    )


def test_violations_are_sorted_by_path() -> None:
    changed = replaced(FLOW_SCHEMA, ("spec", "rules", 0, "resourceRules", 0, "verbs"), [True] * 11)
    changed["Kind"] = "x"
    changed["spec"]["Rules"] = []
    paths = [violation.path for violation in find_violations(changed, "FlowSchema", "v1", NEWEST)]
    verbs = ("spec", "rules", 0, "resourceRules", 0, "verbs")
    assert paths == [("Kind",), ("spec", "Rules"), *((*verbs, index) for index in range(11))]


@pytest.mark.parametrize("kind", KINDS)
def test_null_is_allowed_everywhere(kind: str) -> None:
    for path in paths_in(EXAMPLES[kind]):
        assert find_violations(replaced(EXAMPLES[kind], path, None), kind, "v1", NEWEST) == (), path


@pytest.mark.parametrize("value", [[], {}, "x", 5, True, {"a": [{"b": 1.5}]}])
def test_fields_v1_allows_any_value(value: Any) -> None:
    path = ("metadata", "managedFields", 0, "fieldsV1")
    assert find_violations(replaced(FLOW_SCHEMA, path, value), "FlowSchema", "v1", NEWEST) == ()


@pytest.mark.parametrize("kind", KINDS)
def test_violations_in_items_of_lists(kind: str) -> None:
    manifest = {"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": f"{kind}List", "metadata": {}}
    items = [EXAMPLES[kind], None, replaced(EXAMPLES[kind], ("metadata", "name"), 5)]
    found = find_violations({**manifest, "items": items}, f"{kind}List", "v1", NEWEST)
    assert found == (Violation("type", ("items", 2, "metadata", "name"), "string", 5),)


@pytest.mark.parametrize(
    ("path", "version", "having", "lacking"),
    [
        (("metadata", "clusterName"), "v1beta1", "1.24", "1.25"),
        (("metadata", "clusterName"), "v1beta2", "1.23", "1.26"),
        (("spec", "limited", "lendablePercent"), "v1beta1", "1.26", "1.25"),
        (("spec", "limited", "borrowingLimitPercent"), "v1beta2", "1.26", "1.25"),
        (("spec", "exempt"), "v1beta2", "1.28", "1.27"),
        (("spec", "exempt"), "v1beta3", "1.28", "1.26"),
    ],
)
def test_fields_that_not_every_release_has(path: tuple[str, ...], version: str, having: str, lacking: str) -> None:
    value: dict[str, Any] = replaced({"metadata": {}, "spec": {"limited": {}}}, path, None)
    kind = "PriorityLevelConfiguration"
    assert find_violations(value, kind, version, parse_release(having)) == ()
    (found,) = find_violations(value, kind, version, parse_release(lacking))
    assert (found.what, found.path) == ("unknown", path)
    assert path[-1] not in found.known


def test_deep_and_huge_values() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    value = {
        "spec": {"matchingPrecedence": deep, "rules": "x" * 1_000_000, "foo": deep},
        "metadata": {"generation": 1 << 100_000},
    }
    found = find_violations(value, "FlowSchema", "v1", NEWEST)
    assert [(violation.what, violation.path[-1]) for violation in found] == [
        ("range", "generation"),
        ("unknown", "foo"),
        ("type", "matchingPrecedence"),
        ("type", "rules"),
    ]
    while deep:  # free the value step by step, because its destructor would recurse
        deep = deep.pop()


def test_other_violations_beside_thousands_of_unknown_fields() -> None:
    many: dict[str, Any] = {f"k{number}": 1 for number in range(3_000)}
    found = find_violations({"metadata": {**many, "name": 5}, **many, "spec": 5}, "FlowSchema", "v1", NEWEST)
    assert sum(violation.what == "unknown" for violation in found) == MAX_VIOLATIONS
    assert [violation.path for violation in found if violation.what == "type"] == [("metadata", "name"), ("spec",)]
    labels = {f"k{number}": 1 for number in range(3_000)}
    found = find_violations({"metadata": {"labels": labels}, "foo": 1}, "FlowSchema", "v1", NEWEST)
    assert [violation.what for violation in found].count("type") == MAX_VIOLATIONS


def format_path(path: tuple[str | int, ...], *, indices: bool) -> str:
    """Format a path as servers do: with indices for unknown fields, and without indices for wrong types."""
    text = ""
    for step in path:
        if isinstance(step, str):
            text += f".{step}" if text else step
        elif indices:
            text += f"[{step}]"
    return text


@pytest.mark.slow
def test_recorded_servers_agree(shared: Path) -> None:
    """Violations equal those that recorded servers reported. Every fifth recorded case is tested.

    A server stops at the first wrong type, so further wrong types are not compared.
    """
    wrong = []
    for file in sorted((shared / "oracle" / "validation").glob("*.jsonl")):
        target = parse_release(file.name.split("-")[0])
        version = file.stem.split("-")[1]
        with file.open(encoding="utf-8") as lines:
            for line in list(lines)[::5]:
                case = json.loads(line)
                named = case.get("decode") or []
                documents = load("case.yaml", case["manifest"].encode()).documents
                if case["code"] == 400 and not any(cause["kind"] in {"wrongType", "unknownField"} for cause in named):
                    continue
                assert documents, case["id"]
                found = find_violations(documents[0].value, documents[0].kind, version, target)
                typed = [format_path(cause.path, indices=False) for cause in found if cause.what != "unknown"]
                unknown = {format_path(cause.path, indices=True) for cause in found if cause.what == "unknown"}
                for cause in named:
                    field = cause.get("field") or ""
                    if cause["kind"] == "unknownField" and field not in unknown:
                        wrong.append((file.name, case["id"], cause))
                    # If a value in a map has a wrong type, the server reports the field of the map, without the key of
                    # the value.
                    if cause["kind"] == "wrongType" and not (
                        typed and f"{typed[0]}.".startswith(f"{field}." if field else "")
                    ):
                        wrong.append((file.name, case["id"], cause))
                if not named and (typed or (unknown and target.strict_decoding)):
                    wrong.append((file.name, case["id"], found))
    assert wrong == []
