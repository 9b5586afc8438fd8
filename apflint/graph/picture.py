"""What is drawn, whatever the format: FlowSchemas in matching order, their levels, and what never happens.

All text here has been through `visible`: no control characters, no lone surrogates. Writers escape it for their syntax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from apflint import builtin
from apflint.evaluate.configuration import CATCH_ALL, EXEMPT, matching_order
from apflint.output.sanitize import sanitize

if TYPE_CHECKING:
    from apflint.effective import Effective
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.limits import LevelLimits, Limits
    from apflint.load.document import Document
    from apflint.model import FlowSchema, ObjectMeta, PriorityLevelConfiguration, Subject
    from apflint.proofs.parts import Part

State = Literal["live", "reserve", "unreachable", "dangling"]
"""Whether requests get a FlowSchema: some do; none does and that is as it should be; none does; the server skips it."""
Origin = Literal["own", "changed", "built-in", "imagined", "missing", "broken"]


class Shadow(NamedTuple):
    """What of a FlowSchema never decides about a request."""

    takers: tuple[FlowSchema, ...] | None
    """The FlowSchemas that take all it matches, none if it matches nothing; None: it is reached by some request."""
    rules: tuple[int, ...] = ()
    """Of one that is reached: the indices of its rules that never decide."""


class SchemaNode(NamedTuple):
    """A FlowSchema in the picture."""

    name: str
    precedence: int
    position: int | None
    """From 1, in the order in which the server tries them; None for one that it skips."""
    origin: Origin
    state: State
    level: int
    """Index of its level in `Picture.levels`."""
    subjects: tuple[str, ...]
    """Whom it matches, each once: `User alice`."""
    method: str
    """How it tells flows apart: `ByUser`, `ByNamespace` or nothing."""
    takers: tuple[int, ...]
    """Indices, in `Picture.schemas`, of those that take all that an unreachable one matches."""
    idle_rules: tuple[int, ...]
    """Indices of rules that never decide."""

    @property
    def who(self) -> str:
        """The first of its subjects, and how many more there are."""
        if not self.subjects:
            return "nobody: it has no subjects"
        more = len(self.subjects) - 1
        return self.subjects[0] + (f", {more} more" if more else "")


class LevelNode(NamedTuple):
    """A priority level in the picture."""

    name: str
    origin: Origin
    limits: LevelLimits | None
    """None for one that does not exist, or that the server cannot work with. The name in it is raw."""
    why: str
    """Why there are no limits, as the end of a sentence that begins with the level."""
    schemas: tuple[int, ...]
    """Indices, in `Picture.schemas`, of the FlowSchemas that name it."""


class Picture(NamedTuple):
    """All that is drawn. FlowSchemas are in matching order, levels where the middle of their FlowSchemas is."""

    kubernetes: str
    borrowing: bool
    server_concurrency: int
    schemas: tuple[SchemaNode, ...]
    levels: tuple[LevelNode, ...]


def shadows(configuration: Configuration) -> dict[Document, Shadow]:
    """Return what is unreachable, by the document of the FlowSchema. The other FlowSchemas are reached, with all their rules."""
    from apflint.proofs.single import Analysis  # brings a solver along

    analysis = Analysis(configuration)
    parts: dict[Document, list[Part]] = {}
    for part in analysis.unreachable():
        parts.setdefault(part.schema.document, []).append(part)
    found: dict[Document, Shadow] = {}
    for key, (first, *others) in parts.items():
        if first.rule is None:
            found[key] = Shadow(analysis.blockers(first.schema))
        elif rules := tuple(part.rule for part in (first, *others) if part.rule is not None and part.member is None):
            found[key] = Shadow(None, rules)
    return found


def picture(known: Effective, shadowed: dict[Document, Shadow]) -> Picture:
    """The picture of all that the server would have. `shadowed` is what `shadows` says of its configuration."""
    configuration, limits = known.configuration, known.limits
    schemas = _all_in_order(configuration)
    names = _levels_in_order(configuration, schemas)
    places = {name: at for at, name in enumerate(names)}
    index = {schema.document: at for at, schema in enumerate(schemas)}
    positions = {schema.document: at for at, schema in enumerate(configuration.order, 1)}
    origin = _Origins(known)
    nodes = []
    for schema in schemas:
        shadow = shadowed.get(schema.document, Shadow(None))
        position = positions.get(schema.document)
        nodes.append(
            SchemaNode(
                name=_name(schema.metadata),
                precedence=schema.spec.matching_precedence,
                position=position,
                origin=origin.of(schema),
                state=_state(schema, position, shadow),
                level=places[schema.spec.priority_level_configuration],
                subjects=tuple(dict.fromkeys(_subject(who) for rule in schema.spec.rules for who in rule.subjects)),
                method=sanitize(schema.spec.distinguisher_method or ""),
                takers=tuple(sorted(index[taker.document] for taker in shadow.takers or ())),
                idle_rules=shadow.rules,
            )
        )
    levels = tuple(_level(name, at, configuration, limits, origin, nodes) for at, name in enumerate(names))
    return Picture(limits.kubernetes, limits.borrowing, limits.server_concurrency, tuple(nodes), levels)


def _state(schema: FlowSchema, position: int | None, shadow: Shadow) -> State:
    if position is None:
        return "dangling"
    if shadow.takers is None:
        return "live"
    # With the built-in objects everybody's requests end at global-default: nothing is wrong with that.
    return "reserve" if schema.name == CATCH_ALL else "unreachable"


class _Origins:
    """Tells the user's objects from those that every server has."""

    def __init__(self, known: Effective) -> None:
        self._names = {
            kind: builtin.names(known.release, kind) for kind in ("FlowSchema", "PriorityLevelConfiguration")
        }
        self._own = known.own_documents
        self._imagined = known.configuration.imagined

    def of(self, found: FlowSchema | PriorityLevelConfiguration) -> Origin:
        kind = "FlowSchema" if hasattr(found.spec, "rules") else "PriorityLevelConfiguration"
        if found.document in self._own:
            return "changed" if found.name in self._names[kind] else "own"
        made_up = builtin.is_built_in(found.document) and (kind, found.name) in self._imagined
        return "imagined" if made_up else "built-in"


