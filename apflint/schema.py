"""The JSON Schemas of the API's kinds, and what a kube-apiserver cannot decode in an object by them.

`find_violations` follows the few keywords that the schemas use: `jsonschema` takes 100 ms to import, puts whole values into its
messages, and needs seconds for a large file with mistakes. tests/test_schema.py compares both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, cast

from apflint.budgets import MAX_VIOLATIONS
from apflint.formats import is_timestamp
from apflint.package_data import find_data_directory
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.location import Path
    from apflint.releases import Release

    Schema = dict[str, Any]
    _Steps = tuple["_Steps | None", str | int]
    """A path as a linked list, from its end: most paths are never needed."""


class Violation(NamedTuple):
    """A part of an object that a server cannot decode (HTTP 400); before Kubernetes 1.25 it drops unknown fields."""

    what: Literal["unknown", "type", "range", "format"]
    path: Path
    """Path of the value, or of the key if `what` is `unknown`."""
    expected: str
    """`string`, `boolean`, `int32`, `int64`, `date-time`, `list`, `object`, `map of strings`; "" for `unknown`."""
    got: object
    """The value at `path`."""
    known: tuple[str, ...] = ()
    """For `unknown`: the fields that this mapping has in this release, in alphabetical order."""


def find_violations(value: Mapping[str, object], kind: str, version: str, release: Release) -> tuple[Violation, ...]:
    """Find everything in `value` that a server of this release cannot decode, sorted by path.

    `kind` is FlowSchema, PriorityLevelConfiguration or one of their lists, `version` as in `v1`. Paths are in the order of
    the server's decoder: keys alphabetically, items by index. The decoder stops at the first `type`, `range` or `format`,
    and reports unknown fields only if there is none of these. Raises LookupError if there is no schema.
    """
    finder = _ViolationFinder()
    finder.visit(value, _shape(kind, version, release.minor), None)
    return tuple(sorted(finder.violations, key=_sort_key))


def load_schema(kind: str, version: str) -> dict[str, object]:
    """Load the JSON Schema of a kind in an API version, with the fields of all releases; a new copy each time.

    A field that not every release has is marked: `x-apflint-since` and `x-apflint-until`, first and last release, as `1.26`.
    Raises LookupError if there is no schema.
    """
    import json  # a run without objects needs no schema

    # The names may come from a manifest: check them before they become part of a path.
    if re.fullmatch(r"\w+", kind) and re.fullmatch(r"\w+", version):
        try:
            with open(
                f"{find_data_directory('schemas')}/{kind}-{version}.json", encoding="utf-8"
            ) as file:  # no pathlib at start
                schema: Schema = json.load(file)
        except FileNotFoundError:
            pass
        else:
            return schema
    raise LookupError(f"There is no schema of {kind!r} in {version!r}.")


@lru_cache(maxsize=16)
def schema_for_release(kind: str, version: str, minor: int) -> Schema:
    """Load a schema without the fields that this minor release does not have. It is shared: do not change it."""
    schema: Any = load_schema(kind, version)
    for mapping in (schema, *schema["$defs"].values()):
        mapping["properties"] = {
            name: field
            for name, field in mapping["properties"].items()
            if _minor(field.get("x-apflint-since", "1.0")) <= minor <= _minor(field.get("x-apflint-until", "1.999"))
        }
    return cast("Schema", schema)


def find_field_paths(name: str, kind: str, version: str, release: Release) -> tuple[str, ...]:
    """Find where the objects of a kind have a field of this name, such as `spec.limited.limitResponse.queuing`.

    Items of a list are written `spec.rules[].subjects`. Fields that the server sets (managedFields, status) come last,
    and deeper ones after those nearer to the root.
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
                walk(_resolve(item, root), beneath)

    def rank(path: str) -> tuple[bool, int]:
        return (re.search(r"\b(status\.|managedFields\[)", path) is not None, path.count("."))

    walk(root, "")
    return {name: tuple(sorted(paths, key=rank)) for name, paths in fields.items()}


def _resolve(schema: Schema, root: Schema) -> Schema:
    return cast("Schema", root["$defs"][schema["$ref"].removeprefix("#/$defs/")] if "$ref" in schema else schema)


class _Shape:
    """What a schema allows, in a form that is fast to check. Every shape allows null as well."""

    def __init__(self, schema: Schema, root: Schema) -> None:
        schema = _resolve(schema, root)
        types = schema.get("type", "any")
        json_type: str = types[0] if isinstance(types, list) else types
        self.type = _PYTHON_TYPES[json_type]
        """Python type of the values; `object` allows all."""
        self.fields = {name: _Shape(field, root) for name, field in schema.get("properties", {}).items()}
        others = schema.get("items") or schema.get("additionalProperties")
        self.others = _Shape(others, root) if others else None
        """Shape of the items of a list or of the other fields of a mapping; None if there may be none."""
        self.integers = range(schema["minimum"], schema["maximum"] + 1) if "minimum" in schema else range(0)
        self.is_time = schema.get("format") == "date-time"
        self.plain_type = self.type if self.type is bool or (self.type is str and not self.is_time) else None
        """Python type of which every value is allowed, if there is one."""
        is_map = json_type == "object" and "properties" not in schema
        expected = {"array": "list", "object": "map of strings" if is_map else "object"}.get(json_type, json_type)
        self.expected: str = schema.get("format", expected)
        """As in `Violation`."""


_PYTHON_TYPES: dict[str, type] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    "any": object,
}


@lru_cache(maxsize=16)
def _shape(kind: str, version: str, minor: int) -> _Shape:
    root = schema_for_release(kind, version, minor)
    return _Shape(root, root)


class _ViolationFinder:
    """Collects the violations in one object: at most `MAX_VIOLATIONS` unknown fields, and as many others."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []
        self._unknown_left: int = MAX_VIOLATIONS
        self._others_left: int = MAX_VIOLATIONS

    def visit(self, value: Any, shape: _Shape, path: _Steps | None) -> None:
        actual = type(value)
        if actual is not shape.type:
            if value is not None and shape.type is not object:
                self._add("type", value, shape, path)
        elif actual is dict or actual is list:
            for step, item in value.items() if actual is dict else enumerate(value):
                part = shape.fields.get(step, shape.others)
                if part is None:
                    self._add_unknown(item, shape, (path, step))
                elif type(item) is not part.plain_type:
                    self.visit(item, part, (path, step))
        elif actual is int and value not in shape.integers:
            self._add("range", value, shape, path)
        elif shape.is_time and not is_timestamp(value):
            self._add("format", value, shape, path)

    def _add(self, what: Literal["type", "range", "format"], value: object, shape: _Shape, path: _Steps | None) -> None:
        if self._others_left:
            self._others_left -= 1
            self.violations.append(Violation(what, _unfold(path), shape.expected, value))

    def _add_unknown(self, value: object, shape: _Shape, path: _Steps | None) -> None:
        if self._unknown_left:
            self._unknown_left -= 1
            self.violations.append(Violation("unknown", _unfold(path), "", value, tuple(shape.fields)))


def _unfold(steps: _Steps | None) -> Path:
    path: list[str | int] = []
    while steps is not None:
        steps, step = steps
        path.append(step)
    return tuple(reversed(path))


def _sort_key(violation: Violation) -> list[tuple[bool, str | int]]:
    """Compare indices as numbers and keys as strings; one mapping or list never has both."""
    return [(isinstance(step, str), step) for step in violation.path]
