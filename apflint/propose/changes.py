"""The changes that a proposal can contain: new objects, and new field values of the user's existing objects.

`apply_changes` returns the configuration after the changes. `find_forbidden` explains which changes are not allowed.
`measure` returns the size of the changes. The smallest change has the fewest new objects, then the fewest changed
fields, then the smallest loss of seats of other levels.
"""

from __future__ import annotations

import json
from copy import deepcopy
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from apflint import builtin
from apflint.diff.objects import compare_levels
from apflint.effective_configuration import Effective
from apflint.evaluate import system_request_rules
from apflint.evaluate.configuration import EXEMPT
from apflint.load import Loaded
from apflint.load.document import GROUP, Document
from apflint.load.json import parse_tree
from apflint.load.source_text import Source
from apflint.model import shares_field
from apflint.named_tuple import NamedTuple
from apflint.simulate import field_overrides
from apflint.simulate.field_overrides import LevelFieldChange
from apflint.wording import quote
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, QueuingConfiguration, Subject
    from apflint.releases import Release

_SOURCE = "<proposal>"
"""File name of objects that are not written to a file yet."""


class NewLevel(NamedTuple):
    """A new priority level. In releases without borrowing, its manifest omits lendablePercent and borrowingLimitPercent."""

    name: str
    shares: int
    lendable_percent: int
    borrowing_limit_percent: int | None
    queuing: QueuingConfiguration | None
    """The queues, or None if the level rejects requests when no seat is free."""


class NewFlowSchema(NamedTuple):
    """A new FlowSchema."""

    name: str
    level: str
    matching_precedence: int
    distinguisher_method: str | None
    rules: tuple[PolicyRulesWithSubjects, ...]


class FlowSchemaFieldChange(NamedTuple):
    """A new value of a field of a FlowSchema. The value None removes the field."""

    flow_schema: str
    field: Literal["matchingPrecedence", "distinguisherMethod"]
    value: int | str | None


Change: TypeAlias = NewLevel | NewFlowSchema | LevelFieldChange | FlowSchemaFieldChange
"""A change.

`LevelFieldChange` can set the fields that `--set` can: shares, percentages, queues, handSize and queueLengthLimit.
"""


class Cost(NamedTuple):
    """The size of a proposed change. The search tries changes with a lower cost first.

    Costs are compared as tuples: first the new objects, then the changed fields, then the lost seats.
    """

    objects: int
    """Number of new objects."""
    fields: int
    """Number of fields of existing objects that change."""
    seats: int
    """Number of nominal seats that other levels lose, in one API server."""


def apply_changes(effective: Effective, changes: Sequence[Change]) -> Effective:
    """Return the configuration after changes, whose order has no effect. All objects that changes name must exist."""
    new = [change for change in changes if isinstance(change, NewLevel | NewFlowSchema)]
    manifests = [build_manifest(change, effective.release) for change in sorted(new, key=lambda change: change.name)]
    changed = field_overrides.apply_changes(
        effective, sorted((change for change in changes if isinstance(change, LevelFieldChange)), key=_order)
    )
    fields: dict[str, list[FlowSchemaFieldChange]] = {}
    for change in changes:
        if isinstance(change, FlowSchemaFieldChange):
            fields.setdefault(change.flow_schema, []).append(change)
    for name in sorted(fields):
        changed = _change_flow_schema(changed, name, fields[name])
    return add_objects(changed, [_load(manifest) for manifest in manifests])


def _order(change: LevelFieldChange) -> tuple[str, str]:
    return change.level, change.field


def add_objects(effective: Effective, loaded: Iterable[Loaded]) -> Effective:
    """Return the configuration with additional manifests.

    The manifests must not define objects that the configuration already has.
    """
    more, own = build_workspace(loaded, effective.release), effective.workspace
    return Effective(
        own._replace(
            problems=(*own.problems, *more.problems),
            manifests=(*own.manifests, *more.manifests),
            flow_schemas=(*own.flow_schemas, *more.flow_schemas),
            priority_levels=(*own.priority_levels, *more.priority_levels),
        ),
        effective.assumptions,
    )


