"""FlowSchema and PriorityLevelConfiguration as typed, defaulted, frozen values.

Names are Kubernetes' own (`k8s.io/api/flowcontrol/v1/types.go`), in Python's spelling. What the API versions call
differently (assured or nominal concurrency shares) is one field here; what they default differently is done here, as
the servers do it (`pkg/apis/flowcontrol/*/defaults.go`). Comparing two specs with `==` is the server's semantic
equality: an absent list and an empty one are the same.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.load.document import Document
    from apflint.releases import Release

Kind = Literal["FlowSchema", "PriorityLevelConfiguration"]

PRESERVE_ZERO = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
"""Annotation with which 0 and absent shares stay 0 in v1beta3 (Kubernetes 1.30 and later; 1.29 then rejects the level)."""

SUBJECT_FIELDS = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}
"""The field of a subject that its kind selects."""


class OwnerReference(NamedTuple):
    """`metadata.ownerReferences[]`."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool


class ObjectMeta(NamedTuple):
    """The part of `metadata` that a server looks at when it creates an object."""

    name: str
    generate_name: str
    labels: dict[str, str]
    annotations: dict[str, str]
    finalizers: tuple[str, ...]
    owner_references: tuple[OwnerReference, ...]


class ServiceAccountSubject(NamedTuple):
    """A service account, or with the name `*` all of a namespace."""

    namespace: str
    name: str


class Subject(NamedTuple):
    """Who: `kind` says which of the other three counts. A member that is absent is None, an empty name is ""."""

    kind: str
    user: str | None
    group: str | None
    service_account: ServiceAccountSubject | None


class ResourcePolicyRule(NamedTuple):
    """Which resource requests."""

    verbs: tuple[str, ...]
    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    cluster_scope: bool
    namespaces: tuple[str, ...]


class NonResourcePolicyRule(NamedTuple):
    """Which requests that are not for a resource."""

    verbs: tuple[str, ...]
    non_resource_urls: tuple[str, ...]


class PolicyRulesWithSubjects(NamedTuple):
    """`spec.rules[]`: matches a request that one of the subjects makes and one of the rules covers."""

    subjects: tuple[Subject, ...]
    resource_rules: tuple[ResourcePolicyRule, ...]
    non_resource_rules: tuple[NonResourcePolicyRule, ...]


class FlowSchemaSpec(NamedTuple):
    """`spec` of a FlowSchema. `distinguisher_method` is the type, or None where there is no such field."""

    priority_level_configuration: str
    matching_precedence: int
    distinguisher_method: str | None
    rules: tuple[PolicyRulesWithSubjects, ...]


class FlowSchema(NamedTuple):
    """A FlowSchema; `document` is where it was written."""

    metadata: ObjectMeta
    spec: FlowSchemaSpec
    document: Document

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.metadata.name


class QueuingConfiguration(NamedTuple):
    """`queuing`: `queues` is the deck of shuffle sharding, `hand_size` the hand."""

    queues: int
    hand_size: int
    queue_length_limit: int


class LimitResponse(NamedTuple):
    """What happens to a request that finds no seat."""

    type: str
    queuing: QueuingConfiguration | None


class LimitedPriorityLevelConfiguration(NamedTuple):
    """`spec.limited`. `shares` are assured shares up to v1beta2, nominal ones from v1beta3."""

    shares: int
    limit_response: LimitResponse
    lendable_percent: int
    borrowing_limit_percent: int | None


class ExemptPriorityLevelConfiguration(NamedTuple):
    """`spec.exempt`."""

    shares: int
    lendable_percent: int


class PriorityLevelConfigurationSpec(NamedTuple):
    """`spec` of a PriorityLevelConfiguration."""

    type: str
    limited: LimitedPriorityLevelConfiguration | None
    exempt: ExemptPriorityLevelConfiguration | None


class PriorityLevelConfiguration(NamedTuple):
    """A PriorityLevelConfiguration; `document` is where it was written."""

    metadata: ObjectMeta
    spec: PriorityLevelConfigurationSpec
    document: Document

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.metadata.name


def flow_schema(value: Mapping[str, object], document: Document) -> FlowSchema:
    """The FlowSchema in a decoded manifest that has passed the schema (unknown fields are passed over)."""
    spec: Any = value.get("spec") or {}
    method = spec.get("distinguisherMethod")
    return FlowSchema(
        metadata=_metadata(value.get("metadata") or {}),
        spec=FlowSchemaSpec(
            priority_level_configuration=(spec.get("priorityLevelConfiguration") or {}).get("name") or "",
            matching_precedence=spec.get("matchingPrecedence") or 1000,
            distinguisher_method=None if method is None else method.get("type") or "",
            rules=tuple(_rule(rule or {}) for rule in spec.get("rules") or ()),
        ),
        document=document,
    )


