"""Parses YAML to one tree for each document.

The events come from libyaml, PyYAML's C parser, which is similar to go-yaml. If PyYAML was built without libyaml, the
events come from PyYAML's Python parser. The trees are built in this module: no YAML loader keeps the positions of keys
and values together with the values that Kubernetes decodes.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from apflint.budgets import MAX_DEPTH, MAX_DOCUMENT_CHARACTERS, MAX_DOCUMENTS, MAX_VALUES
from apflint.load.block_yaml_parser import fast_value
from apflint.load.scalars import ScalarError, resolve_key, resolve_plain, resolve_tagged, shorten
from apflint.load.tree import Alias, Mapping, Node, ParsedDocument, ParseError, Scalar, Sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# A document marker is `---` at the start of a line, followed by a space, a line end, or the end of the text (libyaml's
# scanner.c, IS_BLANKZ). YAML 1.1 lines may also end with NEL, LS or PS. No scalar can contain a marker, even in quotes.
_MARKER = re.compile("---(?=[ \t\r\n\x85\u2028\u2029]|\\Z)(?<![^\r\n\x85\u2028\u2029]---)")
_NON_SPECIFIC_TAG = re.compile(r"(?:&\S+\s+)?!(?=\s)")


def parse_documents(
    text: str, is_wanted: Callable[[int, int], bool] = lambda _start, _end: True, *, values: bool = False
) -> Iterator[ParsedDocument]:
    """Yield the documents of a stream for which `is_wanted(start, end)` is true. Never raises an exception.

    If `values` is true, documents in block style have a value and no tree, which saves two thirds of the time. An error
    in one document does not affect the documents after it.
    """
    for number, (start, end) in enumerate(split_documents(text)):
        if number == MAX_DOCUMENTS:
            yield from too_many_documents(text, start, is_wanted)
            return
        if not is_wanted(start, end):
            continue
        short_enough = values and end - start <= MAX_DOCUMENT_CHARACTERS
        if short_enough and (value := fast_value(text[start:end], MAX_VALUES)) is not None:
            yield ParsedDocument(start, end, None, None, value)
            continue
        try:
            yield ParsedDocument(start, end, parse_tree(text, start, end))
        except ParseError as error:
            yield ParsedDocument(start, end, None, error)


def too_many_documents(text: str, start: int, is_wanted: Callable[..., bool]) -> Iterator[ParsedDocument]:
    """Yield one document with an error for a text that has more than `MAX_DOCUMENTS` documents.

    The document contains the text from the offset `start`, where the first excess document begins.
    Yield nothing if `is_wanted(start, len(text))` is false.
    """
    if is_wanted(start, len(text)):
        error = ParseError(f"more than {MAX_DOCUMENTS:,} documents in one file", start, limit="apflint")
        yield ParsedDocument(start, len(text), None, error)


def parse_tree(text: str, start: int, end: int) -> Node | None:
    """Return the tree of the document in `text[start:end]`, or None if the document is empty.

    Raises ParseError for invalid YAML.
    """
    if end - start > MAX_DOCUMENT_CHARACTERS:
        raise ParseError(f"more than {MAX_DOCUMENT_CHARACTERS:,} characters in one document", start, limit="apflint")
    return _YamlTreeBuilder(text, start, end).build()


def split_documents(text: str) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each document. Documents start at their marker `---` or the directives before it."""
    start = 0
    has_directives = "%YAML" in text or "%TAG" in text
    for marker in _MARKER.finditer(text):
        end = _start_of_directives(text, start, marker.start()) if has_directives else marker.start()
        if end > start:
            yield start, end
        start = end
    yield start, len(text)


def _start_of_directives(text: str, start: int, marker: int) -> int:
    """Return the offset of the first directive (`%YAML 1.1`) directly before a marker, or the offset of the marker."""
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


def _make_parser(text: str) -> Any:
    """Return a parser whose method `get_event` returns the next event.

    This function and `get_event` raise yaml.error.YAMLError for invalid YAML.
    """
    try:
        from yaml._yaml import CParser
    except ImportError:
        from yaml import Loader

        return Loader(text)
    return CParser(text)


