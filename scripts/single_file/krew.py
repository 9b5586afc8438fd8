"""Renders the manifest of the plugin `kubectl apflint` for krew, the plugin manager of kubectl.

Format: krew's developer guide, "Writing Krew plugin manifests". krew validates it in internal/index/validation/validate.go.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

MANIFEST = """\
apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata:
  name: apflint
spec:
  version: {version}
  homepage: https://github.com/apflint/apflint
  shortDescription: Lint and analyze API Priority and Fairness
  description: |
    Finds mistakes in FlowSchemas and PriorityLevelConfigurations, in files and in
    the cluster, before the API server is overloaded. Shows which FlowSchema,
    priority level, queues and seats a request gets, and which clients wait and why.
  caveats: |
    The plugin needs {pythons} in the PATH.
  platforms:
"""
PLATFORM = """\
    - selector:
        matchLabels:
          os: {os}
          arch: {arch}
      uri: https://github.com/apflint/apflint/releases/download/v{release}/{archive}
      sha256: {checksum}
      bin: apflint
"""


def render_manifest(version: str, pythons: str, archives: Mapping[tuple[str, str], tuple[str, str]]) -> str:
    """Render the manifest of a version.

    `archives` maps (operating system, architecture), as Go names them, to (name of the archive, SHA-256). krew
    requires semantic versions, so a development version such as 0.2.0.dev0 becomes v0.2.0-dev0.
    """
    platforms = (
        PLATFORM.format(os=system, arch=architecture, release=version, archive=name, checksum=checksum)
        for (system, architecture), (name, checksum) in archives.items()
    )
    return MANIFEST.format(version=f"v{version.replace('.dev', '-dev')}", pythons=pythons) + "".join(platforms)
