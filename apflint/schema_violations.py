"""Finds the values in an object that violate its JSON Schema, so that kube-apiserver cannot decode them.

Importing `jsonschema` takes 100 ms, and its messages contain whole values, which may be huge. So `find_violations`
first reduces an object to the values that violate the schema. Only these values are passed to `jsonschema`. If an
object is valid, `jsonschema` is not imported.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, cast

from apflint.budgets import MAX_VIOLATIONS
from apflint.named_tuple import NamedTuple
from apflint.schema import resolve_reference, schema_for_release
from apflint.string_formats import is_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jsonschema.protocols import Validator

    from apflint.location import Path
    from apflint.releases import Release
    from apflint.schema import Schema


class Violation(NamedTuple):
    """A value that the API server cannot decode, or a field that it does not know.

    The API server answers HTTP 400. Before Kubernetes 1.25, it dropped unknown fields silently instead.
    """

    what: Literal["unknown", "type", "range", "format"]
    path: Path
    """Path of the value. If `what` is `unknown`, the last step is the unknown field."""
    expected: str
    """`string`, `boolean`, `int32`, `int64`, `date-time`, `list`, `object` or `map of strings`. "" for `unknown`."""
    got: object
    """The value at `path`."""
    known: tuple[str, ...] = ()
    """If `what` is `unknown`, the valid fields of the mapping in this release, in alphabetical order. Empty for all other values of
    `what`."""


def find_violations(value: Mapping[str, object], kind: str, version: str, release: Release) -> tuple[Violation, ...]:
    """Return the values and fields of an object that violate its schema in a release, sorted by path.

    `kind` is FlowSchema, PriorityLevelConfiguration or one of their lists. `version` is an API version such as `v1`.
    Paths are sorted as the decoder of the API server visits them: keys in alphabetical order, and items by index.
    Unlike this function, the decoder stops at the first violation of `type`, `range` or `format`, and reports unknown
    fields only if there is no such violation.

    Raises LookupError if there is no schema.
    """
    rejected = _Reducer().reduce(value, _shape(kind, version, release.minor))
    if rejected is None:
        return ()
    # Validating only the rejected values is enough: tests/test_schema_violations.py verifies that jsonschema finds the
    # same violations in the whole object.
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


class _Shape:
    """The values that a schema allows, in a form that is fast to check. Every shape also allows null."""

    def __init__(self, schema: Schema, root: Schema) -> None:
        schema = resolve_reference(schema, root)
        self.type = _PYTHON_TYPES[_json_type(schema)]
        """Python type of the allowed values. `object` allows every type."""
        self.fields = {name: _Shape(field, root) for name, field in schema.get("properties", {}).items()}
        others = schema.get("items") or schema.get("additionalProperties")
        self.others = _Shape(others, root) if others else None
        """Shape of the items of a list, or of the mapping entries that are not in `fields`. None if the schema allows
        no such values."""
        self.integers = range(schema["minimum"], schema["maximum"] + 1) if "minimum" in schema else range(0)
        self.is_time = schema.get("format") == "date-time"
        self.plain_type = self.type if self.type is bool or (self.type is str and not self.is_time) else None
        """`type` if the shape allows every value of this type, or None if further conditions apply."""


@lru_cache(maxsize=16)
def _shape(kind: str, version: str, minor: int) -> _Shape:
    root = schema_for_release(kind, version, minor)
    return _Shape(root, root)


class _Reducer:
    """Reduces an object to the values and fields that violate its schema.

    The result has at most MAX_VIOLATIONS unknown fields, and at most MAX_VIOLATIONS other violations.
    """

    def __init__(self) -> None:
        self.unknown_fields = 0
        self.other_violations = 0

    def reduce(self, value: Any, shape: _Shape) -> Any:
        """Return a value without its valid items and fields, or None if the whole value is valid.

        Each rejected value is replaced by a short value that the schema rejects for the same reason. The field "" replaces all
        unknown fields of a mapping. Without these replacements, jsonschema would put huge or deep values into its messages.
        """
        actual = type(value)
        if actual is not shape.type:
            return None if value is None or shape.type is object else self.reject(_STAND_INS[actual])
        if actual is dict or actual is list:
            find, others = shape.fields.get, shape.others
            if (
                actual is list
                and others is not None
                and others.plain_type
                and {*map(type, value)} <= {others.plain_type}
            ):
                return None
            rejected: dict[Any, Any] = {}
            for step, item in value.items() if actual is dict else enumerate(value):
                part = find(step, others)
                if part is None:
                    self.unknown_fields += 1
                    if self.unknown_fields <= MAX_VIOLATIONS:
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
        """Count a violation, and return `stand_in`, the short value that replaces the rejected value.

        Return None, so that the violation is not reported, if MAX_VIOLATIONS violations were counted before. Unknown
        fields are counted elsewhere.
        """
        self.other_violations += 1
        return stand_in if self.other_violations <= MAX_VIOLATIONS else None


class _Items(list[Any]):
    """The rejected items of a list, and their indices in the original list."""

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
# jsonschema gets these short values in place of rejected values of the same type, because its
# messages repeat the value. 0.5 replaces every float: jsonschema would accept 5.0 as an integer,
# but the API server rejects it.
_STAND_INS: dict[type, object] = {dict: {}, list: [], str: "", int: 0, bool: True, float: 0.5}
_WHAT: dict[str, Literal["type", "range", "format"]] = {
    "type": "type",
    "minimum": "range",
    "maximum": "range",
    "format": "format",
}
"""Maps a keyword of a schema to the `Violation.what` of values that the keyword rejects."""


@lru_cache(maxsize=16)
def _validator(kind: str, version: str, minor: int) -> Validator:
    from jsonschema import Draft202012Validator, FormatChecker  # imported here, because the import takes 100 ms

    checker = FormatChecker(formats=())
    checker.checks("date-time")(lambda value: not isinstance(value, str) or is_timestamp(value))
    return Draft202012Validator(schema_for_release(kind, version, minor), format_checker=checker)


def _locate(path: Iterable[Any], rejected: Any, value: Any) -> tuple[Path, Any]:
    """Translate a path in the reduced object `rejected` to a path in the original object `value`.

    Return (path in the original object, value at this path).
    """
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
    """Return a key that sorts list indices as numbers and mapping keys as strings."""
    return [(isinstance(step, str), step) for step in violation.path]
