"""The JSON Schemas of Kubernetes objects: their files, API versions, releases, and paths of fields."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from apflint.package_data import list_rule_pages, read_shipped_text
from apflint.releases import NEWEST, parse_release
from apflint.schema import find_field_paths, load_schema

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = ("v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1")
KINDS = ("FlowSchema", "PriorityLevelConfiguration")


def test_name_of_the_shares_field_in_each_version() -> None:
    kind = "PriorityLevelConfiguration"
    for version in VERSIONS:
        old = version in {"v1alpha1", "v1beta1", "v1beta2"}
        assert bool(find_field_paths("assuredConcurrencyShares", kind, version, NEWEST)) == old
        assert (
            "spec.limited.nominalConcurrencyShares"
            in find_field_paths("nominalConcurrencyShares", kind, version, NEWEST)
        ) != old


@pytest.mark.parametrize(
    ("kind", "version"), [("FlowSchema", "v2"), ("Pod", "v1"), ("../schemas/FlowSchema", "v1"), ("", "")]
)
def test_missing_schema(kind: str, version: str) -> None:
    with pytest.raises(LookupError, match="There is no schema"):
        load_schema(kind, version)


def test_paths_of_fields() -> None:
    kind = "PriorityLevelConfiguration"
    assert find_field_paths("queuing", kind, "v1", NEWEST) == ("spec.limited.limitResponse.queuing",)
    assert find_field_paths("type", kind, "v1", NEWEST)[:2] == ("spec.type", "spec.limited.limitResponse.type")
    assert find_field_paths("type", kind, "v1", NEWEST)[-1] == "status.conditions[].type"
    assert find_field_paths("user", "FlowSchema", "v1", NEWEST) == ("spec.rules[].subjects[].user",)
    assert find_field_paths("lendablePercent", kind, "v1beta2", parse_release("1.25")) == ()
    assert find_field_paths("queueing", kind, "v1", NEWEST) == ()


def test_shipped_files_are_those_of_the_checkout(root: Path) -> None:
    name = "FlowSchema-v1.json"
    assert read_shipped_text("schemas", name) == (root / "schemas" / name).read_text("utf-8")
    assert sorted(list_rule_pages()) == sorted(path.name for path in (root / "rules").iterdir())
    with pytest.raises(FileNotFoundError):
        read_shipped_text("rules", "APF999.md")


@pytest.mark.parametrize("kind", [*KINDS, "FlowSchemaList", "PriorityLevelConfigurationList"])
@pytest.mark.parametrize("version", VERSIONS)
def test_files_are_valid_schemas(kind: str, version: str) -> None:
    schema: Any = load_schema(kind, version)
    Draft202012Validator.check_schema(schema)
    references = set(re.findall(r'"\$ref": "([^"]*)"', json.dumps(schema)))
    assert references == {f"#/$defs/{name}" for name in schema["$defs"]}
