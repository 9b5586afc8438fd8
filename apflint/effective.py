"""What the API server would have: the configuration that results from the manifests, and the facts that follow from it."""

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
    """What to assume about the cluster besides the manifests."""

    complete: bool = False
    """The manifests and the built-in objects are all that the cluster has (closed world)."""
    server_concurrency: int = SERVER_CONCURRENCY
    """Seats of one API server."""
    defaults: bool = True
    """The cluster has the built-in objects that the manifests do not define."""


class DeadParts(NamedTuple):
    """Unreachable parts of FlowSchemas."""

    parts: tuple[Part, ...]
    not_analyzed: tuple[FlowSchema, ...]
    """FlowSchemas that may have more unreachable parts."""


class Effective:
    """What a server would have after the manifests of a workspace were applied.

    Facts are computed when they are first needed and kept as long as this object. A document is the key of its object:
    documents are equal only if they are the same.
    """

    def __init__(self, workspace: Workspace, assumptions: Assumptions = Assumptions()) -> None:  # noqa: B008  # immutable
        self.workspace = workspace
        self.assumptions = assumptions
        self.facts: dict[Callable[[Effective], object], object] = {}
        """Results of the functions decorated with `once`."""

    def without(self, documents: Collection[Document]) -> Effective:
        """Return what the server would have without the manifests of these documents."""
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
        """The FlowSchemas of the manifests, except copies of built-in ones."""
        return self.own.flow_schemas

    @property
    def own_priority_levels(self) -> tuple[PriorityLevelConfiguration, ...]:
        """The priority levels of the manifests, except copies of built-in ones."""
        return self.own.priority_levels

    @cached_property
    def own_documents(self) -> frozenset[Document]:
        """The documents of `own_flow_schemas` and `own_priority_levels`."""
        return frozenset(manifest.document for manifest in self.own.manifests if manifest.object is not None)

    @cached_property
    def configuration(self) -> Configuration:
        """The manifests, the context, and the built-in objects."""
        return self._configuration(())

    @cached_property
    def assumed(self) -> Configuration:
        """`configuration`, and in the open world the priority levels that FlowSchemas reference and no file defines.

        They are assumed to be defined elsewhere, so that the effects of their FlowSchemas can be analyzed.
        """
        return self._configuration(self._assumed_levels)

    @cached_property
    def without_own(self) -> Configuration:
        """`assumed` without `own_flow_schemas`: what the built-in FlowSchemas would do on their own."""
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
        """A level for each name that FlowSchemas reference and no file defines."""
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
        """Proofs about all requests in `assumed`. The solver is loaded only for questions that need it."""
        from apflint.proofs.one_configuration import Analysis

        return Analysis(self.assumed)

    @cached_property
    def passages(self) -> Comparison:
        """The requests that go elsewhere because of `own_flow_schemas`."""
        from apflint.proofs.request_space import REALISTIC
        from apflint.proofs.two_configurations import Comparison

        return Comparison(self.without_own, self.assumed, among=REALISTIC)

    @cached_property
    def dead_parts(self) -> DeadParts:
        """The unreachable parts of `own_flow_schemas`, as far as these are effective."""
        effective = {schema.document for schema in self.assumed.order}
        own = [schema for schema in self.own_flow_schemas if schema.document in effective]
        return DeadParts(*self.proofs.find_unreachable(own)) if own else DeadParts((), ())

    @cached_property
    def unreachable_documents(self) -> frozenset[Document]:
        """The documents of `own_flow_schemas` that no request reaches."""
        return frozenset(part.schema.document for part in self.dead_parts.parts if part.rule is None)


def once(compute: Callable[[Effective], T]) -> Callable[[Effective], T]:
    """Decorate a function so that its result is computed once for each `Effective` and kept there."""

    @wraps(compute)
    def fact(effective: Effective) -> T:
        if compute not in effective.facts:
            effective.facts[compute] = compute(effective)
        return cast("T", effective.facts[compute])

    return fact


def _unknown_level(name: str, document: Document) -> PriorityLevelConfiguration:
    """Return a priority level whose settings are unknown."""
    return PriorityLevelConfiguration(
        metadata=ObjectMeta(name, "", {}, {}, (), ()),
        spec=PriorityLevelConfigurationSpec(
            "Limited", LimitedPriorityLevelConfiguration(30, LimitResponse("Reject", None), 0, None), None
        ),
        document=document,
    )
