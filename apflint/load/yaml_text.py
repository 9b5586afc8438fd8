"""YAML text to trees, one for each document.

The events come from libyaml (PyYAML's C parser, the closest kin of go-yaml); where PyYAML was built without it, from
ruamel.yaml's own parser. The trees are built here, because no loader keeps what we need: the places of keys and values,
and the values as Kubernetes decodes them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from apflint.load.node import Alias, Mapping, Node, Scalar, Sequence
from apflint.load.scalars import ScalarError, plain, tagged

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_DEPTH = 200
"""Levels of nesting that are read. A FlowSchema has ten; the limit keeps hostile input from exhausting the stack."""

_SEPARATOR = re.compile(r"^---(?=\s|\Z)", re.MULTILINE)


class YamlError(ValueError):
    """Text that is no YAML, or none that Kubernetes reads; `start` and `end` are offsets, as far as known."""

    def __init__(self, message: str, start: int, end: int | None = None, *, unsafe: bool = False) -> None:
        super().__init__(message)
        self.start = start
        self.end = start + 1 if end is None else end
        self.resume = start if end is None else end
        """From where the next document is looked for."""
        self.unsafe = unsafe


class YamlDocument(NamedTuple):
    """One document of a stream: `text[start:end]` holds it, `root` is its tree (None when it is empty), or an error."""

    start: int
    end: int
    root: Node | None
    error: YamlError | None = None


class _Parser(Protocol):
    def get_event(self) -> Any: ...


def documents(text: str) -> Iterator[YamlDocument]:
    """The documents of a stream. After an error reading goes on at the next `---`; never raises."""
    base = 0
    while base <= len(text):
        error = yield from _read(text, base)
        if error is None:
            return
        separator = _SEPARATOR.search(text, max(error.resume, base + 1))
        end = separator.start() if separator else len(text)
        yield YamlDocument(base_of_document(text, base, error.start), end, None, error)
        if separator is None:
            return
        base = end


def base_of_document(text: str, base: int, offset: int) -> int:
    """Where the document around `offset` starts: the last `---` before it."""
    starts = [match.start() for match in _SEPARATOR.finditer(text, base, offset)]
    return starts[-1] if starts else base


def compose(text: str, base: int = 0) -> Node | None:
    """The tree of the first document in `text`, its offsets moved by `base`. Raises YamlError."""
    for document in documents(text):
        if document.error:
            raise document.error
        return _moved(document.root, base) if document.root is not None else None
    return None


def _moved(root: Node, base: int) -> Node:
    if base:
        todo: list[Node] = [root]
        seen: set[int] = set()
        while todo:
            node = todo.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            node.start += base
            node.end += base
            if isinstance(node, Mapping):
                for key, value in node.pairs:
                    todo += [key, value]
                for _, key, value in node.merges:
                    todo += [key, value]
            elif isinstance(node, Sequence):
                todo += node.items
            elif isinstance(node, Alias):
                todo.append(node.target)
    return root


def _read(text: str, base: int) -> Iterator[YamlDocument] | Any:
    """Yields the documents from `base` on; returns the error that ended the reading, or None at the end."""
    composer = _Composer(text, base)
    pending: YamlDocument | None = None
    try:
        for start, root in composer.roots():
            if pending:
                yield pending._replace(end=start)
            pending = YamlDocument(start, len(text), root)
    except YamlError as error:
        if pending:
            yield pending._replace(end=base_of_document(text, pending.start + 1, error.start + 1))
        return error
    if pending:
        yield pending
    return None


def _parser(text: str) -> _Parser:
    from yaml.reader import ReaderError  # noqa: PLC0415
    from yaml.scanner import ScannerError  # noqa: PLC0415

    try:
        from yaml._yaml import CParser  # type: ignore[import-not-found]  # noqa: PLC0415  # the C extension has no stubs
    except ImportError:
        from apflint.load.slow_yaml import SlowParser  # noqa: PLC0415

        return SlowParser(text)
    try:
        return CParser(text)  # type: ignore[no-any-return]
    except UnicodeEncodeError as error:  # a lone surrogate
        raise YamlError("the text has half of a surrogate pair, which is no character", error.start) from error
    except (ReaderError, ScannerError) as error:
        raise _yaml_error(error, text, 0) from error


def _yaml_error(error: Any, text: str, base: int) -> YamlError:
    """A parser's exception in our words and offsets (its marks are offsets in code points)."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    start = base + mark.index if mark is not None else base
    if mark is None and isinstance(getattr(error, "position", None), int):
        # A ReaderError has the offset in bytes of what the parser was given, which is UTF-8.
        start = base + len(text[base:].encode("utf-8", "replace")[: error.position].decode("utf-8", "ignore"))
        problem = f"{error.reason}" if getattr(error, "reason", "") else "control characters are not allowed"
    else:
        problem = getattr(error, "problem", None) or str(error)
    context = getattr(error, "context", None)
    message = f"{problem} {context}" if context else str(problem)
    return YamlError(message, min(start, len(text)))


