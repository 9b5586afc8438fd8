"""Text of a suite to a tree with places. What is wrong with it is a list of mistakes, not an exception."""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, NamedTuple

from apflint.load.decode import DecodeError, decode
from apflint.load.document import Document
from apflint.load.source import Source
from apflint.load.tree import ParseError
from apflint.wording import join_words, suggest

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from apflint.load.tree import ParsedDocument
    from apflint.location import Path, Span
    from apflint.policy.suite import Suite


class Mistake(NamedTuple):
    """What makes a file no suite: a sentence or two without the last stop, and the place."""

    message: str
    span: Span


class Reading(NamedTuple):
    """What was made of one file; `suite` is None where there are mistakes."""

    source: Source
    suite: Suite | None
    mistakes: tuple[Mistake, ...]


def read(name: str, data: bytes) -> Reading:
    """Reads a suite; `name` is shown in messages, and `.json` at its end means JSON. Never raises."""
    from apflint.policy.format import suite

    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        source = Source(name, data.decode(encoding))
    except UnicodeDecodeError as error:
        source = Source(name, data.decode(encoding, "replace"))
        at = len(data[: error.start].decode(encoding, "replace"))
        return Reading(source, None, (Mistake("this is no text in UTF-8", source.span(at, at + 1)),))
    document = _document(source)
    if isinstance(document, Mistake):
        return Reading(source, None, (document,))
    fields = Fields(document)
    for twice in document.duplicates:
        fields.at(twice.key.start, twice.key.end, f'"{twice.path[-1]}" is here twice; keep one of them')
    made = suite(fields)
    mistakes = tuple(sorted(fields.mistakes, key=lambda mistake: mistake.span))
    return Reading(source, None if mistakes else made, mistakes)


def _document(source: Source) -> Document | Mistake:
    """The one document of a file."""
    found: Sequence[ParsedDocument]
    if source.name.endswith(".json"):
        from apflint.load import json as language
    else:
        from apflint.load import yaml as language  # type: ignore[no-redef]  # modules of the same functions
    found = [
        each
        for each in language.parse_documents(source.text)
        if each.error or each.root is not None or each.value is not None
    ]
    if not found:
        return Mistake("there is nothing in this file: a suite has `manifests` and `tests`", source.span(0, 0))
    first, *others = found
    error = first.error
    if error is None and others:
        error = others[0].error or ParseError(
            "a second document: put all expectations under one `tests`", others[0].start
        )
    try:
        if error is None:
            root = first.root or language.parse_tree(source.text, first.start, first.end)
            assert root is not None
            decoded = decode(root)
    except DecodeError as wrong:
        error = ParseError(str(wrong), wrong.node.start, wrong.node.end)
    if error is not None:
        return Mistake(str(error), source.span(error.start, min(error.end, len(source.text))))
    tree = cache(partial(language.parse_tree, source.text, first.start, first.end))
    value = decoded.value if isinstance(decoded.value, dict) else {}
    document = Document(source, value, tree, kind="apflint-test", duplicates=decoded.duplicates)
    if not isinstance(decoded.value, dict):
        return Mistake("a suite is a mapping with `manifests` and `tests`", document.span(()))
    return document


class Fields:
    """The values of a document with what is wrong with them: each question that gets no good answer is a mistake."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.mistakes: list[Mistake] = []

    def wrong(self, path: Path, message: str, *, key: bool = False) -> None:
        """Notes a mistake about the value (or the key) at `path`."""
        self.mistakes.append(Mistake(message, self.document.span(path, key)))

    def at(self, start: int, end: int, message: str) -> None:
        """Notes a mistake about a piece of the text."""
        self.mistakes.append(Mistake(message, self.document.source.span(start, end)))

    def value(self, path: Path) -> object:
        """The value at `path`; None where there is none."""
        return self.document.at(*path)

    def has(self, path: Path) -> bool:
        """Whether the key at the end of `path` is written, whatever its value."""
        return self.document.has(*path)

    def keys(self, path: Path, known: Collection[str], hints: dict[str, str] | None = None) -> bool:
        """Whether a mapping is at `path`; a key that is not `known` is a mistake."""
        value = self.value(path)
        if not isinstance(value, dict):
            self.wrong(
                path,
                f"a mapping with {join_words(f'`{key}`' for key in known)} was expected here, and this is {_type(value)}",
            )
            return False
        for key in value:
            if key in known:
                continue
            hint = (hints or {}).get(key) or suggest(key, known).lstrip() or f"The keys here are: {', '.join(known)}"
            self.wrong((*path, key), f'"{key}" is no key here. {hint}', key=True)
        return True

    def text(self, path: Path) -> str:
        """The text at `path`; "" where there is none, which is a mistake where something else is written."""
        value = self.value(path)
        if isinstance(value, str) and value:
            return value
        if value is not None or self.has(path) or isinstance(path[-1], int):
            self._no_text(path, value)
        return ""

    def texts(self, path: Path) -> tuple[str, ...]:
        """One text or a list of them; () where nothing is written."""
        value = self.value(path)
        if isinstance(value, list):
            if not value:
                self.wrong(path, "the list is empty, so it says nothing: leave it out, or name something")
            return tuple(filter(None, (self.text((*path, at)) for at in range(len(value)))))
        text = self.text(path) if self.has(path) else ""
        return (text,) if text else ()

    def places(self, path: Path) -> list[tuple[Path, str]]:
        """`texts`, each with its own path."""
        value = self.value(path)
        paths: list[Path] = [(*path, at) for at in range(len(value))] if isinstance(value, list) else [path]
        return [(each, text) for each in paths if isinstance(text := self.value(each), str) and text]

    def whole(self, path: Path) -> int | None:
        """A whole number of at least 1; None where nothing is written."""
        value = self.value(path)
        if not self.has(path):
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31:
            return value
        self.wrong(path, f"a whole number from 1 on was expected here, and this is {_type(value)}")
        return None

    def boolean(self, path: Path) -> bool | None:
        """True or False; None where nothing is written."""
        value = self.value(path)
        if not self.has(path) or isinstance(value, bool):
            return value if isinstance(value, bool) else None
        self.wrong(path, f"true or false was expected here, and this is {_type(value)}")
        return None

    def _no_text(self, path: Path, value: object) -> None:
        written = self.document.text(path)
        if isinstance(value, bool | int | float) and "\n" not in written:
            self.wrong(path, f'YAML reads {written} as {_type(value)}: write it in quotes, "{written}"')
        else:
            self.wrong(path, f"a text was expected here, and this is {_type(value)}")


def _type(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    if value is None:
        return "nothing"
    if isinstance(value, str):
        return "a text" if value else "an empty text"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    return f"the number {value}"
