"""The text of an input and its lines."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from functools import cached_property
from typing import TYPE_CHECKING

from apflint.location import Span

if TYPE_CHECKING:
    from collections.abc import Sequence

STDIN = "<stdin>"
"""Name of standard input."""
GIT_PREFIX = "git:"
"""Start of the names of a git revision and of its manifests: `git:main`, or `git:v1.2:clusters/prod`."""
LIVE_PREFIX = "live:"
"""Start of the names of objects that kubectl has read from a cluster, such as `live:flowschemas/batch`."""
RENDERED_SUFFIX = " (rendered)"
"""End of the names of texts that kustomize has built, such as `overlays/prod (rendered)`."""

_PIECE = 1 << 16
"""Number of characters that are split into lines at once."""
_LINE_END = re.compile(r"\r\n|\n|\r")


class Source:
    """The text of an input. Offsets count code points. LF, CRLF and CR end a line, as in editors."""

    def __init__(self, name: str, text: str, *, rendered: bool = False) -> None:
        self.name = name
        """Name that findings show: a path, or `<stdin>`."""
        self.text = text
        self.is_live = name.startswith(LIVE_PREFIX)
        """Whether the text is an object of a running cluster."""
        self.rendered = rendered or self.is_live or name == STDIN or name.endswith(RENDERED_SUFFIX)
        """Whether a tool such as Helm rendered the text. If so, the user did not choose the order of its documents."""

    @cached_property
    def line_starts(self) -> Sequence[int]:
        """Start offset of each line. An array takes an eighth of the memory of a list."""
        text = self.text
        if "\r" in text:
            return array("I", (0, *(match.end() for match in _LINE_END.finditer(text))))
        starts = array("I", (0,))
        for begin in range(0, len(text), _PIECE):  # splitting piece by piece saves memory
            at = begin
            for line in text[begin : begin + _PIECE].split("\n")[:-1]:
                at += len(line) + 1
                starts.append(at)
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of an offset. Both start at 1."""
        line = bisect_right(self.line_starts, offset)
        return line, offset - self.line_starts[line - 1] + 1

    def span(self, start: int, end: int) -> Span:
        """Return the lines and columns of `text[start:end]`."""
        if end > start and self.text[end - 1 : end + 1] == "\r\n":  # end the range before CRLF, not between CR and LF
            end -= 1
        return Span(*self.position(start), *self.position(max(start, end)))

    def line(self, number: int) -> str:
        """Return the text of a line without its line end, or "" if the line does not exist. Line numbers start at 1."""
        if not 1 <= number <= len(self.line_starts):
            return ""
        start = self.line_starts[number - 1]
        end = self.line_starts[number] if number < len(self.line_starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")
