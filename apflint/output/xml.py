"""Text and attributes of XML and HTML, in ASCII."""

from __future__ import annotations

from apflint.output.sanitize import sanitize

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"})


def escape_xml(text: str) -> str:
    """Escape a text of one line. It is sanitized, as XML 1.0 allows no other control characters, not even escaped."""
    return escape_printable(sanitize(text))


def escape_printable(text: str) -> str:
    """Escape a text whose characters are printable, apart from line ends.

    Characters outside ASCII become references, so the bytes are the same in every locale.
    """
    return text.translate(_ENTITIES).encode("ascii", "xmlcharrefreplace").decode("ascii")


def format_attributes(**values: str | int) -> str:
    """Return attributes with a space in front of each."""
    return "".join(f' {key}="{escape_xml(str(value))}"' for key, value in values.items())
