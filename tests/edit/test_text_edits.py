"""Edits of a text: order, overlaps, and the text between them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.edit.text_edits import CannotEditError, apply_edits
from apflint.fix import Edit


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
