"""Generate the tables of arguments and options in docs/commands/ from the definitions of the commands.

Options that many commands share are described in docs/commands/index.md only. The pages of the commands name them.

python scripts/generate_command_options.py            update the pages
python scripts/generate_command_options.py --check    fail if a page is missing or not up to date
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from generated_files import update_or_check

from apflint.cli.app import COMMANDS, app

if TYPE_CHECKING:
    from collections.abc import Iterable

DOCS = Path(__file__).resolve().parent.parent / "docs" / "commands"
HEADER = "| option | description |\n|---|---|\n"
INDEX = "index"
MIN_COMMANDS = 7
"""An option or argument is common if at least this number of commands describe it in the same words."""
MIN_SHARED_OPTIONS = 5
"""Minimum number of options in a panel for a page to link to another page that describes the same options."""
COMMON_LINK = "[common options](index.md#common-options)"
_TABLE = re.compile(rf"(?m)^{re.escape(HEADER)}(?:\|.*\n)*")
_PLACEHOLDER = re.compile(r" [^`]+`")
_CODE = re.compile(r"(`[^`]+`)|(?<!\S)\(?(--[a-z-]+|\*\.[a-z]+)")
"""Pattern for Markdown code, which is not changed, and for options and globs in plain text, which become code."""


def load_parameters(command: str) -> list[Any]:
    """Return the arguments and options of a command, in the order of its help."""
    program: Any = typer.main.get_command(app)
    parameters: list[Any] = program.get_command(typer.Context(program), command).params
    return parameters


@cache
def find_common_options() -> dict[str, str]:
    """Return the names and the description of each option and argument that at least `MIN_COMMANDS` commands share."""
    rows = [
        (_render_names(parameter), _render_description(parameter))
        for command in COMMANDS
        for parameter in load_parameters(command)
    ]
    return {names: description for (names, description), number in Counter(rows).items() if number >= MIN_COMMANDS}


def render_table(command: str) -> str:
    """Return the table of a command's arguments and options, or "" if the command has none.

    A row in bold precedes the options of each panel of the help. If another page describes the same options, one
    row names the options and links to that page. The last row names the common options.
    """
    rows, common = [], []
    for panel, parameters in groupby(load_parameters(command), _get_panel):
        own = []
        for parameter in parameters:
            names, description = _render_names(parameter), _render_description(parameter)
            if find_common_options().get(names) == description:
                common.append(names)
            else:
                own.append((names, description))
        page = _find_page_of_panel(command, panel, frozenset(own))
        if page:
            own = [(_join_names(names for names, _ in own), f"[as for `{page}`]({page}.md#options)")]
        rows += [("**" + panel + "**", ""), *own] if panel and own else own
    rows += [(_join_names(common), COMMON_LINK)] if common else []
    return HEADER + "".join(f"| {names} | {text} |\n".replace("|  |", "| |") for names, text in rows) if rows else ""


def _get_panel(parameter: Any) -> str | None:
    panel: str | None = getattr(parameter, "rich_help_panel", None)
    return panel


def _find_page_of_panel(command: str, panel: str | None, rows: frozenset[tuple[str, str]]) -> str:
    """Return the first command whose panel has the options in `rows`, so that the page of `command` can link to it.

    Return "" if this command is `command`, or if the panel has fewer than `MIN_SHARED_OPTIONS` options.
    """
    for other in COMMANDS if len(rows) >= MIN_SHARED_OPTIONS else ():
        described = {
            (_render_names(item), _render_description(item))
            for item in load_parameters(other)
            if _get_panel(item) == panel
        }
        if rows <= described:
            return other if other != command else ""
    return ""


def _join_names(names: Iterable[str]) -> str:
    """Return the names of options in one cell, without placeholders for values."""
    return ", ".join(_PLACEHOLDER.sub("`", name) for name in names)


def render_common_table() -> str:
    """Return the table of the common options."""
    rows = [f"| {names} | {description} |" for names, description in find_common_options().items()]
    return HEADER + "\n".join(rows) + "\n"


def _render_names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    value = parameter.metavar or ("" if parameter.is_flag else "VALUE")
    first, *others = parameter.opts
    return ", ".join([f"`{first} {value}`" if value else f"`{first}`", *(f"`{name}`" for name in others)])


def _render_description(parameter: Any) -> str:
    parts = [_format_code(parameter.help.replace(r"\[", "["))]
    if choices := getattr(parameter.type, "choices", None):
        parts.append(f"One of {', '.join(f'`{choice}`' for choice in choices)}.")
    shown = parameter.show_default if isinstance(parameter.show_default, str) else parameter.default
    if isinstance(shown, str) and shown:
        parts.append(f"[default: {_format_code(shown)}]")
    return " ".join(parts).replace("|", r"\|")


def _format_code(text: str) -> str:
    """Return a text with options and file patterns in backticks."""
    return _CODE.sub(lambda match: match[1] or match[0].replace(match[2], f"`{match[2]}`"), text)


def update_page(command: str, page: str) -> str:
    """Return a page with the table of its command. Raises LookupError if the page lacks the markers for the table."""
    table = render_common_table() if command == INDEX else render_table(command)
    if len(_TABLE.findall(page)) != bool(table):
        raise LookupError(f"docs/commands/{command}.md must have {int(bool(table))} tables with the heading {HEADER!r}")
    return _TABLE.sub(lambda _: table, page)


def main() -> int:
    """Update or check the pages. Returns the exit code."""
    paths = {command: DOCS / f"{command}.md" for command in (*COMMANDS, INDEX)}
    return update_or_check({path: update_page(command, path.read_text("utf-8")) for command, path in paths.items()})


if __name__ == "__main__":
    sys.exit(main())
