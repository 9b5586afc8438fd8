"""Changes of single fields of priority levels, such as `workload-low.nominalConcurrencyShares=50`."""

from __future__ import annotations

import re
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from apflint.effective_configuration import Effective
from apflint.model import PriorityLevelConfiguration, build_priority_level
from apflint.named_tuple import NamedTuple
from apflint.schema_violations import find_violations
from apflint.spelling import suggest
from apflint.user_error import UserError
from apflint.wording import join_words, quote
from apflint.workspace import Manifest

if TYPE_CHECKING:
    from collections.abc import Iterable

_PATHS = {
    **dict.fromkeys(("nominalConcurrencyShares", "lendablePercent", "borrowingLimitPercent"), ("limited",)),
    **dict.fromkeys(("queues", "handSize", "queueLengthLimit"), ("limited", "limitResponse", "queuing")),
}
"""Fields that can be changed. Each has the path of the mapping that contains the field, in `spec` of a limited level."""
_INTEGER = re.compile(r"-?[0-9]{1,10}", re.ASCII)


class LevelFieldChange(NamedTuple):
    """A new value of a field of a priority level. The value None removes the field, so that its default applies."""

    level: str
    field: str
    value: int | None


def parse_change(text: str) -> LevelFieldChange:
    """Parse `LEVEL.FIELD=VALUE`. Raises UserError for another form, and for unknown fields."""
    place, separator, value = text.partition("=")
    level, dot, field = place.rpartition(".")
    if not (separator and dot and level):
        raise UserError(
            f"--set: {quote(text)} is not LEVEL.FIELD=VALUE, as in workload-low.nominalConcurrencyShares=50"
        )
    if field not in _PATHS:
        raise UserError(
            f"--set: {quote(field)} is not one of {join_words(_PATHS)}.{suggest(field, _PATHS)}".rstrip(".")
        )
    if value != "null" and _INTEGER.fullmatch(value) is None:
        raise UserError(f"--set: expected an integer, or null for the default value, not {quote(value)}")
    return LevelFieldChange(level, field, None if value == "null" else int(value))


def apply_changes(known: Effective, changes: Iterable[LevelFieldChange]) -> Effective:
    """Return the configuration with changed priority levels. Raises UserError for an unknown level.

    The result is not validated. All changes of a level are applied in one step, because a level with only some of its
    changes may be invalid.
    """
    by_level: dict[str, list[LevelFieldChange]] = {}
    for change in changes:
        by_level.setdefault(change.level, []).append(change)
    for name, own in by_level.items():
        known = _apply(known, name, own)
    return known


def _apply(known: Effective, name: str, changes: Iterable[LevelFieldChange]) -> Effective:
    levels = known.configuration.levels
    level = levels.get(name)
    if level is None:
        message = f"--set: there is no priority level {quote(name)}.{suggest(name, levels)}"
        raise UserError(message.rstrip("."))
    value: dict[str, Any] = deepcopy(level.document.value)
    for change in changes:
        mapping = value.setdefault("spec", {})
        for step in ("exempt",) if level.spec.type == "Exempt" else _PATHS[change.field]:
            mapping[step] = mapping.get(step) or {}
            mapping = mapping[step]
        mapping[change.field] = change.value
    document = level.document.with_value(value)
    violations = find_violations(value, document.kind, document.version, known.release)
    changed: PriorityLevelConfiguration | None = None
    if not violations:
        changed = build_priority_level(value, document, known.release)
    manifest = Manifest(document, violations, changed)
    return Effective(known.workspace.with_manifest(manifest, level.document), known.assumptions)
