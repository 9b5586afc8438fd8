"""Similar words, distances, and suggestions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.checks.policy_rules import VERBS
from apflint.spelling import (
    _limit_similarity,
    did_you_mean,
    find_intended,
    find_similar,
    is_within_distance,
    measure_similarity,
    suggest,
)


@pytest.mark.parametrize(
    ("word", "known", "question"),
    [
        ("byuser", ("ByUser", "ByNamespace"), 'did you mean "ByUser"?'),
        ("server_concurrency", ("server-concurrency",), 'did you mean "server-concurrency"?'),
        ("batch", ("batch-jobs",), 'did you mean "batch-jobs"?'),
        ("read", ("get", "create"), None),
        ("ByUser", ("ByUser",), None),
        ("x" * 401, ("x" * 400,), None),
        ("", ("a",), None),
    ],
)
def test_similar_words_are_suggested(word: str, known: tuple[str, ...], question: str | None) -> None:
    assert did_you_mean(word, known) == question
    assert suggest(word, known) == (f" D{question[1:]}" if question else "")


def test_most_similar_words_come_first() -> None:
    assert find_similar("resource", ("sources", "resources", "verbs"), 2) == ("resources", "sources")


def measure_distance(word: str, other: str) -> int:
    """Return the optimal string alignment distance, computed slowly from its definition with a table of all prefixes."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]


@given(st.text("ab:", max_size=8), st.text("ab:", max_size=8), st.integers(0, 3))
def test_distance_is_that_of_the_table(one: str, other: str, maximum: int) -> None:
    expected = measure_distance(one, other) <= maximum
    assert is_within_distance(one, other, maximum) is is_within_distance(other, one, maximum) is expected


@given(st.text("abc", min_size=1, max_size=8), st.text("abc", min_size=1, max_size=8))
def test_similarity_does_not_exceed_its_limit(one: str, other: str) -> None:
    assert measure_similarity(one, other) <= _limit_similarity(one, other) <= 1


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [("ab", "ba", 1), ("nodes", "node", 1), ("nodes", "noeds", 1), ("abc", "ca", 3), ("a", "a", 0), ("", "ab", 2)],
)
def test_distance_of_words(one: str, other: str, distance: int) -> None:
    assert [is_within_distance(one, other, maximum) for maximum in range(5)] == [at >= distance for at in range(5)]


@pytest.mark.parametrize(
    ("word", "verb"),
    [("GET", "get"), ("delet", "delete"), ("wacth", "watch"), ("deleteCollection", "deletecollection"),
     ("deleteall", None), ("set", None), ("post", None), ("dele", "delete"), ("", None), ("*", None)],
)  # fmt: skip
def test_intended_verb(word: str, verb: str | None) -> None:
    assert find_intended(word, VERBS) == verb
