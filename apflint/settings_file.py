"""Reading the file of settings and holding it against its form. Imported only where there is one."""

from __future__ import annotations

import os
import stat
from functools import cache
from typing import TYPE_CHECKING, Any

from apflint import catalogue, settings_text
from apflint.exclusion import Excluder, Patterns
from apflint.finding import SEVERITIES
from apflint.output.findings import FORMATS
from apflint.settings import DEFAULTS, git_root, is_severity
from apflint.wording import suggest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from apflint.finding import Finding
    from apflint.settings import Settings

MAX_PATTERNS = 1_000
MAX_PATTERN_LENGTH = 4_096
"""As long as a path can be (PATH_MAX of Linux)."""
_SHOWN_CHARACTERS = 60
_LISTS = ("select", "extend-select", "ignore", "exclude", "context")
_CHOICES = {"fail-on": (*SEVERITIES, "never"), "format": tuple(FORMATS)}


def has_table(data: bytes) -> bool:
    """Whether a pyproject.toml that mentions it has `[tool.apflint]`. One that is no TOML may have: `read` says more."""
    try:
        tool = settings_text.table(data).get("tool")
    except ValueError:
        return True
    return isinstance(tool, dict) and "apflint" in tool


def read(path: str) -> dict[str, object]:
    """The keys that a file gives, in the form of DEFAULTS: tuples, rules by id, paths from the current directory.

    Patterns stay as they are, and count from the directory of the file.

    ValueError, with file and key, for what is wrong in it; OSError where it cannot be opened.
    """
    data = settings_text.content(path)
    try:
        table: Any = settings_text.table(data)
    except ValueError as error:
        raise ValueError(f"{path}: this is no TOML: {error}") from None
    where = f"{path}: "
    if os.path.basename(path) == "pyproject.toml":
        tool = table.get("tool")
        table, where = tool.get("apflint") if isinstance(tool, dict) else None, f"{path}: tool.apflint."
        if not isinstance(table, dict):
            raise ValueError(f"{path}: there is no table [tool.apflint] in it.")
    values: dict[str, Any] = {key: _value(key, value, where) for key, value in table.items()}
    folder = os.path.relpath(os.path.dirname(os.path.abspath(path)))
    if "context" in values:
        values["context"] = tuple(_context_path(one, folder, f"{where}context") for one in values["context"])
    if "exclude" in values:
        values["exclude"] = Patterns(values["exclude"], home(path))
    return values


def home(path: str) -> str:
    """The directory of a file of settings, as the system calls it; the file itself may be a link."""
    return os.path.realpath(os.path.dirname(os.path.abspath(path)))


def _context_path(written: str, folder: str, place: str) -> str:
    """Return a path of `context` from the current directory; `folder` is that of the settings file.

    The settings may come with a repository that nobody has looked at. So the path is a regular file, or a directory of the
    project: a stream would be read until its writer ends it, which for a language server is its own editor, and `/` is
    the whole disk. ValueError for anything else; what does not exist is reported when it is read.
    """
    path = os.path.normpath(os.path.join(folder, written))
    if path == "-" or os.path.abspath(path).startswith(("/dev/", "/proc/")):
        raise ValueError(f'{place}: "{written}" is a stream or a device. Name regular files and directories.')
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return path
    if stat.S_ISDIR(mode):
        projects = {_project(os.path.realpath(folder)), _project(os.getcwd())}
        real = os.path.realpath(path)
        if not any(real == project or real.startswith(f"{project.rstrip('/')}/") for project in projects):
            raise ValueError(
                f'{place}: "{written}" is a directory outside the project. Name the files in it, or pass --context.'
            )
    elif not stat.S_ISREG(mode):
        raise ValueError(f'{place}: "{written}" is not a regular file. Name regular files and directories.')
    return path


def _project(folder: str) -> str:
    """Return the root of the git repository that `folder` is in, or `folder` if there is none."""
    return git_root(folder) or folder


