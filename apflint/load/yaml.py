"""YAML text to trees, one for each document.

The events come from libyaml (PyYAML's C parser, the closest kin of go-yaml); where PyYAML was built without it, from
ruamel.yaml's own parser. The trees are built here, because no loader keeps what we need: the places of keys and values,
and the values as Kubernetes decodes them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from apflint.load.fast_yaml import fast_value
from apflint.load.scalars import ScalarError, key, plain, shown, tagged
from apflint.load.tree import Alias, Mapping, Node, Scalar, Sequence
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from yaml.events import Event

    from apflint.load.tree import Limit

MAX_DEPTH = 200
"""Levels of nesting that are read. A FlowSchema has ten; the limit keeps hostile input from exhausting the stack."""
MAX_VALUES = 500_000
"""Keys, scalars, lists and mappings of one document that are read: about 125 MB of memory."""
MAX_DOCUMENTS = 1_100_000
"""Documents of one text that are looked at, be they empty."""
MAX_LENGTH = 16 * 1024 * 1024
"""Characters of one document that are read. A kube-apiserver takes requests of up to 3 MiB (`MaxRequestBodyBytes`)."""

# A document marker: `---` at the start of a line and a blank after it (libyaml's scanner.c, IS_BLANKZ; a YAML 1.1 line
# may end with NEL, LS or PS as well). Nothing can hide one, neither quotes nor a block scalar.
_MARKER = re.compile("---(?=[ \t\r\n\x85\u2028\u2029]|\\Z)(?<![^\r\n\x85\u2028\u2029]---)")
_NON_SPECIFIC_TAG = re.compile(r"(?:&\S+\s+)?!(?=\s)")


class YamlError(ValueError):
    """Text that is no YAML, or none that Kubernetes reads, at the offsets `start` to `end`.

    `limit`: it may be sound, but is beyond a limit of the API server's decoder or of apflint.
    """

    def __init__(self, message: str, start: int, end: int | None = None, limit: Limit | None = None) -> None:
        super().__init__(message)
        self.start = start
        self.end = start + 1 if end is None else end
        self.limit = limit


class YamlDocument(NamedTuple):
    """One document of a stream: `text[start:end]` holds it, `root` is its tree (None when it is empty), or an error."""

    start: int
    end: int
    root: Node | None
    error: YamlError | None = None
    value: object = None
    """Where values were asked for, and this one is plain: the value in place of the tree."""


class Parser(Protocol):
    """What gives the events of a text."""

    def get_event(self) -> Event | None:
        """The next one; raises yaml.error.YAMLError."""


def documents(
    text: str, wanted: Callable[[int, int], bool] = lambda _start, _end: True, *, values: bool = False
) -> Iterator[YamlDocument]:
    """The documents of a stream, but for those that are not `wanted` by their start and end.

    With `values` a plain document has its value and no tree, which takes a third of the time. One that cannot be read
    does not keep the next ones from being read; never raises.
    """
    for number, (start, end) in enumerate(_pieces(text)):
        if number == MAX_DOCUMENTS:
            yield from too_many(text, start, wanted)
            return
        if not wanted(start, end):
            continue
        if values and end - start <= MAX_LENGTH and (value := fast_value(text[start:end], MAX_VALUES)) is not None:
            yield YamlDocument(start, end, None, None, value)
            continue
        try:
            yield YamlDocument(start, end, compose(text, start, end))
        except YamlError as error:
            yield YamlDocument(start, end, None, error)


def too_many(text: str, start: int, wanted: Callable[..., bool]) -> Iterator[YamlDocument]:
    """What is left of a text of too many documents, as one that is not read; nothing if it is not wanted."""
    if wanted(start, len(text)):
        error = YamlError(f"more than {MAX_DOCUMENTS:,} documents in one file", start, limit="apflint")
        yield YamlDocument(start, len(text), None, error)


def compose(text: str, start: int, end: int) -> Node | None:
    """The tree of the one document in `text[start:end]`, or None where there is nothing in it. Raises YamlError."""
    if end - start > MAX_LENGTH:
        raise YamlError(f"a document of more than {MAX_LENGTH:,} characters", start, limit="apflint")
    return _Composer(text, start, end).root()


def _pieces(text: str) -> Iterator[tuple[int, int]]:
    """Start and end of each document: from one marker to the next, with the directives before the marker."""
    start = 0
    directives = "%YAML" in text or "%TAG" in text
    for marker in _MARKER.finditer(text):
        end = _before_directives(text, start, marker.start()) if directives else marker.start()
        if end > start:
            yield start, end
        start = end
    yield start, len(text)


def _before_directives(text: str, start: int, marker: int) -> int:
    """Where the lines of directives (`%YAML 1.1`) and comments right before a marker begin; the marker where none are."""
    first = marker
    line = marker
    while line > start:
        previous = text.rfind("\n", start, line - 1) + 1 or start
        if text.startswith(("%YAML", "%TAG"), previous):
            first = previous
        elif text[previous] != "#" and text[previous:line].strip():
            break
        line = previous
    return first


def _parser(text: str) -> Parser:
    try:
        from yaml._yaml import CParser
    except ImportError:
        from apflint.load.slow_yaml import SlowParser

        return SlowParser(text)
    return CParser(text)


class _Composer:
    """Builds the tree of one document from the event stream."""

    def __init__(self, text: str, base: int, end: int) -> None:
        self.text = text
        self.base = base
        self.end = end
        self.anchors: dict[str, Node] = {}
        self.left = MAX_VALUES

    def root(self) -> Node | None:
        from yaml import events
        from yaml.error import YAMLError as ParserError

        self.scalar, self.alias = events.ScalarEvent, events.AliasEvent
        self.mapping_start, self.mapping_end = events.MappingStartEvent, events.MappingEndEvent
        self.sequence_end = events.SequenceEndEvent
        try:
            self.next = _parser(self.text[self.base : self.end]).get_event
            self.next()  # the start of the stream
            event: Any = self.next()
            if event.__class__ is events.StreamEndEvent:
                return None
            self._version(event)
            root = self._node(self.next(), 0)
            self.next()  # the end of the document
            event = self.next()
            if event is not None and event.__class__ is not events.StreamEndEvent:
                raise YamlError("a second document without `---` before it", event.start_mark.index + self.base)
        except ParserError as error:
            from apflint.load.syntax_errors import mistake  # most text has none

            raise mistake(error, self.text, self.base, self.end) from error
        except UnicodeEncodeError as error:
            message = "the text has half of a surrogate pair, which is no character"
            raise YamlError(message, error.start + self.base) from error
        return None if _is_nothing(root) else root

    def _version(self, event: Any) -> None:
        if event.version and tuple(event.version) != (1, 1):
            major, minor = event.version
            at = self.text.find("%YAML", self.base, self.end)
            message = f"`%YAML {major}.{minor}`: Kubernetes reads YAML 1.1 only"
            raise YamlError(message, at, at + len(f"%YAML {major}.{minor}"))

    def _node(self, event: Any, depth: int) -> Node:
        self.left -= 1
        kind = event.__class__
        if kind is self.scalar and self.left >= 0:
            return self._scalar(event)
        start = event.start_mark.index + self.base
        if kind is self.alias:
            return self._alias(event, start)
        if depth > MAX_DEPTH:
            raise YamlError(f"nested more than {MAX_DEPTH} levels deep", start, limit="apflint")
        if self.left < 0:
            raise YamlError(f"more than {MAX_VALUES:,} values in one document", start, limit="apflint")
        return self._mapping(event, start, depth) if kind is self.mapping_start else self._sequence(event, start, depth)

    def _alias(self, event: Any, start: int) -> Alias:
        end = event.end_mark.index + self.base
        target = self.anchors.get(event.anchor)
        if target is None:
            name = shown(event.anchor)
            message = (
                f"the alias `*{name}` has no anchor `&{name}` before it (for the wildcard write it in quotes: '*')"
            )
            raise YamlError(message, start, end)
        return Alias(start, end, target)

    def _scalar(self, event: Any, read: Any = plain) -> Scalar:
        start, end = event.start_mark.index + self.base, event.end_mark.index + self.base
        value: Any = event.value
        if event.tag is not None:
            if event.tag != "!":
                try:
                    value = tagged(event.tag, value)
                except ScalarError as error:
                    raise YamlError(str(error), start, end) from error
        # libyaml gives `! yes` as a plain scalar without a tag; to go-yaml the tag is `!`, and the value a string.
        elif event.implicit[0] and not (
            self.text[start : start + 1] in "!&" and _NON_SPECIFIC_TAG.match(self.text, start)
        ):
            value = read(value)
        if event.style in ("|", ">"):
            end = start + len(self.text[start:end].rstrip())
        node = Scalar(start, end, value)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _key(self, event: Any, depth: int) -> Scalar:
        self.left -= 1
        if event.__class__ is self.scalar:
            return self._scalar(event, key)
        node = self._node(event, depth)
        if isinstance(node, Alias) and isinstance(node.target, Scalar):
            return Scalar(node.start, node.end, node.target.value)
        raise YamlError("a list or a mapping as a key: Kubernetes has only words as keys", node.start)

    def _mapping(self, event: Any, start: int, depth: int) -> Mapping:
        node = Mapping(start, flow=bool(event.flow_style))
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        get, end_event = self.next, self.mapping_end
        last: Node = node
        while (event := get()).__class__ is not end_event:
            name = self._key(event, depth + 1)
            last = self._node(get(), depth + 1)
            if name.value == "<<" and self.text[name.start : name.end] == "<<":
                node.merges.append((len(node.pairs), name, last))
            else:
                node.pairs.append((name, last))
        node.end = self._end(event, node, last)
        return node

    def _sequence(self, event: Any, start: int, depth: int) -> Sequence:
        node = Sequence(start, flow=bool(event.flow_style))
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        get, end_event = self.next, self.sequence_end
        items = node.items
        while (event := get()).__class__ is not end_event:
            items.append(self._node(event, depth + 1))
        node.end = self._end(event, node, items[-1] if items else node)
        return node

    def _end(self, event: Any, node: Mapping | Sequence, last: Node) -> int:
        """Where a collection ends: libyaml lets a block end where the next thing starts, so take the last child's end."""
        return int(event.end_mark.index) + self.base if node.flow else max(last.end, node.start)


def _is_nothing(root: Node) -> bool:
    """Whether a document is empty: nothing between its markers, which libyaml gives as an empty plain scalar."""
    return isinstance(root, Scalar) and root.value is None and root.start == root.end
