"""The JSON Schemas of the API's kinds, and what a kube-apiserver cannot decode in an object by them.

`find_violations` first cuts an object down to what its schema rejects. Of a valid object nothing is left. `jsonschema`,
which takes 100 ms to import and puts whole values into its messages, validates only the rest.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from apflint.budgets import MAX_VIOLATIONS
from apflint.package_data import find_data_directory
from apflint.record import NamedTuple
from apflint.string_formats import is_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jsonschema.protocols import Validator

    from apflint.location import Path
    from apflint.releases import Release

    Schema = dict[str, Any]


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
    rejected = _Gate().reduce(value, _shape(kind, version, release.minor))
    if rejected is None:
        return ()
    # jsonschema is used as published; tests/test_schema.py proves that it finds the same in the whole object.
    violations: list[Violation] = []
    for error in _validator(kind, version, release.minor).iter_errors(rejected):
        path, got = _locate(error.absolute_path, rejected, value)
        schema = cast("Schema", error.schema)
        if error.validator == "additionalProperties":
            known = tuple(schema["properties"])
            unknown = islice((key for key in got if key not in known), MAX_VIOLATIONS)
            violations += (Violation("unknown", (*path, key), "", got[key], known) for key in unknown)
        else:
            violations.append(Violation(_WHAT[str(error.validator)], path, _expected_type(schema), got))
    return tuple(sorted(violations, key=_sort_key))


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
        self.type = _PYTHON_TYPES[_json_type(schema)]
        """Python type of the values; `object` allows all."""
        self.fields = {name: _Shape(field, root) for name, field in schema.get("properties", {}).items()}
        others = schema.get("items") or schema.get("additionalProperties")
        self.others = _Shape(others, root) if others else None
        """Shape of the items of a list or of the other fields of a mapping; None if there may be none."""
        self.integers = range(schema["minimum"], schema["maximum"] + 1) if "minimum" in schema else range(0)
        self.is_time = schema.get("format") == "date-time"
        self.plain_type = self.type if self.type is bool or (self.type is str and not self.is_time) else None
        """Python type of which every value is allowed, if there is one."""


@lru_cache(maxsize=16)
def _shape(kind: str, version: str, minor: int) -> _Shape:
    root = schema_for_release(kind, version, minor)
    return _Shape(root, root)


class _Gate:
    """Cuts one object down to what its schema rejects."""

    def __init__(self) -> None:
        self.unknown = 0
        self.others = 0

    def reduce(self, value: Any, shape: _Shape) -> Any:
        """Return only the rejected parts of a value, or None (which every schema allows) if there is none.

        A short value that the schema rejects for the same reason replaces each part, and the field "" all unknown fields of
        a mapping: jsonschema formats values and names into its messages, whatever their length and depth.
        """
        actual = type(value)
        if actual is not shape.type:
            return None if value is None or shape.type is object else self.reject(_STAND_INS[actual])
        if actual is dict or actual is list:
            rejected: dict[Any, Any] = {}
            for step, item in value.items() if actual is dict else enumerate(value):
                part = shape.fields.get(step, shape.others)
                if part is None:
                    self.unknown += 1
                    if self.unknown <= MAX_VIOLATIONS:
                        rejected[""] = None
                elif type(item) is not part.plain_type and (rest := self.reduce(item, part)) is not None:
                    rejected[step] = rest
            return None if not rejected else rejected if actual is dict else _Items(rejected)
        if actual is int and value not in shape.integers:
            return self.reject(shape.integers.stop)
        if shape.is_time and not is_timestamp(value):
            return self.reject("")
        return None

    def reject(self, stand_in: object) -> object:
        """Count a violation that is not an unknown field. Further ones than `MAX_VIOLATIONS` pass."""
        self.others += 1
        return stand_in if self.others <= MAX_VIOLATIONS else None


class _Items(list[Any]):
    """The rejected items of a list, and their indices in that list."""

    def __init__(self, items: dict[int, Any]) -> None:
        super().__init__(items.values())
        self.indices = list(items)


_PYTHON_TYPES: dict[str | None, type] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "boolean": bool,
    None: object,
}
# 0.5 for all floats: jsonschema takes 5.0 for an integer, which a server does not.
_STAND_INS: dict[type, object] = {dict: {}, list: [], str: "", int: 0, bool: True, float: 0.5}
_WHAT: dict[str, Literal["type", "range", "format"]] = {
    "type": "type",
    "minimum": "range",
    "maximum": "range",
    "format": "format",
}
"""Keyword that rejects a value -> `Violation.what`."""


@lru_cache(maxsize=16)
def _validator(kind: str, version: str, minor: int) -> Validator:
    from jsonschema import Draft202012Validator, FormatChecker  # takes 100 ms

    checker = FormatChecker(formats=())
    checker.checks("date-time")(lambda value: not isinstance(value, str) or is_timestamp(value))
    return Draft202012Validator(schema_for_release(kind, version, minor), format_checker=checker)


def _locate(path: Iterable[Any], rejected: Any, value: Any) -> tuple[Path, Any]:
    """Return the path and the value in the object for a path in its rejected part."""
    steps: list[str | int] = []
    for step in path:
        steps.append(rejected.indices[step] if isinstance(rejected, _Items) else step)
        rejected, value = rejected[step], value[steps[-1]]
    return tuple(steps), value


def _json_type(schema: Schema) -> str | None:
    types = schema.get("type")
    return types[0] if isinstance(types, list) else types


def _expected_type(schema: Schema) -> str:
    match _json_type(schema):
        case "array":
            return "list"
        case "object" if "properties" not in schema:
            return "map of strings"
        case other:
            return str(schema.get("format", other))


def _sort_key(violation: Violation) -> list[tuple[bool, str | int]]:
    """Compare indices as numbers and keys as strings; one mapping or list never has both."""
    return [(isinstance(step, str), step) for step in violation.path]
