"""What a field of a manifest is, from the schema of its kind and API version: meaning, type, default, what may be there."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from apflint.releases import API_VERSIONS
from apflint.schema import schema_for_release

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.finding import Path
    from apflint.releases import Release

_TYPES = {"array": "list", "object": "object", "string": "text", "integer": "number", "boolean": "true or false"}
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
"""Fields without which a server rejects the object, by type; the schemas say only what it can decode. Two are no error but
no use either: a FlowSchema without rules matches nothing, and kubectl alone wants apiVersion and kind. In the order in
which people write them. Source: pkg/apis/flowcontrol/validation/validation.go."""

_BY_SIBLING: dict[str, dict[str, dict[str, str | None]]] = {
    "Subject": {"kind": {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}},
    "PriorityLevelConfigurationSpec": {"type": {"Limited": "limited", "Exempt": "exempt"}},
    "LimitResponse": {"type": {"Queue": "queuing", "Reject": None}},
}
"""Unions: type -> field -> its value -> the one member that must be there then, and the others must not."""
_OPTIONAL_MEMBERS = frozenset({"exempt"})
SERVERS_OWN = "leave it out."
"""How the description of a field ends that nobody should write."""


class Field(NamedTuple):
    """A field, or an item of a list."""

    name: str
    description: str
    type: str
    """`text`, `number`, `true or false`, `list`, `object`; "" where anything goes."""
    default: object
    """What a server makes of its absence; None: nothing."""
    values: tuple[str, ...]
    """Texts that make sense there: all there are, or some."""
    required: bool
    item: str = ""
    """Of a list the type of its items."""


@lru_cache(maxsize=64)
def known_version(version: str, release: Release) -> str:
    """The version itself, or where there is none of this name the newest that the release has."""
    return version if any(version == life.name for life in API_VERSIONS) else release.newest_version


def field(kind: str, version: str, release: Release, path: Path) -> Field | None:
    """The field at `path` of an object; None where there is none."""
    found = _walk(kind, version, release, path)
    if found is None or not path:
        return None
    schema, whole, owner = found
    name = str(path[-1])
    return _field(name, schema, whole, required=name in _REQUIRED.get(owner, ()))


def members(kind: str, version: str, release: Release, path: Path, siblings: Mapping[str, str | None]) -> list[Field]:
    """The fields that the mapping at `path` may have beside `siblings` (name -> text, None where it is none).

    Required ones first, each group in the order in which people write it. Not those that only a server writes, nor the
    members of a union that another field excludes.
    """
    found = _walk(kind, version, release, path)
    if found is None:
        return []
    schema, whole, _ = found
    owner, schema = _resolved(schema, whole)
    unions = _BY_SIBLING.get(owner, {})
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
        _field(name, one, whole, required=name in needed)
        for name, one in schema.get("properties", {}).items()
        if name not in siblings
        and name not in excluded
        and not one.get("description", "").lower().endswith(SERVERS_OWN)
    ]
    rank = {name: number for number, name in enumerate(needed)}
    return sorted(fields, key=lambda one: (rank.get(one.name, len(rank)), one.name))


def _walk(kind: str, version: str, release: Release, path: Path) -> tuple[dict[str, Any], dict[str, Any], str] | None:
    """The schema at `path`, the whole, and the name of the type that the last field belongs to."""
    try:
        whole = schema_for_release(kind, known_version(version, release), release.minor)
    except LookupError:
        return None
    schema: dict[str, Any] = whole
    owner = ""
    for step in path:
        owner, inner = _resolved(schema, whole)
        if isinstance(step, int):
            found = inner.get("items")
        else:
            found = inner.get("properties", {}).get(step) or inner.get("additionalProperties")
        if not isinstance(found, dict):
            return None
        schema = found
    return schema, whole, owner


def _resolved(schema: dict[str, Any], whole: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """The name of a type and its schema; "" for the object itself and for types without a name."""
    if "$ref" not in schema:
        return "" if schema is whole else "-", schema
    name = schema["$ref"].removeprefix("#/$defs/")
    return name, whole["$defs"][name]


def _field(name: str, schema: dict[str, Any], whole: dict[str, Any], *, required: bool) -> Field:
    _, inner = _resolved(schema, whole)
    items = inner.get("items")
    return Field(
        name,
        schema.get("description", ""),
        _type(inner),
        inner.get("default"),
        tuple(inner.get("examples", ())),
        required,
        _type(_resolved(items, whole)[1]) if items is not None else "",
    )


def _type(schema: dict[str, Any]) -> str:
    types = schema.get("type")
    return _TYPES.get(types[0] if isinstance(types, list) else str(types), "")
