"""`apflint schema`: the JSON Schema of a kind."""

from __future__ import annotations

from apflint.checks.wording import did_you_mean, listed, quote
from apflint.load.document import KINDS
from apflint.releases import API_VERSIONS
from apflint.schema import schema

_KINDS = (*KINDS, *(f"{kind}List" for kind in KINDS))


def show(kind: str, version: str) -> str:
    """The schema as JSON text. ValueError, fit to be shown, for an unknown kind or API version."""
    import json

    if kind not in _KINDS:
        raise ValueError(
            f"{quote(kind)} is no kind of API Priority and Fairness: {listed(_KINDS)}.{did_you_mean(kind, _KINDS)}"
        )
    version = version.rpartition("/")[2]
    versions = [life.name for life in API_VERSIONS]
    if version not in versions:
        raise ValueError(f"{quote(version)} is no API version: {listed(versions)}.{did_you_mean(version, versions)}")
    return json.dumps(schema(kind, version), indent=2, ensure_ascii=False) + "\n"
