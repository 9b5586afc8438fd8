"""Fixes that remove unused suppressions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.fix import Edit, Fix, Remove
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from apflint.load.source import Source
    from apflint.suppressions.parser import Ranges, Suppression

_REST_OF_LINE = re.compile(r"[ \t]*(\r\n|\r|\n|\Z)")


def remove_suppressions(suppressions: Sequence[Suppression]) -> Fix:
    """Return a fix that removes an annotation, or suppressions of one comment: all of it if no other is left."""
    place, comment = suppressions[0].place, suppressions[0].comment
    if comment is None:
        return Fix(f"remove the annotation {quote(place.path[-1])}", safe=True, operations=(Remove(place.path),))
    numbers = {suppression.number for suppression in suppressions}
    if len(numbers) == len(comment.rules):
        return Fix("remove the comment", safe=True, edits=(_remove_comment(place.source, comment.start, comment.end),))
    names = join_words((quote(suppression.written) for suppression in suppressions), "and")
    return Fix(f"remove {names} from the comment", safe=True, edits=tuple(_remove_rules(comment.rules, numbers)))


def _remove_comment(source: Source, start: int, end: int) -> Edit:
    """Remove a comment with its line, or with the spaces before it if something else is on the line."""
    text, line = source.text, source.line_starts[source.position(start)[0] - 1]
    before = text[line:start].rstrip(" \t")
    rest = _REST_OF_LINE.match(text, end)
    if rest is None:  # a line end of YAML 1.1
        return Edit(line + len(before), end, "")
    return Edit(line + len(before), rest.start(1), "") if before else Edit(line, rest.end(), "")


def _remove_rules(rules: Ranges, numbers: Collection[int]) -> Iterator[Edit]:
    """Remove rules with their commas: up to the next remaining one, or at the end from the last remaining one."""
    last = max(number for number in range(len(rules)) if number not in numbers)
    for number, (start, _) in enumerate(rules):
        if number in numbers and number < last:
            yield Edit(start, rules[number + 1][0], "")
    if last + 1 < len(rules):
        yield Edit(rules[last][1], rules[-1][1], "")
