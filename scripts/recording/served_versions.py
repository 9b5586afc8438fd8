"""Records the API versions that a server serves, and its deprecation warnings (`fixtures/oracle/releases/served.json`)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from recording.api import PLURALS, path_of, read_release, read_versions

if TYPE_CHECKING:
    from recording.client import Client

_WARNING = re.compile(r'299 \S+ "((?:[^"\\]|\\.)*)"')


def record(client: Client, client_of_all: Client) -> dict[str, Any]:
    """Return the entry of a Kubernetes release for `served.json`: API versions and deprecation warnings.

    `client_of_all` is connected to a server of the same release that also serves removed API versions.
    """
    served, preferred = read_versions(client)
    removed = [version for version in read_versions(client_of_all)[0] if version not in served]
    warnings: dict[str, dict[str, str]] = {}
    for version in (*served, *removed):
        for kind in PLURALS:
            header = client_of_all.send("GET", path_of(version, kind)).headers.get("Warning", "")
            if match := _WARNING.search(header):
                warnings.setdefault(version, {})[kind] = match[1]
    return {
        "gitVersion": read_release(client)[1],
        "default": served,
        "preferred": preferred,
        "removed": removed,
        "warnings": warnings,
    }


def render(releases: dict[str, Any]) -> str:
    """Return the text of the file, sorted by release from oldest to newest."""
    order = sorted(releases, key=lambda name: int(name.removeprefix("1.")))
    return json.dumps({name: releases[name] for name in order}, indent=1) + "\n"
