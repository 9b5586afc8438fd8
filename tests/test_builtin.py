"""The built-in objects equal the objects that recorded kube-apiservers created."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from apflint import builtin
from apflint.releases import API_VERSIONS, NEWEST, RELEASES, Release, parse_release

if TYPE_CHECKING:
    from apflint.model import Kind

ROOT = Path(__file__).parent.parent
RECORDED: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
for _line in (ROOT / "fixtures/oracle/releases/defaults.jsonl").read_text(encoding="utf-8").splitlines():
    _row = json.loads(_line)
    for _where in _row["in"]:
        RECORDED.setdefault(_where, {})[_row["kind"], _row["name"]] = _row["spec"]

VERSIONS = [life.name for life in API_VERSIONS]
EVERY_RELEASE = pytest.mark.parametrize("target", RELEASES, ids=lambda r: r.name)
# Releases that were not recorded, and the recorded release with the same objects according to the history of
# bootstrap/default.go.
LIKE = {
    "1.23": "1.22-v1beta1",
    "1.24": "1.25-v1beta2",
    "1.27": "1.26-v1beta3",
    "1.30": "1.31-v1",
    "1.32": "1.31-v1",
    "1.33": "1.31-v1",
    "1.34": "1.36-v1",
    "1.35": "1.36-v1",
    "1.37": "1.36-v1",
}


def _specs(name: str, version: str) -> dict[tuple[str, str], dict[str, Any]]:
    values = builtin.build_manifests(parse_release(name), version)
    return {(value["kind"], value["metadata"]["name"]): value["spec"] for value in values}


@pytest.mark.parametrize("where", RECORDED)
def test_specs_are_the_recorded_ones(where: str) -> None:
    assert _specs(*where.split("-")) == RECORDED[where]


@pytest.mark.parametrize("name", LIKE)
def test_specs_of_releases_between_the_recorded_ones(name: str) -> None:
    assert _specs(name, LIKE[name].partition("-")[2]) == RECORDED[LIKE[name]]


def test_every_release_is_compared_with_a_recording() -> None:
    assert {where.partition("-")[0] for where in RECORDED} | LIKE.keys() == {r.name for r in RELEASES}


@EVERY_RELEASE
@pytest.mark.parametrize("version", VERSIONS)
def test_objects_and_manifests_are_the_same_objects(target: Release, version: str) -> None:
    values = builtin.build_manifests(target, version)
    assert [(entry.kind, entry.name) for entry in builtin.list_objects(target)] == [
        (value["kind"], value["metadata"]["name"]) for value in values
    ]
    assert {value["apiVersion"] for value in values} == {f"flowcontrol.apiserver.k8s.io/{version}"}


@EVERY_RELEASE
def test_laws_of_the_objects(target: Release) -> None:
    found = builtin.list_objects(target)
    assert len(set(found)) == len(found)
    mandatory = {(entry.kind, entry.name) for entry in found if entry.role == "mandatory"}
    kinds: tuple[Kind, Kind] = ("FlowSchema", "PriorityLevelConfiguration")
    assert mandatory == {(kind, name) for kind in kinds for name in builtin.MANDATORY}
    for kind in kinds:
        assert builtin.list_names(target, kind) - builtin.list_suggested_names(target, kind) == set(builtin.MANDATORY)
    levels = builtin.list_names(target, "PriorityLevelConfiguration")
    specs: list[Any] = [
        value["spec"] for value in builtin.build_manifests(target, "v1") if value["kind"] == "FlowSchema"
    ]
    assert {spec["priorityLevelConfiguration"]["name"] for spec in specs} <= levels, "none dangles"


@EVERY_RELEASE
def test_unknown_fields_are_omitted(target: Release) -> None:
    text = json.dumps(builtin.build_manifests(target, "v1beta2"))
    assert ("lendablePercent" in text) == target.has_borrowing
    assert ('"exempt": {' in text) == target.has_exempt_field
    assert (builtin.AUTOUPDATE in text) == target.maintains_objects
    assert '"shares"' not in text


def test_data_files_apply_until_the_next_one() -> None:
    sources = {
        file.stem: json.loads(file.read_text(encoding="utf-8"))["source"]
        for file in (ROOT / "apflint/builtin").glob("*.json")
    }
    source = ""
    for target in RELEASES:
        source = sources.pop(target.name, source)
        assert builtin.describe_source(target) == source
    assert not sources


def test_every_data_file_differs_from_the_one_before() -> None:
    files = sorted((ROOT / "apflint/builtin").glob("*.json"))
    contents = [json.loads(file.read_text(encoding="utf-8"))["objects"] for file in files]
    assert all(earlier != other for earlier, other in pairwise(contents))


def test_manifests_are_new() -> None:
    first = builtin.build_manifests(RELEASES[-1], "v1")
    first[0]["spec"].clear()
    first[0]["metadata"]["name"] = "other"
    assert builtin.build_manifests(RELEASES[-1], "v1")[0]["spec"]
    assert builtin.list_objects(RELEASES[-1])[0].name == "catch-all"


def test_unknown_api_version_is_an_error() -> None:
    with pytest.raises(ValueError, match="has no version v2"):
        builtin.build_manifests(RELEASES[-1], "v2")


def test_lifetimes() -> None:
    def names(kind: Kind, name: str) -> tuple[str, str] | None:
        life = builtin.find_lifetime(kind, name)
        return life and (life[0].name, life[1].name)

    assert names("FlowSchema", "endpoint-controller") == ("1.24", "1.33")
    assert names("FlowSchema", "workload-leader-election") == ("1.18", "1.33")
    assert names("FlowSchema", "system-node-high") == ("1.22", NEWEST.name)
    assert names("PriorityLevelConfiguration", "node-high") == ("1.22", NEWEST.name)
    assert names("FlowSchema", "catch-all") == (RELEASES[0].name, NEWEST.name)
    assert names("PriorityLevelConfiguration", "endpoint-controller") is None


@EVERY_RELEASE
def test_typed_objects(target: Release) -> None:
    typed = builtin.load_objects(target)
    expected = builtin.list_objects(target)
    assert [schema.name for schema in typed.flow_schemas] == [e.name for e in expected if e.kind == "FlowSchema"]
    assert [level.name for level in typed.priority_levels] == [e.name for e in expected if e.kind != "FlowSchema"]
    keys = [(s.spec.matching_precedence, s.name) for s in typed.flow_schemas]
    assert keys == sorted(keys), "matching order"
    for value in builtin.build_manifests(target, "v1"):
        if value["kind"] == "PriorityLevelConfiguration":
            (level,) = (level for level in typed.priority_levels if level.name == value["metadata"]["name"])
            limited: Any = value["spec"].get("limited")
            assert (level.spec.limited and level.spec.limited.shares) == (
                limited and limited["nominalConcurrencyShares"]
            )
            assert (level.spec.exempt is not None) == (level.name == "exempt" and target.has_exempt_field)


def test_documents_of_typed_objects_have_places() -> None:
    typed = builtin.load_objects(parse_release("1.36"))
    schemas = [(item.name, item.document) for item in typed.flow_schemas]
    for name, document in schemas + [(item.name, item.document) for item in typed.priority_levels]:
        assert builtin.is_built_in(document)
        assert (document.name, document.version) == (name, "v1")
        span = document.span(("metadata", "name"))
        assert document.source.line(span.line)[span.column - 1 : span.end_column - 1] == json.dumps(name)
    assert typed.flow_schemas[0].document.source.name == "<built-in 1.36>"


def test_typed_catch_all() -> None:
    typed = builtin.load_objects(parse_release("1.36"))
    spec = typed.flow_schemas[-1].spec
    assert (spec.priority_level_configuration, spec.matching_precedence) == ("catch-all", 10000)
    assert [subject.group for subject in spec.rules[0].subjects] == ["system:unauthenticated", "system:authenticated"]


def test_guide_names_the_releases_that_change_built_in_objects() -> None:
    changes = [
        new.name
        for old, new in pairwise(RELEASES)
        if builtin.build_manifests(old, "v1") != builtin.build_manifests(new, "v1")
    ]
    page = (ROOT / "docs/guides/upgrade.md").read_text(encoding="utf-8")
    rows = page.partition("| release | change |\n|---|---|\n")[2].partition("\n\n")[0].splitlines()
    assert [row.split("|")[1].strip() for row in rows] == changes
    assert changes == ["1.19", "1.20", "1.22", "1.24", "1.26", "1.28", "1.34"]


def test_leader_election_matches_only_leases_from_1_24_on() -> None:
    def resources(release: str) -> set[str]:
        rules = _specs(release, "v1")["FlowSchema", "system-leader-election"]["rules"]
        return {name for rule in rules for entry in rule["resourceRules"] for name in entry["resources"]}

    assert resources("1.23") == {"endpoints", "configmaps", "leases"}
    assert resources("1.24") == {"leases"}


def test_page_of_bounds_has_the_number_of_built_in_flow_schemas() -> None:
    numbers = {len(builtin.load_objects(release).flow_schemas) for release in RELEASES}
    page = (ROOT / "docs/reference/bounds.md").read_text(encoding="utf-8")
    assert f"a new cluster has {min(numbers)} to {max(numbers)} FlowSchemas" in page
