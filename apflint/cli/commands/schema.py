"""The command `apflint schema`."""

from __future__ import annotations

import json
import os
import sys
from typing import Annotated, Literal

import typer

from apflint.cli.app import app, examples
from apflint.cli.completers import complete_api_versions
from apflint.package_data import find_data_directory
from apflint.releases import parse_api_version
from apflint.schema import load_schema

Name = Literal[
    "FlowSchema",
    "PriorityLevelConfiguration",
    "FlowSchemaList",
    "PriorityLevelConfigurationList",
    "config",
    "test",
    "report",
]
FILES = {"config": "apflint-config.json", "test": "apflint-test.json", "report": "apflint-report.json"}
"""Schemas of apflint's own files: settings, policy tests, and the output of `check --format json`."""


@app.command(
    rich_help_panel="Editors and shells",
    epilog=examples(
        ("into a file for the editor's settings", "apflint schema FlowSchema > flowschema.json"),
        ("of an older API version", "apflint schema PriorityLevelConfiguration --api-version v1beta3 > levels.json"),
        ("of apflint.toml", "apflint schema config > apflint-config.json"),
    ),
)
def schema(
    name: Annotated[
        Name,
        typer.Argument(
            metavar="NAME",
            help="A kind, config (apflint.toml), test (policy tests), or report (the output of check in JSON).",
        ),
    ],
    api_version: Annotated[
        str, typer.Option(metavar="V", autocompletion=complete_api_versions, help="API version, v1alpha1 to v1.")
    ] = "v1",
) -> None:
    """Print a JSON Schema, for completion and validation in editors."""
    if name in FILES:
        with open(os.path.join(find_data_directory("schemas"), FILES[name]), encoding="utf-8") as file:
            sys.stdout.write(file.read())
        return
    sys.stdout.write(json.dumps(load_schema(name, parse_api_version(api_version)), indent=2, ensure_ascii=False) + "\n")
