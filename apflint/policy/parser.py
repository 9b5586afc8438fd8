"""Parser of suites of policy tests. Errors in a suite do not raise exceptions: they are returned as `Mistake` values.

The format is documented in `docs/guides/policy-tests.md`. `schemas/apflint-test.json` is its JSON schema.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, cast, get_args

from apflint.errors import UserError
from apflint.load.document import Document
from apflint.load.go_yaml import decode
from apflint.load.source import Source
from apflint.load.tree import ParseError
from apflint.policy.expectation import (
    WHEN_FULL,
    Example,
    Expectation,
    Property,
    Reachability,
    Requirement,
    Suite,
    WhenFull,
)
from apflint.policy.request_sets import HINTS, KEYS, parse_requests
from apflint.proofs.request_space import World
from apflint.record import NamedTuple
from apflint.releases import Release, parse_release
from apflint.requests.words import parse_command_line
from apflint.spelling import suggest
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from typing import Literal

    from apflint.load.tree import ParsedDocument
    from apflint.location import Path, Span
    from apflint.model import PolicyRulesWithSubjects

_SUITE_KEYS = ("manifests", "clusters", "kubernetes", "serverConcurrency", "world", "except", "tests")
_KINDS = ("request", "never", "always", "reachable", "unreachable")
_NAME_KEYS = ("flowSchema", "priorityLevel")
_REACHES_KEYS = {
    "request": (*_NAME_KEYS, "whenFull", "minSeats", "distinguisher"),
    "never": (*_NAME_KEYS, "whenFull"),
    "always": (*_NAME_KEYS, "whenFull", "minSeats"),
}
_REACHES_HINTS = {
    "distinguisher": "Different requests have different distinguishers: use `request`",
    "minSeats": "Use `always` with `minSeats` instead",
}


class Mistake(NamedTuple):
    """An error in a suite. The message has one or two sentences, without the final period."""

    message: str
    span: Span


class ParsedSuite(NamedTuple):
    """The result of parsing a suite. `suite` is None if there are mistakes."""

    source: Source
    suite: Suite | None
    mistakes: tuple[Mistake, ...]


def parse_suite(name: str, data: bytes) -> ParsedSuite:
    """Parse a suite. `name` is the file name for messages; if it ends with `.json`, parse JSON instead of YAML."""
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        source = Source(name, data.decode(encoding))
    except UnicodeDecodeError as error:
        source = Source(name, data.decode(encoding, "replace"))
        at = len(data[: error.start].decode(encoding, "replace"))
        return ParsedSuite(source, None, (Mistake("this is not a text file in UTF-8", source.span(at, at + 1)),))
    document = _parse_document(source)
    if isinstance(document, Mistake):
        return ParsedSuite(source, None, (document,))
    fields = Fields(document)
    for duplicate in document.duplicates:
        span = source.span(duplicate.key.start, duplicate.key.end)
        fields.mistakes.append(Mistake(f'key "{duplicate.path[-1]}" is set twice', span))
    suite = _parse_suite(fields)
    mistakes = tuple(sorted(fields.mistakes, key=lambda mistake: mistake.span))
    return ParsedSuite(source, None if mistakes else suite, mistakes)


def _parse_document(source: Source) -> Document | Mistake:
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
        return Mistake("the file is empty: a suite has `manifests` and `tests`", source.span(0, 0))
    first, *others = documents
    error = first.error
    if error is None and others:
        error = others[0].error or ParseError(
            "a suite has only one document: list all expectations under one `tests`", others[0].start
        )
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
    document = Document(source, value, tree, kind="apflint-test", duplicates=decoded.duplicates)
    if not isinstance(decoded.value, dict):
        return Mistake("a suite is a mapping with `manifests` and `tests`", document.span(()))
    return document


def _parse_suite(fields: Fields) -> Suite | None:
    """Return the suite, or None if it is not a mapping. If `fields` has mistakes, values of the suite may be wrong."""
    if not fields.check_keys((), _SUITE_KEYS):
        return None
    tests = fields.value(("tests",))
    if not isinstance(tests, list) or not tests:
        fields.reject(("tests",), "`tests` must be a list with at least one expectation")
        tests = []
    expectations = [_parse_expectation(fields, ("tests", number)) for number in range(len(tests))]
    return Suite(
        fields.document,
        _parse_manifests(fields),
        _parse_clusters(fields),
        _parse_release(fields),
        fields.integer(("serverConcurrency",)),
        cast("World", fields.choice(("world",), get_args(World)) or "authenticated"),
        _parse_excluded(fields, ("except",)),
        tuple(test for test in expectations if test is not None),
    )


def _parse_manifests(fields: Fields) -> tuple[str, ...] | None:
    path: Path = ("manifests",)
    if fields.value(path) == [] or not fields.has(path):
        return () if fields.has(path) else None
    manifests = tuple(fields.strings(path).values())
    if "-" in manifests:
        fields.reject(path, "a suite names its manifests; to read standard input, use `-f -` on the command line")
    return manifests


def _parse_clusters(fields: Fields) -> dict[Path, str]:
    path: Path = ("clusters",)
    if fields.has(path) and fields.has(("manifests",)):
        fields.reject(path, "a cluster has its own manifests: remove `manifests`, or `clusters`", key=True)
    names = fields.strings(path)
    seen: set[str] = set()
    for place, name in names.items():
        if name in seen:
            fields.reject(place, f"the cluster {quote(name)} is already in the list: remove it")
        seen.add(name)
    return names


def _parse_release(fields: Fields) -> Release | None:
    text = fields.string(("kubernetes",))
    try:
        return parse_release(text) if text else None
    except UserError as error:
        fields.reject(("kubernetes",), str(error))
        return None


def _parse_expectation(fields: Fields, path: Path) -> Expectation | None:
    value = fields.value(path)
    kinds = [kind for kind in _KINDS if isinstance(value, dict) and kind in value]
    if len(kinds) > 1:
        message = f"an entry is one expectation, not `{kinds[0]}` and `{kinds[1]}`: write two entries"
        fields.reject((*path, kinds[1]), message, key=True)
        return None
    kind = kinds[0] if kinds else None
    hints = dict.fromkeys(("as", "groups"), "It is for a `request`; here the user is the `subject`")
    hints |= dict.fromkeys(("subject", "verbs", "resources", "reaches"), "Move it one level deeper")
    keys = ("name", "request", "as", "groups", "reaches") if kind == "request" else ("name", *(kinds or _KINDS))
    count = len(fields.mistakes)
    if not fields.check_keys(path, keys, {} if kind in (None, "request") else hints) or len(fields.mistakes) > count:
        return None  # a misplaced key is also missing in its place, which would be reported as a second mistake
    name = fields.string((*path, "name"))
    claim: Example | Property | Reachability | None
    if kind is None:
        fields.reject(path, f"this entry is not an expectation: add {join_words(_KINDS)}")
        return None
    if kind == "request":
        claim = _parse_example(fields, path)
    elif kind in ("never", "always"):
        claim = _parse_property(fields, (*path, kind), cast('Literal["never", "always"]', kind))
    else:
        names = _parse_requirement(fields, (*path, kind), _NAME_KEYS)
        claim = names and Reachability(cast('Literal["reachable", "unreachable"]', kind), names)
    return None if claim is None else Expectation(path, name, claim)


def _parse_example(fields: Fields, path: Path) -> Example | None:
    count = len(fields.mistakes)
    text, user = fields.string((*path, "request")), fields.string((*path, "as"))
    groups = tuple(fields.strings((*path, "groups")).values())
    is_complete = len(fields.mistakes) == count
    reaches = _parse_requirement(fields, (*path, "reaches"), _REACHES_KEYS["request"])
    if not is_complete or reaches is None:
        return None
    try:
        arguments = parse_command_line(text, user or None, groups)
        return Example(arguments.to_request(), arguments.to_command_line(), reaches)
    except UserError as error:
        fields.reject((*path, "request"), str(error))
        return None


def _parse_property(fields: Fields, path: Path, kind: Literal["never", "always"]) -> Property | None:
    if not fields.check_keys(path, (*KEYS, "except", "reaches"), HINTS):
        return None
    reaches = _parse_requirement(fields, (*path, "reaches"), _REACHES_KEYS[kind])
    requests = parse_requests(fields, path)
    return None if reaches is None else Property(kind, requests, _parse_excluded(fields, (*path, "except")), reaches)


def _parse_excluded(fields: Fields, path: Path) -> tuple[PolicyRulesWithSubjects, ...]:
    """Parse `except`, which is a set of requests or a list of such sets."""
    excluded = []
    if fields.value(path) == []:
        fields.reject(path, "an empty list excludes nothing: remove it")
    for item in fields.items(path):
        if not fields.check_keys(item, KEYS, HINTS):
            continue
        if not fields.value(item):
            fields.reject(item, "this excludes all requests")
        excluded.append(parse_requests(fields, item))
    return tuple(excluded)


def _parse_requirement(fields: Fields, path: Path, keys: tuple[str, ...]) -> Requirement | None:
    """Parse `reaches`, `reachable` or `unreachable`: the name of a priority level, a list of names, or a mapping."""
    value = fields.value(path)
    if isinstance(value, str) or (isinstance(value, list) and value):
        return Requirement(path, priority_levels=tuple(fields.strings(path).values()))
    if value is None or value == {}:
        what = "the destination of these requests" if path[-1] == "reaches" else "names, such as `flowSchema: NAME`"
        fields.reject(path, f"`{path[-1]}` is missing or empty: it contains {what}")
        return None
    if not fields.check_keys(path, keys, {key: hint for key, hint in _REACHES_HINTS.items() if key not in keys}):
        return None
    when_full = fields.strings((*path, "whenFull"))
    for item in when_full:
        fields.choice(item, WHEN_FULL)
    distinguisher = None
    if "distinguisher" in keys and fields.has((*path, "distinguisher")):
        # Requests without a namespace have an empty distinguisher.
        distinguisher = fields.string((*path, "distinguisher"), may_be_empty=True)
    return Requirement(
        path,
        tuple(fields.strings((*path, "flowSchema")).values()),
        tuple(fields.strings((*path, "priorityLevel")).values()),
        cast("tuple[WhenFull, ...]", tuple(when_full.values())),
        fields.integer((*path, "minSeats")) if "minSeats" in keys else None,
        distinguisher,
    )


class Fields:
    """Reads the values of a document by path, and collects mistakes. Methods that report a value add a mistake."""

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
        """Return the paths of all items if the value at `path` is a list, else a list with only `path`.

        Return an empty list if the value is absent.
        """
        value = self.value(path)
        if isinstance(value, list):
            return [(*path, number) for number in range(len(value))]
        return [path] if self.has(path) else []

    def check_keys(self, path: Path, known: Collection[str], hints: Mapping[str, str] | None = None) -> bool:
        """Return whether the value at `path` is a mapping. If not, report the value. Report each key that is not in `known`."""
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
        """Return the string at `path`, or an empty string if absent.

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
        """Return the string at `path`, or all strings of the list at `path`. Keys are the paths of the strings."""
        if self.value(path) == []:
            self.reject(path, "the list is empty: remove it, or add an item")
        texts = {item: self.string(item, may_be_empty=may_be_empty) for item in self.items(path)}
        return {item: text for item, text in texts.items() if text or may_be_empty}

    def choice(self, path: Path, known: tuple[str, ...]) -> str:
        """Return the string at `path`, or an empty string if absent. Report strings that are not in `known`."""
        text = self.string(path)
        if text and text not in known:
            self.reject(path, f'"{text}" is not one of {", ".join(known)}.{suggest(text, known)}'.rstrip("."))
        return text

    def integer(self, path: Path) -> int | None:
        """Return the integer at `path`, or None if absent or reported. Report values that are not an integer from 1 to 2^31-1."""
        value = self.value(path)
        if not self.has(path):
            return None
        if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 2**31:
            return value
        self.reject(path, f"expected an integer of at least 1, not {_describe(value)}")
        return None

    def boolean(self, path: Path) -> bool | None:
        """Return the boolean at `path`, or None if absent or reported. Report values of other types."""
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
