"""What `--help` prints: each command as a manual page. Imported only when somebody asks."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typer._click import Command, Context, HelpFormatter
    from typer.core import TyperGroup


class Example(NamedTuple):
    """A command line that can be pasted into a shell, and what it is for."""

    what: str
    command: str


class Page(NamedTuple):
    """The parts of a command's help that its parameters do not tell."""

    about: str
    """Paragraphs; the first sentence of the help is the command's docstring."""
    examples: tuple[Example, ...]
    exit_status: tuple[tuple[str, str], ...]
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Options under headings, by their long names. Those in no group come last, as "Other options"."""


def write_command(command: Command, context: Context, formatter: HelpFormatter) -> None:
    """Writes the help of one command. The arguments are those of click's `Command.format_help`."""
    from apflint.cli.manual.pages import PAGES

    command.format_usage(context, formatter)
    page = PAGES.get(command.name or "", Page("", (), ()))
    with formatter.section("Description"):
        formatter.write_text("\n\n".join(filter(None, [command.help, page.about])))
    _write_parameters(command, context, formatter, page)
    if page.examples:
        _write_examples(formatter, page.examples)
    if page.exit_status:
        with formatter.section("Exit status"):
            formatter.write_dl(page.exit_status)


def write_program(group: TyperGroup, context: Context, formatter: HelpFormatter) -> None:
    """Writes the help of apflint itself: its commands by what one wants. As click's `Command.format_help`."""
    from apflint.cli.manual.pages import COMMANDS, PROGRAM

    group.format_usage(context, formatter)
    with formatter.section("Description"):
        formatter.write_text(group.help or "")
    grouped = {name for _, names in COMMANDS for name in names}
    headings = [*COMMANDS, ("Other commands", tuple(name for name in group.commands if name not in grouped))]
    width = max(len(name) for name in group.commands)
    for heading, names in headings:
        rows = [(name.ljust(width), _in_short(group.commands[name])) for name in names if name in group.commands]
        if rows:
            with formatter.section(heading):
                formatter.write_dl(rows)
    _write_parameters(group, context, formatter, PROGRAM)
    _write_examples(formatter, PROGRAM.examples)
    with formatter.section("Exit status"):
        formatter.write_dl(PROGRAM.exit_status)
    formatter.write_paragraph()
    formatter.write_text(PROGRAM.about)


def _in_short(command: Command) -> str:
    return str(command.help).split("\n\n", 1)[0].rstrip(".")


def _write_parameters(command: Command, context: Context, formatter: HelpFormatter, page: Page) -> None:
    rows: dict[str, tuple[str, str]] = {}
    arguments = []
    for parameter in command.get_params(context):
        row = parameter.get_help_record(context)
        if row is None:
            continue
        if parameter.param_type_name == "argument":
            arguments.append(row)
        else:
            rows[long_name(parameter.opts)] = row
    grouped = {name for _, names in page.groups for name in names}
    rest = tuple(name for name in rows if name not in grouped)
    headings = [*page.groups, ("Other options" if page.groups else "Options", rest)]
    if arguments:
        with formatter.section("Arguments"):
            formatter.write_dl(arguments)
    for heading, names in headings:
        shown = [rows[name] for name in names if name in rows]
        if shown:
            with formatter.section(heading):
                formatter.write_dl(shown)


def _write_examples(formatter: HelpFormatter, examples: Iterable[Example]) -> None:
    """A comment and a command line each. Never wrapped, so that they can be pasted."""
    with formatter.section("Examples"):
        indent = " " * formatter.current_indent
        formatter.write("\n".join(f"{indent}# {example.what}\n{indent}{example.command}\n" for example in examples))


def long_name(names: Iterable[str]) -> str:
    """`--quiet` of `--quiet` and `-q`."""
    return max(names, key=len)
