"""Plain text as Markdown, which editors show."""

from __future__ import annotations

import re


def prose(text: str) -> str:
    """Plain text in Markdown: stars and the like stay what they are."""
    return re.sub(r"([\\`*_<>\[\]#|~])", r"\\\1", text)
