"""Quoted values, lists and counts."""

from __future__ import annotations

from apflint.wording import format_duration, join_some, join_words, pluralize, quote, quote_some, write_sentence


def test_long_values_are_cut() -> None:
    assert quote("x" * 78) == f'"{"x" * 78}"'
    assert quote("x" * 79) == f'"{"x" * 77}…"'
    assert quote(["x" * 76]) == f'["{"x" * 76}"]'
    assert quote(["x" * 77]) == f'["{"x" * 77}…'


def test_words_are_joined() -> None:
    assert [join_words(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == ["", "a", "a or b", "a, b or c"]


def test_words_beyond_the_maximum_are_counted() -> None:
    assert join_some(["a"], 4) == "a"
    assert join_some(["a", "b", "c", "d"], 4) == "a, b, c and d"
    assert join_some(["a", "b", "c", "d", "e"], 4) == "a, b, c and 2 more"


def test_quoted_values_beyond_the_maximum_are_counted() -> None:
    assert quote_some(["a", 1], 2) == '"a" and 1'
    assert quote_some(["a", 1, "b"], 2) == '"a" and 2 more'


def test_nouns_have_a_plural() -> None:
    assert [pluralize(count, "seat") for count in (0, 1, 2)] == ["0 seats", "1 seat", "2 seats"]


def test_sentence_keeps_the_case_of_names() -> None:
    assert write_sentence("it must be v1beta3 or FlowSchema") == "It must be v1beta3 or FlowSchema."


def test_durations() -> None:
    seconds = (0.0000005, 0.0042, 0.043, 2.7, 42, 60, 108, 3600, 12_000, 200_000)
    shown = ["0 µs", "4.2 ms", "43 ms", "2.7 s", "42 s", "1m", "1m 48s", "1h 0m", "3h 20m", "2d 7h"]
    assert [format_duration(value * 1e6) for value in seconds] == shown