class _Composer:
    """Builds trees from the event stream."""

    def __init__(self, text: str, base: int) -> None:
        self.text = text
        self.base = base
        self.anchors: dict[str, Node] = {}

    def roots(self) -> Iterator[tuple[int, Node | None]]:
        from yaml.error import YAMLError as ParserError  # noqa: PLC0415
        from yaml.events import (  # noqa: PLC0415
            AliasEvent,
            DocumentEndEvent,
            DocumentStartEvent,
            MappingEndEvent,
            MappingStartEvent,
            ScalarEvent,
            SequenceEndEvent,
            SequenceStartEvent,
            StreamEndEvent,
            StreamStartEvent,
        )

        self.scalar, self.alias = ScalarEvent, AliasEvent
        self.mapping_start, self.mapping_end = MappingStartEvent, MappingEndEvent
        self.sequence_start, self.sequence_end = SequenceStartEvent, SequenceEndEvent
        try:
            self.next = _parser(self.text[self.base :] if self.base else self.text).get_event
            while True:
                event = self.next()
                if event.__class__ is StreamEndEvent or event is None:
                    return
                if event.__class__ is StreamStartEvent:
                    continue
                assert event.__class__ is DocumentStartEvent
                start = event.start_mark.index + self.base
                if event.version and tuple(event.version) != (1, 1):
                    major, minor = event.version
                    raise YamlError(f"`%YAML {major}.{minor}`: Kubernetes reads YAML 1.1 only", start, event.end_mark.index + self.base)
                self.anchors = {}
                root = self.node(self.next(), 0)
                end = self.next()
                assert end.__class__ is DocumentEndEvent
                yield start, None if _is_nothing(root) else root
        except ParserError as error:
            raise _yaml_error(error, self.text, self.base) from error

    def node(self, event: Any, depth: int) -> Node:
        kind = event.__class__
        if kind is self.scalar:
            return self._scalar(event)
        start = event.start_mark.index + self.base
        if kind is self.alias:
            target = self.anchors.get(event.anchor)
            if target is None:
                raise YamlError(
                    f"the alias `*{event.anchor}` has no anchor `&{event.anchor}` before it"
                    " (for the wildcard write it in quotes: '*')",
                    start,
                    event.end_mark.index + self.base,
                )
            return Alias(start, event.end_mark.index + self.base, target)
        if depth > MAX_DEPTH:
            raise YamlError(f"nested more than {MAX_DEPTH} levels deep", start, unsafe=True)
        if kind is self.mapping_start:
            return self._mapping(event, start, depth)
        return self._sequence(event, start, depth)

    def _scalar(self, event: Any) -> Scalar:
        start, end = event.start_mark.index + self.base, event.end_mark.index + self.base
        value: Any = event.value
        if event.tag is not None:
            if event.tag != "!":
                try:
                    value = tagged(event.tag, value)
                except ScalarError as error:
                    raise YamlError(str(error), start, end) from error
        elif event.implicit[0] and self.text[start] != "!" if start < len(self.text) else event.implicit[0]:
            value = plain(value)
        if event.style in ("|", ">"):
            end = start + len(self.text[start:end].rstrip())
        node = Scalar(start, end, value)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _mapping(self, event: Any, start: int, depth: int) -> Mapping:
        node = Mapping(start, flow=bool(event.flow_style))
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        get, end_event = self.next, self.mapping_end
        while (event := get()).__class__ is not end_event:
            key = self.node(event, depth + 1)
            if isinstance(key, Alias) and isinstance(key.target, Scalar):
                key = Scalar(key.start, key.end, key.target.value)
            if not isinstance(key, Scalar):
                raise YamlError("a list or a mapping as a key: Kubernetes has only words as keys", key.start)
            value = self.node(get(), depth + 1)
            if key.value == "<<" and self.text[key.start : key.end] == "<<":
                node.merges.append((len(node.pairs), key, value))
            else:
                node.pairs.append((key, value))
        node.end = self._end(event, node)
        return node

    def _sequence(self, event: Any, start: int, depth: int) -> Sequence:
        node = Sequence(start, flow=bool(event.flow_style))
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        get, end_event = self.next, self.sequence_end
        items = node.items
        while (event := get()).__class__ is not end_event:
            items.append(self.node(event, depth + 1))
        node.end = self._end(event, node)
        return node

    def _end(self, event: Any, node: Mapping | Sequence) -> int:
        """Where a collection ends: libyaml lets a block end where the next thing starts, so take the last child's end."""
        if node.flow:
            return int(event.end_mark.index) + self.base
        last: Node | None = None
        if isinstance(node, Mapping):
            last = max((value for _, value in node.pairs), key=lambda child: child.end, default=None)
        elif node.items:
            last = node.items[-1]
        return max(last.end, node.start) if last is not None else node.start


def _is_nothing(root: Node) -> bool:
    """Whether a document is empty: nothing between its separators, which libyaml gives as an empty plain scalar."""
    return isinstance(root, Scalar) and root.value is None and root.start == root.end
