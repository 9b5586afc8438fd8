"""Reads goals files for `apflint propose`, and prints their errors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from apflint.cli.terminal import style
from apflint.output.diagnostic import Diagnostic, render_diagnostic
from apflint.propose.goals_file import parse_goals
from apflint.sources.discovery import discover_files
from apflint.sources.file_reading import UnreadableInput, read_file
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.propose.goals_file import ParsedGoals


def read_goals(path: str) -> ParsedGoals:
    """Read a goals file. The path `-` stands for standard input. Raises UserError if reading fails."""
    file = next(iter(discover_files((path,))), None)
    if file is None:
        raise UserError(f"{path} is a directory. Give the path of a goals file")
    data = read_file(file)
    if isinstance(data, UnreadableInput):
        raise UserError(f"{file.name}: {data.reason}")
    return parse_goals(file.name, data)


def print_mistakes(goals: ParsedGoals, color: str) -> bool:
    """Print the errors of a goals file with their places on standard error. Return whether the file has errors."""
    source, how = goals.file.source, style(color, sys.stderr)
    for message, span in goals.mistakes:
        sys.stderr.write(render_diagnostic(Diagnostic("error", message, "error", source.name, span, source), how))
    return bool(goals.mistakes)
