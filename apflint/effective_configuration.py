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
from apflint.named_tuple import NamedTuple
from apflint.releases import SERVER_CONCURRENCY
from apflint.workspace import is_dangling_on_server

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.limits import Limits
    from apflint.load.document import Document
    from apflint.proofs.one_configuration import Analysis, FlowSchemaPart
    from apflint.proofs.two_configurations import ConfigurationComparison
    from apflint.releases import Release
    from apflint.workspace import Workspace

T = TypeVar("T")


class Renaming(NamedTuple):
    """The prefix and the suffix that a kustomization adds to the names of the objects in a file."""

    file: str
    kustomization: str
    """The kustomization that adds the outermost prefix or suffix, if several kustomizations add one."""
    prefix: str = ""
    suffix: str = ""


class Assumptions(NamedTuple):
    """Assumptions about facts of the cluster that the manifests do not contain."""

    complete: bool = False
    """Whether the cluster has no objects except the manifests and the built-in objects (closed world)."""
    server_concurrency: int = SERVER_CONCURRENCY
    """Total number of seats of one API server."""
    defaults: bool = True
    """Whether the cluster has the built-in objects that the manifests do not define."""
    one_cluster: bool = False
    """Whether the manifests belong to one cluster, even if sibling directories define the same objects."""
    renamings: tuple[Renaming, ...] = ()
    """Renamings by kustomizations. A kustomization changes the names of objects, but not the names in references of FlowSchemas."""


class DeadParts(NamedTuple):
    """The FlowSchemas that capture no request, and the parts of other FlowSchemas that match no request.

    A part is a rule, a subject, a resource rule or a non-resource rule. A part also counts as dead if earlier
    FlowSchemas or parts match all of its requests.
    """

    parts: tuple[FlowSchemaPart, ...]
    not_analyzed: tuple[FlowSchema, ...]
    """FlowSchemas that were not analyzed completely. They may have unreachable parts that are not in `parts`."""


