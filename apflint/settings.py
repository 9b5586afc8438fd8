"""The settings of a project: `apflint.toml`, `.apflint.toml` or `[tool.apflint]` in `pyproject.toml`.

The closest file counts, from the current directory upwards to the root of the git repository; files are not merged. What the
command line says goes before what the file says.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from apflint.finding import SEVERITIES
from apflint.record import NamedTuple
from apflint.releases import SERVER_CONCURRENCY

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Literal, TypedDict

    from apflint.finding import Finding, Severity

    Values = TypedDict(
        "Values",
        {
            "select": tuple[str, ...] | None,
            "extend-select": tuple[str, ...],
            "ignore": tuple[str, ...],
            "severity": dict[str, Severity | Literal["off"]],
            "per-file-ignores": dict[str, tuple[str, ...]],
            "fail-on": str,
            "kubernetes": str | None,
            "exclude": tuple[str, ...],
            "context": tuple[str, ...],
            "complete": bool,
            "server-concurrency": int,
            "format": str,
        },
    )
    """What the keys of a file hold."""

DEFAULTS: Values = {
    "select": None,
    "extend-select": (),
    "ignore": (),
    "severity": {},
    "per-file-ignores": {},
    "fail-on": "error",
    "kubernetes": None,
    "exclude": (),
    "context": (),
    "complete": False,
    "server-concurrency": SERVER_CONCURRENCY,
    "format": "text",
}
"""Every key of the file, with what holds where nobody gives it: all rules that are on, and the newest release known."""

_COMMAND_LINE, _DEFAULT = "command line", "default"


class Settings(NamedTuple):
    """What holds for a run, by the keys of DEFAULTS. `origins` says of each key where its value comes from."""

    values: Values
    origins: Mapping[str, str]
    path: str | None
    """The file that was read; None where there is none."""

    @property
    def off(self) -> tuple[str, ...]:
        """Ids of the rules that the file turns off."""
        return tuple(rule for rule, severity in self.values["severity"].items() if severity == "off")

    @property
    def on(self) -> tuple[str, ...]:
        """Ids of the rules to which the file gives a severity: one that is off by default runs then."""
        return tuple(rule for rule, severity in self.values["severity"].items() if severity != "off")

    def adjustment(self) -> Callable[[Finding], Finding | None] | None:
        """What makes the findings of a file's own severities and leaves out those of per-file-ignores; None: nothing to do."""
        if not self.values["severity"] and not self.values["per-file-ignores"]:
            return None
        from apflint.settings_file import adjustment, home

        return adjustment(self, home(self.path or ""))


def effective(asked: Mapping[str, object], config: str | None = None, *, isolated: bool = False) -> Settings:
    """What holds: the command line (`asked`, None where it says nothing), then the file, then the defaults.

    With `--select` on the command line the rules are what it says: the file's `extend-select`, `ignore` and severities `off`
    are not used. ValueError, with file and key, for a file that is wrong; OSError for one that cannot be opened.
    """
    if config is not None and isolated:
        raise ValueError("--config names a file and --isolated says to read none. Give one of them.")
    path = config if config is not None else None if isolated else find(os.getcwd())
    from_file: dict[str, object] = {}
    if path is not None:
        from apflint.settings_file import read

        from_file = read(path)
    if asked.get("select") is not None:
        from_file.pop("extend-select", None)
        from_file.pop("ignore", None)
        if isinstance(levels := from_file.get("severity"), dict):
            from_file["severity"] = {rule: level for rule, level in levels.items() if level != "off"}
    values: dict[str, object] = {}
    origins: dict[str, str] = {}
    for key, default in DEFAULTS.items():
        if asked.get(key) is not None:
            values[key], origins[key] = asked[key], _COMMAND_LINE
        elif key in from_file:
            values[key], origins[key] = from_file[key], path or ""
        else:
            values[key], origins[key] = default, _DEFAULT
    return Settings(cast("Values", values), origins, path)  # `read` has held the file against this form


def find(folder: str) -> str | None:
    """The path, as a person would write it, of the closest file; None where there is none. Costs a few looks at the disk."""
    start = folder
    while True:
        for name in ("apflint.toml", ".apflint.toml", "pyproject.toml"):
            path = os.path.join(folder, name)
            if os.path.isfile(path) and (name != "pyproject.toml" or _mentions(path)):
                return os.path.relpath(path, start)
        parent = os.path.dirname(folder)
        if parent == folder or os.path.exists(os.path.join(folder, ".git")):
            return None
        folder = parent


def git_root(folder: str) -> str | None:
    """Return the root of the git repository that a directory is in, or None if there is none."""
    while not os.path.exists(os.path.join(folder, ".git")):
        parent = os.path.dirname(folder)
        if parent == folder:
            return None
        folder = parent
    return folder


def _mentions(path: str) -> bool:
    """Whether a pyproject.toml has a table of ours. Most have none, and then nobody pays for parsing it."""
    from apflint.settings_text import mentions

    try:
        data = mentions(path)
        if data is None:
            return False
        from apflint.settings_file import has_table

        return not data or has_table(data)
    except OSError:
        return False  # another tool's file, which this user may not read


def is_severity(value: object) -> bool:
    """Whether a value is a severity or `off`."""
    return value in (*SEVERITIES, "off")
