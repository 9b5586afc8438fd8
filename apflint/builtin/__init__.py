"""The built-in objects of each release: the FlowSchemas and priority levels that a kube-apiserver creates on its own.

Mandatory objects always take effect: the server uses a built-in substitute for a missing mandatory object. The server
creates missing suggested objects (Kubernetes documentation, "API Priority and Fairness", default configuration
objects).

Each data file in this directory describes consecutive releases with equal objects, and is named after the first
release. Specs are written as in API version `v1`, except that the shares of limited levels are called `shares`. Files
of early releases lack the fields that were added later (borrowing, `exempt`). Each file states its source.
"""

from __future__ import annotations

from bisect import bisect_right
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Any, Literal, cast

from apflint.model import build_flow_schema, build_priority_level, shares_field
from apflint.named_tuple import NamedTuple
from apflint.package_data import read_text
from apflint.releases import GROUP, RELEASES, api_version

if TYPE_CHECKING:
    from typing import NotRequired, TypedDict

    from apflint.load.document import Document
    from apflint.load.tree import Node
    from apflint.model import FlowSchema, Kind, PriorityLevelConfiguration
    from apflint.releases import Release

    class Metadata(TypedDict):
        """The metadata of a built-in object."""

        name: str
        annotations: NotRequired[dict[str, str]]

    class BuiltInManifest(TypedDict):
        """The manifest of a built-in object in an API version."""

        apiVersion: str
        kind: str
        metadata: Metadata
        spec: dict[str, object]


MANDATORY = ("exempt", "catch-all")
"""Names of the mandatory objects of both kinds, in every release."""
AUTOUPDATE = "apf.kubernetes.io/autoupdate-spec"
"""Annotation of built-in objects. If its value is "true", the server restores the spec of its release."""
GENERAL_PURPOSE = ("service-accounts", "global-default")
"""Suggested FlowSchemas for requests that no other FlowSchema matches. All remaining suggested FlowSchemas protect system traffic."""
_FIRST_MINORS = (18, 19, 20, 22, 24, 26, 28, 34)
"""Minor releases that changed the built-in objects (18 for 1.18). Each of these releases has a data file."""
_SOURCE_PREFIX = "<built-in "


class BuiltInObject(NamedTuple):
    """Kind and name of a built-in object, and whether it is mandatory or suggested."""

    kind: Kind
    name: str
    role: Literal["mandatory", "suggested"]


class TypedObjects(NamedTuple):
    """The built-in objects of a release as instances of model classes. FlowSchemas are in matching order."""

    flow_schemas: tuple[FlowSchema, ...]
    priority_levels: tuple[PriorityLevelConfiguration, ...]


@lru_cache
def list_objects(release: Release) -> tuple[BuiltInObject, ...]:
    """Return the built-in objects of a release: priority levels (mandatory levels first), then FlowSchemas in matching order."""
    return tuple(BuiltInObject(item["kind"], item["name"], item["role"]) for item in _read_data(release)["objects"])


@lru_cache
def list_names(release: Release, kind: Kind) -> frozenset[str]:
    """Return the names of all built-in objects of a kind, both the mandatory and the suggested objects."""
    return frozenset(item.name for item in list_objects(release) if item.kind == kind)


def list_suggested_names(release: Release, kind: Kind) -> frozenset[str]:
    """Return the names of the suggested built-in objects of a kind."""
    return list_names(release, kind).difference(MANDATORY)


def list_protected_flow_schemas(release: Release) -> frozenset[str]:
    """Return the names of the suggested FlowSchemas for requests of the system, such as `system-nodes`.

    These are all suggested FlowSchemas except `service-accounts` and `global-default`.
    """
    return list_suggested_names(release, "FlowSchema").difference(GENERAL_PURPOSE)


def find_lifetime(kind: Kind, name: str) -> tuple[Release, Release] | None:
    """Return the first and the last known release with the built-in object `name`, or None if no release has it.

    All releases between these two releases have the object, too.
    """
    return _list_lifetimes(kind).get(name)


