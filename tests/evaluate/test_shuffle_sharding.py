"""Hands, entropy and probabilities, compared with recordings of kube-apiserver, the table in the documentation, and properties."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.evaluate import shuffle_sharding
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path

# Probabilities for 1, 4 and 16 elephants by (hand, deck), from the page "API Priority and Fairness" of the Kubernetes
# documentation.
PUBLISHED = {
    (12, 32): (4.428838398950118e-09, 0.11431348830099144, 0.9935089607656024),
    (10, 32): (1.550093439632541e-08, 0.0626479840223545, 0.9753101519027554),
    (10, 64): (6.601827268370426e-12, 0.00045571320990370776, 0.49999929150089345),
    (9, 64): (3.6310049976037345e-11, 0.00045501212304112273, 0.4282314876454858),
    (8, 64): (2.25929199850899e-10, 0.0004886697053040446, 0.35935114681123076),
    (8, 128): (6.994461389026097e-13, 3.4055790161620863e-06, 0.02746173137155063),
    (7, 128): (1.0579122850901972e-11, 6.960839379258192e-06, 0.02406157386340147),
    (7, 256): (7.597695465552631e-14, 6.728547142019406e-08, 0.0006709661542533682),
    (6, 256): (2.7134626662687968e-12, 2.9516464018476436e-07, 0.0008895654642000348),
    (6, 512): (4.116062922897309e-14, 4.982983350480894e-09, 2.26025764343413e-05),
    (6, 1024): (6.337324016514285e-16, 8.09060164312957e-11, 4.517408062903668e-07),
}


def _rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _check_hands(rows: list[dict[str, Any]]) -> None:
    assert rows
    wrong = {}
    for row in rows:
        given_hash = row.get("hash")
        hashed = (
            shuffle_sharding.flow_hash(row["flow_schema"], row["distinguisher"])
            if given_hash is None
            else int(given_hash)
        )
        mine = {"hash": str(hashed), "hand": list(shuffle_sharding.deal(hashed, row["queues"], row["hand_size"]))}
        if mine != {key: row["expect"][key] for key in ("hash", "hand")}:
            wrong[row["id"]] = mine
    assert wrong == {}


def test_hands_agree_with_the_server(root: Path) -> None:
    _check_hands(_rows(root / "fixtures/oracle-numbers/hands.jsonl"))


def test_hands_agree_with_all_recordings(shared: Path) -> None:
    _check_hands(_rows(shared / "oracle/shards/hands.jsonl"))


def _check_entropy(rows: list[tuple[int, int, int | None, bool, bool | None]]) -> None:
    assert rows
    for queues, hand, bits, dealer, api in rows:
        if bits is not None:
            assert shuffle_sharding.required_entropy_bits(queues, hand) == bits
        assert (shuffle_sharding.find_sharding_error(queues, hand) is None) == dealer, (queues, hand)
        if api is not None:  # the API replaces 0 by the defaults 64 and 8
            assert shuffle_sharding.is_admitted(queues or 64, hand or 8) == api, (queues, hand)


def test_entropy_agrees_with_the_server(root: Path) -> None:
    rows = _rows(root / "fixtures/oracle-numbers/entropy.jsonl")
    _check_entropy([(row["queues"], row["hand_size"], row["bits"], row["dealer"], row["api"]) for row in rows])


def test_entropy_agrees_with_all_recordings(shared: Path) -> None:
    rows = [(row, row["expect"]) for row in _rows(shared / "oracle/shards/entropy.jsonl")]
    _check_entropy(
        [
            (
                row["queues"],
                row["hand_size"],
                expected["required_entropy_bits"],
                expected["dealer_valid"],
                expected["api_valid"],
            )
            for row, expected in rows
        ]
    )


def test_floating_point_never_shifts_the_entropy() -> None:
    # The server rounds up a floating-point logarithm. The result can only be wrong next to an integer.
    for hand in range(1, shuffle_sharding.MAX_HAND + 1):
        for bits in range(1, 70):
            near = int(2 ** (bits / hand))
            for queues in range(max(1, near - 2), min(near + 3, shuffle_sharding.MAX_DECK)):
                assert shuffle_sharding.required_entropy_bits(queues, hand) == (queues**hand - 1).bit_length()


def test_invalid_text_is_hashed_as_by_the_server() -> None:
    assert shuffle_sharding.flow_hash("a\ud83d", "") == shuffle_sharding.flow_hash(
        "a\ufffd", ""
    )  # a string from JSON may contain a lone surrogate
    # The strings contain the last and the first surrogate, which become U+FFFD.
    assert shuffle_sharding.flow_hash("a\udfff", "\ud800") == shuffle_sharding.flow_hash("a\ufffd", "\ufffd")
    assert shuffle_sharding.flow_hash("a\udcff", "") != shuffle_sharding.flow_hash(
        "a\ufffd", ""
    )  # U+DCFF stands for the byte 0xff of a command-line argument, which is not hashed as U+FFFD


@pytest.mark.parametrize(
    ("queues", "hand", "words"),
    [
        (0, 1, "at least 1"),
        (8, 9, "is greater than queues 8"),
        (1 << 27, 2, "the maximum of shuffle sharding"),
        (64, 11, "needs 66 bits"),
    ],
)
def test_invalid_dealer_is_described(queues: int, hand: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        shuffle_sharding.deal(1, queues, hand)


def test_table_is_the_documented_one() -> None:
    assert dict.fromkeys(PUBLISHED) == dict.fromkeys(shuffle_sharding.DOCUMENTED_PAIRS)
    for row in shuffle_sharding.compute_documented_table():
        assert tuple(row.squish.values()) == pytest.approx(PUBLISHED[row.hand_size, row.queues], rel=1e-12, abs=0)
        assert row.problem is None


def test_probability_agrees_with_enumeration() -> None:
    for queues, hand in ((4, 2), (5, 3), (6, 2)):
        hands = [frozenset(combination) for combination in combinations(range(queues), hand)]
        squished = sum(hands[0] <= cards | other for cards in hands for other in hands)
        assert Fraction(*shuffle_sharding.squish_ratio(hand, queues, 2)) == Fraction(squished, len(hands) ** 2)


def test_largest_hands_and_decks() -> None:
    assert [shuffle_sharding.largest_deck(hand) for hand in (0, 1, 2, 3, 6, 8, 12, 15, 16)] == [
        0,
        10_000_000,
        10_000_000,
        1_048_576,
        1024,
        181,
        32,
        16,
        0,
    ]
    assert [shuffle_sharding.largest_hand(deck) for deck in (0, 1, 15, 16, 17, 64, 128, 10_000_000, 10_000_001)] == [
        0,
        1,
        15,
        15,
        14,
        10,
        8,
        2,
        0,
    ]


@given(st.integers(1, shuffle_sharding.MAX_QUEUES))
def test_next_larger_hand_is_not_admitted(queues: int) -> None:
    hand = shuffle_sharding.largest_hand(queues)
    assert shuffle_sharding.is_admitted(queues, hand)
    assert not shuffle_sharding.is_admitted(queues, hand + 1)
    assert queues <= shuffle_sharding.largest_deck(hand)


@given(st.integers(1, shuffle_sharding.MAX_QUEUES), st.data())
def test_hand_has_distinct_queues(queues: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, shuffle_sharding.largest_hand(queues)))
    hashed = data.draw(st.integers(0, 2**64 - 1))
    hand = shuffle_sharding.deal(hashed, queues, size)
    assert len(set(hand)) == len(hand) == size
    assert all(0 <= queue < queues for queue in hand)
    assert hand[: size - 1] == (shuffle_sharding.deal(hashed, queues, size - 1) if size > 1 else ())


@given(st.integers(1, 400), st.data())
def test_more_elephants_squish_more_and_more_queues_less(queues: int, data: st.DataObject) -> None:
    hand = data.draw(st.integers(1, min(queues, shuffle_sharding.MAX_HAND)))
    elephants = data.draw(st.integers(1, 40))
    here = Fraction(*shuffle_sharding.squish_ratio(hand, queues, elephants))
    assert 0 < here <= 1
    assert Fraction(*shuffle_sharding.squish_ratio(hand, queues, elephants + 1)) >= here
    assert Fraction(*shuffle_sharding.squish_ratio(hand, queues + 1, elephants)) <= here
    assert shuffle_sharding.squish_ratio(hand, queues, 0)[0] == 0


@given(st.floats(1e-12, 1), st.integers(1, 60), st.integers(1, 5000))
def test_recommended_pairs_are_minimal(wish: float, elephants: int, most: int) -> None:
    rows = shuffle_sharding.recommend_pairs(wish, elephants, most)
    assert [row.queues for row in rows] == sorted(row.queues for row in rows)
    for row in rows:
        assert row.squish[elephants] <= wish
        assert row.queues <= most
        assert row.problem is None
        if row.queues > row.hand_size:
            assert shuffle_sharding.squish_probability(row.hand_size, row.queues - 1, elephants) > wish
    if not rows:
        assert shuffle_sharding.find_safest_pair(elephants, most).squish[elephants] > wish


def test_table_for_other_numbers_of_elephants() -> None:
    rows = shuffle_sharding.compute_documented_table((2,))
    assert [(row.hand_size, row.queues) for row in rows] == [*PUBLISHED]
    assert all(list(row.squish) == [2] for row in rows)
    two, three = (shuffle_sharding.compute_sharding(1, 10, (count,)).squish[count] for count in (2, 3))
    assert (two, three) == pytest.approx((1 - 0.9**2, 1 - 0.9**3))


def test_recommendations_have_at_most_1024_queues_by_default() -> None:
    assert shuffle_sharding.recommend_pairs(1e-9, 4)[-1].queues <= 1024
    # Hand size 1 needs 4 queues. Larger hand sizes are not recommended, because they also need at least 4 queues.
    assert [(row.hand_size, row.queues) for row in shuffle_sharding.recommend_pairs(0.3, 1)] == [(1, 4)]
    assert (
        shuffle_sharding.find_safest_pair(1000)
        == shuffle_sharding.find_safest_pair(1000, 1024)
        != shuffle_sharding.find_safest_pair(1000, 1025)
    )
    # With a hand of 1 of d queues, an elephant fills the queue of a mouse with probability 1/d. The goals are just
    # above and just below this probability.
    assert [(row.hand_size, row.queues) for row in shuffle_sharding.recommend_pairs(1 / 1024, 1)][-1] == (1, 1024)
    assert all(row.hand_size > 1 for row in shuffle_sharding.recommend_pairs(1 / 1025, 1))
    assert [(row.hand_size, row.queues) for row in shuffle_sharding.recommend_pairs(1 / 512, 1)][-1] == (1, 512)
    assert [(row.hand_size, row.queues) for row in shuffle_sharding.recommend_pairs(1, 1, 1)] == [(1, 1)]


def test_recommendations_that_are_known() -> None:
    assert [(row.hand_size, row.queues) for row in shuffle_sharding.recommend_pairs(1e-3, 16, 300)] == [
        (7, 239),
        (6, 251),
        (5, 274),
    ]
    assert shuffle_sharding.recommend_pairs(1e-9, 16, 512) == ()
    assert (
        shuffle_sharding.find_safest_pair(16, 512).hand_size,
        shuffle_sharding.find_safest_pair(16, 512).queues,
    ) == (6, 512)


def test_best_hand_squishes_least_often() -> None:
    def exact(hand: int, queues: int) -> Fraction:
        return Fraction(*shuffle_sharding.squish_ratio(hand, queues, shuffle_sharding.BUSY_FLOWS))

    for queues in (*range(1, 70), 128, 512, 1024, 100_000, shuffle_sharding.MAX_QUEUES):
        best = shuffle_sharding.find_best_hand(queues)
        assert shuffle_sharding.is_admitted(queues, best)
        admitted = (hand for hand in range(1, 16) if shuffle_sharding.is_admitted(queues, hand))
        # `find_best_hand` compares floating-point numbers. So if probabilities are nearly equal, any of the hands is
        # right.
        assert exact(best, queues) <= min(exact(hand, queues) for hand in admitted) * (1 + Fraction(1, 10**9))
    assert [shuffle_sharding.find_best_hand(queues) for queues in (-1, 0, shuffle_sharding.MAX_QUEUES + 1)] == [0, 0, 0]


@pytest.mark.parametrize(
    ("hand", "queues", "elephants", "words"),
    [
        (0, 8, 1, "hand size"),
        (9, 8, 1, "hand size"),
        (1, 10_000_001, 1, "number of queues must be from 1 to 10000000"),
        (3, 0, 1, "number of queues must be from 1"),
        (2, 8, -1, "number of elephants"),
        (2, 8, 10_001, "number of elephants"),
        (5_000_000, 10_000_000, 1, "takes too long"),
        (200, 512, 10_000, "takes too long to compute for 10000 elephants"),
    ],
)
def test_values_out_of_range_are_errors(hand: int, queues: int, elephants: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        shuffle_sharding.squish_probability(hand, queues, elephants)


def test_work_of_a_probability_is_bounded() -> None:
    assert shuffle_sharding.squish_ratio(2_000, 10_000_000, 1)[0] == 1  # the hand contains all queues
    with pytest.raises(UserError, match=r"a hand of 2000 from 10000000 queues takes too long .* 2 elephants"):
        shuffle_sharding.squish_ratio(2_000, 10_000_000, 2)


@pytest.mark.parametrize(("wish", "elephants"), [(0.0, 1), (1.5, 1), (float("nan"), 1), (0.5, 0)])
def test_recommendations_out_of_range_are_errors(wish: float, elephants: int) -> None:
    with pytest.raises(UserError, match=r"must be"):
        shuffle_sharding.recommend_pairs(wish, elephants)
    with pytest.raises(UserError, match="queues must be at least 1"):
        shuffle_sharding.find_safest_pair(1, 0)