class _YamlTreeBuilder:
    def __init__(self, text: str, base: int, end: int) -> None:
        self.text = text
        self.base = base
        self.end = end
        self.anchors: dict[str, Node] = {}
        self.values_left: int = MAX_VALUES

    def build(self) -> Node | None:
        from yaml import events
        from yaml.error import YAMLError

        self.scalar, self.alias = events.ScalarEvent, events.AliasEvent
        self.mapping_start, self.mapping_end = events.MappingStartEvent, events.MappingEndEvent
        self.sequence_end = events.SequenceEndEvent
        try:
            self.next = _make_parser(self.text[self.base : self.end]).get_event
            self.next()  # skip the event for the start of the stream
            event: Any = self.next()
            if event.__class__ is events.StreamEndEvent:
                return None
            self._check_version(event)
            root = self._node(self.next(), 0)
            self.next()  # skip the event for the end of the document
            event = self.next()
            if event is not None and event.__class__ is not events.StreamEndEvent:
                raise ParseError("a second document without `---` before it", event.start_mark.index + self.base)
        except YAMLError as error:
            from apflint.load.syntax_errors import explain_syntax_error  # imported on demand: most files have no errors

            raise explain_syntax_error(error, self.text, self.base, self.end) from error
        except UnicodeEncodeError as error:
            message = "unpaired surrogate, which is not a character"
            raise ParseError(message, error.start + self.base) from error
        # libyaml reports an empty document as an empty plain scalar.
        is_empty = isinstance(root, Scalar) and root.value is None and root.start == root.end
        return None if is_empty else root

    def _check_version(self, event: Any) -> None:
        if event.version and tuple(event.version) != (1, 1):
            directive = "%YAML {}.{}".format(*event.version)
            at = self.text.find("%YAML", self.base, self.end)
            raise ParseError(f"`{directive}`: Kubernetes reads only YAML 1.1", at, at + len(directive))

    def _node(self, event: Any, depth: int) -> Node:
        self.values_left -= 1
        kind = event.__class__
        if kind is self.scalar and self.values_left >= 0:
            return self._scalar(event)
        start = event.start_mark.index + self.base
        if kind is self.alias:
            return self._alias(event, start)
        if depth > MAX_DEPTH:
            raise ParseError(f"nested more than {MAX_DEPTH} levels deep", start, limit="apflint")
        if self.values_left < 0:
            raise ParseError(f"more than {MAX_VALUES:,} values in one document", start, limit="apflint")
        return self._mapping(event, start, depth) if kind is self.mapping_start else self._sequence(event, start, depth)

    def _alias(self, event: Any, start: int) -> Alias:
        target = self.anchors.get(event.anchor)
        if target is None:
            name = shorten(event.anchor)
            message = f"the alias `*{name}` has no anchor `&{name}` before it"
            raise ParseError(message, start, event.end_mark.index + self.base, help="quote the wildcard: '*'")
        return Alias(start, event.end_mark.index + self.base, target)

    def _scalar(self, event: Any, resolve: Callable[[str], object] = resolve_plain) -> Scalar:
        start, end = event.start_mark.index + self.base, event.end_mark.index + self.base
        value: Any = event.value
        if event.tag is not None:
            if event.tag != "!":
                try:
                    value = resolve_tagged(event.tag, value)
                except ScalarError as error:
                    raise ParseError(str(error), start, end) from error
        # libyaml reports `! yes` as a plain scalar without a tag. In go-yaml, the tag is `!`, and the value is a string.
        elif event.implicit[0] and not (
            self.text[start : start + 1] in "!&" and _NON_SPECIFIC_TAG.match(self.text, start)
        ):
            value = resolve(value)
        if event.style in ("|", ">"):
            end = start + len(self.text[start:end].rstrip())
        node = Scalar(start, end, value)
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        return node

    def _key(self, event: Any, depth: int) -> Scalar:
        self.values_left -= 1
        if event.__class__ is self.scalar:
            return self._scalar(event, resolve_key)
        node = self._node(event, depth)
        if isinstance(node, Alias) and isinstance(node.target, Scalar):
            return Scalar(node.start, node.end, node.target.value)
        raise ParseError("a key must not be a list or a mapping in Kubernetes", node.start)

    def _mapping(self, event: Any, start: int, depth: int) -> Mapping:
        node = Mapping(start, flow=bool(event.flow_style))
        if event.anchor is not None:
            self.anchors[event.anchor] = node
        get, end_event = self.next, self.mapping_end
        last: Node = node
        while (event := get()).__class__ is not end_event:
            key = self._key(event, depth + 1)
            last = self._node(get(), depth + 1)
            if key.value == "<<" and self.text[key.start : key.end] == "<<":
                node.merges.append((len(node.pairs), key, last))
            else:
                node.pairs.append((key, last))
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
        """Return the end offset of a collection. In block style, use the end of the last child: libyaml may report a later end."""
        return int(event.end_mark.index) + self.base if node.flow else max(last.end, node.start)