def priority_level(value: Mapping[str, object], document: Document, release: Release) -> PriorityLevelConfiguration:
    """The PriorityLevelConfiguration in a decoded manifest that has passed the schema, defaulted as `release` does."""
    metadata = _metadata(value.get("metadata") or {})
    spec: Any = value.get("spec") or {}
    version = document.version
    # The versions before v1beta2 were gone when the field came: in them it is an unknown one, of whatever type.
    has_exempt_field = release.has_exempt_field and version not in ("v1alpha1", "v1beta1")
    limited, exempt = spec.get("limited"), spec.get("exempt") if has_exempt_field else None
    keep_zero = release.keeps_zero_shares(version, annotated=PRESERVE_ZERO in metadata.annotations)
    return PriorityLevelConfiguration(
        metadata=metadata,
        spec=PriorityLevelConfigurationSpec(
            type=spec.get("type") or "",
            limited=None if limited is None else _limited(limited, release, version, keep_zero=keep_zero),
            exempt=None if exempt is None else _exempt(exempt),
        ),
        document=document,
    )


def shares_field(version: str) -> str:
    """The name of the shares of a limited level in an API version."""
    return "assuredConcurrencyShares" if version in ("v1alpha1", "v1beta1", "v1beta2") else "nominalConcurrencyShares"


def _texts(value: list[Any] | None) -> tuple[str, ...]:
    # A null item of a list of strings is decoded to "" (encoding/json leaves the zero value).
    return _shared(tuple([item or "" for item in value])) if value else ()


@lru_cache(maxsize=1024)
def _shared(texts: tuple[str, ...]) -> tuple[str, ...]:
    """The same verbs, groups and resources come again and again: they are kept once."""
    return texts


def _metadata(value: Any) -> ObjectMeta:
    return ObjectMeta(
        name=value.get("name") or "",
        generate_name=value.get("generateName") or "",
        labels=_words(value.get("labels")),
        annotations=_words(value.get("annotations")),
        finalizers=_texts(value.get("finalizers")),
        owner_references=tuple(_owner(owner or {}) for owner in value.get("ownerReferences") or ()),
    )


def _words(value: dict[str, Any] | None) -> dict[str, str]:
    return {key: text or "" for key, text in value.items()} if value else _NO_WORDS


_NO_WORDS: dict[str, str] = {}


def _owner(value: dict[str, Any]) -> OwnerReference:
    return OwnerReference(
        api_version=value.get("apiVersion") or "",
        kind=value.get("kind") or "",
        name=value.get("name") or "",
        uid=value.get("uid") or "",
        controller=bool(value.get("controller")),
    )


def _rule(value: dict[str, Any]) -> PolicyRulesWithSubjects:
    return PolicyRulesWithSubjects(
        subjects=tuple(_subject(subject or {}) for subject in value.get("subjects") or ()),
        resource_rules=tuple(_resource_rule(rule or {}) for rule in value.get("resourceRules") or ()),
        non_resource_rules=tuple(
            NonResourcePolicyRule(_texts((rule or {}).get("verbs")), _texts((rule or {}).get("nonResourceURLs")))
            for rule in value.get("nonResourceRules") or ()
        ),
    )


def _subject(value: dict[str, Any]) -> Subject:
    user, group, account = value.get("user"), value.get("group"), value.get("serviceAccount")
    return Subject(
        kind=value.get("kind") or "",
        user=None if user is None else user.get("name") or "",
        group=None if group is None else group.get("name") or "",
        service_account=None
        if account is None
        else ServiceAccountSubject(account.get("namespace") or "", account.get("name") or ""),
    )


def _resource_rule(value: dict[str, Any]) -> ResourcePolicyRule:
    return ResourcePolicyRule(
        verbs=_texts(value.get("verbs")),
        api_groups=_texts(value.get("apiGroups")),
        resources=_texts(value.get("resources")),
        cluster_scope=bool(value.get("clusterScope")),
        namespaces=_texts(value.get("namespaces")),
    )


def _limited(
    value: dict[str, Any], release: Release, version: str, *, keep_zero: bool
) -> LimitedPriorityLevelConfiguration:
    shares = value.get(shares_field(version))
    response = value.get("limitResponse") or {}
    queuing = response.get("queuing")
    has_borrowing = release.has_borrowing and version != "v1alpha1"  # which was gone when the fields came
    return LimitedPriorityLevelConfiguration(
        shares=_shares(shares, version, keep_zero=keep_zero),
        limit_response=LimitResponse(response.get("type") or "", None if queuing is None else _queuing(queuing)),
        lendable_percent=(value.get("lendablePercent") or 0) if has_borrowing else 0,
        borrowing_limit_percent=value.get("borrowingLimitPercent") if has_borrowing else None,
    )


def _shares(shares: int | None, version: str, *, keep_zero: bool) -> int:
    """Shares after defaulting: v1 has a pointer, so absent is 30 and 0 is 0; before that both are 30, unless kept."""
    if shares is None:
        return 0 if keep_zero and version != "v1" else 30
    return shares if shares or keep_zero else 30


def _queuing(value: dict[str, Any]) -> QueuingConfiguration:
    return QueuingConfiguration(
        queues=value.get("queues") or 64,
        hand_size=value.get("handSize") or 8,
        queue_length_limit=value.get("queueLengthLimit") or 50,
    )


def _exempt(value: dict[str, Any]) -> ExemptPriorityLevelConfiguration:
    return ExemptPriorityLevelConfiguration(
        shares=value.get("nominalConcurrencyShares") or 0,
        lendable_percent=value.get("lendablePercent") or 0,
    )
