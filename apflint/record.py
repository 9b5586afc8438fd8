"""`NamedTuple` as of `typing`, less what a start cannot afford.

`typing.NamedTuple` compiles each annotation, only to know that it could be one: of the 400 fields that one `apflint check`
meets that is a tenth of its time. Type checkers see the class of `typing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple

    class _Making(type):
        """What is derived from `NamedTuple` is a tuple of the fields that its body names, with the methods there."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])  # noqa: PYI024  # without types: that is the point
            for key, value in body.items():
                if key not in fields:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_Making):
        """See `typing.NamedTuple`."""
