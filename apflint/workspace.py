"""All that one run knows: the manifests of the user, typed where they can be, for one target release.

Checks and the evaluator read this and nothing else.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from apflint.model import (
    FlowSchema,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    ObjectMeta,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationSpec,
    flow_schema,
    priority_level,
)
from apflint.record import NamedTuple
from apflint.releases import SERVER_CONCURRENCY, api_version
from apflint.schema import Violation, find_violations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from apflint.evaluate.limits import Limits
    from apflint.evaluate.resolve import Configuration
    from apflint.load import Loaded, Trouble
    from apflint.load.document import Document
    from apflint.releases import Release

T = TypeVar("T", FlowSchema, PriorityLevelConfiguration)


class Manifest(NamedTuple):
    """A document held against its schema; `object` is None where a field has a type that cannot be decoded."""

    document: Document
    violations: tuple[Violation, ...]
    object: FlowSchema | PriorityLevelConfiguration | None


class World(NamedTuple):
    """What is known of the cluster beside the manifests."""

    complete: bool = False
    """Closed world: the manifests (and the built-in objects) are all that the cluster has."""
    server_concurrency: int = SERVER_CONCURRENCY
    defaults: bool = True
    """Whether the cluster has the built-in objects that the manifests do not define."""


class Workspace:
    """What was read, in the order of the input. Never changed; what follows from it is worked out when it is asked for."""

    def __init__(
        self,
        release: Release,
        troubles: tuple[Trouble, ...],
        manifests: tuple[Manifest, ...],
        context: tuple[Manifest, ...] = (),
        world: World = World(),  # noqa: B008  # a frozen value
    ) -> None:
        self.release = release
        self.troubles = troubles
        self.manifests = manifests
        self.context = context
        """Manifests that are known and not reported on (`--context`)."""
        self.world = world
        self.flow_schemas = _of(FlowSchema, manifests)
        self.priority_levels = _of(PriorityLevelConfiguration, manifests)

    def without(self, rejected: Collection[int]) -> Workspace:
        """The same without the manifests whose documents have these ids: what the API server rejects is in no cluster."""
        if not rejected:
            return self
        kept = tuple(manifest for manifest in self.manifests if id(manifest.document) not in rejected)
        return Workspace(self.release, self.troubles, kept, self.context, self.world)

    @cached_property
    def configuration(self) -> Configuration:
        """What a server of the release would have: the manifests, the context, and the built-in objects."""
        return self._configuration(())

    @cached_property
    def assumed(self) -> Configuration:
        """`configuration`, and in the open world with the levels that FlowSchemas name and that are not here.

        They are taken to be elsewhere, so that what their FlowSchemas do to others can be told all the same.
        """
        return self._configuration(self._assumed_levels())

    @cached_property
    def assumed_without_own(self) -> Configuration:
        """`assumed` without the FlowSchemas that are the user's own: what the built-in ones would do by themselves."""
        own = {id(schema.document) for schema in self.own_flow_schemas}
        others = self.without(own)
        return others._configuration(self._assumed_levels())  # noqa: SLF001  # another of the same class

    def _configuration(self, more: tuple[PriorityLevelConfiguration, ...]) -> Configuration:
        from apflint import builtin
        from apflint.evaluate.resolve import configuration

        known = Workspace(self.release, (), (*self.context, *self.manifests))
        known.priority_levels += more
        return configuration(known, builtin.workspace_objects(self.release), defaults=self.world.defaults)

    def _assumed_levels(self) -> tuple[PriorityLevelConfiguration, ...]:
        dangling = (
            schema
            for schema in (() if self.world.complete else self.configuration.dangling)
            if not is_dangling_on_server(schema)
        )
        return tuple({level.name: level for schema in dangling if (level := _assumed(schema)) is not None}.values())

    @cached_property
    def limits(self) -> Limits:
        """The seats of every level of `configuration`."""
        from apflint.evaluate.limits import compute

        levels = tuple(self.configuration.levels.values())
        return compute(levels, self.configuration.order, self.world.server_concurrency, self.release)

    @cached_property
    def own_flow_schemas(self) -> tuple[FlowSchema, ...]:
        """The FlowSchemas that are the user's in content: not those that say what the release has built in anyway."""
        return tuple(found for found in self.flow_schemas if not self._is_copy(found))

    @cached_property
    def own_priority_levels(self) -> tuple[PriorityLevelConfiguration, ...]:
        """The same for the levels."""
        return tuple(found for found in self.priority_levels if not self._is_copy(found))

    @cached_property
    def own_objects(self) -> tuple[FlowSchema | PriorityLevelConfiguration, ...]:
        """Both."""
        return (*self.own_flow_schemas, *self.own_priority_levels)

    def _is_copy(self, found: FlowSchema | PriorityLevelConfiguration) -> bool:
        from apflint import builtin

        if found.name not in builtin.names(self.release, found.document.kind):
            return False
        built_in = builtin.workspace_objects(self.release)
        same_kind = built_in.flow_schemas if isinstance(found, FlowSchema) else built_in.priority_levels
        return any(other.name == found.name and other.spec == found.spec for other in same_kind)


def workspace(
    loaded: Iterable[Loaded],
    release: Release,
    context: Iterable[Loaded] = (),
    world: World = World(),  # noqa: B008  # a frozen value
) -> Workspace:
    """Holds every document against its schema and makes typed objects of those that can be decoded."""
    troubles: list[Trouble] = []
    manifests: list[Manifest] = []
    for part in loaded:
        troubles += part.troubles
        manifests += (_manifest(document, release) for document in part.documents)
    known = tuple(_manifest(document, release) for part in context for document in part.documents)
    return Workspace(release, tuple(troubles), tuple(manifests), known, world)


def is_dangling_on_server(schema: FlowSchema) -> bool:
    """Whether the status in a list from a server shows that the level of a FlowSchema does not exist.

    The server keeps the condition `Dangling` up to date (presyncFlowSchemaStatus in
    staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go). The status in a file of one object may be older.
    """
    document = schema.document
    if not (document.prefix and document.at("metadata", "uid")):
        return False
    conditions = document.at("status", "conditions")
    return isinstance(conditions, list) and any(
        isinstance(each, dict) and (each.get("type"), each.get("status")) == ("Dangling", "True") for each in conditions
    )


def _assumed(schema: FlowSchema) -> PriorityLevelConfiguration | None:
    """A level of the name that a FlowSchema refers to, about which nothing else is known."""
    name = schema.spec.priority_level_configuration
    if not name:
        return None
    return PriorityLevelConfiguration(
        metadata=ObjectMeta(name, "", {}, {}, (), ()),
        spec=PriorityLevelConfigurationSpec(
            "Limited", LimitedPriorityLevelConfiguration(30, LimitResponse("Reject", None), 0, None), None
        ),
        document=schema.document,
    )


def _of(kind: type[T], manifests: Iterable[Manifest]) -> tuple[T, ...]:
    return tuple(manifest.object for manifest in manifests if isinstance(manifest.object, kind))


def _manifest(document: Document, release: Release) -> Manifest:
    if api_version(document.version) is None:  # there is no such version, so there is nothing to hold it against
        return Manifest(document, (), None)
    value = document.value
    found = find_violations(value, document.kind, document.version, release)
    if any(violation.what != "unknown" for violation in found) or document.not_finite:
        return Manifest(document, found, None)
    if document.kind == "FlowSchema":
        return Manifest(document, found, flow_schema(value, document))
    return Manifest(document, found, priority_level(value, document, release))
