"""Makes text from manifests harmless: on terminals, in the logs of CI systems, and in JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_COMMAND = re.compile(r"##(?=\[|vso\[|teamcity\[)", re.IGNORECASE)
"""Start of a command anywhere in a log line: `##[set-output ...]` on GitHub, `##vso[...]` on Azure Pipelines.

Sources: actions/runner, `ActionCommand.TryParse`, which the runner calls if there is no `::`; azure-pipelines-agent, `Command.TryParse`;
TeamCity, "Service messages".
"""


def sanitize(text: str) -> str:
    r"""Replace each character that is not printable by an escape, as YAML writes it: `\n`, `\x1b`, `\u202e`.

    Not printable is what Unicode calls Other or Separator, except the space: control characters, bidirectional
    overrides, zero-width and no-break spaces, lone surrogates. None of these reaches a terminal raw, and all are visible.
    The second `#` of a CI system's command is replaced as well.
    """
    if not text.isprintable():
        text = "".join(char if char.isprintable() else escape_character(char) for char in text)
    return _COMMAND.sub(r"#\\x23", text) if "##" in text else text


def sanitize_json(text: str) -> str:
    """Escape the commands of CI systems in a JSON text. They can only be inside strings, so the value stays the same."""
    return _COMMAND.sub(r"#\\u0023", text) if "##" in text else text


def sanitize_path(file: str) -> str:
    """Sanitize a file name at the start of a line. A path that starts with `::`, a command to GitHub's runner, gets a `./`.

    Source: actions/runner, `ActionCommand.TryParseV2`, which skips spaces at the start of a line.
    """
    safe = sanitize(file)
    return f"./{safe}" if safe.lstrip().startswith("::") else safe


def sanitize_line(text: str) -> str:
    """Sanitize any other text at the start of a line: `::` becomes an escape."""
    safe = sanitize(text)
    return safe.replace(":", r"\x3a", 1) if safe.lstrip().startswith("::") else safe


def escape_character(char: str) -> str:
    """Return a character as an escape in printable ASCII."""
    return char.encode("unicode_escape").decode("ascii")


def escape_xml(text: str) -> str:
    """Escape sanitized lines for XML and HTML, in ASCII, so that the bytes are the same in every locale."""
    from html import escape  # only two formats need it

    return escape(text).encode("ascii", "xmlcharrefreplace").decode("ascii")


def find_commands(text: str) -> Iterator[int]:
    """Yield the offsets of the characters that must be escaped so that no CI system sees a command."""
    return (match.start() + 1 for match in _COMMAND.finditer(text))
