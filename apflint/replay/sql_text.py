"""Quotes strings for SQL statements."""


def quote(text: str) -> str:
    """Return `text` as an SQL string literal."""
    return "'" + text.replace("'", "''") + "'"
