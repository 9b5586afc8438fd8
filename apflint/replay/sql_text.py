"""Text of SQL."""


def quote(text: str) -> str:
    """Return a string literal of SQL."""
    return "'" + text.replace("'", "''") + "'"
