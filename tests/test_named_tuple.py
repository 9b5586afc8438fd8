"""`apflint.named_tuple.NamedTuple` behaves like `typing.NamedTuple`."""

from __future__ import annotations

import copy
import pickle
import typing

import pytest

from apflint.named_tuple import NamedTuple


class Ours(NamedTuple):
    """Documented."""

    first: int
    second: str = "b"
    third: tuple[Nobody, ...] = ()  # type: ignore[name-defined]  # noqa: F821  # the annotation is never evaluated

    @property
    def both(self) -> str:
        """The first two."""
        return f"{self.first}{self.second}"

    def _with(self, second: str) -> Ours:
        return self._replace(second=second)


class Theirs(typing.NamedTuple):
    """Documented."""

    first: int
    second: str = "b"
    third: tuple[int, ...] = ()


def test_records_behave_like_typing_named_tuples() -> None:
    record, other = Ours(1, third=(2,)), Theirs(1, third=(2,))
    assert tuple(record) == tuple(other) == (1, "b", (2,))
    assert hash(record) == hash(other) == hash((1, "b", (2,)))
    assert repr(record) == repr(other).replace("Theirs", "Ours")
    assert (Ours._fields, Ours._field_defaults) == (Theirs._fields, Theirs._field_defaults)
    assert (Ours.__doc__, Ours.__module__, Ours.__mro__[1:]) == (Theirs.__doc__, Theirs.__module__, Theirs.__mro__[1:])
    assert list(Ours.__annotations__) == list(Theirs.__annotations__)


def test_methods_and_copies() -> None:
    record = Ours(1)
    assert record._with("c").both == "1c"
    assert pickle.loads(pickle.dumps(record)) == copy.deepcopy(record) == record
    assert type(record._replace(first=2)) is Ours


def test_missing_and_unknown_fields_are_errors() -> None:
    with pytest.raises(TypeError, match="first"):
        Ours()  # type: ignore[call-arg]  # the mistake
    with pytest.raises(TypeError, match="fourth"):
        Ours(1, fourth=2)  # type: ignore[call-arg]  # the mistake
    with pytest.raises(AttributeError):
        Ours(1).first = 2  # type: ignore[misc]  # the mistake
