"""`map_lines`: every line of an edited text that was there before is known by its old number."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.edit.text_edits import apply_edits, map_lines
from apflint.fix import Edit
from apflint.load.source import Source

LINES = 12
END = st.sampled_from(["\n", "\r\n"])
CHANGES = st.lists(st.tuples(st.integers(0, LINES - 1), st.integers(0, LINES), st.integers(0, 3)), max_size=4)


def edited(end: str, changes: list[tuple[int, int, int]]) -> tuple[Source, Source, list[Edit]]:
    """A text of numbered lines, and edits of it: from line to line nothing or new lines, each at most once."""
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