class Effective:
    """The configuration of an API server after the manifests of a workspace are applied, and facts about it.

    Facts are computed at their first use and stored in this object. Dictionaries about objects have the Document of the object as
    the key. Two equal objects in different places have different keys, because a Document equals only itself.
    """

    def __init__(self, workspace: Workspace, assumptions: Assumptions = Assumptions()) -> None:  # noqa: B008  # immutable
        self.workspace = workspace
        self.assumptions = assumptions
        self.facts: dict[Callable[[Effective], object], object] = {}
        """Results of the functions decorated with `once`."""

    def without(self, documents: Collection[Document]) -> Effective:
        """Return the effective configuration of a workspace without the manifests `documents`."""
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
        """The workspace without manifests that are copies of built-in objects."""
        return self.workspace.without(self._copies)

    @cached_property
    def _copies(self) -> frozenset[Document]:
        """The manifests that are copies of built-in objects. A dump of a cluster contains such copies."""
        from apflint import builtin

        manifests = (manifest.object for manifest in (*self.workspace.context, *self.workspace.manifests))
        return frozenset(
            item.document for item in manifests if item is not None and builtin.is_copy(item, self.release)
        )

    def is_built_in(self, schema: FlowSchema) -> bool:
        """Return whether a FlowSchema is built in, or is a copy of a built-in FlowSchema with the same name and spec.

        Manifests and files of `--context` may contain copies, for example in a dump of a cluster.
        """
        from apflint import builtin

        return builtin.is_built_in(schema.document) or schema.document in self._copies

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
        """`configuration`, plus a placeholder for each priority level that FlowSchemas reference but no file defines.

        The referenced levels are assumed to be defined elsewhere, so that the effects of the FlowSchemas can be
        analyzed. If `Assumptions.complete` is true, there are no placeholders.
        """
        return self._configuration(self._assumed_levels)

    @cached_property
    def without_own(self) -> Configuration:
        """The configuration `assumed` without the FlowSchemas in `own_flow_schemas`.

        If one of these FlowSchemas redefines a built-in FlowSchema, the result contains the built-in
        FlowSchema.
        """
        return self.assumed_without(frozenset(schema.document for schema in self.own_flow_schemas))

    def assumed_without(self, documents: Collection[Document]) -> Configuration:
        """Return the configuration `assumed` as it would be if the manifests did not contain `documents`.

        The result has the same placeholders for undefined priority levels as `assumed`. If one of
        `documents` redefines a built-in FlowSchema, the result contains the built-in FlowSchema, because
        the server creates missing built-in FlowSchemas. This is true even if `Assumptions.defaults` is
        false.
        """
        from apflint import builtin

        names = {schema.name for schema in self.flow_schemas if schema.document in documents}
        restored = [schema for schema in builtin.load_objects(self.release).flow_schemas if schema.name in names]
        return self.without(documents)._configuration(self._assumed_levels, restored)  # noqa: SLF001  # the same class

    def _configuration(
        self, more_levels: tuple[PriorityLevelConfiguration, ...], restored: Iterable[FlowSchema] = ()
    ) -> Configuration:
        from apflint import builtin
        from apflint.evaluate.configuration import build_configuration

        context = [manifest.object for manifest in self.workspace.context]
        user = builtin.TypedObjects(
            (*restored, *(schema for schema in context if isinstance(schema, FlowSchema)), *self.flow_schemas),
            (
                *(level for level in context if isinstance(level, PriorityLevelConfiguration)),
                *self.priority_levels,
                *more_levels,
            ),
        )
        return build_configuration(
            user,
            builtin.load_objects(self.release),
            defaults=self.assumptions.defaults,
            classifies_watches=self.release.classifies_watches,
        )

    @cached_property
    def _assumed_levels(self) -> tuple[PriorityLevelConfiguration, ...]:
        """A placeholder level for each priority level that FlowSchemas reference but no file defines.

        Empty if `Assumptions.complete` is true. The levels that FlowSchemas in files of `--context`
        reference are included, even if a manifest replaces the FlowSchema: `assumed_without` can remove the
        manifest, and then the FlowSchema is in force again.
        """
        if self.assumptions.complete:
            return ()
        objects = (manifest.object for manifest in self.workspace.context)
        replaced = (schema for schema in objects if isinstance(schema, FlowSchema))
        dangling = (schema for schema in (*replaced, *self.configuration.dangling) if not is_dangling_on_server(schema))
        return tuple(
            {
                name: _unknown_level(name, schema.document)
                for schema in dangling
                if (name := schema.spec.priority_level_configuration) and name not in self.configuration.levels
            }.values()
        )

    @cached_property
    def limits(self) -> Limits:
        """The seats and queues of every priority level of `configuration`."""
        from apflint.evaluate.limits import compute_limits

        levels = tuple(self.configuration.levels.values())
        return compute_limits(levels, self.configuration.order, self.assumptions.server_concurrency, self.release)

    @cached_property
    def proofs(self) -> Analysis:
        """The analysis that proves facts about all requests in the configuration `assumed`.

        The solver is imported only if a proof needs the solver.
        """
        from apflint.evaluate import system_request_rules
        from apflint.proofs.one_configuration import Analysis

        return Analysis(self.assumed, more_rules=system_request_rules.list_rules(self.release))

    @cached_property
    def passages(self) -> ConfigurationComparison:
        """The comparison of the configurations before and after the FlowSchemas of the manifests are applied.

        The configuration before is `without_own`, and the configuration after is `assumed`. The comparison
        finds the requests whose FlowSchema or priority level changes.
        """
        from apflint.proofs.request_space import REALISTIC
        from apflint.proofs.two_configurations import ConfigurationComparison

        return ConfigurationComparison(self.without_own, self.assumed, among=REALISTIC)

    @cached_property
    def dead_parts(self) -> DeadParts:
        """The FlowSchemas in `own_flow_schemas` that capture no request, and the parts of them that match no request.

        FlowSchemas that are not in `assumed` are not analyzed, because the server does not use these FlowSchemas.
        """
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
    """Return a placeholder for the priority level `name`, which no file defines."""
    return PriorityLevelConfiguration(
        metadata=ObjectMeta(name, "", {}, {}, (), ()),
        spec=PriorityLevelConfigurationSpec(
            "Limited", LimitedPriorityLevelConfiguration(30, LimitResponse("Reject", None), 0, None), None
        ),
        document=document,
    )
