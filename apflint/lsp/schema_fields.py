"""Describes fields of manifests from the JSON Schemas: description, type, default, typical values, required or optional."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from apflint.model import SUBJECT_FIELDS
from apflint.releases import API_VERSIONS
from apflint.schema import schema_for_release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.location import Path
    from apflint.releases import Release
    from apflint.schema import Schema

_OBJECT = "object"
_REQUIRED: dict[str, tuple[str, ...]] = {
    _OBJECT: ("apiVersion", "kind", "metadata", "spec"),
    "ObjectMeta": ("name",),
    "FlowSchemaSpec": ("priorityLevelConfiguration", "rules"),
    "PriorityLevelConfigurationReference": ("name",),
    "FlowDistinguisherMethod": ("type",),
    "PolicyRulesWithSubjects": ("subjects",),
    "Subject": ("kind",),
    "UserSubject": ("name",),
    "GroupSubject": ("name",),
    "ServiceAccountSubject": ("namespace", "name"),
    "ResourcePolicyRule": ("verbs", "apiGroups", "resources"),
    "NonResourcePolicyRule": ("verbs", "nonResourceURLs"),
    "PriorityLevelConfigurationSpec": ("type",),
    "LimitedPriorityLevelConfiguration": ("limitResponse",),
    "LimitResponse": ("type",),
}
"""Required fields by type, in the order in which people write the fields. The schemas do not contain this information.

The API server rejects objects without these fields, except: `rules` (a FlowSchema without rules matches nothing), and
`apiVersion` and `kind` (required by kubectl). Source: pkg/apis/flowcontrol/validation/validation.go."""

_UNIONS: dict[str, tuple[str, dict[str, str]]] = {
    "Subject": ("kind", SUBJECT_FIELDS),
    "PriorityLevelConfigurationSpec": ("type", {"Limited": "limited", "Exempt": "exempt"}),
    "LimitResponse": ("type", {"Queue": "queuing", "Reject": ""}),
}
"""For each type that is a union: the name of the discriminator field, and for each value of this field the only
permitted member.
"""
_OPTIONAL_MEMBER = "exempt"
_SERVER_FIELD_SUFFIX = "leave it out."
"""Suffix of the descriptions of fields that only the API server writes."""


class Field(NamedTuple):
    """What the JSON Schema states about a field of a manifest, the items of a list, or a whole object."""

    name: str
    type_name: str
    """Type in the Kubernetes API (such as `FlowSchemaSpec`), `object` for a whole object, or "" if the type has no name."""
    schema: Schema
    definitions: dict[str, Schema]
    required: bool = False

    @property
    def description(self) -> str:
        """The meaning of the field, or an empty string."""
        return str(self.schema.get("description", ""))

    @property
    def type(self) -> str:
        """The JSON type: `string`, `integer`, `boolean`, `array` or `object`, or an empty string for any type."""
        types = self.schema.get("type", "")
        return str(types[0] if isinstance(types, list) else types)

    @property
    def values(self) -> tuple[str, ...]:
        """Values to propose. For some fields, these are all valid values, and for other fields only typical values."""
        return tuple(self.schema.get("examples", ()))

    @property
    def facts(self) -> str:
        """The type, whether the field is required, and the default. Example: `list of strings, required`."""
        items = self.child(0)
        facts = [f"list of {items.type}s" if items is not None else self.type]
        facts += ["required"] if self.required else []
        facts += [f"default {json.dumps(self.schema['default'])}"] if "default" in self.schema else []
        return ", ".join(filter(None, facts))

    def child(self, step: str | int) -> Field | None:
        """Return the field with the name `step`, or the items of the list if `step` is an index, or None if absent."""
        fields, others = self.schema.get("properties", {}), self.schema.get("additionalProperties")
        part = self.schema.get("items") if isinstance(step, int) else fields.get(step, others)
        if not isinstance(part, dict):
            return None
        type_name = part.get("$ref", "").removeprefix("#/$defs/")
        schema = {**self.definitions.get(type_name, {}), **part}
        return Field(str(step), type_name, schema, self.definitions, step in _REQUIRED.get(self.type_name, ()))

    def list_missing(self, present: Mapping[str, str | None]) -> list[Field]:
        """Return the fields that can be added to a mapping. `present` contains the existing fields (name -> scalar or None).

        Required fields come first, in the order in which people write the fields. The result omits fields that only the API
        server writes, and union members that the discriminator field excludes.
        """
        order = list(_REQUIRED.get(self.type_name, ()))
        hidden = set(present)
        discriminator, members = _UNIONS.get(self.type_name, ("", {}))
        member = members.get(present.get(discriminator) or "")
        if member is not None:
            hidden |= {other for other in members.values() if other != member}
            order += [member] if member != _OPTIONAL_MEMBER else []
        names = sorted(
            set(self.schema.get("properties", ())) - hidden,
            key=lambda name: (order.index(name) if name in order else len(order), name),
        )
        fields = (
            field._replace(required=field.name in order) for name in names if (field := self.child(name)) is not None
        )
        return [field for field in fields if not field.description.lower().endswith(_SERVER_FIELD_SUFFIX)]


def effective_version(version: str, release: Release) -> str:
    """Return `version` if this API version exists, or else the newest API version of the release."""
    return version if any(version == life.name for life in API_VERSIONS) else release.newest_version


def find_field(kind: str, version: str, release: Release, path: Path) -> Field | None:
    """Return the field at `path` of an object, or None if objects of this kind and version do not have the field."""
    try:
        schema = schema_for_release(kind, effective_version(version, release), release.minor)
    except LookupError:
        return None
    field: Field | None = Field(kind, _OBJECT, schema, schema["$defs"])
    for step in path:
        field = field.child(step) if field is not None else None
    return field
