"""`apflint config`: the settings that hold here, and where each comes from."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from apflint.output.json_text import to_json
from apflint.output.sanitize import sanitize, sanitize_json
from apflint.releases import Release
from apflint.rule_selection import RuleSelector
from apflint.settings import KEYS, resolve_settings
from apflint.settings.patterns import Patterns


def show(config: str | None, output: str, *, isolated: bool) -> str:
    """Return the settings as TOML with the origin of each in a comment, or as JSON. Raises UserError for an invalid file."""
    settings = resolve_settings(config=config, isolated=isolated)
    values = {key: _plain(getattr(settings, field)) for key, field in KEYS.items()}
    origins = {key: settings.origins.get(field, "default") for key, field in KEYS.items()}
    if output == "json":
        keys = {key: {"value": value, "origin": origins[key]} for key, value in values.items()}
        return to_json({"schema": 1, "file": settings.path, "settings": keys}, 2)
    lines = [f"# settings: {sanitize(settings.path) if settings.path else 'no file'}"]
    lines += [f"{key} = {_toml(value)}  # {sanitize(origins[key])}" for key, value in values.items()]
    return sanitize_json("\n".join(lines) + "\n")  # TOML has the same escapes


def _plain(value: Any) -> Any:
    """Return a value as it is written in a settings file."""
    match value:
        case None:  # `select`: all rules that are enabled by default
            return ["APF"]
        case Release():
            return value.name
        case RuleSelector():
            return value.text
        case Patterns():
            return list(value.globs)
        case tuple():
            return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _toml(value: Any) -> str:
    """A value in TOML; its strings are those of JSON."""
    if isinstance(value, dict):
        return _table(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


def _table(value: Mapping[str, Any]) -> str:
    entries = ", ".join(f"{json.dumps(key)} = {_toml(entry)}" for key, entry in value.items())
    return f"{{ {entries} }}" if entries else "{}"
