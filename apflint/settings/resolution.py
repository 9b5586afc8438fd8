"""Combines the command line, the settings file and the defaults into the settings of a run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from apflint.settings.discovery import find_settings_file
from apflint.settings.model import Settings
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping


def resolve_settings(
    command_line: Mapping[str, object] | None = None, config: str | None = None, *, isolated: bool = False
) -> Settings:
    """Return the effective settings. `command_line` maps fields of `Settings` to values, or to None for absent options.

    `config` is a settings file to use instead of the closest settings file. If `isolated` is true, no settings file is used. If the
    command line has `select`, then `extend_select`, `ignore` and severities `off` in the settings file are ignored.

    Raises UserError, with file and key, for invalid settings. Raises OSError if the settings file cannot be opened.
    """
    if config is not None and isolated:
        raise UserError("--config and --isolated cannot be used together.")
    path = config if config is not None else None if isolated else find_settings_file(os.getcwd())
    from_file: dict[str, Any] = {}
    if path is not None:
        from apflint.settings.file import read_settings_file

        from_file = read_settings_file(path)
    from_command_line = {field: value for field, value in (command_line or {}).items() if value is not None}
    if "select" in from_command_line:
        from_file.pop("extend_select", None)
        from_file.pop("ignore", None)
        severities = from_file.get("severity", {})
        from_file["severity"] = {rule: severity for rule, severity in severities.items() if severity != "off"}
    origins = dict.fromkeys(from_file, path or "") | dict.fromkeys(from_command_line, "command line")
    return Settings(**(from_file | from_command_line), path=path, origins=origins)
