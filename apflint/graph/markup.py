"""Text for XML and HTML, and how long it may be."""

from __future__ import annotations

from apflint.output.console import count_cells


def escape(text: str) -> str:
    """`text` as content or attribute, in ASCII. It must be `visible`: XML knows no other control characters, not even escaped."""
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;"), ("'", "&#39;")):
        text = text.replace(char, entity)
    return text.encode("ascii", "xmlcharrefreplace").decode("ascii")


def cut(text: str, room: float) -> str:
    """`text`, or its beginning and an ellipsis, in at most `room` cells (a wide character takes two)."""
    if count_cells(text) <= room:
        return text
    kept = text
    while kept and count_cells(kept) + 1 > room:
        kept = kept[: max(0, min(len(kept) - 1, int(room)))]
    return f"{kept}\u2026"
