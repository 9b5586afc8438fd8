"""The manifest of a FlowSchema or PriorityLevelConfiguration, with the positions of its keys and values."""

from __future__ import annotations

from sys import intern
from typing import TYPE_CHECKING, Literal

from apflint.load.tree import Mapping, Node, Scalar, Sequence, walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from apflint.load.kubernetes_decoding import Duplicate
    from apflint.load.source_text import Source
    from apflint.location import Path, Span

GROUP = "flowcontrol.apiserver.k8s.io"
KINDS = ("FlowSchema", "PriorityLevelConfiguration")
LISTS = {"FlowSchemaList": "FlowSchema", "PriorityLevelConfigurationList": "PriorityLevelConfiguration"}
"""Maps the kind of a list to the kind of its items."""

_FIELDS = frozenset(("apiVersion", "kind", "metadata", "spec"))
_METADATA_FIELDS = frozenset(("name", "labels", "annotations"))


class Document:
    """A manifest of an APF object.

    `parse_tree` returns the tree with positions. `parse_tree` is called when the first position is needed.
    """

    __slots__ = (
        *(
            "_parse_tree",
            "api_version",
            "duplicates",
            "has_other_fields",
            "kind",
            "name",
            "not_finite",
            "prefix",
            "source",
        ),
        *("start", "value", "version"),
    )

    def __init__(
        self,
        source: Source,
        value: dict[str, object],
        parse_tree: Callable[[], Node | None],
        prefix: Path = (),
        api_version: str | None = None,
        kind: str | None = None,
        duplicates: tuple[Duplicate, ...] = (),
        not_finite: tuple[Path, ...] = (),
        start: int = 0,
    ) -> None:
        metadata = value.get("metadata")
        name = metadata.get("name") if isinstance(metadata, dict) else None
        self.source = source
        self.value = value
        """The decoded manifest. Must not be changed."""
        self.api_version: str = api_version or str(value.get("apiVersion") or "")
        self.kind: Literal["FlowSchema", "PriorityLevelConfiguration"] = kind or value.get("kind")  # type: ignore[assignment]  # no other is loaded
        self.version = intern(self.api_version.rpartition("/")[2])
        self.name: str = name if isinstance(name, str) else ""
        """`metadata.name`, or "" if it is not a string."""
        self.has_other_fields = not (
            value.keys() <= _FIELDS and isinstance(metadata, dict) and metadata.keys() <= _METADATA_FIELDS
        )
        """Whether the manifest has a field that is not apiVersion, kind, spec, metadata.name, metadata.labels or metadata.annotations."""
        self.prefix = prefix
        """Path of the object in its YAML or JSON document, such as `("items", 3)` in a list.

        Empty if the document is the object.
        """
        self.start = start
        """Offset of the YAML or JSON document in the source."""
        self.duplicates = duplicates
        self.not_finite = not_finite
        self._parse_tree = parse_tree

    def with_value(self, value: dict[str, object]) -> Document:
        """Return a copy with the manifest `value`. The copy keeps the positions of the original text."""
        problems = self.duplicates, self.not_finite
        return Document(
            self.source, value, self._parse_tree, self.prefix, self.api_version, self.kind, *problems, self.start
        )

    def at(self, *path: str | int) -> object:
        """Return the value at a path of the manifest, or None if the path does not exist."""
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
        """Return whether the path exists in the manifest, even with the value null."""
        if not path:
            return True
        owner, step = self.at(*path[:-1]), path[-1]
        if isinstance(owner, list):
            return isinstance(step, int) and 0 <= step < len(owner)
        return isinstance(owner, dict) and step in owner

    @property
    def root(self) -> Node:
        """The root node of the YAML or JSON document that contains the object."""
        root = self._parse_tree()
        assert root is not None, "the text was parsed before"
        return root

    def offsets(self, path: Path, *, key: bool = False) -> tuple[int, int]:
        """Return the start and end offsets of the text that a finding about the value at `path` underlines.

        The text is the value, if the value is a scalar or a flow collection on one line. For other values, and if `key`
        is true, the text is the key of the value. For a missing value, use the nearest existing parent instead.
        """
        full = self.prefix + path
        depth, last_key, node = walk(self.root, full)
        if depth == len(full) and not key and self._fits_on_line(node):
            return node.start, node.end
        if last_key is not None:
            return last_key.start, last_key.end
        return self._first_line(node)

    def span(self, path: Path, key: bool = False) -> Span:
        """Return the range that `offsets` returns for the same arguments, as lines and columns."""
        return self.source.span(*self.offsets(path, key=key))

    def text(self, path: Path) -> str:
        """Return the text of the value at `path`, including its quotes, or "" if there is no value."""
        depth, _, node = walk(self.root, self.prefix + path)
        return self.source.text[node.start : node.end] if depth == len(self.prefix) + len(path) else ""

    def _fits_on_line(self, node: Node) -> bool:
        if node.start == node.end:
            return False  # an empty value has no text to underline
        if isinstance(node, Scalar):
            return True
        if isinstance(node, Mapping | Sequence) and not node.flow:
            return False
        return self._end_of_line(node.start, node.end) == node.end

    def _first_line(self, node: Node) -> tuple[int, int]:
        """Return the start and end offsets of the text to underline in a list item or a document.

        For a block mapping, the text is the first key, with its value if the value is on the same line. For other
        values, the text is the first line.
        """
        if isinstance(node, Mapping) and not node.flow and node.pairs:
            key, value = node.pairs[0]
            is_beside = self._end_of_line(key.start, value.end) == value.end
            return key.start, value.end if is_beside and value.end > key.end else key.end
        return node.start, self._end_of_line(node.start, node.end)

    def _end_of_line(self, start: int, end: int) -> int:
        """Return the offset at which the first line of `text[start:end]` ends. Line ends are LF, CR or CRLF."""
        text = self.source.text
        line_feed = text.find("\n", start, end)
        stop = end if line_feed < 0 else line_feed
        carriage_return = text.find("\r", start, stop)
        return stop if carriage_return < 0 else carriage_return
