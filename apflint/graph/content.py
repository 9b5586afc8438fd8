"""The content of a drawing in any format: FlowSchemas in matching order, their priority levels, and problems.

All strings are sanitized: unprintable characters are replaced by escapes. The modules that render a picture also escape the
strings for their syntax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint import builtin
from apflint.evaluate.configuration import CATCH_ALL, EXEMPT, matching_order
from apflint.named_tuple import NamedTuple
from apflint.output.outcome_sentences import describe_starvation
from apflint.output.sanitize import sanitize
from apflint.wording import join_some, join_words, pluralize

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from apflint.effective_configuration import Effective
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.limits import LevelLimits
    from apflint.load.document import Document
    from apflint.model import FlowSchema, ObjectMeta, PriorityLevelConfiguration, Subject
    from apflint.proofs.one_configuration import FlowSchemaPart

State = Literal["reachable", "last resort", "unreachable", "dangling"]
"""The state of a FlowSchema.

`last resort`: the built-in catch-all, if other FlowSchemas capture all requests. `dangling`: the server skips the
FlowSchema, because its priority level does not exist or is unusable.
"""
Origin = Literal["own", "changed", "built-in", "imagined", "missing", "unusable"]
Look = Literal["built-in", "own", "unreachable", "dangling"]
"""Style of an object in the drawing."""

SHORT_ORIGINS: dict[Origin, str] = {
    "own": "yours",
    "changed": "changed by you",
    "built-in": "built-in",
    "imagined": "imagined by the server",
    "missing": "does not exist",
    "unusable": "treated as absent",
}
"""Maps the origin of an object to a description for a narrow column."""
ORIGINS: dict[Origin, str] = {
    **SHORT_ORIGINS,
    "changed": f"built-in, {SHORT_ORIGINS['changed']}",
    "imagined": f"built-in, {SHORT_ORIGINS['imagined']}",
}
"""Maps the origin of an object to a description."""
_MAX_SUBJECTS = 50
"""Maximum number of subjects of a FlowSchema to show."""


class SchemaNode(NamedTuple):
    """A FlowSchema in the picture."""

    name: str
    precedence: int
    position: int | None
    """Number in matching order, from 1, or None if the server skips the FlowSchema."""
    origin: Origin
    state: State
    level: int
    """Index of the FlowSchema's priority level in `Picture.levels`."""
    level_name: str
    subjects: tuple[str, ...]
    """The subjects without duplicates, such as `User alice`."""
    distinguisher: str
    """`ByUser`, `ByNamespace` or empty."""
    blockers: tuple[int, ...]
    """Indices in `Picture.schemas` of the FlowSchemas that capture the requests, if this FlowSchema is unreachable."""
    problem: str
    """The problem as a sentence, or an empty string."""

    @property
    def look(self) -> Look:
        """Return the style of the FlowSchema."""
        if self.state in ("unreachable", "dangling"):
            return self.state
        return "own" if self.origin in ("own", "changed") else "built-in"

    @property
    def label(self) -> list[str]:
        """Return the label of the FlowSchema as lines: name, precedence with origin, and a remark if there is one."""
        remark = "last resort: no request needs it" if self.state == "last resort" else self.problem
        return [self.name, f"precedence {self.precedence}, {ORIGINS[self.origin]}", *filter(None, [remark])]

    @property
    def facts(self) -> dict[str, str]:
        """Return a mapping from titles to facts about the FlowSchema."""
        return {
            "FlowSchema": self.name,
            "Origin": ORIGINS[self.origin],
            "matchingPrecedence": str(self.precedence),
            "Tried as": "skipped" if self.position is None else f"number {self.position}",
            "Priority level": self.level_name,
            "Flows": self.distinguisher or "all requests are one flow",
            "Subjects": join_some(self.subjects, _MAX_SUBJECTS) or "none",
            "Problem": self.problem,
        }


