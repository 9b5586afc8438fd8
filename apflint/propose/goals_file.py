"""Parser of goals files. Errors in a file are returned as `Mistake` values, not raised.

The format is documented in `docs/commands/propose.md`. `schemas/apflint-goals.json` is its JSON schema.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.load.apflint_files import FieldsFile, read_fields
from apflint.named_tuple import NamedTuple
from apflint.propose.goals import parse_protection, parse_subject
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from apflint.load.apflint_files import Fields, Mistake
    from apflint.location import Path

_KEYS = ("isolate", "seats", "protect", "maySuffer", "maxObjects")
_HINTS = {
    "may-suffer": "Did you mean maySuffer?",
    "max-objects": "Did you mean maxObjects?",
}


class ParsedGoals(NamedTuple):
    """The goals in a goals file. Each field corresponds to the command-line option of the same name."""

    file: FieldsFile
    isolate: tuple[str, ...] = ()
    seats: int | None = None
    protect: tuple[str, ...] = ()
    may_suffer: tuple[str, ...] = ()
    max_objects: int | None = None

    @property
    def mistakes(self) -> tuple[Mistake, ...]:
        """The errors in the file."""
        return self.file.find_mistakes()

    def check_protections(self, levels: Collection[str]) -> None:
        """Add a mistake for each item of `protect` that is neither a client nor one of the priority levels."""
        fields = self.file.fields
        if fields is not None:
            _check(fields, fields.strings(("protect",)), lambda text: parse_protection(text, levels))


def parse_goals(name: str, data: bytes) -> ParsedGoals:
    """Parse a goals file. `name` is the file name for messages; if it ends with `.json`, parse JSON instead of YAML."""
    keys = "`protect` and other goals, or `isolate` and `seats`"
    file = read_fields(name, data, "goals file", keys, "write all goals into one mapping")
    fields = file.fields
    if fields is None or not fields.check_keys((), _KEYS, _HINTS):
        return ParsedGoals(file)
    isolate, may_suffer = fields.strings(("isolate",)), fields.strings(("maySuffer",))
    for texts in (isolate, may_suffer):
        _check(fields, texts, parse_subject)
    protect = fields.strings(("protect",))
    seats = fields.integer(("seats",))
    if fields.has(("isolate",)) != fields.has(("seats",)):
        present, missing = ("isolate", "seats") if fields.has(("isolate",)) else ("seats", "isolate")
        fields.reject((present,), f"`{present}` requires `{missing}`", key=True)
    return ParsedGoals(
        file,
        tuple(isolate.values()),
        seats,
        tuple(protect.values()),
        tuple(may_suffer.values()),
        _read_maximum(fields),
    )


def _read_maximum(fields: Fields) -> int | None:
    """Return the maximum number of new objects, which may be 0, or None if absent."""
    path = ("maxObjects",)
    return 0 if type(fields.value(path)) is int and fields.value(path) == 0 else fields.integer(path)


def _check(fields: Fields, texts: dict[Path, str], parse: Callable[[str], object]) -> None:
    """Report a mistake for each string in `texts` for which `parse` raises UserError."""
    for path, text in texts.items():
        try:
            parse(text)
        except UserError as error:
            fields.reject(path, str(error))
