"""Locations that problems point at: a field of an object, or a range of text.

A location knows its object and field path when it is made; its line and column are determined only when a report needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.load.document import Document
    from apflint.load.source import Source

Path = tuple[str | int, ...]
"""Field path inside an object: `("spec", "rules", 0, "subjects")`."""

MAX_NAME_LENGTH = 400
"""Characters of a name or key to show; the longest key that a server accepts has 317 (253, a slash, 63)."""


class Span(NamedTuple):
    """A range of a file: 1-based lines, 1-based columns in code points, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class TextRange(NamedTuple):
    """`source.text[start:end]`, for text outside of the fields of an object. Offsets are in code points."""

    source: Source
    start: int
    end: int

    @property
    def document(self) -> None:
        """The object: there is none."""
        return

    @property
    def path(self) -> Path:
        """The field path: empty, as there is no object."""
        return ()

    @property
    def offsets(self) -> tuple[int, int]:
        """Start and end in the text of the source."""
        return self.start, self.end

    @property
    def span(self) -> Span:
        """The offsets as lines and columns."""
        return self.source.span(self.start, self.end)


class Place(NamedTuple):
    """The value at `path` of an object, or the key of that value. `place / "verbs"` is a place below it."""

    document: Document
    path: Path = ()
    key: bool = False
    """Point at the key instead of the value."""
    known_offsets: tuple[int, int] | None = None
    """Offsets of a key that occurs twice: its path alone does not determine them."""

    def __truediv__(self, step: str | int) -> Place:
        return Place(self.document, (*self.path, step))

    def at_key(self) -> Place:
        """Return the place of the key instead of the value."""
        return Place(self.document, self.path, key=True)

    @property
    def source(self) -> Source:
        """The text that contains the object. Cheap, whereas `offsets` may parse the text again."""
        return self.document.source

    @property
    def field(self) -> str:
        """The path as Kubernetes writes it."""
        return field_path(self.path)

    @property
    def offsets(self) -> tuple[int, int]:
        """Start and end in the text of the source. Parses the text again if its tree was not kept."""
        return self.known_offsets or self.document.offsets(self.path, key=self.key)

    @property
    def span(self) -> Span:
        """The offsets as lines and columns."""
        return self.source.span(*self.offsets)


Location = Place | TextRange
"""What a problem points at. Both have `source`, `document`, `path`, `offsets` and `span`."""


def clipped(name: str) -> str:
    """Shorten a huge name, which would otherwise be repeated in every finding about it."""
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[: MAX_NAME_LENGTH - 1]}…"


def field_path(path: Path) -> str:
    """Return a path as Kubernetes writes it: `spec.rules[0].subjects`; map keys with dots or slashes as `labels[a.io/b]`."""
    text = ""
    for step in path:
        if isinstance(step, str):
            step = clipped(step)  # noqa: PLW2901  # the step as it is shown
        if isinstance(step, int) or "." in step or "/" in step:
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
