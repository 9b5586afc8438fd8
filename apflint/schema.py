"""Holds a decoded object against the JSON Schema of its kind and API version, to see if a kube-apiserver can decode it.

Two readers of the same schema: a gate of plain functions, which says yes or no in microseconds, and a walk that finds every
violation where the gate said no. tests/test_schema.py holds both equal to `jsonschema`, which would take ten times as long
to say what is wrong, and 100 ms to import.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from apflint.finding import TOLD
from apflint.record import NamedTuple
from apflint.shipped import shipped
from apflint.timestamp import is_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.finding import Path
    from apflint.releases import Release

    Schema = dict[str, Any]
    Fits = Callable[[Any], bool]


MOST = 2 * TOLD
"""Violations of one object that are looked for: more than are told, so that it is known that there are more.

Unknown fields count apart: a thousand of them must not hide that nothing can be made of the object.
"""


class Violation(NamedTuple):
    """Something in an object that a server cannot decode (HTTP 400); before Kubernetes 1.25 it drops unknown fields."""

    what: Literal["unknown", "type", "range", "format"]
    path: Path
    """Of the value; for `unknown` of the key that is no field."""
    expected: str
    """`string`, `boolean`, `int32`, `int64`, `date-time`, `list`, `object`, `map of strings`; "" for `unknown`."""
    got: Any
    """The value found there."""
    known: tuple[str, ...] = ()
    """For `unknown`: the fields that this mapping has in this release, in alphabetical order."""


def violations(value: dict[str, Any], kind: str, version: str, release: Release) -> tuple[Violation, ...]:
    """All that a server of this release cannot decode in `value`, sorted by path.

    `kind` is FlowSchema, PriorityLevelConfiguration or one of their lists, `version` as in `v1`. Paths sort as the server
    decodes: keys alphabetically, items by index. It stops at the first `type`, `range` or `format`, and reports unknown
    fields only where there is none of these. Of a hopeless object these are the first `MOST` unknown fields that come, and
    the first `MOST` of the others. Raises LookupError for a kind or version that there is no schema of.
    """
    if _gate(kind, version, release.minor)(value):
        return ()
    root = schema_in(kind, version, release.minor)
    explanation = _Explanation(root["$defs"])
    explanation.look(value, root, ())
    return tuple(sorted(explanation.found, key=_order))


def schema(kind: str, version: str) -> dict[str, Any]:
    """The JSON Schema of a kind in an API version, with the fields of all releases; a fresh copy each time.

    Fields that not every release has say so: `x-apflint-since` and `x-apflint-until`, first and last release, as `1.26`.
    Raises LookupError where there is none.
    """
    import json  # a run without objects needs no schema

    # The names are checked before they become part of a path: they may come from a manifest.
    if re.fullmatch(r"\w+", kind) and re.fullmatch(r"\w+", version):
        try:
            with open(f"{shipped('schemas')}/{kind}-{version}.json", encoding="utf-8") as file:  # no pathlib at start
                loaded: dict[str, Any] = json.load(file)
        except FileNotFoundError:
            pass
        else:
            return loaded
    raise LookupError(f"There is no schema of {kind!r} in {version!r}.")


def places_of(name: str, kind: str, version: str, release: Release) -> tuple[str, ...]:
    """Where a field of this name is in the objects of a kind, such as `spec.limited.limitResponse.queuing`.

    Items of a list are written `spec.rules[].subjects`. What people write comes first, then what the server keeps
    (managedFields, status); nearer the root before deeper.
    """
    return _places(kind, version, release.minor).get(name, ())


@lru_cache(maxsize=16)
def schema_in(kind: str, version: str, minor: int) -> Schema:
    """The schema without the fields that this minor release does not have. It is shared: nobody may change it."""
    whole = schema(kind, version)
    for mapping in (whole, *whole["$defs"].values()):
        properties = mapping["properties"]
        mapping["properties"] = {
            name: field
            for name, field in properties.items()
            if _minor(field.get("x-apflint-since"), 0) <= minor <= _minor(field.get("x-apflint-until"), minor)
        }
    return whole


def _minor(release: str | None, otherwise: int) -> int:
    return int(release.removeprefix("1.")) if release else otherwise


# The gate. Each function answers for a value that is not null: null fits everywhere, and the callers see to that.


@lru_cache(maxsize=16)
def _gate(kind: str, version: str, minor: int) -> Fits:
    root = schema_in(kind, version, minor)
    return _Compiler(root["$defs"]).compile(root)


class _Compiler:
    def __init__(self, definitions: Schema) -> None:
        self.definitions = definitions
        self.compiled: dict[str, Fits] = {}

    def compile(self, schema: Schema) -> Fits:
        """The function for a schema. The schemas know no more forms than these; the generator makes them."""
        if "$ref" in schema:
            return self.referred(schema["$ref"].removeprefix("#/$defs/"))
        match _type_of(schema):
            case "object" if "properties" in schema:
                return _mapping({name: self.compile(field) for name, field in schema["properties"].items()})
            case "object":
                return _map_of(self.compile(schema["additionalProperties"]))
            case "array":
                return _list_of(self.compile(schema["items"]))
            case "integer":
                return _integer(schema["minimum"], schema["maximum"])
            case "boolean":
                return _is_boolean
            case "string":
                return _is_time if schema.get("format") == "date-time" else _is_string
        return _is_anything

    def referred(self, name: str) -> Fits:
        """The function for a type with a name, one for all its uses."""
        if name not in self.compiled:
            self.compiled[name] = self.compile(self.definitions[name])
        return self.compiled[name]


def _mapping(fields: dict[str, Fits]) -> Fits:
    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return False
        for key, item in value.items():
            field = fields.get(key)
            if field is None or (item is not None and not field(item)):
                return False
        return True

    return fits


def _map_of(item_fits: Fits) -> Fits:
    def fits(value: Any) -> bool:
        return type(value) is dict and all(item is None or item_fits(item) for item in value.values())

    return fits


def _list_of(item_fits: Fits) -> Fits:
    def fits(value: Any) -> bool:
        if type(value) is not list:
            return False
        for item in value:  # noqa: SIM110  # all() with a generator takes twice as long
            if item is not None and not item_fits(item):
                return False
        return True

    return fits


def _integer(minimum: int, maximum: int) -> Fits:
    def fits(value: Any) -> bool:
        return type(value) is int and minimum <= value <= maximum

    return fits


def _is_boolean(value: Any) -> bool:
    return type(value) is bool


def _is_string(value: Any) -> bool:
    return type(value) is str


def _is_time(value: Any) -> bool:
    return type(value) is str and is_timestamp(value)


def _is_anything(_: Any) -> bool:
    return True


# The explanation.


class _Explanation:
    """Walks a value beside its schema, and finds what the gate does not let through."""

    def __init__(self, definitions: dict[str, Schema]) -> None:
        self.definitions = definitions
        self.found: list[Violation] = []
        self.unknown = 0

    def look(self, value: Any, schema: Schema, path: Path) -> None:
        """Null fits everywhere, and what is of the wrong type is not looked into."""
        if value is None or len(self.found) - self.unknown >= MOST:
            return
        if "$ref" in schema:
            schema = self.definitions[schema["$ref"].removeprefix("#/$defs/")]
        if what := _wrong(value, schema):
            self.found.append(Violation(what, path, _expected(schema), value))
        elif value.__class__ is list and "items" in schema:
            for number, item in enumerate(value):
                self.look(item, schema["items"], (*path, number))
        elif value.__class__ is dict and "properties" in schema:
            self._fields(value, schema["properties"], path)
        elif value.__class__ is dict and "additionalProperties" in schema:
            for key, item in value.items():
                self.look(item, schema["additionalProperties"], (*path, key))

    def _fields(self, value: dict[str, Any], fields: Schema, path: Path) -> None:
        for key, item in value.items():
            if key in fields:
                self.look(item, fields[key], (*path, key))
            elif self.unknown < MOST:
                self.unknown += 1
                self.found.append(Violation("unknown", (*path, key), "", item, tuple(fields)))


def _wrong(value: Any, schema: Schema) -> Literal["type", "range", "format"] | None:
    kind = _type_of(schema)
    if kind is not None and type(value) is not _CLASSES[kind]:
        return "type"
    if kind == "integer" and not schema["minimum"] <= value <= schema["maximum"]:
        return "range"
    return "format" if schema.get("format") == "date-time" and not is_timestamp(value) else None


_CLASSES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}


def _type_of(schema: Schema) -> str | None:
    types = schema.get("type")
    return types[0] if isinstance(types, list) else types


def _expected(schema: Schema) -> str:
    match _type_of(schema):
        case "array":
            return "list"
        case "object" if "properties" not in schema:
            return "map of strings"
        case other:
            return str(schema.get("format", other))


def _order(violation: Violation) -> list[tuple[bool, str | int]]:
    """Indices sort as numbers, keys as text; the two never meet in one place of an object but in an unreadable one."""
    return [(isinstance(step, str), step) for step in violation.path]


@lru_cache(maxsize=16)
def _places(kind: str, version: str, minor: int) -> dict[str, tuple[str, ...]]:
    root = schema_in(kind, version, minor)
    found: dict[str, list[str]] = {}

    def walk(schema: Schema, prefix: str) -> None:
        for name, field in schema.get("properties", {}).items():
            found.setdefault(name, []).append(prefix + name)
            item, beneath = (field["items"], f"{prefix}{name}[].") if "items" in field else (field, f"{prefix}{name}.")
            if "$ref" in item:
                walk(root["$defs"][item["$ref"].removeprefix("#/$defs/")], beneath)

    def rank(place: str) -> tuple[bool, int]:
        return (re.search(r"\b(status\.|managedFields\[)", place) is not None, place.count("."))

    walk(root, "")
    return {name: tuple(sorted(places, key=rank)) for name, places in found.items()}
