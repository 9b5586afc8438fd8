"""Plain text as Markdown, which most editors show, and our Markdown as plain text for the others."""

from __future__ import annotations

import re

_MARKS = re.compile(
    r"""\\(?P<character>[\\`*_<>\[\]#|~]) | (?P<fence>`+)[ ]?(?P<code>.+?)[ ]?(?P=fence) | \*\*
    | \[(?P<text>[^\]]*)\]\((?P<url>[^)]*)\)""",
    re.VERBOSE,
)


def prose(text: str) -> str:
    """Plain text in Markdown: stars and the like stay what they are."""
    return re.sub(r"([\\`*_<>\[\]#|~])", r"\\\1", text)


def plain(markdown: str) -> str:
    """What we write in Markdown without its marks: only those that we write are known."""
    return _MARKS.sub(_unmarked, markdown)


def _unmarked(mark: re.Match[str]) -> str:
    if mark["url"]:
        return f"{mark['text']} ({mark['url']})"
    return mark["character"] or mark["code"] or ""
