"""Builds the picture of what a server would have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate.configuration import CATCH_ALL, EXEMPT, matching_order
from apflint.graph.picture import LevelNode, Picture, SchemaNode
from apflint.output.sanitize import sanitize
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from apflint.effective import Effective
    from apflint.evaluate.configuration import Configuration
    from apflint.graph.picture import Origin, State
    from apflint.load.document import Document
    from apflint.model import FlowSchema, ObjectMeta, PriorityLevelConfiguration, Subject
    from apflint.proofs.one_configuration import Part


class Unreachable(NamedTuple):
    """What of a configuration no request reaches, by the document of the FlowSchema."""

    schemas: Mapping[Document, tuple[FlowSchema, ...]]
    """Unreachable FlowSchemas, and those that capture all of their requests: none if they match nothing."""
    rules: Mapping[Document, tuple[int, ...]]
    """The unreachable rules of reachable FlowSchemas."""


def find_unreachable(configuration: Configuration) -> Unreachable:
    """Prove what no request reaches."""
    from apflint.proofs.one_configuration import Analysis  # brings a solver along

    analysis = Analysis(configuration)
    parts: dict[Document, list[Part]] = {}
    for part in analysis.find_unreachable():
        parts.setdefault(part.schema.document, []).append(part)
    schemas, rules = {}, {}
    for document, (first, *others) in parts.items():
        if first.rule is None:
            schemas[document] = analysis.find_blockers(first.schema)
        else:
            rules[document] = tuple(
                part.rule for part in (first, *others) if part.rule is not None and part.member is None
            )
    return Unreachable(schemas, rules)


def build_picture(effective: Effective, unreachable: Unreachable) -> Picture:
    """Build the picture of all objects that the server would have."""
    configuration, limits = effective.configuration, effective.limits
    schemas = _order_schemas(configuration)
    names = _order_levels(configuration, schemas)
    level_index = {name: at for at, name in enumerate(names)}
    found = {name: configuration.levels.get(name) for name in names}
    level_names = {
        name: _display_name(level.metadata) if level else sanitize(name) or "(no name)" for name, level in found.items()
    }
    absences = {
        name: "" if level else sanitize(configuration.unusable.get(name, "does not exist"))
        for name, level in found.items()
    }
    index = {schema.document: at for at, schema in enumerate(schemas)}
    positions = {schema.document: at for at, schema in enumerate(configuration.order, 1)}
    nodes = []
    for schema in schemas:
        level = schema.spec.priority_level_configuration
        state = _state(schema, positions, unreachable)
        blockers = sorted(unreachable.schemas.get(schema.document, ()), key=lambda blocker: index[blocker.document])
        nodes.append(
            SchemaNode(
                name=_display_name(schema.metadata),
                precedence=schema.spec.matching_precedence,
                position=positions.get(schema.document),
                origin=_origin(schema, effective),
                state=state,
                level=level_index[level],
                level_name=level_names[level],
                level_problem=absences[level],
                subjects=tuple(
                    dict.fromkeys(_describe(subject) for rule in schema.spec.rules for subject in rule.subjects)
                ),
                distinguisher=sanitize(schema.spec.distinguisher_method or ""),
                blockers=tuple(index[blocker.document] for blocker in blockers),
                blocker_names=tuple(_display_name(blocker.metadata) for blocker in blockers),
                unreachable_rules=unreachable.rules.get(schema.document, ()),
            )
        )
    levels = []
    for name, level_object in found.items():
        users = tuple(at for at, node in enumerate(nodes) if node.level == level_index[name])
        absent: Origin = "unusable" if name in configuration.unusable else "missing"
        levels.append(
            LevelNode(
                name=level_names[name],
                origin=_origin(level_object, effective) if level_object else absent,
                limits=limits.level(name) if level_object else None,
                absence=absences[name],
                has_borrowing=limits.release.has_borrowing,
                schemas=users,
                schema_names=tuple(nodes[at].name for at in users),
                is_reachable=any(nodes[at].state in ("reachable", "last resort") for at in users),
            )
        )
    return Picture(limits.release.name, limits.server_concurrency, tuple(nodes), tuple(levels))


def _state(schema: FlowSchema, positions: Mapping[Document, int], unreachable: Unreachable) -> State:
    if schema.document not in positions:
        return "dangling"
    if schema.document not in unreachable.schemas:
        return "reachable"
    # With the built-in objects, global-default captures what catch-all would: nothing is wrong with that.
    return "last resort" if schema.name == CATCH_ALL else "unreachable"


def _origin(found: FlowSchema | PriorityLevelConfiguration, effective: Effective) -> Origin:
    kind = found.document.kind
    if found.document in effective.own_documents:
        return "changed" if found.name in builtin.list_names(effective.release, kind) else "own"
    is_imagined = (kind, found.name) in effective.configuration.imagined
    return "imagined" if is_imagined and builtin.is_built_in(found.document) else "built-in"


def _order_schemas(configuration: Configuration) -> list[FlowSchema]:
    """Return the effective FlowSchemas and, where they would stand, those that dangle."""

    def key(schema: FlowSchema) -> tuple[int, int, str]:
        if builtin.is_built_in(schema.document) and ("FlowSchema", schema.name) in configuration.imagined:
            end = {EXEMPT: 0, CATCH_ALL: 2}[schema.name]  # the server puts them at the very ends
            return end, 0, ""
        return 1, *matching_order(schema)

    return sorted((*configuration.order, *configuration.dangling), key=key)


def _order_levels(configuration: Configuration, schemas: list[FlowSchema]) -> list[str]:
    """Return the names of all levels, also of missing ones, by the middle of their FlowSchemas; unused ones last."""
    positions: dict[str, list[int]] = {name: [] for name in (*configuration.levels, *configuration.unusable)}
    for at, schema in enumerate(schemas):
        positions.setdefault(schema.spec.priority_level_configuration, []).append(at)

    def key(name: str) -> tuple[float, str]:
        own = positions[name]
        return (sum(own) / len(own) if own else len(schemas)), name

    return sorted(positions, key=key)


def _display_name(metadata: ObjectMeta) -> str:
    return sanitize(metadata.name or (metadata.generate_name and f"{metadata.generate_name}*") or "(no name)")


def _describe(subject: Subject) -> str:
    account = subject.service_account
    if account is not None:
        return sanitize(f"ServiceAccount {account.namespace}/{account.name}")
    name = subject.user if subject.user is not None else subject.group
    return sanitize(f"{subject.kind} {name or ''}".rstrip())
