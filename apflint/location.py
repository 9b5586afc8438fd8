"""Locations of problems: a field of an object, or a range of text.

The location of a field consists of the object and the path of the field. The line and the column of the field are
computed only if a report needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from apflint.load.document import Document
    from apflint.load.source_text import Source

Path = tuple[str | int, ...]
"""Field path inside an object, such as `("spec", "rules", 0, "subjects")`."""

_MAX_NAME_LENGTH = 400
"""Maximum number of characters of a name or key that messages show. The API server accepts keys of up to 317 characters."""


class Span(NamedTuple):
    """A range of a file. Lines and columns start at 1, columns count code points, and the end is exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class TextRange(NamedTuple):
    """A range of text that is not part of an object: `source.text[start:end]`. Offsets are in code points."""

    source: Source
    start: int
    end: int

    @property
    def document(self) -> None:
        """None, because the range is not part of an object."""
        return

    @property
    def path(self) -> Path:
        """An empty path, because the range is not part of an object."""
        return ()

    @property
    def offsets(self) -> tuple[int, int]:
        """Start and end offset in the text of the source."""
        return self.start, self.end

    @property
    def span(self) -> Span:
        """The offsets as lines and columns."""
        return self.source.span(self.start, self.end)


class Place(NamedTuple):
    """A value in an object, at `path`, or the key of this value if `key` is true.

    If `place` is the place of a mapping, `place / "verbs"` is the place of its value `verbs`. If
    `place` is the place of a list, `place / 0` is the place of its first item.
    """

    document: Document
    path: Path = ()
    key: bool = False
    """Whether the place is the key and not the value."""
    known_offsets: tuple[int, int] | None = None
    """Start and end offset of a key that occurs twice in its mapping, so that `path` is ambiguous. None for other keys."""

    def __truediv__(self, step: str | int) -> Place:
        return Place(self.document, (*self.path, step))

    def at_key(self) -> Place:
        """Return a `Place` that refers to the key of this field instead of its value."""
        return Place(self.document, self.path, key=True)

    @property
    def source(self) -> Source:
        """The text that contains the object. Unlike `offsets`, this property never parses the text."""
        return self.document.source

    @property
    def field(self) -> str:
        """The path in the notation of Kubernetes, such as `spec.rules[0].subjects`."""
        return field_path(self.path)

    @property
    def offsets(self) -> tuple[int, int]:
        """Start and end offset in the text of the source. Parses the text again if its parsed tree is no longer in memory."""
        return self.known_offsets or self.document.offsets(self.path, key=self.key)

    @property
    def span(self) -> Span:
        """The range of the place in the text of the source, as lines and columns."""
        return self.source.span(*self.offsets)


Location = Place | TextRange
"""The location of a problem. Both classes have `source`, `document`, `path`, `offsets` and `span`."""


def clipped(name: str) -> str:
    """Return a name, shortened to at most `_MAX_NAME_LENGTH` characters.

    Every finding about an object contains the name of the object, so long names would make a report huge.
    """
    return name if len(name) <= _MAX_NAME_LENGTH else f"{name[: _MAX_NAME_LENGTH - 1]}…"


def field_path(path: Path) -> str:
    """Return a path in the notation of Kubernetes: `spec.rules[0].subjects`, or `labels[a.io/b]` for keys with dots."""
    text = ""
    for step in path:
        if isinstance(step, str):
            step = clipped(step)  # noqa: PLW2901  # only the shortened step is used
        if isinstance(step, int) or "." in step or "/" in step:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
