"""The effective configuration: the objects of an API server after the manifests are applied, and facts about them."""

from __future__ import annotations

from functools import cached_property, wraps
from typing import TYPE_CHECKING, TypeVar, cast

from apflint.model import (
    FlowSchema,
    LimitedPriorityLevelConfiguration,
    LimitResponse,
    ObjectMeta,
    PriorityLevelConfiguration,
    PriorityLevelConfigurationSpec,
)
from apflint.record import NamedTuple
from apflint.releases import SERVER_CONCURRENCY
from apflint.workspace import is_dangling_on_server

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.limits import Limits
    from apflint.load.document import Document
    from apflint.proofs.one_configuration import Analysis, Part
    from apflint.proofs.two_configurations import Comparison
    from apflint.releases import Release
    from apflint.workspace import Workspace

T = TypeVar("T")


class Assumptions(NamedTuple):
    """Assumptions about the cluster that the manifests do not show."""

    complete: bool = False
    """Whether the cluster has no objects except the manifests and the built-in objects (closed world)."""
    server_concurrency: int = SERVER_CONCURRENCY
    """Total number of seats of one API server."""
    defaults: bool = True
    """Whether the cluster has the built-in objects that the manifests do not define."""
    one_cluster: bool = False
    """Whether the manifests belong to one cluster, even if sibling directories define the same objects."""


class DeadParts(NamedTuple):
    """Unreachable FlowSchemas, rules, subjects, resource rules and non-resource rules."""

    parts: tuple[Part, ...]
    not_analyzed: tuple[FlowSchema, ...]
    """FlowSchemas that were not analyzed completely, and may have more unreachable parts."""