class LevelNode(NamedTuple):
    """A priority level in the picture."""

    name: str
    origin: Origin
    limits: LevelLimits | None
    """Limits of the level, or None if the level does not exist or the server cannot use it. `limits.name` is not sanitized."""
    seats: str
    """The seats in a few words, or empty if `limits` is None."""
    schemas: tuple[int, ...]
    """Indices, in `Picture.schemas`, of the FlowSchemas that reference the level."""
    schema_names: tuple[str, ...]
    absence: str
    """Predicate that says why `limits` is None, such as `does not exist`. Empty if the level has limits."""
    problem: str
    """The problems as sentences, or an empty string."""

    @property
    def look(self) -> Look:
        """Return the style of the priority level."""
        if self.limits is None:
            return "dangling"
        return "own" if self.origin in ("own", "changed") else "built-in"

    @property
    def queues(self) -> str:
        """Return a phrase about the queues, such as `64 queues of 50, hand size 6` or `requests never wait`.

        Return an empty string if `limits` is None.
        """
        limits = self.limits
        if limits is None:
            return ""
        if limits.type == "Exempt":
            return "requests never wait"
        if limits.queues is None:
            return "rejects requests without a free seat"
        return f"{pluralize(limits.queues, 'queue')} of {limits.queue_length_limit}, hand size {limits.hand_size}"

    @property
    def label(self) -> list[str]:
        """Return the lines of the label: the name of the level, its seats, its queues, and its origin.

        If the level has no limits, the reason replaces the seats. A further line says if no FlowSchema
        references the level. Only the first line can begin with text from a manifest.
        """
        unused = "" if self.schemas else "no FlowSchema references it"
        return [self.name, self.seats or self.absence, *filter(None, (self.queues, unused)), ORIGINS[self.origin]]

    @property
    def facts(self) -> dict[str, str]:
        """Return a mapping from titles to facts about the priority level."""
        return {
            "Priority level": self.name,
            "Origin": ORIGINS[self.origin],
            "Seats": self.seats,
            "Without a free seat": self.queues,
            "FlowSchemas": ", ".join(self.schema_names) or "none",
            "Problem": self.problem,
        }


class Picture(NamedTuple):
    """The content of a drawing.

    FlowSchemas are in matching order. Levels are sorted by the average position of their FlowSchemas.
    """

    kubernetes: str
    server_concurrency: int
    has_borrowing: bool
    """True if levels lend and borrow seats (Kubernetes 1.26 and later)."""
    schemas: tuple[SchemaNode, ...]
    levels: tuple[LevelNode, ...]
    configuration: str = ""
    """Text that describes where the configuration comes from."""

    @property
    def title(self) -> str:
        """Return the title of the drawing, with the release and the seats of a server."""
        seats = pluralize(self.server_concurrency, "seat")
        return f"API Priority and Fairness, Kubernetes {self.kubernetes}: {seats} of one API server"

    @property
    def source(self) -> str:
        """Return the line below the title, which says where the configuration comes from."""
        return f"Configuration: {sanitize(self.configuration)}"


def format_facts(node: SchemaNode | LevelNode) -> list[str]:
    """Return the lines of a tooltip of a graph node, such as `title: value`. Facts with an empty value are omitted."""
    return [f"{title}: {value}" for title, value in node.facts.items() if value]


class Unreachable(NamedTuple):
    """The unreachable FlowSchemas and rules of a configuration.

    The keys of both mappings are the values of `FlowSchema.document`.
    """

    schemas: Mapping[Document, tuple[FlowSchema, ...]]
    """Maps an unreachable FlowSchema to the FlowSchemas that capture its requests, or to () if the FlowSchema matches
    no request."""
    rules: Mapping[Document, tuple[int, ...]]
    """Maps a reachable FlowSchema to the indices of its unreachable rules."""


