"""A replacement of `typing.NamedTuple` that makes apflint start faster.

`typing.NamedTuple` compiles every annotation. For the 400 fields that `apflint check` loads, compiling takes a tenth of the
whole time. Type checkers see `typing.NamedTuple` instead of this replacement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple

    class _NamedTupleMeta(type):
        """Turns each subclass of `NamedTuple` into a named tuple with its annotated fields and its methods."""

        def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> type:
            if not bases:
                return super().__new__(cls, name, bases, body)
            fields = body.get("__annotations__", {})
            defaults = [body[field] for field in fields if field in body]
            made = namedtuple(name, fields, defaults=defaults, module=body["__module__"])  # noqa: PYI024  # untyped on purpose
            for key, value in body.items():
                if key not in fields:
                    setattr(made, key, value)
            return made

    class NamedTuple(metaclass=_NamedTupleMeta):
        """Base class that is used like `typing.NamedTuple`."""
