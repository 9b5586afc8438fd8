"""Read the fields and types of the flowcontrol kinds, without descriptions, from Kubernetes' OpenAPI documents.

A type is written as in Go: `string`, `boolean`, `int32`, `int64`, `date-time`, `any`, `[]string`,
`map[string]string`, or the name of a type that has fields: `FlowSchemaSpec`, `[]Subject`.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.releases import GROUP

if TYPE_CHECKING:
    from pathlib import Path

KINDS = ("FlowSchema", "FlowSchemaList", "PriorityLevelConfiguration", "PriorityLevelConfigurationList")
Types = dict[str, dict[str, str]]
"""For each type: the type of each of its fields."""


class StructureError(ValueError):
    """Raised if this script cannot read a document. The message gives the reason."""


class Structure(NamedTuple):
    """Structure of one API version in one release, read from one document."""

    release: int
    """Minor release: 36 for Kubernetes 1.36."""
    version: str
    flowcontrol: Types
    """Types of the flowcontrol API group."""
    meta: Types
    """Types of k8s.io/apimachinery, which all API versions share."""


def read(path: Path) -> Structure:
    """Read an OpenAPI document (v2 or v3) or an extract. Raises StructureError, OSError."""
    return parse(json.loads(path.read_text("utf-8")), path.name)


def parse(document: dict[str, Any], name: str) -> Structure:
    """Return the structure in an OpenAPI document, or in an extract of one. Raises StructureError.

    `name` is the file name.
    """
    if "flowcontrol" in document:
        return Structure(
            _release(document["release"], name), document["version"], document["flowcontrol"], document["meta"]
        )
    definitions = document.get("definitions") or document.get("components", {}).get("schemas")
    if not definitions:
        raise StructureError(f"{name} is not an OpenAPI document of an API group: it has no definitions")
    reader = _Reader(definitions)
    versions = set()
    for type_name, definition in definitions.items():
        for gvk in definition.get("x-kubernetes-group-version-kind", ()):
            if gvk["group"] == GROUP and gvk["kind"] in KINDS:
                versions.add(gvk["version"])
                reader.record(type_name)
    if len(versions) != 1:
        raise StructureError(f"{name} describes {len(versions)} versions of {GROUP}, not one: {sorted(versions)}")
    return Structure(_release(document["info"]["version"], name), versions.pop(), reader.flowcontrol, reader.meta)


def render(structure: Structure) -> str:
    """Return the text of an extract."""
    document = {
        "release": f"1.{structure.release}",
        "version": structure.version,
        "flowcontrol": dict(sorted(structure.flowcontrol.items())),
        "meta": dict(sorted(structure.meta.items())),
    }
    return json.dumps(document, indent=1) + "\n"


def _release(text: str, name: str) -> int:
    """Return the minor release in `text`, such as 29 for `v1.29.1` or 36 for `1.36`.

    If `text` has no release, because a server reports `unversioned`, return the minor release in the
    file name `name`.
    """
    match = re.match(r"v?1\.(\d+)", text) or re.match(r"1\.(\d+)", name)
    if not match:
        raise StructureError(f"{name} does not say which release it is from: name it like 1.36-v1.json")
    return int(match[1])


class _Reader:
    def __init__(self, definitions: dict[str, Any]) -> None:
        self.definitions = definitions
        self.flowcontrol: Types = {}
        self.meta: Types = {}

    def record(self, name: str) -> None:
        """Record the fields of a type, and of all types below it."""
        short = name.rsplit(".", 1)[-1]
        types = self.meta if ".apimachinery." in name else self.flowcontrol
        if short in types:
            return
        types[short] = fields = {}
        for field, schema in sorted(self.definitions[name]["properties"].items()):
            fields[field] = self.shape(schema, f"{short}.{field}")

    def shape(self, schema: dict[str, Any], where: str) -> str:
        """Return the type that a schema describes."""
        # OpenAPI v3.0 wraps a reference into allOf, because a reference cannot have a default next to it.
        reference = schema.get("$ref") or next(
            (part["$ref"] for part in schema.get("allOf", ()) if "$ref" in part), None
        )
        if reference:
            return self.resolve(reference.rsplit("/", 1)[-1], where)
        match schema:
            case {"type": "array", "items": items}:
                return "[]" + self.shape(items, where)
            case {"type": "object", "additionalProperties": values}:
                return "map[string]" + self.shape(values, where)
            case {"type": "integer", "format": "int32" | "int64" as size}:
                return str(size)
            case {"type": "string", "format": "date-time"}:
                return "date-time"
            case {"type": "string" | "boolean" as plain}:
                return str(plain)
        raise StructureError(f"{where} has an unsupported schema: {schema}")

    def resolve(self, name: str, where: str) -> str:
        """Return the type for a reference: its name if the type has fields, or else its basic type."""
        definition = self.definitions[name]
        if "properties" in definition:
            self.record(name)
            return name.rsplit(".", 1)[-1]
        if definition["type"] == "object":
            # The type is FieldsV1. OpenAPI describes an object, but the decoder of FieldsV1 keeps the bytes of any
            # value (FieldsV1.UnmarshalJSON in k8s.io/apimachinery/pkg/apis/meta/v1/fields_proto.go).
            return "any"
        return self.shape(definition, where)
