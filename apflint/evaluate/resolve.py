"""Which FlowSchema and priority level a request gets.

Sources: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go (`lockAndDigestConfigObjects`,
`digestFlowSchemasLocked`, `queueSetCompleterForPL`, `startRequest`) and apihelpers/apf_helpers.go, where
`FlowSchemaSequence` is sorted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from apflint.evaluate.match import (
    matches_flow_schema,
    matches_non_resource_policy_rule,
    matches_policy_rule,
    matches_resource_policy_rule,
    matches_subject,
)
from apflint.evaluate.shards import why_no_dealer
from apflint.model import FlowSchema, PriorityLevelConfiguration
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from apflint.evaluate.match import RequestDigest
    from apflint.model import Kind

_T = TypeVar("_T", FlowSchema, PriorityLevelConfiguration)

EXEMPT, CATCH_ALL = "exempt", "catch-all"
"""The names of the mandatory objects: a FlowSchema and a level each."""


class Objects(Protocol):
    """FlowSchemas and priority levels, in any order: a `Workspace`, or what `apflint.builtin.workspace_objects` gives."""

    @property
    def flow_schemas(self) -> tuple[FlowSchema, ...]:
        """The FlowSchemas."""

    @property
    def priority_levels(self) -> tuple[PriorityLevelConfiguration, ...]:
        """The levels."""


class Configuration(NamedTuple):
    """What the API Priority and Fairness of a server runs on."""

    order: tuple[FlowSchema, ...]
    """The FlowSchemas that are effective, in the order in which requests are held against them."""
    dangling: tuple[FlowSchema, ...]
    """The FlowSchemas that the server skips, because their priority level does not exist; ordered likewise."""
    levels: Mapping[str, PriorityLevelConfiguration]
    """The levels that exist for the server, by name."""
    broken: Mapping[str, str]
    """Levels that are there but count as absent, by name: why, as the end of a sentence that begins with the level."""
    imagined: frozenset[tuple[Kind, str]]
    """The mandatory objects that are missing, which the server makes up: kind and name."""


class MatchedBy(NamedTuple):
    """What in a FlowSchema matched: the first rule, in it the first subject, and the first rule of the request's type.

    Indices from 0; of `resource_rule` and `non_resource_rule` one is None, by the type of the request.
    """

    rule: int
    subject: int
    resource_rule: int | None
    non_resource_rule: int | None


class Resolution(NamedTuple):
    """What becomes of a request."""

    flow_schema: FlowSchema
    priority_level: PriorityLevelConfiguration
    position: int
    """The index of the FlowSchema in the order; those before it were tried and did not match."""
    matched_by: MatchedBy | None
    """None: no FlowSchema matched at all, and the server fell back to `catch-all`."""


def configuration(user: Objects, builtin: Objects, *, defaults: bool = True) -> Configuration:
    """The configuration of a server that has the user's objects and, unless these define them, the built-in ones.

    `builtin` are all built-in objects of the release, the mandatory ones among them. Without `defaults` none of them is
    stored; then the server imagines the mandatory ones that the user's objects lack. Where two of the user's objects
    bear one name, the later one counts, as if they had been applied one after the other.
    """
    levels = _by_name((*(builtin.priority_levels if defaults else ()), *user.priority_levels))
    broken = {level.name: reason for level in levels if (reason := broken_level(level)) is not None}
    working = {level.name: level for level in levels if level.name not in broken}

    stored = sorted(_by_name((*(builtin.flow_schemas if defaults else ()), *user.flow_schemas)), key=matching_order)
    # Levels that are missing are imagined only after this, so a FlowSchema that refers to one of them dangles all the same.
    order = [schema for schema in stored if schema.spec.priority_level_configuration in working]
    dangling = tuple(schema for schema in stored if schema.spec.priority_level_configuration not in working)

    imagined: set[tuple[Kind, str]] = set()
    names = {schema.name for schema in order}
    mandatory = {schema.name: schema for schema in builtin.flow_schemas}
    # Imagined FlowSchemas stand at the very ends, whatever others have the same precedence.
    if EXEMPT not in names:
        order.insert(0, mandatory[EXEMPT])
        imagined.add(("FlowSchema", EXEMPT))
    if CATCH_ALL not in names:
        order.append(mandatory[CATCH_ALL])
        imagined.add(("FlowSchema", CATCH_ALL))
    for level in builtin.priority_levels:
        if level.name in (EXEMPT, CATCH_ALL) and level.name not in working:
            working[level.name] = level
            imagined.add(("PriorityLevelConfiguration", level.name))
    return Configuration(tuple(order), dangling, working, broken, frozenset(imagined))


def matching_order(schema: FlowSchema) -> tuple[int, str]:
    """The key that FlowSchemas are sorted by: precedence, then the name. UTF-8's order of bytes, Go's, is Python's order."""
    return schema.spec.matching_precedence, schema.name


