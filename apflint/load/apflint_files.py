"""Reads files in formats of apflint, such as policy test suites. A file contains one YAML or JSON mapping.

Errors do not raise exceptions: they are returned as `Mistake` values with their place in the file.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING

from apflint.load.document import Document
from apflint.load.kubernetes_decoding import decode
from apflint.load.source_text import Source
from apflint.load.tree import ParseError
from apflint.named_tuple import NamedTuple
from apflint.spelling import suggest
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from apflint.load.tree import ParsedDocument
    from apflint.location import Path, Span


class Mistake(NamedTuple):
    """An error in a file. The message has one or two sentences, without the final period."""

    message: str
    span: Span


class FieldsFile(NamedTuple):
    """A file, and the mapping in the file. If the file has no mapping, `fields` is None and `mistake` says why."""

    source: Source
    fields: Fields | None
    mistake: Mistake | None = None

    def find_mistakes(self) -> tuple[Mistake, ...]:
        """Return all mistakes reported so far, in the order of the file."""
        if self.fields is None:
            return () if self.mistake is None else (self.mistake,)
        return tuple(sorted(self.fields.mistakes, key=lambda mistake: mistake.span))


def read_fields(name: str, data: bytes, noun: str, content: str, one_document: str) -> FieldsFile:
    """Read a file that contains one mapping. If `name`, the file name for messages, ends with `.json`, read JSON.

    The other arguments are parts of messages: `noun` names the format, `content` names the required keys of the format,
    and `one_document` is the advice for a file with several documents.
    """
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        source = Source(name, data.decode(encoding))
    except UnicodeDecodeError as error:
        source = Source(name, data.decode(encoding, "replace"))
        at = len(data[: error.start].decode(encoding, "replace"))
        return FieldsFile(source, None, Mistake("this is not a text file in UTF-8", source.span(at, at + 1)))
    document = _parse_document(source, noun, content, one_document)
    if isinstance(document, Mistake):
        return FieldsFile(source, None, document)
    fields = Fields(document)
    for duplicate in document.duplicates:
        span = source.span(duplicate.key.start, duplicate.key.end)
        fields.mistakes.append(Mistake(f'key "{duplicate.path[-1]}" is set twice', span))
    return FieldsFile(source, fields)


def _parse_document(source: Source, noun: str, content: str, one_document: str) -> Document | Mistake:
    """Return the only document of a file, or a mistake if the file is empty, invalid or has several documents."""
    if source.name.endswith(".json"):
        from apflint.load import json as language
    else:
        from apflint.load import yaml as language  # type: ignore[no-redef]  # modules with the same functions
    documents: Sequence[ParsedDocument] = [
        document
        for document in language.parse_documents(source.text)
        if document.error or document.root is not None or document.value is not None
    ]
    if not documents:
        return Mistake(f"the file is empty: a {noun} has {content}", source.span(0, 0))
    first, *others = documents
    error = first.error
    if error is None and others:
        error = others[0].error or ParseError(f"a {noun} has only one document: {one_document}", others[0].start)
    try:
        if error is None:
            root = first.root or language.parse_tree(source.text, first.start, first.end)
            assert root is not None
            decoded = decode(root)
    except ParseError as decode_error:
        error = decode_error
    if error is not None:
        return Mistake(str(error), source.span(error.start, min(error.end, len(source.text))))
    tree = cache(partial(language.parse_tree, source.text, first.start, first.end))
    value = decoded.value if isinstance(decoded.value, dict) else {}
    document = Document(source, value, tree, kind=noun, duplicates=decoded.duplicates)
    if not isinstance(decoded.value, dict):
        return Mistake(f"a {noun} is a mapping with {content}", document.span(()))
    return document


class Fields:
    """Reads the values of a document by path. If a method reports an invalid value, it adds a mistake to `mistakes`."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.mistakes: list[Mistake] = []

    def reject(self, path: Path, message: str, *, key: bool = False) -> None:
        """Report a mistake at the value at `path`. If `key` is true, report it at the key of that value."""
        self.mistakes.append(Mistake(message, self.document.span(path, key)))

    def value(self, path: Path) -> object:
        """Return the value at `path`, or None if the value is absent or null."""
        return self.document.at(*path)

    def has(self, path: Path) -> bool:
        """Return whether the document has a value at `path`, including null."""
        return self.document.has(*path)

    def items(self, path: Path) -> list[Path]:
        """Return the paths of all items of the list at `path`.

        If the value at `path` is not a list, return a list with only `path`. If the value is absent, return an empty
        list.
        """
        value = self.value(path)
        if isinstance(value, list):
            return [(*path, number) for number in range(len(value))]
        return [path] if self.has(path) else []

    def check_keys(self, path: Path, known: Collection[str], hints: Mapping[str, str] | None = None) -> bool:
        """Return whether the value at `path` is a mapping, and report the value if it is not.

        Report each key of the mapping that is not in `known`. `hints` maps keys to sentences for the report.
        """
        value = self.value(path)
        if not isinstance(value, dict):
            names = join_words(f"`{key}`" for key in known)
            self.reject(path, f"expected a mapping with {names}, not {_describe(value)}")
            return False
        for key in value:
            if key not in known:
                hint = (hints or {}).get(key) or suggest(key, known).lstrip() or f"Keys here are {', '.join(known)}"
                self.reject((*path, key), f'unknown key "{key}". {hint}', key=True)
        return True

    def string(self, path: Path, *, may_be_empty: bool = False) -> str:
        """Return the string at `path`, or an empty string if the value is absent or not a string.

        Report values of other types. Report empty strings, unless `may_be_empty` is true.
        """
        value = self.value(path)
        if isinstance(value, str) and (value or may_be_empty):
            return value
        if self.has(path):
            text = self.document.text(path)
            if isinstance(value, bool | int | float) and "\n" not in text:
                self.reject(path, f'YAML parses {text} as {_describe(value)}: quote it, "{text}"')
            else:
                self.reject(path, f"expected a string, not {_describe(value)}")
        return ""

    def strings(self, path: Path, *, may_be_empty: bool = False) -> dict[Path, str]:
        """Return a mapping from path to string: the string at `path`, or each string of the list at `path`.

        Report an empty list, values that are not strings, and empty strings. Values that are reported are
        left out. If `may_be_empty` is true, empty strings are valid, and a value that is not a string
        becomes an empty string.
        """
        if self.value(path) == []:
            self.reject(path, "the list is empty: remove it, or add an item")
        texts = {item: self.string(item, may_be_empty=may_be_empty) for item in self.items(path)}
        return {item: text for item, text in texts.items() if text or may_be_empty}

    def choice(self, path: Path, known: tuple[str, ...]) -> str:
        """Return the string at `path`, or an empty string if the value is absent or not a string.

        Report a string that is not in `known`, but return it. Report values of other types.
        """
        text = self.string(path)
        if text and text not in known:
            self.reject(path, f'"{text}" is not one of {", ".join(known)}.{suggest(text, known)}'.rstrip("."))
        return text

    def integer(self, path: Path) -> int | None:
        """Return the integer at `path`, or None if the value is absent or invalid.

        Report values that are not an integer from 1 to 2^31-1.
        """
        value = self.value(path)
        if not self.has(path):
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31:
            return value
        self.reject(path, f"expected an integer of at least 1, not {_describe(value)}")
        return None

    def boolean(self, path: Path) -> bool | None:
        """Return the boolean at `path`, or None if the value is absent or not a boolean.

        Report values of other types.
        """
        value = self.value(path)
        if isinstance(value, bool):
            return value
        if self.has(path):
            self.reject(path, f"expected true or false, not {_describe(value)}")
        return None


def _describe(value: object) -> str:
    if isinstance(value, str):
        return "a string" if value else "an empty string"
    names = {type(None): "null", bool: "a boolean", dict: "a mapping", list: "a list"}
    return names.get(type(value), f"the number {value}")
