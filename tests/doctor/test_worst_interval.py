"""The ranking of the moments of a period."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apflint.doctor.worst_interval import ClusterLoad, rank_moments

NUMBERS = st.floats(0, 1000)
LOADS = st.lists(
    st.builds(ClusterLoad, st.integers(0, 500).map(float), NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS),
    unique_by=lambda load: load.time,
)


def test_a_rejection_per_second_is_as_bad_as_a_waiting_request() -> None:
    loads = [ClusterLoad(0, 3, 3), ClusterLoad(100, waiting=2), ClusterLoad(200, 1, 1, waiting=4)]
    assert [load.time for load in rank_moments(loads, 30, 5)] == [200, 0, 100]


def test_rejections_that_are_over_do_not_count() -> None:
    loads = [ClusterLoad(0, rejected=3, rejected_at_end=3), ClusterLoad(100, rejected=9, rejected_at_end=1)]
    assert [load.time for load in rank_moments(loads, 30, 5)] == [0, 100]


def test_waits_decide_if_nothing_waits_at_the_end() -> None:
    loads = [ClusterLoad(0, executing=9), ClusterLoad(100, waits=0.1), ClusterLoad(200, waits=0.2)]
    assert [load.time for load in rank_moments(loads, 30, 5)] == [200, 100]


def test_busiest_moment_of_a_calm_period() -> None:
    loads = [ClusterLoad(0, executing=9), ClusterLoad(100, executing=3), ClusterLoad(200)]
    assert [load.time for load in rank_moments(loads, 30, 5)] == [0]
    assert rank_moments([], 30, 5) == []


@given(LOADS, st.integers(1, 6))
def test_moments_are_few_and_apart(loads: list[ClusterLoad], maximum: int) -> None:
    chosen = rank_moments(loads, 30, maximum)
    assert len(chosen) <= maximum
    assert bool(chosen) == bool(loads)
    assert all(abs(one.time - other.time) >= 15 for one in chosen for other in chosen if one is not other)
    assert [load.severity for load in chosen] == sorted((load.severity for load in chosen), reverse=True)
    assert not loads or chosen[0] == max(loads, key=lambda load: load.severity)
