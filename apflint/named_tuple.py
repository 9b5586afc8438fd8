"""A replacement of `typing.NamedTuple` that makes apflint start faster.

`typing.NamedTuple` compiles every annotation. `apflint check` loads classes with 400 fields, and compiling their
annotations would take a tenth of the time of a run. Type checkers see `typing.NamedTuple` instead of this replacement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple

    class _NamedTupleMeta(type):
        """Metaclass that turns each subclass of `NamedTuple` into a named tuple with its fields and methods."""

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
        """Base class that turns its subclasses into named tuples, as `typing.NamedTuple` does, but in less time."""
