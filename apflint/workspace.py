"""All that one run knows: the manifests of the user, typed where they can be, for one target release.

Checks and the evaluator read this and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from apflint.model import FlowSchema, PriorityLevelConfiguration, flow_schema, priority_level
from apflint.schema import Violation, violations

if TYPE_CHECKING:
    from collections.abc import Iterable

    from apflint.load import Loaded, Trouble
    from apflint.load.document import Document
    from apflint.releases import Release


class Manifest(NamedTuple):
    """A document held against its schema; `object` is None where a field has a type that cannot be decoded."""

    document: Document
    violations: tuple[Violation, ...]
    object: FlowSchema | PriorityLevelConfiguration | None


class Workspace(NamedTuple):
    """What was read. Objects are in the order of the input."""

    release: Release
    troubles: tuple[Trouble, ...]
    manifests: tuple[Manifest, ...]
    flow_schemas: tuple[FlowSchema, ...]
    priority_levels: tuple[PriorityLevelConfiguration, ...]


def workspace(loaded: Iterable[Loaded], release: Release) -> Workspace:
    """Holds every document against its schema and makes typed objects of those that can be decoded."""
    troubles: list[Trouble] = []
    manifests: list[Manifest] = []
    for part in loaded:
        troubles += part.troubles
        manifests += (_manifest(document, release) for document in part.documents)
    objects = [manifest.object for manifest in manifests]
    return Workspace(
        release,
        tuple(troubles),
        tuple(manifests),
        tuple(found for found in objects if isinstance(found, FlowSchema)),
        tuple(found for found in objects if isinstance(found, PriorityLevelConfiguration)),
    )


def _manifest(document: Document, release: Release) -> Manifest:
    found = violations(document.value, document.kind, document.version, release)
    if any(violation.what != "unknown" for violation in found) or document.not_finite:
        return Manifest(document, found, None)
    if document.kind == "FlowSchema":
        return Manifest(document, found, flow_schema(document.value, document))
    return Manifest(document, found, priority_level(document.value, document, release))
