"""Shares for a number of seats: laws, and comparison with a search over all small numbers."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.evaluate.limits import nominal_limit
from apflint.evaluate.shares import MAX_SHARES, find_joint_shares, find_smallest_shares

_MAX_TRIED = 3_000


@given(st.integers(0, 60), st.integers(0, 60), st.integers(1, 50))
def test_no_smaller_number_of_shares_suffices(seats: int, others: int, total: int) -> None:
    found = find_smallest_shares(seats, others, total)
    tried = (shares for shares in range(_MAX_TRIED + 1) if nominal_limit(shares, others + shares, total) >= seats)
    assert found == next(tried, None)


@given(st.integers(1, 2**31 - 1), st.integers(0, 2**40), st.integers(1, 2**31 - 1))
def test_law_holds_for_large_numbers(seats: int, others: int, total: int) -> None:
    found = find_smallest_shares(seats, others, total)
    if found is not None:
        assert nominal_limit(found, others + found, total) >= seats
        assert not found or nominal_limit(found - 1, others + found - 1, total) < seats
        assert found <= MAX_SHARES
    else:
        assert nominal_limit(MAX_SHARES, others + MAX_SHARES, total) < seats


@given(
    st.tuples(st.integers(0, 14), st.integers(0, 14)),
    st.tuples(st.integers(0, 5), st.integers(0, 5)),
    st.integers(0, 6),
    st.integers(1, 30),
)
def test_joint_shares_are_the_smallest(
    seats: tuple[int, int], lowest: tuple[int, int], others: int, total: int
) -> None:
    def suffice(shares: tuple[int, ...]) -> bool:
        share_sum = others + sum(shares)
        return all(nominal_limit(own, share_sum, total) >= least for own, least in zip(shares, seats, strict=True))

    found = find_joint_shares(dict(zip("ab", seats, strict=True)), dict(zip("ab", lowest, strict=True)), others, total)
    solutions = list(filter(suffice, product(range(lowest[0], 80), range(lowest[1], 80))))
    if found is None:
        assert not solutions
        return
    shares = tuple(found.values())
    assert suffice(shares)
    assert all(own <= other for solution in solutions for own, other in zip(shares, solution, strict=True))


@pytest.mark.parametrize(
    ("seats", "others", "total", "shares"),
    [(50, 275, 600, 25), (0, 250, 600, 0), (600, 0, 600, 1), (601, 0, 600, None)],
)
def test_examples(seats: int, others: int, total: int, shares: int | None) -> None:
    assert find_smallest_shares(seats, others, total) == shares
