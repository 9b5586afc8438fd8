"""Bytes to Documents: reads YAML and JSON as Kubernetes does, and knows the place of every key and value.

Nothing here raises on bad input: what cannot be read is a Trouble with its place, and the rest is read on.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from apflint.load import yaml
from apflint.load.apf_objects import Objects, Trouble
from apflint.load.source import STDIN, Source
from apflint.load.templates import in_other_format, is_script

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.load.document import Document

__all__ = ["Loaded", "Trouble", "helm_sources", "helm_templates", "load", "load_text"]

# Helm writes it right below a document's `---`; anywhere else it is somebody's comment.
_HELM_SOURCE = re.compile(r"(?:\A|(?<=^---\n)|(?<=^---\r\n))# Source: (\S[^\r\n]*)", re.MULTILINE)
_TEMPLATES = 10_000  # of one chart and its dependencies; more are told as places in the whole text
MAX_LINES = 3_000_000
"""Lines of one text: where each starts takes 40 bytes, and there is nothing in most of so many."""
_LAST_MARKER = re.compile(r"^---\s*\Z", re.MULTILINE)
_BYTE_ORDER_MARKS = ((b"\xef\xbb\xbf", "utf-8-sig"), (b"\xff\xfe", "utf-16"), (b"\xfe\xff", "utf-16"))


class Loaded(NamedTuple):
    """What one input holds."""

    source: Source
    documents: tuple[Document, ...]
    troubles: tuple[Trouble, ...]
    skipped: Mapping[str, int]
    """Number of documents and list items that are no APF objects, by what they are."""


def load(name: str, data: bytes) -> Loaded:
    """Reads one input; `name` is shown in findings, and `.json` at its end means JSON. Never raises."""
    encoding = next((encoding for mark, encoding in _BYTE_ORDER_MARKS if data.startswith(mark)), "utf-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        return _undecodable(name, data, error)
    return load_text(Source(name, text)) if text else Loaded(Source(name, ""), (), (), {})


def load_text(source: Source) -> Loaded:
    """Reads one text. Never raises."""
    if len(source.text) > MAX_LINES and source.text.count("\n") + source.text.count("\r") > MAX_LINES:
        return _too_many_lines(source)
    objects = Objects(source)
    template = in_other_format(source.name, source.text) or is_script(source.text)
    if template is not None and objects.worth_reading(0, len(source.text)):
        objects.template(template)
    elif source.name.endswith(".json"):
        from apflint.load import json

        objects.read(json.documents(source.text, objects.worth_reading), json.compose)
    else:
        objects.read(yaml.documents(source.text, objects.worth_reading, values=True), yaml.compose)
    return Loaded(source, tuple(objects.documents), tuple(objects.troubles), dict(sorted(objects.others.items())))


def helm_sources(text: str) -> list[Source] | None:
    """The output of `helm template` as one source for each template, from its `# Source: FILE` lines; else None.

    A template that renders several documents is one source with all of them, in order.
    """
    parts = helm_templates(text)
    if not parts:
        return None
    first = _HELM_SOURCE.search(text)
    head = text[: first.start()] if first else ""
    extra = [Source(STDIN, head)] if head.strip().strip("-").strip() else []
    return extra + [Source(name, _joined(text, stretches), rendered=True) for name, stretches in parts.items()]


def helm_templates(text: str) -> dict[str, list[tuple[int, int]]]:
    """Where the templates of a chart are in the output of `helm template`; empty for any other text.

    By file, start and end of each stretch below one of its `# Source: FILE`, in order. Those of two templates may alternate:
    Helm sorts documents by kind.
    """
    starts = list(_HELM_SOURCE.finditer(text))
    if not 0 < len(starts) <= _TEMPLATES:
        return {}
    parts: dict[str, list[tuple[int, int]]] = {}
    for match, following in zip(starts, [*starts[1:], None], strict=True):
        end = following.start() if following else len(text)
        parts.setdefault(match.group(1).strip(), []).append((match.end(), end))
    return parts


def _joined(text: str, stretches: list[tuple[int, int]]) -> str:
    bodies = []
    for start, end in stretches:
        body = text[start:end].removeprefix("\r").removeprefix("\n")
        if end < len(text) and (marker := _LAST_MARKER.search(body)):
            body = body[: marker.start()]
        bodies.append(body)
    return "---\n".join(bodies)


def _too_many_lines(source: Source) -> Loaded:
    """A trouble at the first line, in a source that has no more lines than that takes."""
    first = Source(source.name, source.text[:1_000])
    message = f"more than {MAX_LINES:,} lines in one file"
    return Loaded(first, (), (Trouble("unsafe", first, 0, 1, message, rejected=False),), {})


def _undecodable(name: str, data: bytes, error: UnicodeDecodeError) -> Loaded:
    """Bytes that are no text: one trouble at the first of them."""
    rest = error.object  # without the byte order mark, where that is the encoding's own business
    source = Source(name, rest.decode("utf-8", "replace"))
    at = len(rest[: error.start].decode("utf-8", "replace"))
    offset = len(data) - len(rest) + error.start
    encoding = "UTF-16" if "16" in error.encoding else "UTF-8"
    message = f"byte 0x{data[offset]:02x} at offset {offset:,} is no {encoding}: this is no text file"
    return Loaded(source, (), (Trouble("unsafe", source, at, at + 1, message, rejected=True),), {})
