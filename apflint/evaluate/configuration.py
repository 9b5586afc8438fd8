"""The API Priority and Fairness configuration of a server: FlowSchemas in matching order, and priority levels.

Sources: staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go (`lockAndDigestConfigObjects`,
`digestFlowSchemasLocked`, `queueSetCompleterForPL`) and apihelpers/apf_helpers.go (`FlowSchemaSequence`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from apflint.evaluate.shuffle_sharding import find_sharding_error
from apflint.model import FlowSchema, LimitedPriorityLevelConfiguration, PriorityLevelConfiguration
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from apflint.model import ExemptPriorityLevelConfiguration, Kind

_T = TypeVar("_T", FlowSchema, PriorityLevelConfiguration)

EXEMPT, CATCH_ALL = "exempt", "catch-all"
"""Names of the mandatory objects: there is a FlowSchema and a priority level with each name."""


class Objects(Protocol):
    """FlowSchemas and priority levels in any order, such as a `Workspace` or the built-in objects of a release."""

    @property
    def flow_schemas(self) -> tuple[FlowSchema, ...]:
        """FlowSchemas in any order. Several may have the same name."""

    @property
    def priority_levels(self) -> tuple[PriorityLevelConfiguration, ...]:
        """Priority levels in any order. Several may have the same name."""


class Configuration(NamedTuple):
    """The objects that a server uses to classify requests."""

    order: tuple[FlowSchema, ...]
    """FlowSchemas that the server uses, in matching order."""
    dangling: tuple[FlowSchema, ...]
    """FlowSchemas that the server skips because their priority level is not in `levels`, in matching order."""
    levels: Mapping[str, PriorityLevelConfiguration]
    """Maps names to the priority levels that the server uses."""
    unusable: Mapping[str, str]
    """Maps the names of stored priority levels that the server treats as absent to the reasons. See `_why_unusable`."""
    imagined: frozenset[tuple[Kind, str]]
    """(kind, name) of each missing mandatory object.

    The server imagines these objects (the term of its source code): it uses the objects without storing them.
    """
    classifies_watches: bool = True
    """`Release.classifies_watches` of the server."""


def build_configuration(
    user: Objects, builtin: Objects, *, defaults: bool = True, classifies_watches: bool = True
) -> Configuration:
    """Build the configuration of a server that stores the objects in `user`.

    These objects replace built-in objects of the same name.

    `builtin` has all built-in objects of the release. If `defaults` is true, the server also stores the built-in
    objects that `user` does not replace. If `defaults` is false, the server stores only the objects in `user`. The
    server imagines missing mandatory objects: it uses these objects without storing them. If objects in `user` have the
    same name, the last object replaces the earlier objects. `classifies_watches` is `Release.classifies_watches`.
    """
    levels = _last_by_name((*(builtin.priority_levels if defaults else ()), *user.priority_levels))
    unusable = {level.name: reason for level in levels if (reason := _why_unusable(level)) is not None}
    effective = {level.name: level for level in levels if level.name not in unusable}

    stored = sorted(
        _last_by_name((*(builtin.flow_schemas if defaults else ()), *user.flow_schemas)), key=matching_order
    )
    # The server first skips FlowSchemas without a usable level. Only then does it imagine a missing
    # mandatory level: it uses the level without storing it. So the server also skips FlowSchemas that
    # reference an imagined level.
    order = [schema for schema in stored if schema.spec.priority_level_configuration in effective]
    dangling = tuple(schema for schema in stored if schema.spec.priority_level_configuration not in effective)

    imagined: set[tuple[Kind, str]] = set()
    names = {schema.name for schema in order}
    mandatory = {schema.name: schema for schema in builtin.flow_schemas}
    # The server inserts a missing FlowSchema `exempt` before all others, and a missing `catch-all` after all others,
    # whatever precedence the others have.
    if EXEMPT not in names:
        order.insert(0, mandatory[EXEMPT])
        imagined.add(("FlowSchema", EXEMPT))
    if CATCH_ALL not in names:
        order.append(mandatory[CATCH_ALL])
        imagined.add(("FlowSchema", CATCH_ALL))
    for level in builtin.priority_levels:
        if level.name in (EXEMPT, CATCH_ALL) and level.name not in effective:
            effective[level.name] = level
            imagined.add(("PriorityLevelConfiguration", level.name))
    return Configuration(tuple(order), dangling, effective, unusable, frozenset(imagined), classifies_watches)


def matching_order(schema: FlowSchema) -> tuple[int, str]:
    """Return the sort key of the matching order: precedence, then name. Python orders strings as Go orders UTF-8 bytes."""
    return schema.spec.matching_precedence, schema.name


def _why_unusable(level: PriorityLevelConfiguration) -> str | None:
    """Return why the server treats a stored level as absent, or None if the server uses the level.

    The reason is a verb phrase whose subject is the level: `has type "Exempt", but ...`. Source:
    `queueSetCompleterForPL`. The API server rejects unusable levels, so only manifests that were never applied contain
    unusable levels. The level `exempt` is usable without the field `exempt`, because the server adds the field.

    Levels with shares or percentages out of range are also treated as unusable. No server computes seats from such
    values, because servers reject them, and negative shares would change the computed seats of all other levels.
    """
    spec = level.spec
    if (spec.type == "Exempt") != (level.name == EXEMPT):
        return f'has type "{spec.type}", but "{EXEMPT}" must have type "Exempt", and other levels "Limited"'
    if (spec.type == "Limited") != (spec.limited is not None):
        return f'has type "{spec.type}" {"and" if spec.limited else "but no"} "limited" settings'
    if spec.exempt is not None and spec.type != "Exempt":
        return f'has type "{spec.type}" and "exempt" settings'
    if (wrong := _find_number_out_of_range(spec.limited or spec.exempt)) is not None:
        return f"has {wrong}, which is out of range"
    if spec.limited is None:
        return None
    response, queuing = spec.limited.limit_response
    if (response == "Reject") != (queuing is None):
        return f'has limitResponse "{response}" {"and" if queuing else "but no"} "queuing" settings'
    if queuing is None or queuing.queues < 1:
        return None
    error = find_sharding_error(queuing.queues, queuing.hand_size)
    return None if error is None else f"has invalid queuing settings: {error}"


def _find_number_out_of_range(
    settings: LimitedPriorityLevelConfiguration | ExemptPriorityLevelConfiguration | None,
) -> str | None:
    """Return a phrase for the first number that the API server rejects (`-5 shares`), or None if all are valid."""
    if settings is None:
        return None
    if settings.shares < 0:
        return f"{settings.shares:,} shares"
    if not 0 <= settings.lendable_percent <= 100:
        return f"lendablePercent {settings.lendable_percent:,}"
    borrowing = settings.borrowing_limit_percent if isinstance(settings, LimitedPriorityLevelConfiguration) else None
    return f"borrowingLimitPercent {borrowing:,}" if borrowing is not None and borrowing < 0 else None


def _last_by_name(objects: Iterable[_T]) -> list[_T]:
    """Return the last object of each name, and every object without a name.

    Objects without a name do not replace each other, because the server generates a different name for each of them.
    """
    return list({item.name or at: item for at, item in enumerate(objects)}.values())
