"""Reads a settings file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from apflint.finding import SEVERITIES
from apflint.output.findings import FORMATS
from apflint.settings.clusters import parse_clusters
from apflint.settings.model import KEYS
from apflint.settings.toml_files import parse_toml, read_toml
from apflint.settings.values import (
    choose,
    parse_boolean,
    parse_context,
    parse_exclude,
    parse_per_file_ignores,
    parse_release,
    parse_seats,
    parse_selectors,
    parse_severities,
)
from apflint.spelling import suggest
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.settings.values import Parser


def read_settings_file(path: str) -> dict[str, object]:
    """Return the values in a settings file. The keys of the result are fields of `Settings`.

    Patterns are relative to the directory of the file. Raises UserError, whose message names the file and the key, for
    invalid settings. Raises OSError if the file cannot be opened.
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


def has_same_settings(path: str, data: bytes) -> bool:
    """Return whether a settings file and another version of the same file contain equal settings.

    `path` is the file, and `data` is the other version. Comments may differ.
    """
    try:
        tables: list[Any] = [read_toml(path), parse_toml(data)]
    except UserError:
        return False
    if os.path.basename(path) == "pyproject.toml":
        tools = (table.get("tool") for table in tables)
        tables = [tool.get("apflint") if isinstance(tool, dict) else None for tool in tools]
    return bool(tables[0] == tables[1])


_PARSERS: dict[str, Parser] = {
    "select": parse_selectors,
    "extend-select": parse_selectors,
    "ignore": parse_selectors,
    "severity": parse_severities,
    "per-file-ignores": parse_per_file_ignores,
    "fail-on": choose((*SEVERITIES, "never")),
    "kubernetes": parse_release,
    "exclude": parse_exclude,
    "context": parse_context,
    "complete": parse_boolean,
    "server-concurrency": parse_seats,
    "format": choose(tuple(FORMATS)),
    "cluster": parse_clusters,
}
