"""Work: rounding of products and quotients, as in Go."""

from __future__ import annotations

import pytest

from apflint.simulate.seat_seconds import duration_per_seat, round_half_away, seats_times_duration


@pytest.mark.parametrize(
    ("nanoseconds", "work"), [(0, 0), (4, 0), (5, 1), (6, 1), (14, 1), (15, 2), (24, 2), (25, 3), (10**9, 10**8)]
)
def test_work_is_rounded_half_away_from_zero(nanoseconds: int, work: int) -> None:
    assert seats_times_duration(1, nanoseconds) == work
    assert seats_times_duration(1, -nanoseconds) == -work
    assert (round_half_away(nanoseconds / 10), round_half_away(-nanoseconds / 10)) == (work, -work)


def test_duration_is_rounded_down() -> None:
    assert [duration_per_seat(work, 3) for work in (0, 1, 2, 3)] == [0, 3, 6, 10]
