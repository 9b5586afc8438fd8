"""Edits of a text: their order, overlapping edits, the unchanged text between edits, and the original line numbers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.edit.text_edits import CannotEditError, apply_edits, map_lines
from apflint.edit_operations import Edit
from apflint.load.source_text import Source


def test_edits_in_any_order_are_applied_together() -> None:
    assert apply_edits("one two three", [Edit(8, 13, "3"), Edit(0, 3, "1"), Edit(7, 7, "!")]) == "1 two! 3"
    assert apply_edits("one", [Edit(0, 3, "1"), Edit(0, 3, "1")]) == "1"
    assert apply_edits("one", []) == "one"
    assert apply_edits("one two", [Edit(4, 7, "2"), Edit(4, 4, "and "), Edit(3, 3, ",")]) == "one, and 2"


@pytest.mark.parametrize(
    "edits",
    [[Edit(0, 2, "a"), Edit(1, 3, "b")], [Edit(1, 1, "a"), Edit(1, 1, "b")], [Edit(2, 9, "")], [Edit(2, 1, "")]],
)
def test_overlapping_edits_are_refused(edits: list[Edit]) -> None:
    with pytest.raises(CannotEditError, match="edits overlap"):
        apply_edits("one", edits)


@given(st.text(), st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.text(max_size=3)), max_size=4))
def test_text_between_edits_stays(text: str, wanted: list[tuple[int, int, str]]) -> None:
    edits, at = [], 0
    for gap, length, new in wanted:
        if at + gap + length > len(text):
            break
        edits.append(Edit(at + gap, at + gap + length, new))
        at += gap + length + 1
    kept = [
        text[before.end : after.start]
        for before, after in zip([Edit(0, 0, ""), *edits], [*edits, Edit(len(text), 0, "")], strict=True)
    ]
    expected = "".join(piece + new for piece, new in zip(kept, [*(edit.new for edit in edits), ""], strict=True))
    assert apply_edits(text, reversed(edits)) == expected


LINES = 12
END = st.sampled_from(["\n", "\r\n"])
CHANGES = st.lists(st.tuples(st.integers(0, LINES - 1), st.integers(0, LINES), st.integers(0, 3)), max_size=4)


def edited(end: str, changes: list[tuple[int, int, int]]) -> tuple[Source, Source, list[Edit]]:
    """Return a text of numbered lines, the text after edits that replace some of its lines, and the edits."""
    text = "".join(f"old {number}{end}" for number in range(1, LINES + 1))
    starts = Source("a", text).line_starts
    edits: list[Edit] = []
    for first, last, new in sorted(changes):
        if first <= last and (not edits or starts[first] > edits[-1].end):
            edits.append(Edit(starts[first], starts[last], f"new{end}" * new))
    return Source("a", text), Source("a", apply_edits(text, edits)), edits


@given(END, CHANGES, CHANGES)
@settings(max_examples=100, derandomize=True, deadline=None)
def test_lines_keep_their_numbers(
    end: str, changes: list[tuple[int, int, int]], later: list[tuple[int, int, int]]
) -> None:
    old, new, edits = edited(end, changes)
    once = map_lines(old, new, edits, None)
    assert_known(new, once)
    starts = new.line_starts
    again: list[Edit] = []
    for first, last, count in sorted(later):
        if first <= last < len(starts) and (not again or starts[first] > again[-1].end):
            again.append(Edit(starts[first], starts[last], f"new{end}" * count))
    newest = Source("a", apply_edits(new.text, again))
    assert_known(newest, map_lines(new, newest, again, once))


def assert_known(source: Source, lines: list[int]) -> None:
    assert len(lines) == len(source.line_starts)
    assert lines == sorted(lines)
    for number, line in enumerate(lines, 1):
        if (text := source.line(number)).startswith("old"):
            assert text == f"old {line}"


def test_inserted_lines_count_as_the_line_of_the_insertion() -> None:
    old = Source("a", "one\n  name: x\nthree\n")
    edits = [Edit(6, 6, "user:\n    "), Edit(13, 13, "\n    more: y"), Edit(14, 19, "3")]
    new = Source("a", apply_edits(old.text, edits))
    assert new.text == "one\n  user:\n    name: x\n    more: y\n3\n"
    assert map_lines(old, new, edits, None) == [1, 2, 2, 2, 3, 4]
