"""`apflint config`: the settings that hold here, and where each comes from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from apflint.output.json_text import to_json
from apflint.output.sanitize import sanitize, sanitize_json
from apflint.releases import NEWEST
from apflint.settings import effective

if TYPE_CHECKING:
    from collections.abc import Mapping


def show(config: str | None, output: str, *, isolated: bool) -> str:
    """The settings as TOML with the origin behind each, or as JSON. ValueError for a file that is wrong."""
    settings = effective({}, config, isolated=isolated)
    if output == "json":
        keys = {
            key: {"value": _plain(key, value), "origin": settings.origins[key]}
            for key, value in settings.values.items()
        }
        return to_json({"schema": 1, "file": settings.path, "settings": keys}, 2)
    lines = [f"# settings: {sanitize(settings.path) if settings.path else 'no file'}"]
    lines += [
        f"{key} = {_toml(_plain(key, value))}  # {sanitize(settings.origins[key])}"
        for key, value in settings.values.items()
    ]
    return sanitize_json("\n".join(lines) + "\n")  # TOML has the same escapes


def _plain(key: str, value: Any) -> Any:
    if value is None:
        return NEWEST.name if key == "kubernetes" else ["APF"]
    return list(value) if isinstance(value, tuple) else value


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
