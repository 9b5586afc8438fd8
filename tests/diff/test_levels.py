"""Limits of priority levels before and after."""

from __future__ import annotations

from evaluate.test_limits import limited_level, queue_settings

from apflint.diff.levels import compare_levels
from apflint.evaluate.limits import Limits, compute_limits
from apflint.releases import parse_release


def test_levels_are_compared_by_name() -> None:
    def limits(**shares: int) -> Limits:
        levels = [limited_level(name, queue_settings(share)) for name, share in shares.items()]
        return compute_limits(levels, (), 600, parse_release("1.36"))

    changes = compare_levels(limits(a=30, b=30), limits(b=20, c=10))
    assert [(change.name, change.old is None, change.new is None, change.gain) for change in changes] == [
        ("a", False, True, -300),
        ("b", False, False, 100),
        ("c", True, False, 200),
    ]
    assert all(change.is_changed for change in changes)
    assert not any(change.is_changed for change in compare_levels(limits(a=30), limits(a=30)))
