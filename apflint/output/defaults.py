"""The built-in objects of a release as YAML or JSON, as `apflint defaults` prints them."""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString

from apflint import builtin
from apflint.output.json_text import to_json
from apflint.releases import GROUP

if TYPE_CHECKING:
    from apflint.releases import Release

_COMMENT_WIDTH = 116


def render_defaults_json(release: Release, version: str) -> str:
    """Render the built-in objects in an API version as a Kubernetes List in JSON."""
    return to_json({"kind": "List", "apiVersion": "v1", "items": builtin.build_manifests(release, version)}, 2)


def render_defaults_yaml(release: Release, version: str) -> str:
    """Render the built-in objects in an API version as YAML documents, with comments."""
    yaml = YAML()
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.width = 4096
    out = io.StringIO()
    for sentence in _describe(release, version):
        for line in textwrap.wrap(sentence, _COMMENT_WIDTH, break_on_hyphens=False, break_long_words=False):
            out.write(f"# {line}\n")
    manifests = builtin.build_manifests(release, version)
    for number, (entry, manifest) in enumerate(zip(builtin.list_objects(release), manifests, strict=True)):
        out.write(f"{'---' if number else ''}\n# {entry.role}\n")
        annotations = manifest["metadata"].get("annotations", {})
        annotations.update({key: DoubleQuotedScalarString(value) for key, value in annotations.items()})
        yaml.dump(manifest, out)
    return out.getvalue()


def _describe(release: Release, version: str) -> list[str]:
    exception = ", except spec.exempt" if release.has_exempt_field else ""
    sentences = [
        f"The API Priority and Fairness objects that Kubernetes {release.name} creates, as {GROUP}/{version} with all defaults.",
        f"mandatory: the server always has it, and nobody can change its spec{exception}.",
        "suggested: the server creates it if it is missing. An administrator may change it.",
    ]
    if version in release.on_request:
        sentences.append(
            f"The API server of Kubernetes {release.name} serves {version} only with the flag --runtime-config={GROUP}/{version}=true."
        )
    elif version not in release.served:
        sentences.append(
            f"{release.name} no longer serves {version}. To apply these objects, use {release.newest_version}."
        )
    return [*sentences, f"Source: {builtin.describe_source(release)}"]
