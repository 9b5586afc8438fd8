"""How a suppression that does nothing is taken out of its file."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.fix import Edit, Fix, Remove
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from apflint.load.source import Source
    from apflint.suppression import Suppression


def removal(suppressions: list[Suppression]) -> Fix:
    """Takes suppressions of one comment out of it, and the comment away if it names no other; or one annotation."""
    place, parts = suppressions[0].place, [one.listed for one in suppressions if one.listed is not None]
    if place.document is not None:
        return Fix(f"remove the annotation {quote(place.path[-1])}", True, (Remove(place.path),))
    source, numbers = place.source, {one.number for one in parts}
    if len(numbers) == len(parts[0].rules):
        return Fix("remove the comment", safe=True, edits=(_without_comment(source, *parts[0].comment),))
    names = join_words((quote(one.written) for one in suppressions), "and")
    edits = tuple(_without(parts[0].rules, numbers))
    return Fix(f"remove {names} from the comment", safe=True, edits=edits)


def _without_comment(source: Source, start: int, end: int) -> Edit:
    """A comment of its own line goes with the line, another one with the blanks before it."""
    text, line = source.text, source.line_starts[source.position(start)[0] - 1]
    before = text[line:start].rstrip(" \t")
    tail = re.compile(r"[ \t]*(\r\n|\r|\n|\Z)").match(text, end)
    if tail is None:  # a line end that only YAML 1.1 knows
        return Edit(line + len(before), end, "")
    return Edit(line + len(before), tail.start(1), "") if before else Edit(line, tail.end(), "")


def _without(rules: tuple[tuple[int, int], ...], gone: Collection[int]) -> Iterator[Edit]:
    """Names of a list with their commas: up to the next that stays, or at the end from the last that stays."""
    last = max(number for number in range(len(rules)) if number not in gone)
    for number, (start, _) in enumerate(rules):
        if number in gone and number < last:
            yield Edit(start, rules[number + 1][0], "")
    if last + 1 < len(rules):
        yield Edit(rules[last][1], rules[-1][1], "")
