"""Parsers for the values in a settings file.

The parsers limit the number and the length of values, because the file may come from an untrusted source.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeVar

from apflint import releases
from apflint.budgets import MAX_PATTERN_LENGTH, MAX_PATTERNS
from apflint.finding import SEVERITIES
from apflint.rule_selection import RuleSelector, parse_selector
from apflint.settings.discovery import find_git_root
from apflint.settings.patterns import Patterns
from apflint.spelling import suggest
from apflint.user_error import UserError
from apflint.wording import join_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    Parser = Callable[[object, str, str], Any]
    """Function that parses a value. Raises UserError for an invalid value.

    Arguments: the value; the place (file and key) that error messages name; the directory of the settings file.
    """

T = TypeVar("T")

_SHOWN_CHARACTERS = 60


def _call(parse: Callable[[Any], T], value: object, place: str) -> T:
    """Return the result of a parser. If the parser raises UserError, add `place` (the file and key) to the message."""
    try:
        return parse(value)
    except UserError as error:
        raise UserError(f"{place}: {error}") from None


def expect(expected: str, is_valid: Callable[[object], bool]) -> Parser:
    """Return a parser that returns a value unchanged if `is_valid` is true for it.

    For any other value, the parser raises UserError with `expected` in the message.
    """

    def parse(value: object, place: str, _directory: str) -> Any:
        if not is_valid(value):
            raise UserError(f"{place}: expected {expected}.")
        return value

    return parse


def choose(choices: Sequence[str]) -> Parser:
    """Return a parser that accepts only the values in `choices`, and returns them unchanged.

    For any other value, the parser raises UserError.
    """

    def parse(value: object, place: str, _directory: str) -> Any:
        if value not in choices:
            hint = suggest(str(value), choices)
            raise UserError(f"{place}: invalid value {value!r}: use {join_words(choices)}.{hint}")
        return value

    return parse


parse_strings = expect(
    'a list of non-empty strings, such as ["one", "two"]',
    lambda value: isinstance(value, list) and all(isinstance(word, str) and word for word in value),
)
_parse_string = expect(
    'a string, such as "1.30": without quotes, 1.30 is the number 1.3', lambda value: isinstance(value, str)
)
parse_boolean = expect("true or false", lambda value: isinstance(value, bool))
parse_seats = expect("an integer, 1 or more", lambda value: type(value) is int and value > 0)
_parse_severity = choose((*SEVERITIES, "off"))


def parse_release(value: object, place: str, directory: str) -> releases.Release:
    """Parse a Kubernetes release, such as `"1.36"`."""
    return _call(releases.parse_release, _parse_string(value, place, directory), place)


def parse_selectors(value: object, place: str, directory: str) -> tuple[RuleSelector, ...]:
    """Parse a list of rules: IDs, prefixes of IDs, or names."""
    return tuple(_call(parse_selector, word, place) for word in parse_strings(value, place, directory))


def _parse_table(value: object, place: str) -> dict[str, object]:
    """Return `value` if it is a TOML table. If not, raise UserError with `place` (the file and key) in the message."""
    if not isinstance(value, dict):
        raise UserError(
            f"{place}: expected a table: write [{place.rpartition(' ')[2]}] and below it the entries of the table."
        )
    return value


def parse_severities(value: object, place: str, directory: str) -> dict[str, str]:
    """Return the severity of each rule, by rule ID. `value` is a TOML table from selectors of rules to severities."""
    severities: dict[str, str] = {}
    # A longer selector is more specific. So process the selectors in the order of their lengths: the severity of a
    # longer selector replaces the severity of a shorter one.
    for selector, severity in sorted(_parse_table(value, place).items(), key=lambda entry: len(entry[0])):
        chosen: str = _parse_severity(severity, f"{place}.{selector}", directory)
        severities |= dict.fromkeys(_call(parse_selector, selector, f"{place}.{selector}").rules, chosen)
    return severities


def parse_per_file_ignores(value: object, place: str, directory: str) -> dict[str, tuple[str, ...]]:
    """Return the IDs of the rules to ignore for each file pattern.

    `value` is a TOML table from file patterns to lists of selectors of rules.
    """
    table = _parse_table(value, place)
    _check_patterns(table, place)
    return {
        glob: tuple(
            rule for selector in parse_selectors(words, f'{place}."{glob}"', directory) for rule in selector.rules
        )
        for glob, words in table.items()
    }


def parse_exclude(value: object, place: str, directory: str) -> Patterns:
    """Return the glob patterns in `value`, the value of the setting `exclude`.

    The patterns are relative to `directory`, the directory of the settings file. `place` is the name of
    the setting in messages. Raises UserError if `value` is not a list of strings, if there are too many
    patterns, or if a pattern is too long.
    """
    globs = parse_strings(value, place, directory)
    _check_patterns(globs, place)
    return Patterns(tuple(globs), os.path.realpath(directory))


def _check_patterns(globs: Collection[str], place: str) -> None:
    """Raise UserError if there are too many patterns, or if a pattern is too long."""
    if len(globs) > MAX_PATTERNS:
        raise UserError(f"{place}: {len(globs):,} patterns, but at most {MAX_PATTERNS:,} are allowed.")
    if too_long := next((glob for glob in globs if len(glob) > MAX_PATTERN_LENGTH), None):
        start = too_long[:_SHOWN_CHARACTERS]
        raise UserError(f'{place}: the pattern "{start}..." is longer than {MAX_PATTERN_LENGTH:,} characters.')


def parse_context(value: object, place: str, directory: str) -> tuple[str, ...]:
    """Return the paths in the setting `context`, relative to the current directory.

    A missing path is not an error here. Reading the path later reports the error.

    The settings may come from an untrusted repository, so only regular files and directories of the project are
    allowed. Reading a stream could wait forever. In the language server, standard input is the connection to the
    editor. With a path such as `/`, apflint would read the whole disk, and findings would quote private files of the
    user.
    """
    listed = parse_strings(value, place, directory)
    if len(listed) > MAX_PATTERNS:
        raise UserError(f"{place}: {len(listed):,} paths, but at most {MAX_PATTERNS:,} are allowed.")
    projects = find_projects(directory)
    paths = []
    for written in listed:
        path = resolve_path(written, directory)
        if path == "-" or os.path.abspath(path).startswith(("/dev/", "/proc/")):
            raise UserError(f'{place}: "{written}" is a stream or a device. Use regular files and directories.')
        if "\0" in path or not is_below(os.path.realpath(path), projects):
            raise UserError(
                f'{place}: "{written}" is outside the project. Name the path with the option --context instead.'
            )
        if os.path.exists(path) and not (os.path.isfile(path) or os.path.isdir(path)):
            raise UserError(f'{place}: "{written}" is not a regular file. Use regular files and directories.')
        paths.append(path)
    return tuple(paths)


def resolve_path(written: str, directory: str) -> str:
    """Convert a path that a settings file contains to a path relative to the current directory.

    `written` is the path in the file, relative to `directory`, the directory of the file.
    """
    return os.path.normpath(os.path.join(os.path.relpath(directory), written))


def find_projects(directory: str) -> set[str]:
    """Return one or two directories. The files that a settings file names must be below one of them.

    The first directory is the root of the git repository that contains `directory`, the directory of
    the settings file. The second one is the root of the git repository that contains the current
    directory. A directory that is in no git repository stands for itself.
    """
    return {find_git_root(start) or start for start in (os.path.realpath(directory), os.getcwd())}


def is_below(real_path: str, directories: Iterable[str]) -> bool:
    """Return whether a path is one of these directories, or below one of them."""
    return any(real_path == root or real_path.startswith(f"{root.rstrip('/')}/") for root in directories)
