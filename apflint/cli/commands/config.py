"""Defines `apflint config`, which shows the effective settings and their sources."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from typing import Annotated, Any

from apflint.cli import options
from apflint.cli.command_definitions import command, examples
from apflint.cli.terminal import style
from apflint.output.json_text import SCHEMA, to_json
from apflint.output.sanitize import sanitize, sanitize_json
from apflint.releases import Release
from apflint.rule_selection import RuleSelector
from apflint.settings.clusters import ClusterSettings
from apflint.settings.model import KEYS
from apflint.settings.patterns import Patterns
from apflint.settings.resolution import resolve_settings


@command(
    panel="Lint",
    epilog=examples(
        ("the settings of the current directory", "apflint config"),
        ("the settings in another file", "apflint config --config ci/apflint.toml"),
        ("a table for each cluster of a GitOps repository", "apflint config --suggest-clusters >> apflint.toml"),
    ),
)
def config(
    config: options.Config = None,
    isolated: options.Isolated = False,
    suggest_clusters: Annotated[
        bool,
        options.option(
            options.SETTINGS, "Print tables [[cluster]] for the clusters of the repository.", "--suggest-clusters"
        ),
    ] = False,
    output_format: options.Format = "text",
    color: options.Color = "auto",
) -> None:
    """Show the effective settings and their sources.

    Settings come from apflint.toml, .apflint.toml, or the table tool.apflint
    of pyproject.toml, in the closest directory upwards. Options of the
    command line take precedence.
    """
    settings = resolve_settings(config=config, isolated=isolated)
    if suggest_clusters:
        from apflint.cli.cluster_suggestion import print_suggestion

        print_suggestion(settings, output_format)
        return
    values = {key: _plain(getattr(settings, field)) for key, field in KEYS.items()}
    origins = {key: settings.origins.get(field, "default") for key, field in KEYS.items()}
    if output_format == "json":
        keys = {key: {"value": value, "origin": origins[key]} for key, value in values.items()}
        sys.stdout.write(to_json({"schema": SCHEMA, "file": settings.path, "settings": keys}, 2))
        return
    how = style(color)
    head = f"# settings: {sanitize(settings.path) if settings.path else 'no file'}"
    lines = [how.paint(sanitize_json(head), "dim")]  # CI commands are escaped as \uXXXX, also valid in TOML
    for key, value in values.items():
        origin = how.paint(sanitize_json(f"# {sanitize(origins[key])}"), "dim")
        lines.append(f"{sanitize_json(f'{key} = {_to_toml(value)}')}  {origin}")
    sys.stdout.write("\n".join(lines) + "\n")


def _plain(value: Any) -> Any:
    """Return the value of a setting as it is written in a settings file."""
    match value:
        case None:  # only `select` can be None, which stands for the default rules
            return ["APF"]
        case Release():
            return value.name
        case RuleSelector():
            return value.text
        case Patterns():
            return list(value.globs)
        case ClusterSettings():
            fields = {field: entry for field, entry in value._asdict().items() if entry is not None}
            fields = {field: entry for field, entry in fields.items() if entry or field not in ("paths", "render")}
            return {field.replace("_", "-"): _plain(entry) for field, entry in fields.items()}
        case tuple():
            return [_plain(item) for item in value]
    return {key: _plain(item) for key, item in value.items()} if isinstance(value, Mapping) else value


def _to_toml(value: Any) -> str:
    """Return a value in TOML. JSON strings are also TOML strings."""
    if isinstance(value, dict):
        entries = ", ".join(f"{json.dumps(key)} = {_to_toml(entry)}" for key, entry in value.items())
        return f"{{ {entries} }}" if entries else "{}"
    return f"[{', '.join(map(_to_toml, value))}]" if isinstance(value, list) else json.dumps(value)
