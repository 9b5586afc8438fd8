"""A unified diff of two texts, in a time that grows as they do.

`difflib.unified_diff` compares all lines with all lines that are the same, and the lines of manifests are the same again
and again: 4,000 FlowSchemas in one file would take minutes. Edits leave documents where they are, and most of them lines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_AROUND = 3  # lines of context, as everywhere


class _Change(NamedTuple):
    """`old[start:end]` becomes `new[new_start:new_end]`."""

    start: int
    end: int
    new_start: int
    new_end: int


def unified(old: list[str], new: list[str], old_name: str, new_name: str) -> Iterator[str]:
    """The lines of the diff; nothing where there is no difference. Lines are given, and come, with their ends."""
    groups = list(_groups(_changes(old, new)))
    if groups:
        yield f"--- {old_name}\n"
        yield f"+++ {new_name}\n"
    for group in groups:
        yield from _hunk(group, old, new)


def _changes(old: list[str], new: list[str]) -> Iterator[_Change]:
    pieces, new_pieces = _documents(old), _documents(new)
    if len(pieces) != len(new_pieces):
        pieces, new_pieces = [(0, len(old))], [(0, len(new))]
    for (start, end), (new_start, new_end) in zip(pieces, new_pieces, strict=True):
        for i, j, k, m in _within(old[start:end], new[new_start:new_end]):
            yield _Change(start + i, start + j, new_start + k, new_start + m)


def _documents(lines: list[str]) -> list[tuple[int, int]]:
    """Start and end of each document of YAML."""
    starts = [0, *(at for at, line in enumerate(lines) if at and line.startswith("---"))]
    return list(zip(starts, [*starts[1:], len(lines)], strict=True))


def _within(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    """What differs in one document: line by line where most are in their places."""
    if len(old) == len(new):
        differing = [at for at, line in enumerate(old) if line != new[at]]
        if 2 * len(differing) < len(old):
            yield from ((at, end, at, end) for at, end in _runs(differing))
            return
    from difflib import SequenceMatcher

    for tag, *change in SequenceMatcher(None, old, new).get_opcodes():
        if tag != "equal":
            yield change[0], change[1], change[2], change[3]


def _runs(numbers: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Start and end of each row of numbers that follow each other."""
    start = end = -1
    for number in numbers:
        if number != end:
            if end > start:
                yield start, end
            start = number
        end = number + 1
    if end > start:
        yield start, end


def _groups(changes: Iterable[_Change]) -> Iterator[list[_Change]]:
    """Changes so near to each other that they are one hunk."""
    group: list[_Change] = []
    for change in changes:
        if group and change.start - group[-1].end > 2 * _AROUND:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _hunk(group: list[_Change], old: list[str], new: list[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    before = min(_AROUND, first.start)
    after = min(_AROUND, len(old) - last.end)
    at = first.start - before
    yield f"@@ -{_range(at, last.end + after)} +{_range(first.new_start - before, last.new_end + after)} @@\n"
    for change in group:
        yield from (f" {line}" for line in old[at : change.start])
        yield from (f"-{line}" for line in old[change.start : change.end])
        yield from (f"+{line}" for line in new[change.new_start : change.new_end])
        at = change.end
    yield from (f" {line}" for line in old[at : last.end + after])


def _range(start: int, end: int) -> str:
    """The first line and how many; of none the line before."""
    if end == start + 1:
        return str(end)
    return f"{start + 1 if end > start else start},{end - start}"