def _all_in_order(configuration: Configuration) -> list[FlowSchema]:
    """The effective FlowSchemas with those that dangle between them, where they would stand."""

    def key(schema: FlowSchema) -> tuple[int, int, str]:
        if builtin.is_built_in(schema.document) and ("FlowSchema", schema.name) in configuration.imagined:
            end = {EXEMPT: 0, CATCH_ALL: 2}[schema.name]  # the server puts them at the very ends
            return end, 0, ""
        return 1, *matching_order(schema)

    return sorted((*configuration.order, *configuration.dangling), key=key)


def _levels_in_order(configuration: Configuration, schemas: list[FlowSchema]) -> list[str]:
    """The names of all levels, missing ones that are named included, by the middle of their FlowSchemas; unused ones last."""
    places: dict[str, list[int]] = {name: [] for name in configuration.levels}
    for at, schema in enumerate(schemas):
        places.setdefault(schema.spec.priority_level_configuration, []).append(at)
    for name in configuration.unusable:
        places.setdefault(name, [])

    def middle(name: str) -> tuple[float, str]:
        at = places[name]
        return (sum(at) / len(at) if at else len(schemas)), name

    return sorted(places, key=middle)


def _level(
    name: str, at: int, configuration: Configuration, limits: Limits, origin: _Origins, schemas: list[SchemaNode]
) -> LevelNode:
    level = configuration.levels.get(name)
    why = "" if level else configuration.unusable.get(name, "does not exist")
    return LevelNode(
        name=_name(level.metadata) if level else sanitize(name) or "(no name)",
        origin=origin.of(level) if level else "broken" if name in configuration.unusable else "missing",
        limits=limits.level(name) if level else None,
        why=sanitize(why),
        schemas=tuple(i for i, schema in enumerate(schemas) if schema.level == at),
    )


def _name(metadata: ObjectMeta) -> str:
    return sanitize(metadata.name or (metadata.generate_name and f"{metadata.generate_name}*") or "(no name)")


def _subject(subject: Subject) -> str:
    account = subject.service_account
    if account is not None:
        return sanitize(f"ServiceAccount {account.namespace}/{account.name}")
    name = subject.user if subject.user is not None else subject.group
    return sanitize(f"{subject.kind} {name or ''}".rstrip())
