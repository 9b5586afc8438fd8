"""The mandatory and suggested objects that a kube-apiserver of each release creates, read from the data files here.

There is one file for each group of releases that create the same objects, named after the first of them; each names
its source. Specs there are in a neutral form: as the API version `v1` writes them, but with the shares of limited levels
called `shares`. Fields that came later (borrowing, `exempt`) are not in the files of the releases before.

Mandatory objects always exist: where they are missing a server imagines them. Suggested objects are created when they
are missing (Kubernetes documentation, "API Priority and Fairness", default configuration objects).
"""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, cast

from apflint.model import flow_schema, priority_level, shares_field
from apflint.record import NamedTuple
from apflint.releases import API_VERSIONS, GROUP, RELEASES

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    from apflint.load.document import Document
    from apflint.load.tree import Node
    from apflint.model import FlowSchema, Kind, PriorityLevelConfiguration
    from apflint.releases import Release

    class Metadata(TypedDict):
        """What a server writes there when it creates one of these objects, as far as its manifest goes."""

        name: str
        annotations: NotRequired[dict[str, str]]

    class Manifest(TypedDict):
        """One of these objects as an API version writes it."""

        apiVersion: str
        kind: str
        metadata: Metadata
        spec: dict[str, object]


Role = Literal["mandatory", "suggested"]

MANDATORY = ("exempt", "catch-all")
"""The names of the mandatory objects, of both kinds, in every release."""
AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"
"""Annotation: "true" lets the server put the object back to what its release says."""

GENERAL_PURPOSE = ("service-accounts", "global-default")
"""Suggested FlowSchemas for whatever has none of its own. All other suggested ones reserve capacity for the system."""

_FIRSTS = (18, 19, 20, 22, 24, 26, 28, 34)
"""The minor releases that changed the built-in objects: the data files."""

_SOURCE = "<built-in "


class BuiltIn(NamedTuple):
    """Which object, and whether a server cannot do without it."""

    kind: Kind
    name: str
    role: Role


class WorkspaceObjects(NamedTuple):
    """The built-in objects of a release as typed values; FlowSchemas in matching order."""

    flow_schemas: tuple[FlowSchema, ...]
    priority_levels: tuple[PriorityLevelConfiguration, ...]


@lru_cache
def objects(release: Release) -> tuple[BuiltIn, ...]:
    """What a fresh server of `release` creates: priority levels (mandatory ones first), then FlowSchemas in matching order."""
    return tuple(BuiltIn(entry["kind"], entry["name"], entry["role"]) for entry in _read(_first(release))["objects"])


@lru_cache
def names(release: Release, kind: Kind) -> frozenset[str]:
    """The names of the built-in objects of one kind."""
    return frozenset(entry.name for entry in objects(release) if entry.kind == kind)


@lru_cache
def suggested_names(release: Release, kind: Kind) -> frozenset[str]:
    """The names of the suggested objects of one kind."""
    return names(release, kind).difference(MANDATORY)


@lru_cache
def protected_flow_schemas(release: Release) -> frozenset[str]:
    """Return the names of the suggested FlowSchemas that reserve capacity for the system itself."""
    return suggested_names(release, "FlowSchema").difference(GENERAL_PURPOSE)


@lru_cache
def lifetime(kind: Kind, name: str) -> tuple[Release, Release] | None:
    """The first and the last release, of those known, that create the object; None if none does.

    The last is the newest known release where the object is still created. No object ever came back.
    """
    creating = [release for release in RELEASES if name in names(release, kind)]
    return (creating[0], creating[-1]) if creating else None


def is_retired(release: Release, kind: Kind, name: str) -> bool:
    """Return whether earlier releases created an object of this name that `release` does not create any more."""
    life = lifetime(kind, name) if name and name not in names(release, kind) else None
    return life is not None and release.minor > life[1].minor


def source(release: Release) -> str:
    """Where the objects of `release` are known from, in a sentence or two."""
    return cast("str", _read(_first(release))["source"])


def manifest(release: Release, version: str) -> list[Manifest]:
    """The objects as the API version `version` writes them, in the order of `objects`. The values are the caller's own.

    Specs are as a server stores them, defaults filled in. ValueError if there is no such version of the API; a version
    that `release` does not serve is written all the same.
    """
    if all(life.name != version for life in API_VERSIONS):
        raise ValueError(f'there is no API version "{version}" of {GROUP}')
    return [_object(entry, release, version) for entry in _read(_first(release))["objects"]]


@lru_cache
def workspace_objects(release: Release) -> WorkspaceObjects:
    """The objects as typed values, for the evaluator and to compare a user's objects with.

    They share a source named `<built-in 1.36>`, a JSON list in the newest API version of the release, an object a line.
    """
    import json  # runs that need no built-in objects do without

    from apflint.load.document import Document
    from apflint.load.source import Source

    values = manifest(release, release.newest_version)
    lines = ",\n".join(json.dumps(value) for value in values)
    text = Source(f"{_SOURCE}{release.name}>", f'{{"kind": "List", "apiVersion": "v1", "items": [\n{lines}\n]}}\n')
    documents = [Document(text, {**value}, partial(_tree, text.text), ("items", i)) for i, value in enumerate(values)]
    pairs = list(zip(values, documents, strict=True))
    return WorkspaceObjects(
        tuple(flow_schema(value, doc) for value, doc in pairs if doc.kind == "FlowSchema"),
        tuple(priority_level(value, doc, release) for value, doc in pairs if doc.kind == "PriorityLevelConfiguration"),
    )


def is_copy(found: FlowSchema | PriorityLevelConfiguration, release: Release) -> bool:
    """Return whether an object has the name and the spec of a built-in one."""
    if found.name not in names(release, found.document.kind):
        return False
    objects = workspace_objects(release)
    same_kind = objects.flow_schemas if found.document.kind == "FlowSchema" else objects.priority_levels
    return any(other.name == found.name and other.spec == found.spec for other in same_kind)


def is_built_in(document: Document) -> bool:
    """Whether a document comes from here, not from a user."""
    return document.source.name.startswith(_SOURCE)


def _tree(text: str) -> Node | None:
    from apflint.load.json import parse_tree

    return parse_tree(text, 0, len(text))


def _object(entry: dict[str, Any], release: Release, version: str) -> Manifest:
    metadata: Metadata = {"name": entry["name"]}
    if release.maintains_objects:
        metadata["annotations"] = {AUTOUPDATE: "true"}
    spec = entry["spec"]
    if "limited" in spec:
        spec["limited"] = {
            shares_field(version) if key == "shares" else key: value for key, value in spec["limited"].items()
        }
    return {"apiVersion": f"{GROUP}/{version}", "kind": entry["kind"], "metadata": metadata, "spec": spec}


def _first(release: Release) -> int:
    return _FIRSTS[bisect_right(_FIRSTS, release.minor) - 1]


def _read(first: int) -> dict[str, Any]:
    # Read again each time: 0.1 ms, and nobody can change another's values.
    import json  # runs that need no built-in objects do without

    with open(f"{__path__[0]}/1.{first}.json", encoding="utf-8") as file:  # pathlib takes longer to import
        return cast("dict[str, Any]", json.load(file))
