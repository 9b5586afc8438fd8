"""Conversion of text to Markdown. Text from manifests never becomes markup, a mention or a link."""

from __future__ import annotations

import re

from apflint.output.sanitize import sanitize

_PLAIN_WORD = re.compile(r"[A-Za-z0-9.,;()'%?/=+-]+:?")
_LINK = re.compile(r"www\.|\b[0-9a-f]{7,40}\b|\bGH-[0-9]")
"""Plain text that GitHub turns into a link: an address, a commit, an issue."""
_WORDS = re.compile(r'(?:"[^"]*"|`[^`]*`|[^ ])+')
_QUOTED = re.compile(r"(\(?)(`[^`]+`|\"[^\"]*\")([.,:;)]*)")


def format_prose(text: str) -> str:
    """Return `text` as Markdown, with values and commands as code spans."""
    safe = sanitize(text).strip()
    if not safe or "  " in safe:  # only a code span keeps several spaces
        return format_code(safe)
    return " ".join(map(_format_word, _WORDS.findall(safe)))


def _format_word(word: str) -> str:
    """Format a word, or a quoted value that may have spaces in it."""
    if _PLAIN_WORD.fullmatch(word) and not _LINK.search(word):
        return word
    if quoted := _QUOTED.fullmatch(word):
        before, value, after = quoted.groups()
        return f"{before}{format_code(value.strip('`'))}{after}"
    return format_code(word)


def format_code(text: str) -> str:
    """Return `text` as a code span that is also safe in a table."""
    safe = sanitize(text).replace("|", "\\|")
    if not safe.strip():
        return '""'
    longest = max(map(len, re.findall("`+", safe)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if safe[0] in "` " or safe[-1] in "` " else ""
    return f"{fence}{padding}{safe}{padding}{fence}"