def find_unreachable(configuration: Configuration) -> Unreachable:
    """Prove which FlowSchemas and rules no request can reach."""
    from apflint.proofs.one_configuration import Analysis  # imported on demand: importing the solver takes long

    analysis = Analysis(configuration)
    parts: dict[Document, list[FlowSchemaPart]] = {}
    for part in analysis.find_unreachable()[0]:
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
    """Build the picture of the FlowSchemas and priority levels in `effective`, including built-in objects."""
    builder, limits = _PictureBuilder(effective, unreachable), effective.limits
    schemas = tuple(map(builder.build_schema, builder.schemas))
    users: dict[str, dict[int, SchemaNode]] = {name: {} for name in builder.levels}
    for at, (schema, node) in enumerate(zip(builder.schemas, schemas, strict=True)):
        users[schema.spec.priority_level_configuration][at] = node
    levels = tuple(builder.build_level(name, users[name]) for name in builder.levels)
    return Picture(limits.release.name, limits.server_concurrency, limits.release.has_borrowing, schemas, levels)


class _PictureBuilder:
    def __init__(self, effective: Effective, unreachable: Unreachable) -> None:
        self.effective, self.unreachable = effective, unreachable
        self.configuration = effective.configuration
        self.schemas = _order_schemas(self.configuration)
        self.levels = {name: at for at, name in enumerate(_order_levels(self.configuration, self.schemas))}
        self.index = {schema.document: at for at, schema in enumerate(self.schemas)}
        self.positions = {schema.document: at for at, schema in enumerate(self.configuration.order, 1)}

    def build_schema(self, schema: FlowSchema) -> SchemaNode:
        level = schema.spec.priority_level_configuration
        state = self._find_state(schema)
        blockers = sorted(self.index[other.document] for other in self.unreachable.schemas.get(schema.document, ()))
        if state == "dangling":
            absent = f'the priority level "{self._display_level(level)}" {self._explain_absence(level)}'
            problem = f"Skipped by the server: {absent}."
        else:
            names = [_display_name(self.schemas[at].metadata) for at in blockers]
            problem = _describe_unreachable(state, names, self.unreachable.rules.get(schema.document, ()))
        subjects = dict.fromkeys(_describe(subject) for rule in schema.spec.rules for subject in rule.subjects)
        return SchemaNode(
            name=_display_name(schema.metadata),
            precedence=schema.spec.matching_precedence,
            position=self.positions.get(schema.document),
            origin=self._find_origin(schema),
            state=state,
            level=self.levels[level],
            level_name=self._display_level(level),
            subjects=tuple(subjects),
            distinguisher=sanitize(schema.spec.distinguisher_method or ""),
            blockers=tuple(blockers),
            problem=problem,
        )

    def build_level(self, name: str, users: Mapping[int, SchemaNode]) -> LevelNode:
        level, limits = self.configuration.levels.get(name), self.effective.limits.level(name)
        absent: Origin = "unusable" if name in self.configuration.unusable else "missing"
        absence = self._explain_absence(name) if limits is None else ""
        problem, seats = f"It {absence}.", ""
        if limits is not None:
            problem = _describe_level_problem(limits, users.values())
            seats = _describe_seats(limits, has_borrowing=self.effective.release.has_borrowing)
        return LevelNode(
            name=self._display_level(name),
            origin=self._find_origin(level) if level else absent,
            limits=limits,
            seats=seats,
            schemas=tuple(users),
            schema_names=tuple(node.name for node in users.values()),
            absence=absence,
            problem=problem,
        )

    def _find_state(self, schema: FlowSchema) -> State:
        if schema.document not in self.positions:
            return "dangling"
        if schema.document not in self.unreachable.schemas:
            return "reachable"
        # The built-in FlowSchema global-default captures all requests that catch-all matches. So an unreachable
        # catch-all is not a problem, and gets its own state.
        return "last resort" if schema.name == CATCH_ALL else "unreachable"

    def _find_origin(self, found: FlowSchema | PriorityLevelConfiguration) -> Origin:
        kind = found.document.kind
        if found.document in self.effective.own_documents:
            return "changed" if found.name in builtin.list_names(self.effective.release, kind) else "own"
        is_imagined = (kind, found.name) in self.configuration.imagined
        return "imagined" if is_imagined and builtin.is_built_in(found.document) else "built-in"

    def _display_level(self, name: str) -> str:
        level = self.configuration.levels.get(name)
        return _display_name(level.metadata) if level else sanitize(name) or "(no name)"

    def _explain_absence(self, name: str) -> str:
        """Return why a priority level has no limits, as a predicate such as `does not exist`."""
        return sanitize(self.configuration.unusable.get(name, "does not exist"))