def _load(manifest: dict[str, Any]) -> Loaded:
    text = json.dumps(manifest)
    source = Source(_SOURCE, text)
    return Loaded(source, (Document(source, manifest, cache(partial(parse_tree, text, 0, len(text)))),), (), {})


def _change_flow_schema(effective: Effective, name: str, changes: Iterable[FlowSchemaFieldChange]) -> Effective:
    order = (*effective.configuration.order, *effective.configuration.dangling)
    schema = next(schema for schema in order if schema.name == name)
    value: dict[str, Any] = deepcopy(schema.document.value)
    for change in changes:
        is_type = change.field == "distinguisherMethod" and change.value is not None
        value["spec"][change.field] = {"type": change.value} if is_type else change.value
    document = schema.document.with_value(value)
    (manifest,) = build_workspace([Loaded(document.source, (document,), (), {})], effective.release).manifests
    return Effective(effective.workspace.with_manifest(manifest, schema.document), effective.assumptions)


def build_manifest(change: NewLevel | NewFlowSchema, release: Release) -> dict[str, object]:
    """Return the manifest of a new object, in the newest API version of the release."""
    if isinstance(change, NewLevel):
        kind, spec = "PriorityLevelConfiguration", _build_level(change, release)
    else:
        kind, spec = "FlowSchema", _build_flow_schema(change)
    version = f"{GROUP}/{release.newest_version}"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": change.name}, "spec": spec}


def _build_level(level: NewLevel, release: Release) -> dict[str, Any]:
    limited: dict[str, Any] = {shares_field(release.newest_version): level.shares}
    if release.has_borrowing:
        limited["lendablePercent"] = level.lendable_percent
        if level.borrowing_limit_percent is not None:
            limited["borrowingLimitPercent"] = level.borrowing_limit_percent
    limited["limitResponse"] = {"type": "Reject"}
    if (queuing := level.queuing) is not None:
        fields = {
            "queues": queuing.queues,
            "handSize": queuing.hand_size,
            "queueLengthLimit": queuing.queue_length_limit,
        }
        limited["limitResponse"] = {"type": "Queue", "queuing": fields}
    return {"type": "Limited", "limited": limited}


def _build_flow_schema(schema: NewFlowSchema) -> dict[str, Any]:
    spec: dict[str, Any] = {
        "priorityLevelConfiguration": {"name": schema.level},
        "matchingPrecedence": schema.matching_precedence,
    }
    if schema.distinguisher_method is not None:
        spec["distinguisherMethod"] = {"type": schema.distinguisher_method}
    spec["rules"] = [*map(_build_rule, schema.rules)]
    return spec


def _build_rule(rule: PolicyRulesWithSubjects) -> dict[str, Any]:
    resources = [
        {
            "verbs": [*entry.verbs],
            "apiGroups": [*entry.api_groups],
            "resources": [*entry.resources],
            **({"clusterScope": True} if entry.cluster_scope else {}),
            **({"namespaces": [*entry.namespaces]} if entry.namespaces else {}),
        }
        for entry in rule.resource_rules
    ]
    paths = [
        {"verbs": [*entry.verbs], "nonResourceURLs": [*entry.non_resource_urls]} for entry in rule.non_resource_rules
    ]
    lists = {"resourceRules": resources, "nonResourceRules": paths}
    return {"subjects": [*map(_build_subject, rule.subjects)]} | {name: items for name, items in lists.items() if items}


def _build_subject(subject: Subject) -> dict[str, Any]:
    if (account := subject.service_account) is not None:
        return {"kind": subject.kind, "serviceAccount": {"namespace": account.namespace, "name": account.name}}
    kind = "user" if subject.kind == "User" else "group"
    return {"kind": subject.kind, kind: {"name": subject.user if subject.kind == "User" else subject.group}}


def measure(changes: Sequence[Change], before: Effective, after: Effective) -> Cost:
    """Return the size of changes that turn `before` into `after`."""
    own = {change.level for change in changes if isinstance(change, LevelFieldChange)}
    own |= {change.name for change in changes if isinstance(change, NewLevel)}
    losses = (max(0, -change.gain) for change in compare_levels(before.limits, after.limits) if change.name not in own)
    objects = sum(isinstance(change, NewLevel | NewFlowSchema) for change in changes)
    return Cost(objects, len(changes) - objects, sum(losses))


