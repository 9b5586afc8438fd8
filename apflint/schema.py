"""Holds a decoded object against the JSON Schema of its kind and API version, to see if a kube-apiserver can decode it.

Two readers of the same schema: a gate of plain functions, which says yes or no in microseconds, and `jsonschema`, which
finds every violation where the gate said no (`apflint.schema_violations`). tests/test_schema.py proves that they agree.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from apflint.finding import TOLD
from apflint.record import NamedTuple
from apflint.shipped import shipped
from apflint.timestamp import is_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from apflint.finding import Path
    from apflint.releases import Release

    Schema = dict[str, Any]
    Fits = Callable[[Any], bool]


MOST = 2 * TOLD
"""Violations of one object that are looked for: more than are told, so that it is known that there are more.

So many unknown fields do not hide the others: where there is one of these, nothing can be made of the object.
"""


class Violation(NamedTuple):
    """Something in an object that a server cannot decode (HTTP 400); before Kubernetes 1.25 it drops unknown fields."""

    what: Literal["unknown", "type", "range", "format"]
    path: Path
    """Of the value; for `unknown` of the key that is no field."""
    expected: str
    """`string`, `boolean`, `int32`, `int64`, `date-time`, `list`, `object`, `map of strings`; "" for `unknown`."""
    got: object
    """The value found there."""
    known: tuple[str, ...] = ()
    """For `unknown`: the fields that this mapping has in this release, in alphabetical order."""


def violations(value: Mapping[str, object], kind: str, version: str, release: Release) -> tuple[Violation, ...]:
    """All that a server of this release cannot decode in `value`, sorted by path.

    `kind` is FlowSchema, PriorityLevelConfiguration or one of their lists, `version` as in `v1`. Paths sort as the server
    decodes: keys alphabetically, items by index. It stops at the first `type`, `range` or `format`, and reports unknown
    fields only where there is none of these. Of a hopeless object these are the unknown fields among the first `MOST` that
    come, and the first `MOST` of the others. Raises LookupError for a kind or version that there is no schema of.
    """
    if _gate(kind, version, release.minor)(value):
        return ()
    from apflint.schema_violations import found

    root = schema_in(kind, version, release.minor)
    some = list(islice(found(value, root, _compiler(kind, version, release.minor)), MOST))
    if len(some) == MOST:
        others = found(value, root, _compiler(kind, version, release.minor, strict=False))
        some = [*(each for each in some if each.what == "unknown"), *islice(others, MOST)]
    return tuple(sorted(some, key=_order))


def schema(kind: str, version: str) -> dict[str, object]:
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
    whole: Any = schema(kind, version)
    for mapping in (whole, *whole["$defs"].values()):
        properties = mapping["properties"]
        mapping["properties"] = {
            name: field
            for name, field in properties.items()
            if _minor(field.get("x-apflint-since"), 0) <= minor <= _minor(field.get("x-apflint-until"), minor)
        }
    return cast("Schema", whole)


def _minor(release: str | None, otherwise: int) -> int:
    return int(release.removeprefix("1.")) if release else otherwise


# The gate. Each function answers for a value that is not null: null fits everywhere, and the callers see to that.


@lru_cache(maxsize=16)
def _gate(kind: str, version: str, minor: int) -> Fits:
    return _compiler(kind, version, minor).compile(schema_in(kind, version, minor))


@lru_cache(maxsize=32)
def _compiler(kind: str, version: str, minor: int, *, strict: bool = True) -> Gate:
    return Gate(schema_in(kind, version, minor)["$defs"], strict=strict)


class Gate:
    """Makes functions of the schemas of an object and of its parts. One that is not strict lets unknown fields pass."""

    def __init__(self, definitions: Schema, *, strict: bool) -> None:
        self.definitions = definitions
        self.strict = strict
        self.compiled: dict[str, Fits] = {}

    def compile(self, schema: Schema) -> Fits:
        """The function for a schema. The schemas know no more forms than these; the generator makes them."""
        if "$ref" in schema:
            return self.referred(schema["$ref"].removeprefix("#/$defs/"))
        match _type_of(schema):
            case "object" if "properties" in schema:
                fields = {name: self.compile(field) for name, field in schema["properties"].items()}
                return _mapping(fields) if self.strict else _mapping_with_others(fields)
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


def _mapping_with_others(fields: dict[str, Fits]) -> Fits:
    def fits(value: Any) -> bool:
        if type(value) is not dict:
            return False
        return all(item is None or key not in fields or fields[key](item) for key, item in value.items())

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


def _type_of(schema: Schema) -> str | None:
    types = schema.get("type")
    return types[0] if isinstance(types, list) else types


def expected(schema: Schema) -> str:
    """What a place wants, as messages call it: `list`, `map of strings`, `integer`, `date-time`."""
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
