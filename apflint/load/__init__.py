"""Loads manifests: decodes YAML and JSON as Kubernetes does, and finds the position of each key and value.

Invalid input raises no exception. Each document that cannot be read becomes a LoadProblem, and the remaining documents
are loaded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.budgets import MAX_LINES
from apflint.load.source_text import Source
from apflint.location import TextRange
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.load.apf_objects import LoadProblem
    from apflint.load.document import Document

_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class Loaded(NamedTuple):
    """An input file with its APF objects and its problems."""

    source: Source
    documents: tuple[Document, ...]
    problems: tuple[LoadProblem, ...]
    skipped: Mapping[str, int]
    """Number of documents and list items that are not APF objects. Keys are descriptions such as `Deployment objects`."""


def load(name: str, content: str | bytes) -> Loaded:
    """Load the text or the bytes of one input. Never raises an exception.

    `name` is the file name that findings show. If `name` ends with `.json`, the content is parsed as JSON.
    """
    if isinstance(content, bytes):
        encoding = next((encoding for mark, encoding in _BYTE_ORDER_MARKS if content.startswith(mark)), "utf-8")
        try:
            return load(name, content.decode(encoding))
        except UnicodeDecodeError as error:
            return _report_undecodable(name, content, error)
    return load_text(Source(name, content)) if content else Loaded(Source(name, ""), (), (), {})


def load_text(source: Source) -> Loaded:
    """Load the text of one input. Never raises an exception."""
    from apflint.load.apf_objects import LoadProblem, ObjectFinder  # imported on demand: most files have no APF objects
    from apflint.load.templates import recognize_file

    text = source.text
    if len(text) > MAX_LINES and text.count("\n") + text.count("\r") > MAX_LINES:
        start = Source(source.name, text[:1_000])
        message = f"more than {MAX_LINES:,} lines in one file"
        return Loaded(start, (), (LoadProblem("unsafe", TextRange(start, 0, 1), message, "split the file", False),), {})
    finder = ObjectFinder(source)
    # The name of a live object (an object in a running cluster) may end with .md or .json. But the name is not a file
    # name, so this ending says nothing about the format of the text.
    template = None if source.is_live else recognize_file(source.name, text)
    if template is not None and finder.is_wanted(0, len(text)):
        finder.add_template(template)
    elif source.name.endswith(".json") and not source.is_live:
        from apflint.load import json

        finder.collect(json.parse_documents(text, finder.is_wanted), json.parse_tree)
    else:
        from apflint.load import yaml

        finder.collect(yaml.parse_documents(text, finder.is_wanted, values=True), yaml.parse_tree)
    return Loaded(source, tuple(finder.documents), tuple(finder.problems), dict(sorted(finder.others.items())))


def _report_undecodable(name: str, data: bytes, error: UnicodeDecodeError) -> Loaded:
    from apflint.load.apf_objects import LoadProblem

    rest = error.object  # `object` excludes the byte order mark of UTF-8
    source = Source(name, rest.decode("utf-8", "replace"))
    at = len(rest[: error.start].decode("utf-8", "replace"))
    offset = len(data) - len(rest) + error.start
    encoding = "UTF-16" if "16" in error.encoding else "UTF-8"
    message = f"this is not a text file: byte 0x{data[offset]:02x} at offset {offset:,} is not valid {encoding}"
    return Loaded(source, (), (LoadProblem("unsafe", TextRange(source, at, at + 1), message, None, True),), {})
