"""Records the structure of the API: fields and types (`fixtures/openapi/`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from openapi_structure import parse, render

from apflint.releases import GROUP

if TYPE_CHECKING:
    from recording.client import Client


def record(client: Client, kube: str, version: str) -> str:
    """Return the text of `fixtures/openapi/<kube>-<version>.json`. The server must serve OpenAPI v3 (1.24 and later)."""
    return render(parse(client.get(f"/openapi/v3/apis/{GROUP}/{version}"), f"{kube}-{version}.json"))
