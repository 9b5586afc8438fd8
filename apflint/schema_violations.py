"""All that is wrong with an object that the gate of `apflint.schema` refused, as `jsonschema` finds it.

Imported only then: jsonschema takes 100 ms. Its own keywords put the value into the message, and so may run for ever, or
fail, on values that are huge or deep; ours say in one word what is wrong. And it walks into each field and item, where ours
walk only into those that the gate refuses, which takes a tenth of the time.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from apflint.schema import Violation, expected
from apflint.timestamp import is_timestamp

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.schema import Gate, Schema


def found(value: object, schema: Schema, gate: Gate) -> Iterator[Violation]:
    """The violations, in the order in which jsonschema comes upon them; unknown fields where the gate refuses them."""
    for error in _validator(gate)(schema).iter_errors(value):
        unknown = error.message == "unknown"
        yield Violation(
            what=error.message,
            path=tuple(error.absolute_path),
            expected="" if unknown else expected(error.schema),
            got=error.instance,
            known=tuple(error.schema["properties"]) if unknown else (),
        )


@lru_cache(maxsize=4)
def _validator(gate: Gate) -> Any:
    def referred(validator: Any, name: str, value: Any, _: Schema) -> Iterator[ValidationError]:
        yield from validator.descend(value, gate.definitions[name.removeprefix("#/$defs/")])

    def properties(validator: Any, fields: Schema, value: Any, _: Schema) -> Iterator[ValidationError]:
        if isinstance(value, dict):
            for name, field in fields.items():
                if name in value:
                    yield from refused(validator, field, [(name, value[name])])

    def items(validator: Any, wanted: Schema, value: Any, _: Schema) -> Iterator[ValidationError]:
        if isinstance(value, list):
            yield from refused(validator, wanted, enumerate(value))

    def additional(validator: Any, allowed: bool | Schema, value: Any, schema: Schema) -> Iterator[ValidationError]:
        if not isinstance(value, dict):
            return
        if isinstance(allowed, dict):
            yield from refused(validator, allowed, value.items())
        elif gate.strict:
            for key, item in value.items():
                if key not in schema["properties"]:
                    yield ValidationError("unknown", path=[key], instance=item)

    def refused(validator: Any, wanted: Schema, parts: Any) -> Iterator[ValidationError]:
        fits = gate.compile(wanted)
        for step, item in parts:
            if item is not None and not fits(item):
                yield from validator.descend(item, wanted, path=step)

    return extend(  # type: ignore[no-untyped-call]  # jsonschema gives it no types
        Draft202012Validator,
        {
            "$ref": referred,
            "type": _types,
            "properties": properties,
            "items": items,
            "additionalProperties": additional,
            "minimum": _minimum,
            "maximum": _maximum,
            "format": _formats,
        },
        type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
    )


def _types(validator: Any, wanted: str | list[str], value: Any, _: Schema) -> Iterator[ValidationError]:
    names = [wanted] if isinstance(wanted, str) else wanted
    if not any(validator.is_type(value, name) for name in names):
        yield ValidationError("type")


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
