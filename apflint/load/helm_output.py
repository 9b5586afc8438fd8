"""Splits the output of `helm template` by template file. A line `# Source: FILE` precedes the output of each template."""

from __future__ import annotations

import re

from apflint.budgets import MAX_HELM_TEMPLATES
from apflint.load.source_text import STDIN, Source

# Helm writes the line `# Source: FILE` directly below `---`. At other places, such a line is a comment of the user.
_SOURCE_LINE = re.compile(r"(?:\A|(?<=^---\n)|(?<=^---\r\n))# Source: (\S[^\r\n]*)", re.MULTILINE)
_LAST_MARKER = re.compile(r"^---\s*\Z", re.MULTILINE)


def split_helm_output(text: str) -> list[Source] | None:
    """Return one source for each template file in the output of `helm template`.

    If a template file renders several documents, its source contains all of them in order. Return None if `text` is not
    output of `helm template`.
    """
    ranges = find_helm_templates(text)
    if not ranges:
        return None
    first = _SOURCE_LINE.search(text)
    head = text[: first.start()] if first else ""
    sources = [Source(STDIN, head)] if head.strip().strip("-").strip() else []
    return sources + [Source(name, _join(text, parts), rendered=True) for name, parts in ranges.items()]


def find_helm_templates(text: str) -> dict[str, list[tuple[int, int]]]:
    """Return a mapping from each template file in the output of `helm template` to its ranges in the output.

    A range is the start and end of the text below a `# Source: FILE` line. A template file may have several ranges,
    because Helm sorts documents by kind. The result is empty if `text` is not output of `helm template`, or has too
    many ranges.
    """
    matches = list(_SOURCE_LINE.finditer(text))
    if not 0 < len(matches) <= MAX_HELM_TEMPLATES:
        return {}
    ends = [*(match.start() for match in matches[1:]), len(text)]
    ranges: dict[str, list[tuple[int, int]]] = {}
    for match, end in zip(matches, ends, strict=True):
        ranges.setdefault(match.group(1).strip(), []).append((match.end(), end))
    return ranges


def _join(text: str, ranges: list[tuple[int, int]]) -> str:
    bodies = []
    for start, end in ranges:
        body = text[start:end].removeprefix("\r").removeprefix("\n")
        if end < len(text) and (marker := _LAST_MARKER.search(body)):
            body = body[: marker.start()]
        bodies.append(body)
    return "---\n".join(bodies)
