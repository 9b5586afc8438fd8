"""Priority levels of two configurations: seats and queues before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.evaluate.limits import LevelLimits, Limits


class LevelChange(NamedTuple):
    """The limits of a priority level in two configurations; None if the configuration has no such level."""

    name: str
    old: LevelLimits | None
    new: LevelLimits | None

    @property
    def gain(self) -> int:
        """Nominal seats that the level gains; negative if it loses seats."""
        return (self.new.nominal if self.new else 0) - (self.old.nominal if self.old else 0)

    @property
    def is_changed(self) -> bool:
        """Whether the level is added or removed, or has other seats or queues."""
        return self.old is None or self.new is None or self.old.figures != self.new.figures


def compare_levels(old: Limits, new: Limits) -> tuple[LevelChange, ...]:
    """Return the limits of every level of two configurations, by name; levels that are the same are included."""
    before = {level.name: level for level in old.levels}
    after = {level.name: level for level in new.levels}
    return tuple(LevelChange(name, before.get(name), after.get(name)) for name in sorted({*before, *after}))
