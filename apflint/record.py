"""`typing.NamedTuple` without its cost at start.

`typing.NamedTuple` compiles every annotation to check it. For the 400 fields that one `apflint check` loads, that is a tenth of
its time. Type checkers see the class of `typing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__all__ = ["NamedTuple"]

if TYPE_CHECKING:
    from typing import NamedTuple
else:
    from collections import namedtuple

    class _NamedTupleMeta(type):
        """Makes subclasses of `NamedTuple` tuples of the annotated fields, with the methods of the class body."""

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
        """See `typing.NamedTuple`."""
