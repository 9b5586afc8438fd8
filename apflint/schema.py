"""The JSON Schemas of FlowSchema, PriorityLevelConfiguration and their lists, for each API version and release."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

from apflint.package_data import read_shipped_text

if TYPE_CHECKING:
    from apflint.releases import Release

    Schema = dict[str, Any]


def load_schema(kind: str, version: str) -> dict[str, object]:
    """Return a new copy of the JSON Schema of a kind in an API version, with the fields of all releases.

    If only some releases have a field, `x-apflint-since` and `x-apflint-until` in its schema are the first and last of these
    releases, such as `1.26`. Raises LookupError if the kind has no schema in this version.
    """
    import json

    # Kind and version may come from a manifest, so check them before they become part of a path.
    if re.fullmatch(r"\w+", kind) and re.fullmatch(r"\w+", version):
        try:
            schema: Schema = json.loads(read_shipped_text("schemas", f"{kind}-{version}.json"))
        except OSError:
            pass
        else:
            return schema
    raise LookupError(f"There is no schema of {kind!r} in {version!r}.")


@lru_cache(maxsize=16)
def schema_for_release(kind: str, version: str, minor: int) -> Schema:
    """Return the schema of a kind without the fields that this minor release does not have.

    Callers share the schema and must not change it. Raises LookupError if the kind has no schema in this version.
    """
    schema: Any = load_schema(kind, version)
    for mapping in (schema, *schema["$defs"].values()):
        mapping["properties"] = {
            name: field
            for name, field in mapping["properties"].items()
            if _minor(field.get("x-apflint-since", "1.0")) <= minor <= _minor(field.get("x-apflint-until", "1.999"))
        }
    return cast("Schema", schema)


def find_field_paths(name: str, kind: str, version: str, release: Release) -> tuple[str, ...]:
    """Return the paths of all fields with this name in a kind, such as `spec.limited.limitResponse.queuing`.

    `[]` stands for an item of a list, as in `spec.rules[].subjects`. Short paths come first, and paths inside of fields that
    the server sets (managedFields, status) come last. Raises LookupError if the kind has no schema in this version.
    """
    return _fields_by_name(kind, version, release.minor).get(name, ())


def _minor(release: str) -> int:
    return int(release.removeprefix("1."))


@lru_cache(maxsize=16)
def _fields_by_name(kind: str, version: str, minor: int) -> dict[str, tuple[str, ...]]:
    root = schema_for_release(kind, version, minor)
    fields: dict[str, list[str]] = {}

    def walk(schema: Schema, prefix: str) -> None:
        for name, field in schema.get("properties", {}).items():
            fields.setdefault(name, []).append(prefix + name)
            item, beneath = (field["items"], f"{prefix}{name}[].") if "items" in field else (field, f"{prefix}{name}.")
            if "$ref" in item:
                walk(resolve_reference(item, root), beneath)

    def rank(path: str) -> tuple[bool, int]:
        return (re.search(r"\b(status\.|managedFields\[)", path) is not None, path.count("."))

    walk(root, "")
    return {name: tuple(sorted(paths, key=rank)) for name, paths in fields.items()}


def resolve_reference(schema: Schema, root: Schema) -> Schema:
    """Return the definition in `root` that a schema references with `$ref`, or the schema itself if it has no `$ref`."""
    return cast("Schema", root["$defs"][schema["$ref"].removeprefix("#/$defs/")] if "$ref" in schema else schema)