def is_system_flow_schema(schema: FlowSchema, release: Release) -> bool:
    """Return whether a FlowSchema is for the system.

    A FlowSchema is for the system if it is a suggested FlowSchema other than `service-accounts` and
    `global-default`, or if it references the level `exempt` or another level that is reserved for the
    system. Such FlowSchemas capture leases, heartbeats, and requests of the control plane. A new
    FlowSchema must not capture these requests.
    """
    level = schema.spec.priority_level_configuration
    names = builtin.list_protected_flow_schemas(release)
    return schema.name in names or level == EXEMPT or level in system_request_rules.list_levels(release)


def find_last_built_in(configuration: Configuration, release: Release) -> int:
    """Return the position of the last built-in FlowSchema for the system, or -1 if the configuration has none.

    New FlowSchemas are placed after this FlowSchema.
    """
    names = {EXEMPT, *builtin.list_protected_flow_schemas(release)}
    return max((at for at, schema in enumerate(configuration.order) if schema.name in names), default=-1)


def find_forbidden(effective: Effective, changes: Iterable[Change]) -> tuple[str, ...]:
    """Return the reasons why some of the changes are not allowed, as clauses. Empty if all changes are allowed."""
    return tuple(clause for change in changes for clause in _find_forbidden(effective, change))


def _find_forbidden(effective: Effective, change: Change) -> Iterator[str]:
    release, configuration = effective.release, effective.configuration
    levels = builtin.list_names(release, "PriorityLevelConfiguration")
    schemas = builtin.list_names(release, "FlowSchema")
    stored = (*configuration.order, *configuration.dangling)
    match change:
        case LevelFieldChange():
            if change.level in levels:
                yield f"the priority level {quote(change.level)} is a built-in object"
        case NewLevel():
            if change.name in (*levels, *configuration.levels, *configuration.unusable):
                yield f"there is a priority level {quote(change.name)}"
        case FlowSchemaFieldChange():
            if change.flow_schema in schemas:
                yield f"the FlowSchema {quote(change.flow_schema)} is a built-in object"
            elif change.field == "matchingPrecedence" and isinstance(change.value, int):
                schema = next((schema for schema in stored if schema.name == change.flow_schema), None)
                # With a later precedence (a greater number), the FlowSchema takes no additional requests from system
                # FlowSchemas. So only check that no other FlowSchema has the same precedence.
                is_later = schema is not None and change.value > schema.spec.matching_precedence
                find = _find_equal_precedence if is_later else _find_forbidden_precedence
                yield from find(effective, change.flow_schema, change.value)
        case NewFlowSchema():
            if change.name in schemas or any(schema.name == change.name for schema in stored):
                yield f"there is a FlowSchema {quote(change.name)}"
            if change.level in (EXEMPT, *system_request_rules.list_levels(release)):
                yield f"the priority level {quote(change.level)} is for the system, so new FlowSchemas must not reference it"
            yield from _find_forbidden_precedence(effective, change.name, change.matching_precedence)


def _find_forbidden_precedence(effective: Effective, name: str, precedence: int) -> Iterator[str]:
    order = effective.configuration.order
    if (last := find_last_built_in(effective.configuration, effective.release)) >= 0:
        system = order[last]
        if precedence <= system.spec.matching_precedence:
            yield (
                f"the precedence {precedence} of {quote(name)} is not greater than that of the system FlowSchema"
                f" {quote(system.name)} ({system.spec.matching_precedence})"
            )
    yield from _find_equal_precedence(effective, name, precedence)


def _find_equal_precedence(effective: Effective, name: str, precedence: int) -> Iterator[str]:
    order = effective.configuration.order
    others = (schema for schema in order if schema.spec.matching_precedence == precedence and schema.name != name)
    if (other := next(others, None)) is not None:
        yield f"the FlowSchema {quote(other.name)} has the precedence {precedence}, too"
