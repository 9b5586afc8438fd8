"""Typed access to the values of a document, which reports a mistake for each value of a wrong type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.record import NamedTuple
from apflint.wording import join_words, suggest

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from apflint.load.document import Document
    from apflint.location import Path, Span


class Mistake(NamedTuple):
    """Why a file is not a valid suite: one or two sentences without the last period, and the position."""

    message: str
    span: Span


class Fields:
    """The values of a document by path."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.mistakes: list[Mistake] = []

    def reject(self, path: Path, message: str, *, key: bool = False) -> None:
        """Report a mistake in the value (or the key) at `path`."""
        self.mistakes.append(Mistake(message, self.document.span(path, key)))

    def value(self, path: Path) -> object:
        """Return the value at `path`, or None if there is none."""
        return self.document.at(*path)

    def has(self, path: Path) -> bool:
        """Return whether there is a value at `path`, which may be null."""
        return self.document.has(*path)

    def items(self, path: Path) -> list[Path]:
        """Return the paths of the items of a list, the path of any other value, or nothing if there is no value."""
        value = self.value(path)
        if isinstance(value, list):
            return [(*path, number) for number in range(len(value))]
        return [path] if self.has(path) else []

    def check_keys(self, path: Path, known: Collection[str], hints: Mapping[str, str] | None = None) -> bool:
        """Return whether the value at `path` is a mapping; report keys that are not `known`, with a hint."""
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

    def string(self, path: Path) -> str:
        """Return a string, empty if it is absent; report another or an empty value."""
        value = self.value(path)
        if isinstance(value, str) and value:
            return value
        if self.has(path):
            text = self.document.text(path)
            if isinstance(value, bool | int | float) and "\n" not in text:
                self.reject(path, f'YAML parses {text} as {_describe(value)}: quote it, "{text}"')
            else:
                self.reject(path, f"expected a string, not {_describe(value)}")
        return ""

    def strings(self, path: Path) -> dict[Path, str]:
        """Return a string or a list of strings by their paths; report other values."""
        if self.value(path) == []:
            self.reject(path, "the list is empty: remove it, or add an item")
        return {item: text for item in self.items(path) if (text := self.string(item))}

    def choice(self, path: Path, known: tuple[str, ...]) -> str:
        """Return one of the known strings, empty if it is absent; report another value."""
        text = self.string(path)
        if text and text not in known:
            self.reject(path, f'"{text}" is not one of {", ".join(known)}.{suggest(text, known)}'.rstrip("."))
        return text

    def integer(self, path: Path) -> int | None:
        """Return a positive integer, or None if it is absent; report another value."""
        value = self.value(path)
        if not self.has(path):
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31:
            return value
        self.reject(path, f"expected an integer of at least 1, not {_describe(value)}")
        return None

    def boolean(self, path: Path) -> bool | None:
        """Return a boolean, or None if it is absent; report another value."""
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