@lru_cache
def _list_lifetimes(kind: Kind) -> dict[str, tuple[Release, Release]]:
    lifetimes: dict[str, tuple[Release, Release]] = {}
    for release in RELEASES:
        for name in list_names(release, kind):
            lifetimes[name] = lifetimes.get(name, (release,))[0], release
    return lifetimes


def is_retired(release: Release, kind: Kind, name: str) -> bool:
    """Return whether an earlier release has a built-in object of this kind and name that `release` lacks."""
    lifetime = find_lifetime(kind, name) if name and name not in list_names(release, kind) else None
    return lifetime is not None and release.minor > lifetime[1].minor


def describe_source(release: Release) -> str:
    """Return the source of the data about the built-in objects of a release, in one or two sentences."""
    return cast("str", _read_data(release)["source"])


def build_manifests(release: Release, version: str) -> list[BuiltInManifest]:
    """Return new manifests of the built-in objects, as a server stores them, in the order of `list_objects`.

    `version` can be an API version that the release does not serve. Raises ValueError if the version is unknown.
    """
    if api_version(version) is None:
        raise ValueError(f"{GROUP} has no version {version}")
    manifests = []
    for item in _read_data(release)["objects"]:
        metadata: Metadata = {"name": item["name"]}
        if release.maintains_objects:
            metadata["annotations"] = {AUTOUPDATE: "true"}
        spec = item["spec"]
        if "limited" in spec:
            limited = spec["limited"].items()
            spec["limited"] = {shares_field(version) if key == "shares" else key: value for key, value in limited}
        manifest: BuiltInManifest = {
            "apiVersion": f"{GROUP}/{version}",
            "kind": item["kind"],
            "metadata": metadata,
            "spec": spec,
        }
        manifests.append(manifest)
    return manifests


@lru_cache
def load_objects(release: Release) -> TypedObjects:
    """Return the built-in objects of a release as typed objects.

    The objects have positions like objects from a file. The positions refer to a generated JSON list, which has a file
    name such as `<built-in 1.36>`. The list has one object per line, in the newest API version of the release.
    """
    import json  # imported here, because most commands do not need the data and start faster without json

    from apflint.load.document import Document
    from apflint.load.source_text import Source

    manifests = build_manifests(release, release.newest_version)
    lines = ",\n".join(json.dumps(manifest) for manifest in manifests)
    text = f'{{"kind": "List", "apiVersion": "v1", "items": [\n{lines}\n]}}\n'
    source = Source(f"{_SOURCE_PREFIX}{release.name}>", text)
    parse_tree = cache(partial(_parse_tree, text))
    documents = [
        Document(source, {**manifest}, parse_tree, ("items", number)) for number, manifest in enumerate(manifests)
    ]
    return TypedObjects(
        tuple(build_flow_schema(item.value, item) for item in documents if item.kind == "FlowSchema"),
        tuple(build_priority_level(item.value, item, release) for item in documents if item.kind != "FlowSchema"),
    )


def is_copy(item: FlowSchema | PriorityLevelConfiguration, release: Release) -> bool:
    """Return whether a built-in object of `release` has the same kind, name and spec as `item`."""
    if item.name not in list_names(release, item.document.kind):
        return False
    objects = load_objects(release)
    same_kind = objects.flow_schemas if item.document.kind == "FlowSchema" else objects.priority_levels
    return any(other.name == item.name and other.spec == item.spec for other in same_kind)


def is_built_in(document: Document) -> bool:
    """Return whether `load_objects` created the document.

    Return False for a copy of a built-in object in a user's manifest.
    """
    return document.source.name.startswith(_SOURCE_PREFIX)


def _parse_tree(text: str) -> Node | None:
    from apflint.load.json import parse_tree

    return parse_tree(text, 0, len(text))


def _read_data(release: Release) -> dict[str, Any]:
    """Return the decoded data file for a release.

    The caller may change the returned value, so each call reads the file again. Reading takes 0.1 ms.
    """
    import json  # imported here, because most commands do not need the data and start faster without json

    first = _FIRST_MINORS[bisect_right(_FIRST_MINORS, release.minor) - 1]
    return cast("dict[str, Any]", json.loads(read_text(f"builtin/1.{first}.json")))
