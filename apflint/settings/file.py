"""Reads a settings file and parses its values. Limits their size, because the file may come from an untrusted source."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from apflint.budgets import MAX_PATTERN_LENGTH, MAX_PATTERNS
from apflint.errors import UserError
from apflint.finding import SEVERITIES
from apflint.output.findings import FORMATS
from apflint.releases import parse_release
from apflint.rule_selection import RuleSelector, parse_selector
from apflint.settings.discovery import find_git_root, read_toml
from apflint.settings.model import KEYS
from apflint.settings.patterns import Patterns
from apflint.spelling import suggest
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from apflint.releases import Release

    Parser = Callable[[Any, str, str], Any]
    """Function that parses a value. Raises UserError for an invalid value.

    Arguments: the value; the place (file and key) that error messages name; the directory of the settings file.
    """

T = TypeVar("T")

_SHOWN_CHARACTERS = 60


def read_settings_file(path: str) -> dict[str, object]:
    """Return the values in a settings file. Keys are fields of `Settings`.

    Patterns are relative to the directory of the file. Raises UserError, with file and key, for invalid settings.
    Raises OSError if the file cannot be opened.
    """
    table: Any = read_toml(path)
    where = f"{path}: "
    if os.path.basename(path) == "pyproject.toml":
        tool = table.get("tool")
        table, where = tool.get("apflint") if isinstance(tool, dict) else None, f"{path}: tool.apflint."
        if not isinstance(table, dict):
            raise UserError(f"{path}: the table [tool.apflint] is missing.")
    directory = os.path.dirname(os.path.abspath(path))
    values: dict[str, object] = {}
    for key, value in table.items():
        if key not in _PARSERS:
            raise UserError(f"{where}{key}: unknown key.{suggest(key, KEYS)} `apflint config` lists all keys.")
        values[KEYS[key]] = _PARSERS[key](value, f"{where}{key}", directory)
    return values


def _call(parse: Callable[[Any], T], value: object, place: str) -> T:
    """Return the result of a parser. If the parser raises UserError, add `place` (the file and key) to the message."""
    try:
        return parse(value)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def _expect(expected: str, is_valid: Callable[[Any], bool]) -> Parser:
    """Return a parser that returns valid values unchanged. The error message for other values contains `expected`."""

    def parse(value: Any, place: str, _directory: str) -> Any:
        if not is_valid(value):
            raise UserError(f"{place}: expected {expected}.")
        return value

    return parse


def _choose(choices: Sequence[str]) -> Parser:
    """Return a parser that accepts only the choices, and returns the value unchanged."""

    def parse(value: Any, place: str, _directory: str) -> Any:
        if value not in choices:
            hint = suggest(str(value), choices)
            raise UserError(f"{place}: invalid value {value!r}: use {join_words(choices)}.{hint}")
        return value

    return parse


_parse_strings = _expect(
    'a list of non-empty strings, such as ["one", "two"]',
    lambda value: isinstance(value, list) and all(isinstance(word, str) and word for word in value),
)
_parse_string = _expect(
    'a string, such as "1.30": without quotes, 1.30 is the number 1.3', lambda value: isinstance(value, str)
)
_parse_severity = _choose((*SEVERITIES, "off"))


def _parse_release(value: Any, place: str, directory: str) -> Release:
    return _call(parse_release, _parse_string(value, place, directory), place)


def _parse_selectors(value: Any, place: str, directory: str) -> tuple[RuleSelector, ...]:
    return tuple(_call(parse_selector, word, place) for word in _parse_strings(value, place, directory))


def _parse_table(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UserError(f"{place}: expected a table: write [{place.rpartition(' ')[2]}] and its entries below.")
    return value


def _parse_severities(value: Any, place: str, directory: str) -> dict[str, str]:
    severities: dict[str, str] = {}
    # A longer selector is more specific, so its severity is set later.
    for selector, severity in sorted(_parse_table(value, place).items(), key=lambda entry: len(entry[0])):
        chosen: str = _parse_severity(severity, f"{place}.{selector}", directory)
        severities |= dict.fromkeys(_call(parse_selector, selector, f"{place}.{selector}").rules, chosen)
    return severities


def _parse_per_file_ignores(value: Any, place: str, directory: str) -> dict[str, tuple[str, ...]]:
    table = _parse_table(value, place)
    _check_patterns(table, place)
    return {
        glob: tuple(
            rule for selector in _parse_selectors(words, f'{place}."{glob}"', directory) for rule in selector.rules
        )
        for glob, words in table.items()
    }


def _parse_exclude(value: Any, place: str, directory: str) -> Patterns:
    globs = _parse_strings(value, place, directory)
    _check_patterns(globs, place)
    return Patterns(tuple(globs), os.path.realpath(directory))


def _check_patterns(globs: Collection[str], place: str) -> None:
    if len(globs) > MAX_PATTERNS:
        raise UserError(f"{place}: {len(globs):,} patterns, but at most {MAX_PATTERNS:,} are allowed.")
    if too_long := next((glob for glob in globs if len(glob) > MAX_PATTERN_LENGTH), None):
        start = too_long[:_SHOWN_CHARACTERS]
        raise UserError(f'{place}: the pattern "{start}..." is longer than {MAX_PATTERN_LENGTH:,} characters.')


def _parse_context(value: Any, place: str, directory: str) -> tuple[str, ...]:
    """Return the paths of `context`, relative to the current directory. A missing file is reported when it is read.

    The settings may come from an untrusted repository, so only regular files and directories of the project are
    allowed. Reading a stream blocks. In the language server, standard input is the connection to the editor. A path
    such as `/` would read the whole disk.
    """
    paths = []
    for written in _parse_strings(value, place, directory):
        path = os.path.normpath(os.path.join(os.path.relpath(directory), written))
        if path == "-" or os.path.abspath(path).startswith(("/dev/", "/proc/")):
            raise UserError(f'{place}: "{written}" is a stream or a device. Use regular files and directories.')
        if os.path.isdir(path):
            projects = {find_git_root(start) or start for start in (os.path.realpath(directory), os.getcwd())}
            real = os.path.realpath(path)
            if not any(real == project or real.startswith(f"{project.rstrip('/')}/") for project in projects):
                raise UserError(
                    f'{place}: "{written}" is a directory outside the project. Name the files in it, or use --context.'
                )
        elif os.path.exists(path) and not os.path.isfile(path):
            raise UserError(f'{place}: "{written}" is not a regular file. Use regular files and directories.')
        paths.append(path)
    return tuple(paths)


_PARSERS: dict[str, Parser] = {
    "select": _parse_selectors,
    "extend-select": _parse_selectors,
    "ignore": _parse_selectors,
    "severity": _parse_severities,
    "per-file-ignores": _parse_per_file_ignores,
    "fail-on": _choose((*SEVERITIES, "never")),
    "kubernetes": _parse_release,
    "exclude": _parse_exclude,
    "context": _parse_context,
    "complete": _expect("true or false", lambda value: isinstance(value, bool)),
    "server-concurrency": _expect("an integer, 1 or more", lambda value: type(value) is int and value > 0),
    "format": _choose(tuple(FORMATS)),
}
