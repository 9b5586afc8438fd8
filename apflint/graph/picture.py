"""What a drawing shows, whatever its format: FlowSchemas in matching order, their priority levels, and what is unreachable.

All strings are sanitized: no control characters, no lone surrogates. Writers escape them for their syntax.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.evaluate.outcomes import describe_starvation
from apflint.output.sanitize import sanitize
from apflint.record import NamedTuple
from apflint.wording import join_some, join_words, pluralize

if TYPE_CHECKING:
    from apflint.evaluate.limits import LevelLimits

State = Literal["reachable", "last resort", "unreachable", "dangling"]
"""`last resort`: the built-in catch-all, which no request needs. `dangling`: the server skips the FlowSchema."""
Origin = Literal["own", "changed", "built-in", "imagined", "missing", "unusable"]
Look = Literal["built-in", "own", "unreachable", "dangling"]
"""How to draw an object."""

ORIGINS: dict[Origin, str] = {
    "own": "yours",
    "changed": "built-in, changed by you",
    "built-in": "built-in",
    "imagined": "built-in, imagined by the server",
    "missing": "does not exist",
    "unusable": "treated as absent",
}
"""Where an object comes from, as text."""
MAX_SUBJECTS = 50
"""Subjects of a FlowSchema to show."""


class SchemaNode(NamedTuple):
    """A FlowSchema in the picture."""

    name: str
    precedence: int
    position: int | None
    """From 1, in the order in which the server tries FlowSchemas; None if the server skips this one."""
    origin: Origin
    state: State
    level: int
    """Index of its priority level in `Picture.levels`."""
    level_name: str
    level_problem: str
    """Why the priority level has no limits, as a predicate: `does not exist`; empty if it has."""
    subjects: tuple[str, ...]
    """Its subjects, each once: `User alice`."""
    distinguisher: str
    """`ByUser`, `ByNamespace` or empty."""
    blockers: tuple[int, ...]
    """Indices, in `Picture.schemas`, of the FlowSchemas that capture all requests of an unreachable one."""
    blocker_names: tuple[str, ...]
    unreachable_rules: tuple[int, ...]
    """Indices of unreachable rules, if others are reachable."""

    @property
    def look(self) -> Look:
        """How to draw the FlowSchema."""
        match self.state:
            case "unreachable" | "dangling":
                return self.state
            case _:
                return "own" if self.origin in ("own", "changed") else "built-in"

    @property
    def problem(self) -> str:
        """What is wrong, as a sentence; empty if nothing is."""
        if self.state == "dangling":
            return f'The server skips it: the priority level "{self.level_name}" {self.level_problem}.'
        if self.state == "unreachable" and not self.blockers:
            return "No request reaches it: it matches none."
        if self.state == "unreachable":
            verb = "captures" if len(self.blockers) == 1 else "capture"
            names = join_words((f'"{name}"' for name in self.blocker_names), "and")
            return f"No request reaches it: {names} {verb} all requests that it matches."
        if self.unreachable_rules:
            return f"No request reaches {', '.join(f'spec.rules[{rule}]' for rule in self.unreachable_rules)}."
        return ""

    @property
    def label(self) -> list[str]:
        """The lines of a label. Only the first begins with text of a manifest."""
        remark = "last resort: no request needs it" if self.state == "last resort" else self.problem
        return [self.name, f"precedence {self.precedence}, {ORIGINS[self.origin]}", *filter(None, [remark])]

    @property
    def facts(self) -> dict[str, str]:
        """All that is known, by its title."""
        return {
            "FlowSchema": self.name,
            "Origin": ORIGINS[self.origin],
            "matchingPrecedence": str(self.precedence),
            "Tried as": "skipped" if self.position is None else f"number {self.position}",
            "Priority level": self.level_name,
            "Flows": self.distinguisher or "all requests are one flow",
            "Subjects": join_some(self.subjects, MAX_SUBJECTS) or "none",
            "Problem": self.problem,
        }


class LevelNode(NamedTuple):
    """A priority level in the picture."""

    name: str
    origin: Origin
    limits: LevelLimits | None
    """None if the level does not exist, or if the server cannot use it. The name in it is not sanitized."""
    absence: str
    """Why there are no limits, as a predicate of the level: `does not exist`; empty if there are."""
    has_borrowing: bool
    """Whether levels lend and borrow seats: from Kubernetes 1.26 on."""
    schemas: tuple[int, ...]
    """Indices, in `Picture.schemas`, of the FlowSchemas that reference the level."""
    schema_names: tuple[str, ...]
    is_reachable: bool
    """Whether requests reach one of these."""

    @property
    def look(self) -> Look:
        """How to draw the priority level."""
        if self.limits is None:
            return "dangling"
        return "own" if self.origin in ("own", "changed") else "built-in"

    @property
    def problem(self) -> str:
        """What is wrong, in sentences; empty if nothing is."""
        if self.limits is None:
            return f"It {self.absence}."
        sentences = [describe_starvation(self.limits) or ""]
        if not self.schemas:
            sentences.append("No FlowSchema references it, so it gets no requests.")
        elif not self.is_reachable:
            sentences.append("Only unreachable FlowSchemas reference it, so it gets no requests.")
        return sanitize(" ".join(filter(None, sentences)))

    @property
    def seats(self) -> str:
        """The seats in a few words; empty if there are no limits."""
        limits = self.limits
        if limits is None:
            return ""
        if limits.type == "Exempt":
            return "exempt" + (f", nominal {limits.nominal}" if limits.nominal else "")
        text = f"nominal {limits.nominal}"
        if self.has_borrowing:
            text += f", min {limits.min}, max {limits.max}, attainable {limits.attainable}"
        return text

    @property
    def queues(self) -> str:
        """What happens to requests without a free seat, in a few words; empty if there are no limits."""
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
        """The lines of a label. Only the first begins with text of a manifest."""
        unused = "" if self.schemas else "no FlowSchema references it"
        return [self.name, self.absence or self.seats, *filter(None, (self.queues, unused)), ORIGINS[self.origin]]

    @property
    def facts(self) -> dict[str, str]:
        """All that is known, by its title."""
        return {
            "Priority level": self.name,
            "Origin": ORIGINS[self.origin],
            "Seats": self.seats,
            "Without a free seat": self.queues,
            "FlowSchemas": ", ".join(self.schema_names) or "none",
            "Problem": self.problem,
        }


class Picture(NamedTuple):
    """All that is drawn. FlowSchemas are in matching order, levels at the middle of their FlowSchemas."""

    kubernetes: str
    server_concurrency: int
    schemas: tuple[SchemaNode, ...]
    levels: tuple[LevelNode, ...]

    @property
    def title(self) -> str:
        """What the whole picture shows."""
        seats = pluralize(self.server_concurrency, "seat")
        return f"API Priority and Fairness, Kubernetes {self.kubernetes}: {seats} of one API server"


def format_facts(node: SchemaNode | LevelNode) -> list[str]:
    """Return the facts of a node as the lines of a tooltip."""
    return [f"{title}: {value}" for title, value in node.facts.items() if value]
