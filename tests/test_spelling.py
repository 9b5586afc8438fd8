"""Similar words, distances, and suggestions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.checks.requests import VERBS
from apflint.spelling import did_you_mean, find_intended, find_similar, measure_distance, suggest


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


@given(st.text("ab:", max_size=8), st.text("ab:", max_size=8))
def test_distances(one: str, other: str) -> None:
    assert measure_distance(one, other) == measure_distance(other, one) <= max(len(one), len(other))
    assert (measure_distance(one, other) == 0) is (one == other)
    assert abs(len(one) - len(other)) <= measure_distance(one, other)


@pytest.mark.parametrize(
    ("one", "other", "distance"), [("ab", "ba", 1), ("nodes", "node", 1), ("nodes", "noeds", 1), ("abc", "ca", 3)]
)
def test_distance_of_words(one: str, other: str, distance: int) -> None:
    assert measure_distance(one, other) == distance


@pytest.mark.parametrize(
    ("word", "verb"),
    [("GET", "get"), ("delet", "delete"), ("wacth", "watch"), ("deleteCollection", "deletecollection"),
     ("deleteall", None), ("set", None), ("post", None), ("dele", "delete"), ("", None), ("*", None)],
)  # fmt: skip
def test_intended_verb(word: str, verb: str | None) -> None:
    assert find_intended(word, VERBS) == verb
