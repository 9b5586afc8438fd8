"""Thousands of priority levels: the work is proportional to their number, and more than 10,000 levels are an error."""

from __future__ import annotations

import pytest

from apflint.budgets import MAX_SERVER_LEVELS
from apflint.doctor import capacity_findings
from apflint.doctor.evidence import Evidence
from apflint.doctor.level_state import compute_state
from apflint.doctor.snapshot import Server, Snapshot, group_servers, parse_part
from apflint.user_error import UserError

VALUES = {
    "nominal_limit_seats": 10,
    "current_limit_seats": 10,
    "current_executing_seats": 10,
    "current_inqueue_requests": 5,
    "demand_seats_average": 30,
    "demand_seats_smoothed": 30,
}


def read_levels(number: int) -> Server:
    lines = [
        f'apiserver_flowcontrol_{name}{{priority_level="l{level}"}} {value}\n'
        for name, value in VALUES.items()
        for level in range(number)
    ]
    (server,) = group_servers([parse_part("m.txt", "".join(lines))])
    return server


class CountingEvidence(Evidence):
    """Counts how often the levels are listed."""

    __slots__ = ()
    lists = 0

    @property
    def limited(self):  # type: ignore[no-untyped-def]  # noqa: ANN201  # as in the base class
        """The levels with a limit."""
        CountingEvidence.lists += 1
        return super().limited


@pytest.mark.parametrize("find", [capacity_findings.saturated_level, capacity_findings.demand_above_nominal])
def test_levels_are_not_listed_for_each_level(find, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001
    monkeypatch.setattr(CountingEvidence, "lists", 0)
    list(find(CountingEvidence(compute_state(read_levels(50)))))
    assert CountingEvidence.lists <= 2


def test_too_many_levels_are_an_error() -> None:
    with pytest.raises(UserError, match=r"m\.txt: 10,001 priority levels are more than the maximum of 10,000"):
        compute_state(read_levels(MAX_SERVER_LEVELS + 1))
    assert isinstance(read_levels(1).last, Snapshot)