class Effective:
    """The configuration of an API server after the manifests of a workspace are applied, and facts about it.

    Facts are computed at their first use and stored in this object. In facts about objects, the Document of an
    object is the dictionary key, because a Document equals only itself.
    """

    def __init__(self, workspace: Workspace, assumptions: Assumptions = Assumptions()) -> None:  # noqa: B008  # immutable
        self.workspace = workspace
        self.assumptions = assumptions
        self.facts: dict[Callable[[Effective], object], object] = {}
        """Results of the functions decorated with `once`."""

    def without(self, documents: Collection[Document]) -> Effective:
        """Return the effective configuration without the manifests of these documents."""
        return Effective(self.workspace.without(documents), self.assumptions) if documents else self

    @property
    def release(self) -> Release:
        """The target release."""
        return self.workspace.release

    @property
    def flow_schemas(self) -> tuple[FlowSchema, ...]:
        """The FlowSchemas of the manifests."""
        return self.workspace.flow_schemas

    @property
    def priority_levels(self) -> tuple[PriorityLevelConfiguration, ...]:
        """The priority levels of the manifests."""
        return self.workspace.priority_levels

    @cached_property
    def own(self) -> Workspace:
        """The workspace without copies of built-in objects."""
        from apflint import builtin

        copies = (copy for copy in self.workspace.objects() if builtin.is_copy(copy, self.release))
        return self.workspace.without({copy.document for copy in copies})

    @property
    def own_flow_schemas(self) -> tuple[FlowSchema, ...]:
        """The FlowSchemas of the manifests, except copies of built-in FlowSchemas."""
        return self.own.flow_schemas

    @property
    def own_priority_levels(self) -> tuple[PriorityLevelConfiguration, ...]:
        """The priority levels of the manifests, except copies of built-in levels."""
        return self.own.priority_levels

    @cached_property
    def own_documents(self) -> frozenset[Document]:
        """The documents of `own_flow_schemas` and `own_priority_levels`."""
        return frozenset(manifest.document for manifest in self.own.manifests if manifest.object is not None)

    @cached_property
    def configuration(self) -> Configuration:
        """The configuration from the manifests, the files of `--context`, and the built-in objects."""
        return self._configuration(())

    @cached_property
    def assumed(self) -> Configuration:
        """`configuration`, plus a priority level for each name that FlowSchemas reference but no file defines.

        Such levels are assumed to be defined elsewhere, so that the effects of their FlowSchemas can be analyzed. Nothing is
        added in the closed world (`Assumptions.complete`).
        """
        return self._configuration(self._assumed_levels)

    @cached_property
    def without_own(self) -> Configuration:
        """`assumed` without `own_flow_schemas`. It shows what the cluster does with requests if these FlowSchemas are not applied."""
        others = self.without(frozenset(schema.document for schema in self.own_flow_schemas))
        return others._configuration(self._assumed_levels)  # noqa: SLF001  # the same class

    def _configuration(self, more_levels: tuple[PriorityLevelConfiguration, ...]) -> Configuration:
        from apflint import builtin
        from apflint.evaluate.configuration import build_configuration

        context = [manifest.object for manifest in self.workspace.context]
        user = builtin.TypedObjects(
            (*(schema for schema in context if isinstance(schema, FlowSchema)), *self.flow_schemas),
            (
                *(level for level in context if isinstance(level, PriorityLevelConfiguration)),
                *self.priority_levels,
                *more_levels,
            ),
        )
        return build_configuration(user, builtin.load_objects(self.release), defaults=self.assumptions.defaults)

    @cached_property
    def _assumed_levels(self) -> tuple[PriorityLevelConfiguration, ...]:
        """A placeholder level for each name that FlowSchemas reference but no file defines. Empty if `Assumptions.complete` is true."""
        if self.assumptions.complete:
            return ()
        dangling = (schema for schema in self.configuration.dangling if not is_dangling_on_server(schema))
        return tuple(
            {
                name: _unknown_level(name, schema.document)
                for schema in dangling
                if (name := schema.spec.priority_level_configuration)
            }.values()
        )

    @cached_property
    def limits(self) -> Limits:
        """The seats of every priority level of `configuration`."""
        from apflint.evaluate.limits import compute_limits

        levels = tuple(self.configuration.levels.values())
        return compute_limits(levels, self.configuration.order, self.assumptions.server_concurrency, self.release)

    @cached_property
    def proofs(self) -> Analysis:
        """The analysis that proves facts about all requests in `assumed`. It imports the solver only if a proof needs it."""
        from apflint.proofs.one_configuration import Analysis

        return Analysis(self.assumed)

    @cached_property
    def passages(self) -> Comparison:
        """The comparison of `without_own` with `assumed`. It finds requests that different FlowSchemas capture in these two."""
        from apflint.proofs.request_space import REALISTIC
        from apflint.proofs.two_configurations import Comparison

        return Comparison(self.without_own, self.assumed, among=REALISTIC)

    @cached_property
    def dead_parts(self) -> DeadParts:
        """The unreachable parts of `own_flow_schemas`, except FlowSchemas that are not effective in `assumed`."""
        effective = {schema.document for schema in self.assumed.order}
        own = [schema for schema in self.own_flow_schemas if schema.document in effective]
        return DeadParts(*self.proofs.find_unreachable(own)) if own else DeadParts((), ())

    @cached_property
    def unreachable_documents(self) -> frozenset[Document]:
        """The documents of unreachable FlowSchemas: FlowSchemas in `own_flow_schemas` that capture no request."""
        return frozenset(part.schema.document for part in self.dead_parts.parts if part.rule is None)


def once(compute: Callable[[Effective], T]) -> Callable[[Effective], T]:
    """Decorator for a function that computes a fact. Each `Effective` calls the function once and stores the result."""

    @wraps(compute)
    def fact(effective: Effective) -> T:
        if compute not in effective.facts:
            effective.facts[compute] = compute(effective)
        return cast("T", effective.facts[compute])

    return fact


def _unknown_level(name: str, document: Document) -> PriorityLevelConfiguration:
    """Return a priority level with placeholder settings, for a name that no file defines."""
    return PriorityLevelConfiguration(
        metadata=ObjectMeta(name, "", {}, {}, (), ()),
        spec=PriorityLevelConfigurationSpec(
            "Limited", LimitedPriorityLevelConfiguration(30, LimitResponse("Reject", None), 0, None), None
        ),
        document=document,
    )
