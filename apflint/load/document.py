"""A manifest of ours: one FlowSchema or PriorityLevelConfiguration in a source, with the places of everything in it."""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING, Literal

from apflint.load.tree import Mapping, Node, Scalar, Sequence, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.load.decode import Duplicate
    from apflint.load.source import Source
    from apflint.location import Path, Span

GROUP = "flowcontrol.apiserver.k8s.io"
KINDS = ("FlowSchema", "PriorityLevelConfiguration")
LISTS = {"FlowSchemaList": "FlowSchema", "PriorityLevelConfigurationList": "PriorityLevelConfiguration"}
"""The lists of the group, and what their items are."""


_TOP = frozenset(("apiVersion", "kind", "metadata", "spec"))
_META = frozenset(("name", "labels", "annotations"))


class Document:
    """One object. The tree with its places is built again when a place is asked for."""

    __slots__ = (
        "_compose",
        "_root",
        "api_version",
        "duplicates",
        "kind",
        "more",
        "name",
        "not_finite",
        "prefix",
        "source",
        "start",
        "value",
        "version",
    )

    def __init__(
        self,
        source: Source,
        value: dict[str, object],
        compose: Callable[[], Node | None],
        prefix: Path = (),
        api_version: str | None = None,
        kind: str | None = None,
        duplicates: tuple[Duplicate, ...] = (),
        not_finite: tuple[Path, ...] = (),
        start: int = 0,
    ) -> None:
        metadata = value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        self.value = value
        """The decoded manifest. Nobody may change it."""
        self.source = source
        self.api_version: str = api_version or str(value.get("apiVersion") or "")
        self.kind: Literal["FlowSchema", "PriorityLevelConfiguration"] = kind or value.get("kind")  # type: ignore[assignment]  # no other is loaded
        self.version = intern(self.api_version.rpartition("/")[2])
        self.name: str = name if isinstance(name, str) else ""
        """`metadata.name`, or "" where it is no text."""
        self.more = not (value.keys() <= _TOP and isinstance(metadata, dict) and metadata.keys() <= _META)
        """Whether there is more in it than a spec, a name, labels and annotations."""
        self.prefix = prefix
        """Where the object is in its text: `("items", 3)` inside a list, empty elsewhere."""
        self.start = start
        """Where that text begins in the source."""
        self.duplicates = duplicates
        self.not_finite = not_finite
        self._compose = compose
        self._root: Node | None = None

    def at(self, *path: str | int) -> object:
        """What is written at a place of the manifest; None where there is nothing."""
        value: object = self.value
        for step in path:
            if isinstance(value, dict):
                value = value.get(step)
            elif isinstance(value, list) and isinstance(step, int) and 0 <= step < len(value):
                value = value[step]
            else:
                return None
        return value

    def has(self, *path: str | int) -> bool:
        """Whether there is such a place in the manifest, whatever is written there."""
        if not path:
            return True
        owner, step = self.at(*path[:-1]), path[-1]
        if isinstance(owner, list):
            return isinstance(step, int) and 0 <= step < len(owner)
        return isinstance(owner, dict) and step in owner

    @property
    def root(self) -> Node:
        """The tree of the document."""
        if self._root is None:
            self._root = self._compose()
            assert self._root is not None, "the text was read once already"
        return self._root

    def offsets(self, path: Path, *, key: bool = False) -> tuple[int, int]:
        """Start and end of the value at `path`, as a person would point at it.

        A scalar or a list in brackets is pointed at itself, a block by its key. What is not there is missed from the
        nearest mapping that is. With `key` the key is pointed at in any case.
        """
        full = self.prefix + path
        depth, last_key, node = walk(self.root, full)
        present = depth == len(full)
        if present and not key and self._fits_a_line(node):
            return node.start, node.end
        if last_key is not None:
            return last_key.start, last_key.end
        return self._first_line(node)

    def span(self, path: Path, key: bool = False) -> Span:  # read as span(path, key=True) everywhere
        """`offsets` as lines and columns."""
        return self.source.span(*self.offsets(path, key=key))

    def text(self, path: Path) -> str:
        """The value at `path` as it is written, quotes and all; "" where it is absent."""
        depth, _, node = walk(self.root, self.prefix + path)
        return self.source.text[node.start : node.end] if depth == len(self.prefix) + len(path) else ""

    def _fits_a_line(self, node: Node) -> bool:
        if node.start == node.end:
            return False  # an empty value: point at the key
        if isinstance(node, Scalar):
            return True
        if isinstance(node, Mapping | Sequence) and not node.flow:
            return False
        return self._end_of_line(node.start, node.end) == node.end

    def _first_line(self, node: Node) -> tuple[int, int]:
        """A list item or a whole document: its first key with the value beside it."""
        if isinstance(node, Mapping) and not node.flow and node.pairs:
            key, value = node.pairs[0]
            beside = self._end_of_line(key.start, value.end) == value.end
            return key.start, value.end if beside and value.end > key.end else key.end
        return node.start, self._end_of_line(node.start, node.end)

    def _end_of_line(self, start: int, end: int) -> int:
        """Return where the first line of `text[start:end]` ends, whichever line end it has."""
        text = self.source.text
        line_feed = text.find("\n", start, end)
        stop = end if line_feed < 0 else line_feed
        carriage_return = text.find("\r", start, stop)
        return stop if carriage_return < 0 else carriage_return
