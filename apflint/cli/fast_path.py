"""Runs common command lines without typer, because importing typer takes a third of a short run.

typer is the reference. The parser in this module uses the same definitions. The parser accepts a command line only if typer
would certainly return the same result. All other command lines, including invalid command lines, are left to typer.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from itertools import takewhile
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from apflint.cli.command_definitions import COMPLETION_VARIABLE, REQUIRED, call, list_parameters, load_command
from apflint.cli.help_page import find_help_page
from apflint.named_tuple import NamedTuple
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from apflint.cli.command_definitions import Definition


def find_fast_path(arguments: list[str]) -> Callable[[], int | None] | None:
    """Return a function that runs `arguments` without typer, or None if typer is needed."""
    if COMPLETION_VARIABLE in os.environ or not arguments:
        return None
    if arguments == ["--version"]:
        return print_version
    if (page := find_help_page(arguments)) is not None:
        return partial(_print_page, page)
    name, *words = arguments
    command = load_command(name)
    if command is None or "" in words or any(map(_may_be_file, takewhile("--".__ne__, words))):
        return None
    try:
        return partial(call, command.function, parse_words(command.function, words))
    except _NeedsTyperError:
        return None


def print_version() -> int:
    """Print the version of apflint, and return the exit code."""
    from apflint import __version__

    sys.stdout.write(f"apflint {__version__}\n")
    return 0


def _print_page(page: str) -> int:
    sys.stdout.write(page)
    return 0


def _may_be_file(word: str) -> bool:
    """Return whether a word begins with `-` and is the name of an existing file.

    In this case, the command line is left to typer, and `app` then rejects the word. The result is also
    true if the word contains a null byte, although no file has such a name.
    """
    return len(word) > 1 and word[0] == "-" and ("\0" in word or os.path.lexists(word))


_MAX_DIGITS = 20
"""Maximum number of digits that this parser accepts. Longer numbers are left to typer, because Python limits the length of
integers."""


class _NeedsTyperError(Exception):
    """Raised if only typer can parse a command line."""


class _Parameter(NamedTuple):
    name: str
    kind: Any
    """Type of the value. If the parameter has several values, the type of each value."""
    is_multiple: bool
    """Whether an option may be repeated, or an argument takes all remaining words of the command line."""
    is_required: bool
    definition: Definition

    @property
    def is_option(self) -> bool:
        return self.definition.kind == "option"

    @property
    def options(self) -> tuple[str, ...]:
        """Names of the option: those in the definition, or else a name derived from the parameter.

        Definitions of flags always contain names, because typer would add `--no-NAME` to a derived name.
        """
        return self.definition.names or (f"--{self.name.replace('_', '-')}",)

    def convert(self, text: str) -> object:
        """Return the value that `text` stands for. Raises _NeedsTyperError if the value may be invalid."""
        try:
            return self._parser(text)(text)
        except (UserError, ValueError) as error:
            raise _NeedsTyperError from error

    def _parser(self, text: str) -> Callable[[str], object]:
        if "parser" in self.definition.settings:
            return self.definition.settings["parser"]
        if self.kind is str or (get_origin(self.kind) is Literal and text in get_args(self.kind)):
            return str
        if self.kind in (int, float) and len(text) < _MAX_DIGITS and not text.strip("0123456789."):
            return self.kind  # type: ignore[no-any-return]  # int or float
        raise _NeedsTyperError


def parse_words(function: Callable[..., object], words: list[str]) -> dict[str, object]:
    """Return a mapping from the parameters of a function to their values.

    Parameters that are not in `words` get their defaults.

    `words` are the words of the command line. Raises _NeedsTyperError if typer must parse the command line.
    """
    parameters = list(_read_parameters(function))
    options = {name: parameter for parameter in parameters if parameter.is_option for name in parameter.options}
    values: dict[str, Any] = {}
    positional: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            positional += rest
        elif word == "-" or word[0] != "-":
            positional.append(word)
        else:
            _read_option(word, rest, options, values)
    _read_arguments(positional, [parameter for parameter in parameters if not parameter.is_option], values)
    if any(parameter.is_required and parameter.name not in values for parameter in parameters):
        raise _NeedsTyperError
    return values


def _read_parameters(function: Callable[..., object]) -> Iterator[_Parameter]:
    for parameter in list_parameters(function):
        kind, definition = get_args(parameter.annotation)
        if NoneType in get_args(kind):
            (kind,) = (part for part in get_args(kind) if part is not NoneType)
        is_multiple = get_origin(kind) is list
        if is_multiple:
            (kind,) = get_args(kind)
        yield _Parameter(parameter.name, kind, is_multiple, parameter.default is REQUIRED, definition)


def _read_option(word: str, rest: Iterator[str], options: dict[str, _Parameter], values: dict[str, Any]) -> None:
    """Add the value of the option `word` to `values`. If the value is a separate word, take it from `rest`."""
    name, equals, text = word.partition("=") if word.startswith("--") else (word, "", "")
    parameter = options.get(name)
    if parameter is None or (parameter.kind is bool and equals):
        raise _NeedsTyperError
    if parameter.kind is bool:
        values[parameter.name] = True
        return
    if not equals:
        text = next(rest, "")
        if text.startswith("-") and text != "-":
            raise _NeedsTyperError  # the word looks like an option, so the value is probably missing
    if not text or (parameter.name in values and not parameter.is_multiple):
        raise _NeedsTyperError
    value = parameter.convert(text)
    if parameter.is_multiple:
        values.setdefault(parameter.name, []).append(value)
    else:
        values[parameter.name] = value


def _read_arguments(words: list[str], arguments: list[_Parameter], values: dict[str, Any]) -> None:
    """Add the values of positional arguments to `values`, in order.

    An argument with several values takes all remaining values.
    """
    for argument in arguments:
        count = len(words) if argument.is_multiple else 1
        taken, words = [argument.convert(word) for word in words[:count]], words[count:]
        if taken:
            values[argument.name] = taken if argument.is_multiple else taken[0]
    if words:
        raise _NeedsTyperError
