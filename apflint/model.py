"""FlowSchema and PriorityLevelConfiguration as typed, immutable values with their defaults.

Names follow `k8s.io/api/flowcontrol/v1/types.go`. Early API versions call the shares of a level
`assuredConcurrencyShares`, and later ones `nominalConcurrencyShares`. The field `shares` holds both. Defaults are the
defaults of the server (`pkg/apis/flowcontrol/*/defaults.go`). Two specs are equal (`==`) if the server treats them as
equal. For example, an absent list equals an empty list.
"""

from __future__ import annotations

from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from apflint.load.document import Document
    from apflint.releases import Release

_T = TypeVar("_T")
Kind = Literal["FlowSchema", "PriorityLevelConfiguration"]

PRESERVE_ZERO = "flowcontrol.k8s.io/v1beta3-preserve-zero-concurrency-shares"
"""Annotation of a priority level. With this annotation, 0 shares and absent shares both mean 0 shares in v1beta3.

Kubernetes 1.29 rejects a level with 0 shares. Kubernetes 1.30 and later accept it."""
SUBJECT_FIELDS = {"User": "user", "Group": "group", "ServiceAccount": "serviceAccount"}
"""Maps the kind of a subject to the field that contains the details of the subject."""


class OwnerReference(NamedTuple):
    """An item of `metadata.ownerReferences`."""

    api_version: str
    kind: str
    name: str
    uid: str
    controller: bool


class ObjectMeta(NamedTuple):
    """The fields of `metadata` that the API server validates when a client creates an object."""

    name: str
    generate_name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    owner_references: tuple[OwnerReference, ...]


class ServiceAccountSubject(NamedTuple):
    """A service account, or all service accounts of the namespace if the name is `*`."""

    namespace: str
    name: str


class Subject(NamedTuple):
    """A user, group or service account, depending on `kind`. The value of an absent field is None."""

    kind: str
    user: str | None
    group: str | None
    service_account: ServiceAccountSubject | None


class ResourcePolicyRule(NamedTuple):
    """An item of `resourceRules`."""

    verbs: tuple[str, ...]
    api_groups: tuple[str, ...]
    resources: tuple[str, ...]
    cluster_scope: bool
    namespaces: tuple[str, ...]


class NonResourcePolicyRule(NamedTuple):
    """An item of `nonResourceRules`."""

    verbs: tuple[str, ...]
    non_resource_urls: tuple[str, ...]


class PolicyRulesWithSubjects(NamedTuple):
    """An item of `spec.rules`.

    The item matches a request if one of its subjects matches the user, and one of its resource rules or non-resource
    rules matches the request.
    """

    subjects: tuple[Subject, ...]
    resource_rules: tuple[ResourcePolicyRule, ...]
    non_resource_rules: tuple[NonResourcePolicyRule, ...]


class FlowSchemaSpec(NamedTuple):
    """`spec` of a FlowSchema. `distinguisher_method` is `distinguisherMethod.type`, or None if the field is absent."""

    priority_level_configuration: str
    matching_precedence: int
    distinguisher_method: str | None
    rules: tuple[PolicyRulesWithSubjects, ...]


class FlowSchema(NamedTuple):
    """A FlowSchema and its manifest."""

    metadata: ObjectMeta
    spec: FlowSchemaSpec
    document: Document

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.metadata.name


class QueuingConfiguration(NamedTuple):
    """`queuing` of a priority level that queues requests."""

    queues: int
    hand_size: int
    queue_length_limit: int


class LimitResponse(NamedTuple):
    """`limitResponse` of a priority level.

    The type, `Queue` or `Reject`, decides what the server does with a request if no seat is free.
    """

    type: str
    queuing: QueuingConfiguration | None


class LimitedPriorityLevelConfiguration(NamedTuple):
    """`spec.limited` of a priority level.

    `shares` holds `assuredConcurrencyShares` in v1beta2 and earlier versions, and `nominalConcurrencyShares` in later
    versions.
    """

    shares: int
    limit_response: LimitResponse
    lendable_percent: int
    borrowing_limit_percent: int | None


class ExemptPriorityLevelConfiguration(NamedTuple):
    """`spec.exempt` of a priority level: the shares and the percentage of its seats that the level may lend."""

    shares: int
    lendable_percent: int


class PriorityLevelConfigurationSpec(NamedTuple):
    """`spec` of a PriorityLevelConfiguration."""

    type: str
    limited: LimitedPriorityLevelConfiguration | None
    exempt: ExemptPriorityLevelConfiguration | None


class PriorityLevelConfiguration(NamedTuple):
    """A PriorityLevelConfiguration and its manifest."""

    metadata: ObjectMeta
    spec: PriorityLevelConfigurationSpec
    document: Document

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.metadata.name


def build_flow_schema(value: Mapping[str, object], document: Document) -> FlowSchema:
    """Build a FlowSchema from a decoded manifest that is valid according to its schema. Unknown fields are ignored."""
    spec: Any = value.get("spec") or {}
    method = spec.get("distinguisherMethod")
    return FlowSchema(
        metadata=_build_metadata(value.get("metadata") or {}),
        spec=FlowSchemaSpec(
            priority_level_configuration=(spec.get("priorityLevelConfiguration") or {}).get("name") or "",
            matching_precedence=spec.get("matchingPrecedence") or 1000,
            distinguisher_method=None if method is None else method.get("type") or "",
            rules=_build_items(_build_rule, spec.get("rules")),
        ),
        document=document,
    )


