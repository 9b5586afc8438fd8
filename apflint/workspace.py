"""The workspace of a run: its manifests, with their schema violations and typed objects, for one target release."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, TypeVar

from apflint.location import Place
from apflint.model import FlowSchema, PriorityLevelConfiguration, build_flow_schema, build_priority_level
from apflint.named_tuple import NamedTuple
from apflint.releases import api_version
from apflint.schema_violations import Violation, find_violations

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from apflint.diff.kubectl_apply import KeptField
    from apflint.finding import ObjectKey
    from apflint.load import Loaded
    from apflint.load.apf_objects import LoadProblem
    from apflint.load.document import Document
    from apflint.model import (
        LimitedPriorityLevelConfiguration,
        NonResourcePolicyRule,
        PolicyRulesWithSubjects,
        QueuingConfiguration,
        ResourcePolicyRule,
        Subject,
    )
    from apflint.releases import Release

_EMPTY: Mapping[Document, Manifest] = MappingProxyType({})
T = TypeVar("T", FlowSchema, PriorityLevelConfiguration)


class Manifest(NamedTuple):
    """A document, the violations of its schema, and its typed object. The object is None if the document cannot be decoded."""

    document: Document
    violations: tuple[Violation, ...]
    object: FlowSchema | PriorityLevelConfiguration | None


class Workspace(NamedTuple):
    """The manifests and problems of a run, in the order of the input, for one target release.

    `Effective` derives the configuration of a server from a workspace.
    """

    release: Release
    problems: tuple[LoadProblem, ...]
    manifests: tuple[Manifest, ...]
    flow_schemas: tuple[FlowSchema, ...]
    priority_levels: tuple[PriorityLevelConfiguration, ...]
    context: tuple[Manifest, ...] = ()
    """Manifests from `--context`. Analyses use them, but apflint reports no findings in them."""
    kept: tuple[KeptField, ...] = ()
    """Fields that objects of a running cluster keep after `kubectl apply`, because the applied manifests do not set
    them."""
    rejected: frozenset[ObjectKey] = frozenset()
    """Objects whose manifests the API server of a running cluster rejects. The workspace does not contain these manifests."""

    def without(self, documents: Collection[Document]) -> Workspace:
        """Return a workspace without the manifests of `documents`."""
        if not documents:
            return self
        kept = tuple(manifest for manifest in self.manifests if manifest.document not in documents)
        return self._replace(
            manifests=kept,
            flow_schemas=_typed(FlowSchema, kept),
            priority_levels=_typed(PriorityLevelConfiguration, kept),
        )

    def with_manifest(self, manifest: Manifest, replaced: Document) -> Workspace:
        """Return a workspace in which `manifest` replaces the manifest of the document `replaced`.

        If the workspace has no manifest of `replaced`, append `manifest`.
        """
        manifests = tuple(manifest if own.document is replaced else own for own in self.manifests)
        if manifest not in manifests:
            manifests = (*manifests, manifest)
        return self._replace(
            manifests=manifests,
            flow_schemas=_typed(FlowSchema, manifests),
            priority_levels=_typed(PriorityLevelConfiguration, manifests),
        )

    def documents(self) -> Iterator[Document]:
        """Yield the documents of all manifests, including those that cannot be decoded, in the order of the input."""
        return (manifest.document for manifest in self.manifests)

    def objects(self) -> Iterator[FlowSchema | PriorityLevelConfiguration]:
        """Yield the object of each manifest that can be decoded, in the order of the input."""
        return (manifest.object for manifest in self.manifests if manifest.object is not None)

    def rules(self) -> Iterator[tuple[Place, PolicyRulesWithSubjects]]:
        """Yield (place, rule) for each rule of all FlowSchemas."""
        for schema in self.flow_schemas:
            yield from rules_of(schema)

    def subjects(self) -> Iterator[tuple[Place, Subject]]:
        """Yield (place, subject) for each subject of all FlowSchemas."""
        for schema in self.flow_schemas:
            for number, rule in enumerate(schema.spec.rules):
                for index, subject in enumerate(rule.subjects):
                    yield Place(schema.document, ("spec", "rules", number, "subjects", index)), subject

    def resource_rules(self) -> Iterator[tuple[Place, ResourcePolicyRule]]:
        """Yield (place, resource rule) for each resource rule of all FlowSchemas."""
        for schema in self.flow_schemas:
            for number, rule in enumerate(schema.spec.rules):
                for index, part in enumerate(rule.resource_rules):
                    yield Place(schema.document, ("spec", "rules", number, "resourceRules", index)), part

    def non_resource_rules(self) -> Iterator[tuple[Place, NonResourcePolicyRule]]:
        """Yield (place, non-resource rule) for each non-resource rule of all FlowSchemas."""
        for schema in self.flow_schemas:
            for number, rule in enumerate(schema.spec.rules):
                for index, part in enumerate(rule.non_resource_rules):
                    yield Place(schema.document, ("spec", "rules", number, "nonResourceRules", index)), part

    def string_lists(self) -> Iterator[tuple[Place, str, tuple[str, ...]]]:
        """Yield (place of the rule, name of the field, items) for each list of strings in the rules of all FlowSchemas.

        These are the lists in resource and non-resource rules, such as `verbs`.
        """
        for place, rule in self.resource_rules():
            yield place, "verbs", rule.verbs
            yield place, "apiGroups", rule.api_groups
            yield place, "resources", rule.resources
            yield place, "namespaces", rule.namespaces
        for place, other in self.non_resource_rules():
            yield place, "verbs", other.verbs
            yield place, "nonResourceURLs", other.non_resource_urls

    def limited(self) -> Iterator[tuple[Place, LimitedPriorityLevelConfiguration]]:
        """Yield (place, value) of `spec.limited` for each priority level of type Limited."""
        for level in self.priority_levels:
            if level.spec.type == "Limited" and level.spec.limited is not None:
                yield Place(level.document, ("spec", "limited")), level.spec.limited

    def queuing(self) -> Iterator[tuple[Place, QueuingConfiguration]]:
        """Yield (place, value) of `queuing` for each priority level whose limitResponse has the type Queue."""
        for place, limited in self.limited():
            response = limited.limit_response
            if response.type == "Queue" and response.queuing is not None:
                yield place / "limitResponse" / "queuing", response.queuing


def rules_of(schema: FlowSchema) -> Iterator[tuple[Place, PolicyRulesWithSubjects]]:
    """Yield (place, rule) for each rule of a FlowSchema."""
    for index, rule in enumerate(schema.spec.rules):
        yield Place(schema.document, ("spec", "rules", index)), rule


def resource_rules_of(schema: FlowSchema) -> Iterator[tuple[Place, PolicyRulesWithSubjects, ResourcePolicyRule]]:
    """Yield (place, rule that contains the resource rule, resource rule) for each resource rule of a FlowSchema."""
    for number, rule in enumerate(schema.spec.rules):
        for index, part in enumerate(rule.resource_rules):
            yield Place(schema.document, ("spec", "rules", number, "resourceRules", index)), rule, part


def build_workspace(
    loaded: Iterable[Loaded],
    release: Release,
    context: Iterable[Loaded] = (),
    known: Mapping[Document, Manifest] = _EMPTY,
) -> Workspace:
    """Validate all documents against their schemas, and build the typed objects of the documents that can be decoded.

    `known` contains manifests that were built for the same release before. They are not built again.
    """
    inputs = list(loaded)

    def build(parts: Iterable[Loaded]) -> tuple[Manifest, ...]:
        documents = (document for part in parts for document in part.documents)
        return tuple(known.get(document) or _manifest(document, release) for document in documents)

    manifests = build(inputs)
    return Workspace(
        release,
        tuple(problem for part in inputs for problem in part.problems),
        manifests,
        _typed(FlowSchema, manifests),
        _typed(PriorityLevelConfiguration, manifests),
        build(context),
    )


def is_dangling_on_server(schema: FlowSchema) -> bool:
    """Return whether a server has reported that the priority level of a FlowSchema does not exist.

    The report is the condition `Dangling` in the status, which the server keeps up to date (presyncFlowSchemaStatus in
    staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go). The result is True only if the FlowSchema was
    read from a running cluster, or is in a list, as in the output of `kubectl get`. The status in a file with a single
    object may be outdated.
    """
    document = schema.document
    if not ((document.prefix or document.source.is_live) and document.at("metadata", "uid")):
        return False
    conditions = document.at("status", "conditions")
    return isinstance(conditions, list) and any(
        isinstance(condition, dict) and (condition.get("type"), condition.get("status")) == ("Dangling", "True")
        for condition in conditions
    )


def _typed(kind: type[T], manifests: Iterable[Manifest]) -> tuple[T, ...]:
    return tuple(manifest.object for manifest in manifests if isinstance(manifest.object, kind))


def _manifest(document: Document, release: Release) -> Manifest:
    if api_version(document.version) is None:  # apflint cannot decode an object of an unknown API version
        return Manifest(document, (), None)
    value = document.value
    found = find_violations(value, document.kind, document.version, release)
    if any(violation.what != "unknown" for violation in found) or document.not_finite:
        return Manifest(document, found, None)
    if document.kind == "FlowSchema":
        return Manifest(document, found, build_flow_schema(value, document))
    return Manifest(document, found, build_priority_level(value, document, release))
