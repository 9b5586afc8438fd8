"""Command lines that are so plain that they need no option parser.

typer takes 30 ms to import and set up, which would be a third of what a hook costs. So the command lines that people and
editors wait for most are taken apart here, where that is certain to mean the same: words, and the few options named
below, written out, each value as an argument of its own. Everything else is typer's, mistakes included. A property test
holds the two equal.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from apflint.cli.outcome import failed, said
from apflint.output.findings import FORMATS
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable


class Options(NamedTuple):
    """Options that are taken here, with the names of their parameters: switches, and those that take a value."""

    switches: dict[str, str]
    values: dict[str, str]


CHECK = Options(
    switches={
        "--force-exclude": "force_exclude",
        "--isolated": "isolated",
        "--quiet": "quiet",
        "-q": "quiet",
    },
    values={"--format": "format", "--stdin-filename": "stdin_filename"},
)
EXPLAIN = Options(
    switches={"--all-namespaces": "all_namespaces", "-A": "all_namespaces"},
    values={
        "--as": "user",
        "--as-group": "groups",
        "--namespace": "namespace",
        "-n": "namespace",
        "--filename": "filename",
        "-f": "filename",
    },
)
_REPEATABLE = ("groups", "filename")
_TAKES_FILES = ("check", "fix", "migrate", "diff", "test", "graph", "limits")
"""Commands whose arguments are files, which a hook or `xargs` may append."""


def run(arguments: list[str]) -> int:
    """Run one command line and return the exit code."""
    if ambiguous := file_named_like_option(arguments):
        return failed(
            f'"{ambiguous}" is an option and also the name of a file here. For the file, write -- before all file'
            f" names, or ./{ambiguous}. For the option, run apflint in another directory."
        )
    command = plain(arguments)
    if command is not None:
        return said(command)
    from apflint.cli import app

    return app.run(arguments)


def file_named_like_option(arguments: list[str]) -> str | None:
    """Return the first option that is also the name of an existing file, or None.

    pre-commit and `xargs` append the file names of a repository to a command. A file named `--config=x.yaml` would
    change what is checked, and one named `--report=json=/x` would overwrite another file.
    """
    if not arguments or arguments[0] not in _TAKES_FILES:
        return None
    for argument in arguments[1:]:
        if argument == "--":
            return None
        if len(argument) > 1 and argument[0] == "-" and "\0" not in argument and os.path.lexists(argument):
            return argument
    return None


def plain(arguments: list[str]) -> Callable[[], int] | None:
    """What a plain command line asks for; None where an option parser has to look at it.

    A shell that asks for completions sets a variable such as `_APFLINT_COMPLETE`: that is for the parser as well.
    """
    if any(name.startswith("_") and name.endswith("_COMPLETE") for name in os.environ):
        return None
    if arguments in (["--version"], ["-V"]):
        return _version
    if arguments[:1] == ["check"]:
        return _check(arguments[1:])
    if arguments[:1] == ["explain"]:
        return _explain(arguments[1:])
    return None


class Parsed(NamedTuple):
    """A command line taken apart: its words, the switches that are on, and the values of each option that has some."""

    words: tuple[str, ...]
    switches: set[str]
    values: dict[str, tuple[str, ...]]

    def last(self, name: str) -> str | None:
        """The value of an option that counts once."""
        return self.values[name][-1] if name in self.values else None


def parse(arguments: list[str], options: Options) -> Parsed | None:
    """Parse a command line, or return None if the option parser must do it.

    That is so for an option of another name or form, a value that is missing, empty or like an option, and an option
    that is repeated although only one value counts. Everything after `--` is a word.
    """
    words: list[str] = []
    switches: set[str] = set()
    values: dict[str, tuple[str, ...]] = {}
    rest = iter(arguments)
    for argument in rest:
        if not argument:
            return None
        if argument == "--":
            words += rest
            return None if "" in words else Parsed(tuple(words), switches, values)
        if not argument.startswith("-") or argument == "-":
            words.append(argument)
        elif argument in options.switches:
            switches.add(options.switches[argument])
        elif argument in options.values:
            value = next(rest, "-")
            name = options.values[argument]
            if not value or value.startswith("-") or (name in values and name not in _REPEATABLE):
                return None
            values[name] = (*values.get(name, ()), value)
        else:
            return None
    return Parsed(tuple(words), switches, values)


def _version() -> int:
    from apflint import __version__

    sys.stdout.write(f"apflint {__version__}\n")
    return 0


def _check(arguments: list[str]) -> Callable[[], int] | None:
    found = parse(arguments, CHECK)
    if found is None or not set(found.values.get("format", ())) <= set(FORMATS):
        return None

    def command() -> int:
        from apflint.cli import check

        flags = check.Flags(
            force_exclude="force_exclude" in found.switches,
            stdin_filename=found.last("stdin_filename"),
            isolated="isolated" in found.switches,
            quiet="quiet" in found.switches,
        )
        return check.command(found.words, {"format": found.last("format")}, flags)

    return command


def _explain(arguments: list[str]) -> Callable[[], int] | None:
    found = parse(arguments, EXPLAIN)
    if found is None:
        return None

    def command() -> int:
        from apflint.cli import ask
        from apflint.inputs.cluster import ClusterOptions

        question = ask.Question(
            found.words,
            user=found.last("user"),
            groups=found.values.get("groups", ()),
            namespace=found.last("namespace"),
            all_namespaces="all_namespaces" in found.switches,
        )
        paths = found.values.get("filename", (".",))
        return ask.run(question, paths, ClusterOptions(), output="text", color="auto", verbose=False)

    return command
