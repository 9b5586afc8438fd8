"""Functions that make text from manifests harmless on terminals, in the logs of CI systems, and in JSON.

A *CI command* is text in a log that the CI system executes, such as `::add-mask::x` or `##vso[...]`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMAND = re.compile(r"##(?=\[|vso\[|teamcity\[)", re.IGNORECASE)
"""Start of a CI command at any place in a log line: `##[set-output ...]` on GitHub, `##vso[...]` on Azure Pipelines.

Sources: actions/runner, `ActionCommand.TryParse` (for lines without `::`); azure-pipelines-agent, `Command.TryParse`;
TeamCity, "Service messages".
"""


def sanitize(text: str) -> str:
    r"""Replace each unprintable character with an escape as in YAML: `\n`, `\x1b`, `\u202e`.

    Unprintable characters are the Unicode categories Other and Separator, except the space. They include control
    characters, bidirectional overrides, zero-width and no-break spaces, and lone surrogates. If the text contains a CI command
    that starts with `##`, the second `#` is replaced, too, so that no CI system executes the command.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else escape_character(char) for char in text)
    return _COMMAND.sub(r"#\\x23", text) if "##" in text else text


def sanitize_json(text: str) -> str:
    """Escape CI commands in JSON. They can only occur inside strings, so the JSON value stays the same."""
    return _COMMAND.sub(r"#\\u0023", text) if "##" in text else text


def sanitize_path(file: str) -> str:
    """Sanitize a file name at the start of a line. If the name would start a CI command with `::`, prepend `./`.

    Source: actions/runner, `ActionCommand.TryParseV2`, which skips spaces at the start of a line.
    """
    safe = sanitize(file)
    return f"./{safe}" if safe.lstrip().startswith("::") else safe


def sanitize_line(text: str) -> str:
    """Sanitize text that starts a line. If the text would start a CI command with `::`, escape the first colon.

    For file names, use `sanitize_path`.
    """
    safe = sanitize(text)
    return safe.replace(":", r"\x3a", 1) if safe.lstrip().startswith("::") else safe


def escape_character(char: str) -> str:
    """Return a character as an escape in printable ASCII."""
    return char.encode("unicode_escape").decode("ascii")


def escape_xml(text: str) -> str:
    """Escape sanitized text for XML and HTML. The result is ASCII, so its bytes are the same in every locale."""
    from html import escape  # only two formats need this import

    return escape(text).encode("ascii", "xmlcharrefreplace").decode("ascii")


def find_commands(text: str) -> Iterator[int]:
    """Yield the offsets of characters to escape, so that no CI system executes a command in the text."""
    return (match.start() + 1 for match in _COMMAND.finditer(text))


def escape_quoted_commands(text: str) -> str:
    r"""Escape CI commands in YAML. All of them must be in double-quoted strings, in which `\xNN` stands for a character."""
    parts: list[str] = []
    start = 0
    for position in find_commands(text):
        parts += text[start:position], f"\\x{ord(text[position]):02x}"
        start = position + 1
    return "".join((*parts, text[start:]))
