"""Tests of command definitions, which list the parameters of a command.

A command can have option groups. Each field of an option group becomes a parameter of the command.
"""

from __future__ import annotations

from typing import Annotated, get_args

import pytest

from apflint.cli import options
from apflint.cli.app import COMMANDS
from apflint.cli.command_definitions import REQUIRED, Definition, call, list_parameters, load_command
from apflint.cli.commands import explain, limits
from apflint.cli.options import option
from apflint.named_tuple import NamedTuple

Size = Annotated[int, option(None, "Size.", "--size")]
Name = Annotated[str | None, option(None, "Name.", "--name")]


class Group(NamedTuple):
    """Options of two commands."""

    size: Size
    name: Name = None


class WithDefaults(NamedTuple):
    """An option group in which every option has a default."""

    depth: Size = 3


def command(first: Name, group: Group, others: WithDefaults = WithDefaults(), last: Size = 1) -> int:  # noqa: B008  # a frozen value
    return len(first or "") + group.size + len(group.name or "") + others.depth + last


def test_fields_of_a_group_are_parameters_in_its_place() -> None:
    parameters = list(list_parameters(command))
    assert [parameter.name for parameter in parameters] == ["first", "size", "name", "depth", "last"]
    assert [parameter.default for parameter in parameters] == [REQUIRED, REQUIRED, None, 3, 1]
    assert [parameter.annotation for parameter in parameters] == [Name, Size, Name, Size, Size]


def test_call_puts_values_into_their_groups() -> None:
    assert call(command, {"first": "ab", "size": 10}) == 2 + 10 + 0 + 3 + 1
    assert call(command, {"first": None, "size": 10, "name": "abcd", "depth": 0, "last": 100}) == 10 + 4 + 100


def test_call_does_not_change_the_values() -> None:
    values = {"first": None, "size": 1, "name": "a"}
    call(command, values)
    assert values == {"first": None, "size": 1, "name": "a"}


@pytest.mark.parametrize("values", [{"first": None}, {"first": None, "size": 1, "unknown": 2}])
def test_missing_and_unknown_values_are_errors(values: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        call(command, values)


def test_groups_of_commands_have_defaults_and_definitions() -> None:
    names = {parameter.name for parameter in list_parameters(limits.limits)}
    assert set(options.SourceOptions._fields) < names
    defaults = {parameter.name: parameter.default for parameter in list_parameters(explain.explain)}
    assert {name: defaults[name] for name in options.SourceOptions._fields} == options.SourceOptions()._asdict()


@pytest.mark.parametrize("name", COMMANDS)
def test_every_parameter_has_one_definition(name: str) -> None:
    found = load_command(name)
    assert found is not None
    parameters = list(list_parameters(found.function))
    assert len({parameter.name for parameter in parameters}) == len(parameters)
    for parameter in parameters:
        _, *metadata = get_args(parameter.annotation)
        assert [type(part) for part in metadata] == [Definition], parameter.name
