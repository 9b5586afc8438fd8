"""Fields of manifests, from the JSON Schemas: description, type, default, typical values, whether they are required."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.releases import API_VERSIONS
from apflint.schema import schema_for_release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.location import Path
    from apflint.releases import Release

_REQUIRED: dict[str, tuple[str, ...]] = {
    "": ("apiVersion", "kind", "metadata", "spec"),
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
"""Fields without which the API server rejects the object, by type, in the order in which people write them.

The schemas only describe what the server can decode. Not rejected, but useless: a FlowSchema without rules matches nothing,
and only kubectl requires apiVersion and kind. Source: pkg/apis/flowcontrol/validation/validation.go."""

_UNIONS: dict[str, dict[str, dict[str, str | None]]] = {
    "Subject": {"kind": {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}},
    "PriorityLevelConfigurationSpec": {"type": {"Limited": "limited", "Exempt": "exempt"}},
    "LimitResponse": {"type": {"Queue": "queuing", "Reject": None}},
}
"""Unions by type: discriminator -> its value -> the member that it requires, which excludes the other members."""
_OPTIONAL_MEMBERS = frozenset({"exempt"})
SERVER_FIELD_SUFFIX = "leave it out."
"""End of the description of a field that only the API server writes."""


class Field(NamedTuple):
    """A field, or the items of a list."""

    name: str
    description: str
    type: str
    """`string`, `integer`, `boolean`, `list` or `object`, or an empty string for any type."""
    default: object
    """Value that the API server sets if the field is absent, or None."""
    values: tuple[str, ...]
    """All valid values, or some typical ones."""
    required: bool
    item: str = ""
    """Type of the items of a list."""


def effective_version(version: str, release: Release) -> str:
    """Return the version, or the newest one of the release if the version does not exist."""
    return version if any(version == life.name for life in API_VERSIONS) else release.newest_version


def find_field(kind: str, version: str, release: Release, path: Path) -> Field | None:
    """Return the field at `path` of an object, or None if it does not exist."""
    located = _find_schema(kind, version, release, path)
    if located is None or not path:
        return None
    schema, root, owner = located
    name = str(path[-1])
    return _make_field(name, schema, root, required=name in _REQUIRED.get(owner, ()))


def list_fields(
    kind: str, version: str, release: Release, path: Path, siblings: Mapping[str, str | None]
) -> list[Field]:
    """Return the fields that the mapping at `path` may have in addition to `siblings` (name -> scalar or None).

    Required fields come first, in the order in which people write them. Fields that only the API server writes are left
    out, and so are members of a union that another field excludes.
    """
    located = _find_schema(kind, version, release, path)
    if located is None:
        return []
    schema, root, _ = located
    owner, schema = _resolve(schema, root)
    unions = _UNIONS.get(owner, {})
    needed = list(_REQUIRED.get(owner, ()))
    excluded: set[str] = set()
    for key, choices in unions.items():
        chosen = siblings.get(key)
        if chosen in choices:
            member = choices[chosen]
            excluded |= {other for other in choices.values() if other is not None and other != member}
            excluded |= {"queuing"} if owner == "LimitResponse" and member is None else set()
            if member is not None and member not in _OPTIONAL_MEMBERS:
                needed.append(member)
    fields = [
        _make_field(name, property_, root, required=name in needed)
        for name, property_ in schema.get("properties", {}).items()
        if name not in siblings
        and name not in excluded
        and not property_.get("description", "").lower().endswith(SERVER_FIELD_SUFFIX)
    ]
    rank = {name: number for number, name in enumerate(needed)}
    return sorted(fields, key=lambda field: (rank.get(field.name, len(rank)), field.name))


def _find_schema(
    kind: str, version: str, release: Release, path: Path
) -> tuple[dict[str, Any], dict[str, Any], str] | None:
    """Return the schema at `path`, the schema of the object, and the name of the type that the last field belongs to."""
    try:
        root = schema_for_release(kind, effective_version(version, release), release.minor)
    except LookupError:
        return None
    schema: dict[str, Any] = root
    owner = ""
    for step in path:
        owner, inner = _resolve(schema, root)
        if isinstance(step, int):
            child = inner.get("items")
        else:
            child = inner.get("properties", {}).get(step) or inner.get("additionalProperties")
        if not isinstance(child, dict):
            return None
        schema = child
    return schema, root, owner


def _resolve(schema: dict[str, Any], root: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of a type and its schema: an empty name for the object itself, `-` for types without a name."""
    if "$ref" not in schema:
        return "" if schema is root else "-", schema
    name = schema["$ref"].removeprefix("#/$defs/")
    return name, root["$defs"][name]


def _make_field(name: str, schema: dict[str, Any], root: dict[str, Any], *, required: bool) -> Field:
    _, inner = _resolve(schema, root)
    items = inner.get("items")
    return Field(
        name,
        schema.get("description", ""),
        _type_name(inner),
        inner.get("default"),
        tuple(inner.get("examples", ())),
        required,
        _type_name(_resolve(items, root)[1]) if items is not None else "",
    )


def _type_name(schema: dict[str, Any]) -> str:
    types = schema.get("type", "")
    name: str = types[0] if isinstance(types, list) else types
    return "list" if name == "array" else name
