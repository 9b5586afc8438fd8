"""Defines `apflint schema`, which prints a JSON schema."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Literal

from apflint.cli.command_definitions import command, examples
from apflint.cli.completers import complete_api_versions
from apflint.cli.options import argument, option
from apflint.package_data import read_shipped_text
from apflint.releases import parse_api_version
from apflint.schema import load_schema

Name = Literal[
    "FlowSchema",
    "PriorityLevelConfiguration",
    "FlowSchemaList",
    "PriorityLevelConfigurationList",
    "config",
    "goals",
    "load",
    "test",
    "report",
    "config-output",
    "diff-output",
    "doctor-output",
    "explain-output",
    "limits-output",
    "migrate-output",
    "propose-output",
    "replay-output",
    "rule-output",
    "shards-output",
    "simulate-output",
    "test-output",
    "why-output",
]
FILES = {name: f"apflint-{name}.json" for name in ("config", "goals", "load", "report", "test")}
"""Maps kinds to the file names of their schemas. The kinds are settings, goals of proposals, loads of simulations,
reports (the output of `check --format json`) and policy tests."""
OUTPUTS = "apflint-output.json"
"""File with the schemas of the JSON output of the commands that have no file in `FILES`. One file contains all of these
schemas, because they share definitions. `$defs` has an entry for each command."""


@command(
    panel="Editors and shells",
    epilog=examples(
        ("into a file for the editor's settings", "apflint schema FlowSchema > flowschema.json"),
        ("of an older API version", "apflint schema PriorityLevelConfiguration --api-version v1beta3 > levels.json"),
        ("of apflint.toml", "apflint schema config > apflint-config.json"),
    ),
)
def schema(
    name: Annotated[
        Name,
        argument(
            "A kind, config (apflint.toml), goals (proposals), load (simulations), test (policy tests), report (JSON of check), or COMMAND-output (JSON of another command, such as limits-output).",
            metavar="NAME",
        ),
    ],
    api_version: Annotated[
        str, option(None, "API version, v1alpha1 to v1.", metavar="V", autocompletion=complete_api_versions)
    ] = "v1",
) -> None:
    """Print a JSON Schema, for completion and validation in editors."""
    if name in FILES:
        sys.stdout.write(read_shipped_text("schemas", FILES[name]))
        return
    if name.endswith("-output"):
        content = {**json.loads(read_shipped_text("schemas", OUTPUTS)), "$ref": f"#/$defs/{name}"}
    else:
        content = load_schema(name, parse_api_version(api_version))
    sys.stdout.write(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