def _order_schemas(configuration: Configuration) -> list[FlowSchema]:
    """Return all FlowSchemas in matching order, including those whose priority level is missing or unusable."""

    def key(schema: FlowSchema) -> tuple[int, int, str]:
        if builtin.is_built_in(schema.document) and ("FlowSchema", schema.name) in configuration.imagined:
            # The server adds mandatory FlowSchemas that are missing: `exempt` at the start, and `catch-all` at the end.
            end = {EXEMPT: 0, CATCH_ALL: 2}[schema.name]
            return end, 0, ""
        return 1, *matching_order(schema)

    return sorted((*configuration.order, *configuration.dangling), key=key)


def _order_levels(configuration: Configuration, schemas: list[FlowSchema]) -> list[str]:
    """Return the names of all levels, sorted by the average index of their FlowSchemas in `schemas`.

    Levels without FlowSchemas come last. The result also contains the names of levels that do not
    exist, but that FlowSchemas reference.
    """
    positions: dict[str, list[int]] = {name: [] for name in (*configuration.levels, *configuration.unusable)}
    for at, schema in enumerate(schemas):
        positions.setdefault(schema.spec.priority_level_configuration, []).append(at)

    def key(name: str) -> tuple[float, str]:
        own = positions[name]
        return (sum(own) / len(own) if own else len(schemas)), name

    return sorted(positions, key=key)


def _display_name(metadata: ObjectMeta) -> str:
    return sanitize(metadata.name or (metadata.generate_name and f"{metadata.generate_name}*") or "(no name)")


def _describe_unreachable(state: State, blockers: Sequence[str], rules: Sequence[int]) -> str:
    """Return a sentence that says why a FlowSchema is unreachable, or which of its rules no request reaches.

    `blockers` are the names of the FlowSchemas that capture the requests. `rules` are the indices of unreachable rules.
    Return an empty string if neither the FlowSchema nor one of its rules is unreachable.
    """
    if state == "unreachable" and not blockers:
        return "Unreachable: this FlowSchema matches no request."
    if state == "unreachable":
        names = join_words((f'"{name}"' for name in blockers), "and")
        verb = "captures" if len(blockers) == 1 else "capture"
        return f"Unreachable: {names} {verb} all requests that this FlowSchema matches."
    return f"No request reaches {', '.join(f'spec.rules[{rule}]' for rule in rules)}." if rules else ""


def _describe_seats(limits: LevelLimits, *, has_borrowing: bool) -> str:
    if limits.type == "Exempt":
        return "exempt" + (f", nominal {limits.nominal}" if limits.nominal else "")
    borrowing = f", min {limits.min}, max {limits.max}, attainable {limits.attainable}" if has_borrowing else ""
    return f"nominal {limits.nominal}{borrowing}"


def _describe_level_problem(limits: LevelLimits, users: Collection[SchemaNode]) -> str:
    sentences = [describe_starvation(limits) or ""]
    if not users:
        sentences.append("No FlowSchema references this level, so it gets no requests.")
    elif not any(node.state in ("reachable", "last resort") for node in users):
        sentences.append("Only unreachable FlowSchemas reference this level, so it gets no requests.")
    return sanitize(" ".join(filter(None, sentences)))


def _describe(subject: Subject) -> str:
    account = subject.service_account
    if account is not None:
        return sanitize(f"ServiceAccount {account.namespace}/{account.name}")
    name = subject.user if subject.user is not None else subject.group
    return sanitize(f"{subject.kind} {name or ''}".rstrip())