def _value(key: str, value: Any, where: str) -> Any:
    place = f"{where}{key}"
    if key not in DEFAULTS:
        raise ValueError(f"{place}: there is no such key.{suggest(key, DEFAULTS)} `apflint config` lists them all.")
    if key in _LISTS:
        words = _words(value, place)
        if key in ("select", "extend-select", "ignore"):
            for word in words:
                _matching(word, place)
        if key == "exclude":
            _bounded(words, place)
        return words
    if key == "severity":
        return _severities(value, place)
    if key == "per-file-ignores":
        table = _table(value, place)
        _bounded(table, place)
        return {pattern: _rules(words, f'{place}."{pattern}"') for pattern, words in table.items()}
    if key == "complete" and not isinstance(value, bool):
        raise ValueError(f"{place}: write true or false.")
    if key == "server-concurrency" and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
        raise ValueError(f"{place}: write a whole number of seats, 1 or more.")
    if key == "kubernetes":
        return _release(value, place)
    choices = _CHOICES.get(key)
    if choices and value not in choices:
        raise ValueError(f"{place}: {value!r} is none of {', '.join(choices)}.{suggest(str(value), choices)}")
    return value


def _words(value: Any, place: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word for word in value):
        raise ValueError(f'{place}: write a list of texts, as in ["one", "two"].')
    return tuple(value)


def _bounded(patterns: Collection[str], place: str) -> None:
    """Raise ValueError for patterns that would take too long: each is held against the path of each file."""
    if len(patterns) > MAX_PATTERNS:
        raise ValueError(f"{place}: there are {len(patterns):,} patterns, and {MAX_PATTERNS:,} are the maximum.")
    if long := next((pattern for pattern in patterns if len(pattern) > MAX_PATTERN_LENGTH), None):
        start = long[:_SHOWN_CHARACTERS]
        raise ValueError(f'{place}: the pattern "{start}..." is longer than {MAX_PATTERN_LENGTH:,} characters.')


def _table(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{place}: write a table, [{place.rpartition(' ')[2]}], with lines below it.")  # noqa: TRY004  # it is the file that is wrong
    return value


def _matching(selector: str, place: str) -> tuple[str, ...]:
    try:
        return catalogue.matching(selector)
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def _rules(value: Any, place: str) -> tuple[str, ...]:
    return tuple(rule for word in _words(value, place) for rule in _matching(word, place))


def _severities(value: Any, place: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for selector, severity in sorted(_table(value, place).items(), key=lambda entry: len(entry[0])):
        if not is_severity(severity):
            choices = (*SEVERITIES, "off")
            hint = suggest(str(severity), choices)
            raise ValueError(f"{place}.{selector}: {severity!r} is none of {', '.join(choices)}.{hint}")
        # The longer selector is the more exact one, and comes later.
        found |= dict.fromkeys(_matching(selector, f"{place}.{selector}"), severity)
    return found


def _release(value: Any, place: str) -> str:
    from apflint.releases import release

    if not isinstance(value, str):
        raise ValueError(f'{place}: write the release in quotes, as in "1.30": without them 1.30 is the number 1.3.')  # noqa: TRY004  # it is the file that is wrong
    try:
        return release(value).name
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def adjustment(settings: Settings, folder: str) -> Callable[[Finding], Finding | None]:
    """Gives findings the severities of the file; None for those of its per-file-ignores, patterns from its `folder`."""
    severities = settings.values["severity"]
    ignores = [(Excluder((glob,), folder), rules) for glob, rules in settings.values["per-file-ignores"].items()]

    anywhere = Excluder(settings.values["per-file-ignores"], folder)

    @cache  # a file may have thousands of findings
    def ignored(file: str) -> frozenset[str]:
        if not anywhere.above(file):
            return frozenset()
        return frozenset(rule for pattern, rules in ignores if pattern.above(file) for rule in rules)

    def adjust(finding: Finding) -> Finding | None:
        if finding.rule in ignored(finding.file):
            return None
        severity = severities.get(finding.rule, "off")
        return finding if severity == "off" else finding._replace(severity=severity)

    return adjust