def classify(configuration: Configuration, digest: RequestDigest) -> Resolution:
    """The FlowSchema and the priority level of a request: the first FlowSchema in the order that matches.

    This is for requests that reach API Priority and Fairness (see `apflint.evaluate.requestinfo.seen_by_apf`). For many
    requests `apflint.evaluate.classifier` gives the same answers faster.
    """
    fallback = 0
    for position, schema in enumerate(configuration.order):
        if matches_flow_schema(digest, schema.spec):
            level = configuration.levels[schema.spec.priority_level_configuration]
            return Resolution(schema, level, position, matched_by(digest, schema))
        if schema.name == CATCH_ALL:
            fallback = position
    # Only a user in neither system:authenticated nor system:unauthenticated gets here; no server makes one.
    schema = configuration.order[fallback]
    return Resolution(schema, configuration.levels[schema.spec.priority_level_configuration], fallback, None)


def matched_by(digest: RequestDigest, schema: FlowSchema) -> MatchedBy | None:
    """What in `schema` matches the request first; None if nothing does."""
    info = digest.request_info
    for index, rule in enumerate(schema.spec.rules):
        if not matches_policy_rule(digest, rule):
            continue
        subject = next(at for at, subject in enumerate(rule.subjects) if matches_subject(digest.user, subject))
        if info.is_resource_request:
            first = next(at for at, each in enumerate(rule.resource_rules) if matches_resource_policy_rule(info, each))
            return MatchedBy(index, subject, first, None)
        first = next(
            at for at, each in enumerate(rule.non_resource_rules) if matches_non_resource_policy_rule(info, each)
        )
        return MatchedBy(index, subject, None, first)
    return None


def broken_level(level: PriorityLevelConfiguration) -> str | None:
    """Why the server cannot work with a level, which then counts as absent; None if it can.

    Source: `queueSetCompleterForPL`. The API refuses all of these, so they come from manifests that were never applied.
    An `exempt` level without its `exempt` field is none of them: the server puts the field back.
    """
    spec = level.spec
    if (spec.type == "Exempt") != (level.name == EXEMPT):
        return f'has the type "{spec.type}", but the level "{EXEMPT}" and no other has the type "Exempt"'
    if (spec.type == "Limited") != (spec.limited is not None):
        return f'has the type "{spec.type}" {"and" if spec.limited else "but no"} "limited" settings'
    if spec.exempt is not None and spec.type != "Exempt":
        return f'has the type "{spec.type}" and "exempt" settings'
    if spec.limited is None:
        return None
    kind, queuing = spec.limited.limit_response
    if (kind == "Reject") != (queuing is None):
        return f'has the limit response "{kind}" {"and" if queuing else "but no"} "queuing" settings'
    if queuing is None or queuing.queues < 1:
        return None
    no_dealer = why_no_dealer(queuing.queues, queuing.hand_size)
    return None if no_dealer is None else f"cannot deal queues: {no_dealer}"


def _by_name(objects: Iterable[_T]) -> list[_T]:
    """The last object of each name. Objects without a name (`generateName`) get one each from the server, so all stay."""
    return list({item.name or at: item for at, item in enumerate(objects)}.values())
