"""What jsonschema finds in an object, in our words: the other reader that `apflint.schema` is held against."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from apflint.schema import Violation
from apflint.timestamp import is_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    Schema = dict[str, Any]


def explained(value: Any, schema: Schema) -> Iterator[Violation]:
    """All violations, in the order in which jsonschema comes upon them."""
    for error in _VALIDATOR(schema).iter_errors(value):
        unknown = error.message == "unknown"
        yield Violation(
            what=error.message,
            path=tuple(error.absolute_path),
            expected="" if unknown else _expected(error.schema),
            got=error.instance,
            known=tuple(error.schema["properties"]) if unknown else (),
        )


# Keywords that say in one word what is wrong; jsonschema's own put the whole value into a sentence.


def _types(validator: Any, wanted: str | list[str], value: Any, _: Schema) -> Iterator[ValidationError]:
    names = [wanted] if isinstance(wanted, str) else wanted
    if not any(validator.is_type(value, name) for name in names):
        yield ValidationError("type")


def _additional(validator: Any, allowed: bool | Schema, value: Any, schema: Schema) -> Iterator[ValidationError]:
    if not isinstance(value, dict):
        return
    for key, item in value.items():
        if allowed is False and key not in schema["properties"]:
            yield ValidationError("unknown", path=[key], instance=item)
        elif allowed is not False:
            yield from validator.descend(item, allowed, path=key)


def _minimum(validator: Any, least: int, value: Any, _: Schema) -> Iterator[ValidationError]:
    if validator.is_type(value, "integer") and value < least:
        yield ValidationError("range")


def _maximum(validator: Any, most: int, value: Any, _: Schema) -> Iterator[ValidationError]:
    if validator.is_type(value, "integer") and value > most:
        yield ValidationError("range")


def _formats(_: Any, name: str, value: Any, __: Schema) -> Iterator[ValidationError]:
    if name == "date-time" and isinstance(value, str) and not is_timestamp(value):
        yield ValidationError("format")


def _is_integer(_: Any, value: Any) -> bool:
    # jsonschema takes 5.0 for an integer. A server does not; where YAML's 5.0 is one, it has been read as 5.
    return isinstance(value, int) and not isinstance(value, bool)


_VALIDATOR = extend(  # type: ignore[no-untyped-call]  # jsonschema gives it no types
    Draft202012Validator,
    {
        "type": _types,
        "additionalProperties": _additional,
        "minimum": _minimum,
        "maximum": _maximum,
        "format": _formats,
    },
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)


def _expected(schema: Schema) -> str:
    types = schema["type"]
    kind = types if isinstance(types, str) else types[0]
    if kind == "array":
        return "list"
    return "map of strings" if kind == "object" and "properties" not in schema else str(schema.get("format", kind))
