"""Command lines that make no sense: what the option parser says of them, in whole sentences, and what it would let pass."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer._click import Command, Context, Parameter
    from typer._click.exceptions import UsageError

MAY_BE_EMPTY = frozenset({"distinguisher"})
"""Parameters for which an empty text means something: an anonymous flow has an empty distinguisher."""

_NO_NUMBER = re.compile(r" is not a valid (int|float)(?:eger)?(?: range)?\.")
_RANGE = re.compile(r" is not in the range (?:(\d+)<=)?x<=(\d+)\.")


def sentence(error: UsageError) -> str:
    """What a usage error of the option parser says, as sentences on one line.

    typer brings its own copy of click, so its errors are known by what they have, not by their class.
    """
    option, meant = getattr(error, "option_name", None), getattr(error, "possibilities", None)
    if option is not None and hasattr(error, "possibilities"):
        hint = f" Did you mean {' or '.join(sorted(meant))}?" if meant else ""
        return f"No such option: {option}.{hint}"
    text = " ".join(str(error.format_message()).split())
    text = _NO_NUMBER.sub(lambda found: " is no whole number." if found[1] == "int" else " is no number.", text)
    text = _RANGE.sub(lambda found: f" is not a number from {found[1] or 0} to {found[2]}.", text)
    return text if text.endswith((".", "?")) else f"{text}."


def nonsense(command: Command, context: Context, arguments: list[str]) -> str | None:
    """What the option parser lets pass, and nobody can mean: a value that is empty, an option that counts once given twice.

    `context` has the values of the command line, parsed. None where all is well.
    """
    for parameter in command.params:
        if parameter.name not in MAY_BE_EMPTY and _has_empty(context.params.get(parameter.name or "")):
            name = parameter.opts[0] if parameter.param_type_name == "option" else "An argument"
            return f"{name} is empty: is a variable not set? Give it a value, or leave it out."
    _, _, order = command.make_parser(context).parse_args(list(arguments))
    for parameter, count in Counter(order).items():
        if count > 1 and _counts_once(parameter):
            return f"{parameter.opts[0]} is given {'twice' if count == 2 else f'{count} times'}, and counts once. Give it once."
    return None


def _has_empty(value: object) -> bool:
    return value == "" or (isinstance(value, list | tuple) and "" in value)


def _counts_once(parameter: Parameter) -> bool:
    """Whether it is an option with a value of which only the last one would hold."""
    return parameter.param_type_name == "option" and not parameter.multiple and not getattr(parameter, "is_flag", False)
