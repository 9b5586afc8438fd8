"""Definitions of commands, arguments and options.

The annotations of a command's function define its command line. `app` turns them into typer's classes, and `fast_path`
parses common command lines from the same values without typer, because importing typer takes a third of a short run.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

from apflint.cli import commands
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from typing import Literal

F = TypeVar("F", bound="Callable[..., int | None]")


class ParameterSettings(TypedDict, total=False):
    """Keyword arguments of typer's `Option` and `Argument` that commands use."""

    metavar: str
    show_default: str | bool
    case_sensitive: bool
    parser: Callable[[str], object]
    autocompletion: Callable[..., Iterable[object]]


class Definition(NamedTuple):
    """Definition of an argument or an option, in the annotation of a parameter: `Annotated[str, option(...)]`."""

    kind: Literal["argument", "option"]
    help: str
    settings: ParameterSettings
    names: tuple[str, ...] = ()
    """Names of an option. Empty if the name of the parameter determines the name of the option."""
    panel: str | None = None
    """Panel of an option in `--help`, or None for the first panel."""


class CommandDefinition(NamedTuple):
    """Definition of a command: its function, and its place and examples in `--help`."""

    function: Callable[..., int | None]
    panel: str
    epilog: str


COMPLETION_VARIABLE = "_APFLINT_COMPLETE"
"""Environment variable that a shell sets to request completions. typer defines the name."""

_COMMANDS: dict[str, CommandDefinition] = {}
"""Maps the names of commands to their definitions. Contains only commands whose modules are imported."""


def examples(*lines: tuple[str, str]) -> str:
    """Return the examples at the end of a help page. `lines` are (purpose, shell command) pairs."""
    return "\n\n".join(("Examples:", *(f"# {purpose}\n{command}" for purpose, command in lines))).replace("[", r"\[")


def command(*, panel: str, epilog: str) -> Callable[[F], F]:
    """Return a decorator that registers a function as a command of `apflint`.

    The name of the command is the name of the module that defines the function.
    """

    def register(function: F) -> F:
        _COMMANDS[function.__module__.rpartition(".")[2]] = CommandDefinition(function, panel, epilog)
        return function

    return register


def load_command(name: str) -> CommandDefinition | None:
    """Import the module of a command, and return the definition of the command. Return None if the command is unknown."""
    if name not in _COMMANDS:
        if not name.isidentifier():
            return None
        module = f"{commands.__name__}.{name}"
        try:
            import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
            return None
    return _COMMANDS.get(name)


REQUIRED = object()
"""Marks a parameter without a default value."""


class Parameter(NamedTuple):
    """A parameter of a command's function, or a field of an option group."""

    name: str
    annotation: object
    """The annotation of the parameter: `Annotated[TYPE, DEFINITION]`, where DEFINITION is a `Definition`."""
    default: object = REQUIRED


def list_parameters(function: Callable[..., object]) -> Iterator[Parameter]:
    """Yield the parameters of a command. For a parameter whose type is an option group, yield the fields of the group.

    An option group is a class whose fields are annotated like parameters. `typing.get_type_hints` is not used,
    because it would take four times as long.
    """
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    defaults = dict(zip(reversed(names), reversed(function.__defaults__ or ()), strict=False))
    for name in names:
        annotation = _evaluate(function.__annotations__[name], function.__globals__)
        if _is_group(annotation):
            for field, text in annotation.__annotations__.items():
                kind = _evaluate(text, vars(sys.modules[annotation.__module__]))
                yield Parameter(field, kind, annotation._field_defaults.get(field, REQUIRED))
        else:
            yield Parameter(name, annotation, defaults.get(name, REQUIRED))


def call(function: Callable[..., int | None], values: Mapping[str, object]) -> int | None:
    """Call the function of a command.

    `values` maps the names of parameters to values. Missing parameters get their defaults.
    """
    arguments = dict(values)
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    for name in names:
        group = _evaluate(function.__annotations__[name], function.__globals__)
        if _is_group(group):
            arguments[name] = group(
                **{field: arguments.pop(field) for field in group.__annotations__ if field in arguments}
            )
    return function(**arguments)


def _is_group(annotation: object) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, tuple)


def _evaluate(annotation: Any, names: dict[str, Any]) -> Any:
    return eval(annotation, names) if isinstance(annotation, str) else annotation  # noqa: S307  # our own text
