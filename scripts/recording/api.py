"""The flowcontrol API of a server: its versions, paths and objects."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from apflint.releases import GROUP
from recording.client import ServerError

if TYPE_CHECKING:
    from recording.client import Client

PLURALS = {"FlowSchema": "flowschemas", "PriorityLevelConfiguration": "prioritylevelconfigurations"}
"""Name of each kind in URL paths."""
Objects = dict[str, dict[str, Any]]
"""Objects of one kind. The keys are names."""


def path_of(version: str, kind: str, name: str = "") -> str:
    """Return the URL path of all objects of a kind in an API version, or of the object `name`."""
    return f"/apis/{GROUP}/{version}/{PLURALS[kind]}" + (f"/{name}" if name else "")


def read_release(client: Client) -> tuple[str, str]:
    """Return the release and the exact version of a server, such as `1.36` and `v1.36.2`. Raises ServerError."""
    text = client.get("/version")["gitVersion"]
    match = re.match(r"v(1\.\d+)", text)
    if match is None:
        raise ServerError(f"the server has the version {text!r}, which names no release of Kubernetes")
    return match[1], text


def read_versions(client: Client) -> tuple[list[str], str]:
    """Return the API versions that a server serves, and the version that it prefers."""
    group = client.get(f"/apis/{GROUP}")
    return [entry["version"] for entry in group["versions"]], group["preferredVersion"]["version"]


def read_objects(client: Client, version: str, kind: str) -> Objects:
    """Return the objects of a kind. The keys are names."""
    return {item["metadata"]["name"]: item for item in client.get(path_of(version, kind))["items"]}
