"""Tests that the committed schemas are up to date, and that missing facts are errors of the generator."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from apflint.schema import load_schema

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAMES = [
    (f"{kind}{suffix}", version)
    for kind in ("FlowSchema", "PriorityLevelConfiguration")
    for suffix in ("", "List")
    for version in ("v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1")
]


@pytest.fixture
def generator(root: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Import the script as a module."""
    monkeypatch.syspath_prepend(str(root / "scripts"))
    return importlib.import_module("generate_schemas")


def test_committed_schemas_are_up_to_date(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "scripts/generate_schemas.py", "--check"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_every_kind_and_version_has_a_schema(root: Path) -> None:
    assert {path.name for path in (root / "schemas").glob("*-v*.json")} == {
        f"{kind}-{version}.json" for kind, version in NAMES
    }


def test_check_lists_different_files(
    generator: Any, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in (root / "schemas").glob("*.json"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    monkeypatch.setattr(generator, "SCHEMAS", tmp_path)
    assert generator.main(["--check"]) == 0
    (tmp_path / "FlowSchema-v1.json").write_text("{}")
    (tmp_path / "FlowSchemaList-v1.json").unlink()
    (tmp_path / "FlowSchema-v9.json").write_text("{}")
    (tmp_path / "config.json").write_text("{}")
    assert generator.main(["--check"]) == 1
    error = capsys.readouterr().err
    assert "FlowSchema-v1.json, FlowSchema-v9.json, FlowSchemaList-v1.json in" in error
    assert "config.json" not in error
    assert generator.main([]) == 0
    assert generator.main(["--check"]) == 0
    assert not (tmp_path / "FlowSchema-v9.json").exists()
    assert (tmp_path / "config.json").exists()


def fields(node: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield path and schema of every field in a schema."""
    if isinstance(node, dict):
        for name, inner in node.items():
            if name == "properties":
                yield from ((f"{path}.{field}", schema) for field, schema in inner.items())
            yield from fields(inner, f"{path}.{name}")


@pytest.mark.parametrize(("kind", "version"), NAMES)
def test_every_field_has_a_description(kind: str, version: str) -> None:
    described = list(fields(load_schema(kind, version)))
    assert len(described) > 40
    for path, field in described:
        description = field.get("description", "")
        assert description.endswith("."), path
        assert "  " not in description, path
        assert "\n" not in description.replace("\n\n", ""), path


def test_no_description_is_a_copy_of_kubernetes(shared: Path, root: Path) -> None:
    originals = {
        field["description"]
        for file in (shared / "openapi").glob("*.json")
        for _, field in fields(json.loads(file.read_text("utf-8")))
        if "description" in field
    }
    assert originals
    for file in (root / "schemas").glob("*-v*.json"):
        for path, field in fields(json.loads(file.read_text("utf-8"))):
            assert field["description"] not in originals, path


def test_extracts_are_up_to_date(generator: Any, shared: Path) -> None:
    assert generator.main(["--openapi", str(shared / "openapi"), "--extract", "--check"]) == 0
    assert generator.main(["--openapi", str(shared / "openapi"), "--check"]) == 0


def test_field_without_description_is_an_error(generator: Any) -> None:
    structures = [generator.read(path) for path in sorted(generator.EXTRACTS.glob("*.json"))]
    structures[-1].flowcontrol["FlowSchemaSpec"]["brandNew"] = "string"
    with pytest.raises(generator.StructureError, match=r"FlowSchemaSpec\.brandNew has no description"):
        generator.generate(structures, generator.Descriptions(generator.DESCRIPTIONS))


def test_description_without_field_is_an_error(
    generator: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    descriptions = tmp_path / "descriptions.toml"
    descriptions.write_text(
        f'{generator.DESCRIPTIONS.read_text("utf-8")}\n[FlowSchemaSpec.gone]\ndescription = "Old."\n'
    )
    monkeypatch.setattr(generator, "DESCRIPTIONS", descriptions)
    assert generator.main(["--check"]) == 1
    assert "descriptions.toml describes unknown fields: FlowSchemaSpec.gone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("present", "table", "expected"),
    [
        ({25: True, 26: True}, {}, (None, None)),
        ({25: False, 26: True}, {}, (26, None)),
        ({25: True, 26: False}, {}, (None, 25)),
        ({26: False, 28: True}, {"since": "1.27"}, (27, None)),
        ({26: False, 28: True}, {"since": "1.28"}, (28, None)),
        ({21: True, 25: False}, {"until": "1.24"}, (None, 24)),
        ({25: False, 26: True, 27: False}, {}, (26, 26)),
    ],
)
def test_lifetime_of_a_field(generator: Any, present: dict[int, bool], table: dict[str, str], expected: Any) -> None:
    assert tuple(generator.lifetime("x", present, table)) == expected


@pytest.mark.parametrize(
    ("present", "table"),
    [
        ({26: False, 28: True}, {}),
        ({26: False, 28: True}, {"since": "1.26"}),
        ({21: True, 25: False}, {"until": "1.25"}),
        ({21: True, 22: False, 23: True}, {}),
    ],
)
def test_lifetime_of_a_field_is_not_guessed(generator: Any, present: dict[int, bool], table: dict[str, str]) -> None:
    with pytest.raises(generator.StructureError):
        generator.lifetime("x", present, table)


def test_document_of_a_server_is_read(generator: Any, tmp_path: Path) -> None:
    """The generator also reads the OpenAPI document of a server (`kubectl get --raw`), with references wrapped in allOf."""
    reference = "#/components/schemas/"
    document = {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "components": {
            "schemas": {
                "io.k8s.api.flowcontrol.v1.FlowSchema": {
                    "type": "object",
                    "properties": {
                        "metadata": {
                            "default": {},
                            "allOf": [{"$ref": f"{reference}io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}],
                        },
                        "spec": {"type": "array", "items": {"type": "string", "default": ""}},
                    },
                    "x-kubernetes-group-version-kind": [
                        {"group": "flowcontrol.apiserver.k8s.io", "kind": "FlowSchema", "version": "v1"},
                    ],
                },
                "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
                    "type": "object",
                    "properties": {
                        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                        "creationTimestamp": {
                            "allOf": [{"$ref": f"{reference}io.k8s.apimachinery.pkg.apis.meta.v1.Time"}]
                        },
                    },
                },
                "io.k8s.apimachinery.pkg.apis.meta.v1.Time": {"type": "string", "format": "date-time"},
            },
        },
    }
    path = tmp_path / "1.33-v1.json"
    path.write_text(json.dumps(document))
    assert tuple(generator.read(path)) == (
        33,
        "v1",
        {"FlowSchema": {"metadata": "ObjectMeta", "spec": "[]string"}},
        {"ObjectMeta": {"creationTimestamp": "date-time", "labels": "map[string]string"}},
    )
    path.rename(tmp_path / "unnamed.json")
    with pytest.raises(generator.StructureError, match="does not say which release"):
        generator.read(tmp_path / "unnamed.json")


def test_directory_without_documents_is_an_error(
    generator: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generator.main(["--openapi", str(tmp_path)]) == 1
    assert "no OpenAPI document" in capsys.readouterr().err
