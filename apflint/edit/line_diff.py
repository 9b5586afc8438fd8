"""Compares the lines of two versions of a text, in a time that is proportional to the number of lines.

difflib compares each line with all equal lines. Manifests have many equal lines, so difflib would
take minutes for a file with 4,000 FlowSchemas. This module is faster, because it compares each YAML
document only with the document of the same number in the other version. This is possible because
edits do not change the number of documents.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CONTEXT_LINES = 3


class LineChange(NamedTuple):
    """A change of the lines `old[start:end]` to the lines `new[new_start:new_end]`."""

    start: int
    end: int
    new_start: int
    new_end: int


def find_changes(old: list[str], new: list[str]) -> Iterator[LineChange]:
    """Yield the changes that turn `old` into `new`, in order. A smaller set of changes may be possible."""
    bounds, new_bounds = _find_bounds(old), _find_bounds(new)
    if len(bounds) != len(new_bounds):
        bounds, new_bounds = [0, len(old)], [0, len(new)]
    for (start, end), (new_start, new_end) in zip(pairwise(bounds), pairwise(new_bounds), strict=True):
        for i, j, k, m in _compare(old[start:end], new[new_start:new_end]):
            yield LineChange(start + i, start + j, new_start + k, new_start + m)


def write_unified_diff(old: list[str], new: list[str], old_name: str, new_name: str) -> Iterator[str]:
    """Yield the lines of a unified diff, each with its line end. Yield nothing if the texts are equal."""
    names = [f"--- {old_name}\n", f"+++ {new_name}\n"]
    for group in _group(find_changes(old, new)):
        yield from names
        yield from _write_hunk(group, old, new)
        names = []


def _find_bounds(lines: list[str]) -> list[int]:
    """Return the indices of the lines at which YAML documents start, followed by the number of lines."""
    return [0, *(at for at, line in enumerate(lines) if at and line.startswith("---")), len(lines)]


def _compare(old: list[str], new: list[str]) -> Iterator[tuple[int, int, int, int]]:
    if len(old) == len(new):
        differing = [at for at, line in enumerate(old) if line != new[at]]
        if 2 * len(differing) < len(old):
            yield from ((at, at + 1, at, at + 1) for at in differing)
            return
    from difflib import SequenceMatcher

    for tag, *change in SequenceMatcher(None, old, new).get_opcodes():
        if tag != "equal":
            yield change[0], change[1], change[2], change[3]


def _group(changes: Iterable[LineChange]) -> Iterator[list[LineChange]]:
    """Yield groups of changes that are close enough to each other for one hunk. Adjacent changes become one change."""
    group: list[LineChange] = []
    for change in changes:
        if group and group[-1].end == change.start and group[-1].new_end == change.new_start:
            group[-1] = group[-1]._replace(end=change.end, new_end=change.new_end)
            continue
        if group and change.start - group[-1].end > 2 * _CONTEXT_LINES:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _write_hunk(group: list[LineChange], old: list[str], new: list[str]) -> Iterator[str]:
    first, last = group[0], group[-1]
    before = min(_CONTEXT_LINES, first.start)
    after = min(_CONTEXT_LINES, len(old) - last.end)
    at = first.start - before
    yield f"@@ -{_range(at, last.end + after)} +{_range(first.new_start - before, last.new_end + after)} @@\n"
    for change in group:
        yield from (f" {line}" for line in old[at : change.start])
        yield from (f"-{line}" for line in old[change.start : change.end])
        yield from (f"+{line}" for line in new[change.new_start : change.new_end])
        at = change.end
    yield from (f" {line}" for line in old[at : last.end + after])


def _range(start: int, end: int) -> str:
    """Return a range of lines in the form of a hunk header of a unified diff: `FIRST,COUNT`, or `FIRST` for one line.

    For an empty range, FIRST is the number of the line before the range.
    """
    if end == start + 1:
        return str(end)
    return f"{start + 1 if end > start else start},{end - start}"
