"""Compares the objects that commands read for a cluster in the settings with the objects that its files define."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from apflint.sources.effective_configurations import read_configuration
from apflint.sources.input_types import create_request

from . import server
from .configurations import built_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from .configurations import Configuration
    from .server import Manifest

SETTINGS = """
[[cluster]]
name = "prod"
kubernetes = "{kubernetes}"
paths = ["manifests"]
context = ["context"]
"""


def compare_cluster(
    config: Configuration, directory: Path, *, expected: Configuration | None = None
) -> tuple[str, ...]:
    """Return the differences between the FlowSchemas of a cluster as commands read them and the effective FlowSchemas.

    The files are written to `directory`. To test the comparison itself, tests pass other objects as `expected`. A
    cluster without objects has no differences, because all commands reject such a cluster.
    """
    if not config.objects:
        return ()
    (directory / "apflint.toml").write_text(SETTINGS.format(kubernetes=config.kubernetes), encoding="utf-8")
    for name, objects in (("manifests", config.manifests), ("context", config.context)):
        (directory / name).mkdir()
        for number, manifest in enumerate(objects):
            (directory / name / f"{number}.json").write_text(json.dumps(manifest), encoding="utf-8")
    before = os.getcwd()
    os.chdir(directory)
    try:
        configuration = read_configuration(create_request(("cluster:prod",)))
    finally:
        os.chdir(before)
    stored = built_in(config.kubernetes)
    order = server.effective_flow_schemas((*stored, *(expected or config).objects), stored)
    read = [(schema.name, schema.document.value["spec"]) for schema in configuration.effective.configuration.order]
    differences = () if read == [*map(_name_and_spec, order)] else (f"{read} instead of {order}",)
    return (*differences, *(note for note in configuration.notes if "already defined" in note))


def _name_and_spec(schema: Manifest) -> tuple[str, Manifest]:
    return server.name_of(schema), schema["spec"]


def replaced(config: Configuration) -> Iterator[str]:
    """Return the names of the FlowSchemas that the context and the manifests define with different specs."""
    own = dict(map(_name_and_spec, config.manifests))
    for manifest in config.context:
        if own.get(server.name_of(manifest), manifest["spec"]) != manifest["spec"]:
            yield server.name_of(manifest)