def build_priority_level(
    value: Mapping[str, object], document: Document, release: Release
) -> PriorityLevelConfiguration:
    """Build a PriorityLevelConfiguration from a decoded manifest that is valid according to its schema.

    The defaults of the release apply. Unknown fields are ignored.
    """
    metadata = _build_metadata(value.get("metadata") or {})
    spec: Any = value.get("spec") or {}
    version = document.version
    # v1alpha1 and v1beta1 were removed before Kubernetes added the field `exempt`, so these versions do not have it.
    has_exempt_field = release.has_exempt_field and version not in ("v1alpha1", "v1beta1")
    limited, exempt = spec.get("limited"), spec.get("exempt") if has_exempt_field else None
    keeps_zero = release.keeps_zero_shares(version, annotated=PRESERVE_ZERO in metadata.annotations)
    return PriorityLevelConfiguration(
        metadata=metadata,
        spec=PriorityLevelConfigurationSpec(
            type=spec.get("type") or "",
            limited=None if limited is None else _build_limited(limited, release, version, keeps_zero=keeps_zero),
            exempt=None
            if exempt is None
            else ExemptPriorityLevelConfiguration(
                shares=exempt.get("nominalConcurrencyShares") or 0,
                lendable_percent=exempt.get("lendablePercent") or 0,
            ),
        ),
        document=document,
    )


def shares_field(version: str) -> str:
    """Return the name of the field with the shares of a limited level in an API version."""
    return "assuredConcurrencyShares" if version in ("v1alpha1", "v1beta1", "v1beta2") else "nominalConcurrencyShares"


def _strings(value: list[Any] | None) -> tuple[str, ...]:
    # Go decodes a null item in a list of strings as "": encoding/json does not change the item, and "" is its zero value.
    if not value:
        return ()
    return _intern(tuple(value) if None not in value else tuple([item or "" for item in value]))


@lru_cache(maxsize=1024)
def _intern(strings: tuple[str, ...]) -> tuple[str, ...]:
    """Return the tuple itself or, if an equal tuple was passed before, the earlier tuple.

    Thousands of rules may have equal lists. Memory is saved if they share one tuple.
    """
    return strings


_NO_TEXTS: Mapping[str, str] = MappingProxyType({})


def _texts(value: Mapping[str, Any] | None) -> Mapping[str, str]:
    """Return labels or annotations in which each null value is replaced by "", as in Go.

    If no value is null or "", return the same mapping object, to save memory.
    """
    if not value:
        return _NO_TEXTS
    return value if all(value.values()) else {key: text or "" for key, text in value.items()}


def _build_metadata(value: Any) -> ObjectMeta:
    return ObjectMeta(
        name=value.get("name") or "",
        generate_name=value.get("generateName") or "",
        labels=_texts(value.get("labels")),
        annotations=_texts(value.get("annotations")),
        finalizers=_strings(value.get("finalizers")),
        owner_references=_build_items(_build_owner, value.get("ownerReferences")),
    )


def _build_owner(value: dict[str, Any]) -> OwnerReference:
    return OwnerReference(
        api_version=value.get("apiVersion") or "",
        kind=value.get("kind") or "",
        name=value.get("name") or "",
        uid=value.get("uid") or "",
        controller=bool(value.get("controller")),
    )


def _build_rule(value: dict[str, Any]) -> PolicyRulesWithSubjects:
    return PolicyRulesWithSubjects(
        subjects=_build_items(_build_subject, value.get("subjects")),
        resource_rules=_build_items(_build_resource_rule, value.get("resourceRules")),
        non_resource_rules=_build_items(_build_non_resource_rule, value.get("nonResourceRules")),
    )


def _build_items(build: Callable[[dict[str, Any]], _T], items: list[Any] | None) -> tuple[_T, ...]:
    return tuple([build(item or {}) for item in items]) if items else ()


def _build_subject(value: dict[str, Any]) -> Subject:
    user, group, account = value.get("user"), value.get("group"), value.get("serviceAccount")
    return Subject(
        kind=value.get("kind") or "",
        user=None if user is None else user.get("name") or "",
        group=None if group is None else group.get("name") or "",
        service_account=None
        if account is None
        else ServiceAccountSubject(account.get("namespace") or "", account.get("name") or ""),
    )


def _build_resource_rule(value: dict[str, Any]) -> ResourcePolicyRule:
    return ResourcePolicyRule(
        verbs=_strings(value.get("verbs")),
        api_groups=_strings(value.get("apiGroups")),
        resources=_strings(value.get("resources")),
        cluster_scope=bool(value.get("clusterScope")),
        namespaces=_strings(value.get("namespaces")),
    )


def _build_non_resource_rule(value: dict[str, Any]) -> NonResourcePolicyRule:
    return NonResourcePolicyRule(_strings(value.get("verbs")), _strings(value.get("nonResourceURLs")))


def _build_limited(
    value: dict[str, Any], release: Release, version: str, *, keeps_zero: bool
) -> LimitedPriorityLevelConfiguration:
    shares = value.get(shares_field(version))
    # In v1, an explicit value of 0 shares is kept, and absent shares are replaced by the default of 30.
    if shares is None:
        shares = 0 if keeps_zero and version != "v1" else 30
    response = value.get("limitResponse") or {}
    queuing = response.get("queuing")
    has_borrowing = release.has_borrowing and version != "v1alpha1"  # v1alpha1 was removed before borrowing was added
    return LimitedPriorityLevelConfiguration(
        shares=shares if shares or keeps_zero else 30,
        limit_response=LimitResponse(
            response.get("type") or "",
            None
            if queuing is None
            else QueuingConfiguration(
                queues=queuing.get("queues") or 64,
                hand_size=queuing.get("handSize") or 8,
                queue_length_limit=queuing.get("queueLengthLimit") or 50,
            ),
        ),
        lendable_percent=(value.get("lendablePercent") or 0) if has_borrowing else 0,
        borrowing_limit_percent=value.get("borrowingLimitPercent") if has_borrowing else None,
    )
