"""The conclusion about API servers: a verdict, and the causes of waits and rejections, worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

Verdict = Literal["healthy", "past", "overloaded", "not-apf"]
"""Verdict about all servers. `not-apf`: requests are slow or rejected, but changes of APF objects do not help."""
CauseId = Literal[
    "slow-webhook",
    "list-heavy",
    "flood-one-flow",
    "flood-contained",
    "exempt-abuse",
    "etcd-slow",
    "healthy-busy",
    "leases-captured",
    "small-level",
    "watch-init-storm",
    "rollout-spike",
    "client-timeouts",
    "single-flow",
    "noisy-but-fair",
    "catch-all",
    "inversion",
    "old-incident",
    "restart",
    "imbalance",
    "leader-election-starved",
]


class Action(NamedTuple):
    """An instruction to the user, with a command that shows the effect of the instruction, or why it is needed."""

    text: str
    """The instruction, without a final period."""
    command: str | None = None
    is_by_client: bool = False
    """Whether the owner of the client must follow the instruction, instead of the administrator of the cluster."""
    short: str | None = None
    """The instruction in few words, for a report without space. None if such a report can omit the instruction."""
    nominal_seats: int | None = None
    """Nominal seats in each API server that a level with more shares should have, or None if it needs no more shares.

    Metrics do not show shares. If the configuration is known, `apflint.wanted_seats` computes the shares.
    """


class OverloadCause(NamedTuple):
    """A cause of waits and rejections."""

    cause: CauseId
    message: str
    """Description of the cause and its effect, in one or two sentences."""
    is_apf: bool
    """Whether the cause is in API Priority and Fairness: in its objects, or in the FlowSchema and level of the requests."""
    severity: Literal["warning", "info"] = "warning"
    """`info` if no action is needed."""
    levels: tuple[str, ...] = ()
    """Affected levels, in descending order of severity."""
    schema: str | None = None
    user: str | None = None
    verb: str | None = None
    resource: str | None = None
    since: str | None = None
    """A clause that states how long the level has been overloaded, or None if unknown."""
    evidence: tuple[str, ...] = ()
    """Sentences with figures, their units, and values for comparison."""
    actions: tuple[Action, ...] = ()
    would_not_help: tuple[str, ...] = ()
    """Sentences about changes that seem useful but do not help."""
    unsure: str | None = None
    """Another possible explanation of the figures, and the data that would exclude it. None if the cause is certain."""
    server: str = ""
    """File of the last snapshot of the server."""


class Conclusion(NamedTuple):
    """The verdict about all servers, and the causes, worst first."""

    verdict: Verdict
    causes: tuple[OverloadCause, ...]
    summary: str
    """The verdict in one sentence."""
    limits: tuple[str, ...]
    """Sentences about data that the files do not contain, and how to get these data."""
    explanations: Mapping[tuple[str, str], OverloadCause]
    """Causes with severity warning. The key is the file of the server and the name of the level or FlowSchema."""

    @property
    def is_calm(self) -> bool:
        """Whether there is no overload now."""
        return self.verdict in ("healthy", "past")

    @property
    def warnings(self) -> tuple[OverloadCause, ...]:
        """The causes with severity warning."""
        return tuple(cause for cause in self.causes if cause.severity == "warning")

    def map_commands(self, convert: Callable[[str | None], str | None]) -> Conclusion:
        """Return a copy of the conclusion with the command of each action replaced by the result of `convert`."""
        causes = tuple(
            cause._replace(actions=tuple(action._replace(command=convert(action.command)) for action in cause.actions))
            for cause in self.causes
        )
        return Conclusion.of(self.verdict, causes, self.summary, self.limits)

    @classmethod
    def of(
        cls, verdict: Verdict, causes: tuple[OverloadCause, ...], summary: str, limits: tuple[str, ...]
    ) -> Conclusion:
        """Return a conclusion, and compute its field `explanations` from the causes."""
        explanations: dict[tuple[str, str], OverloadCause] = {}
        for cause in causes:
            if cause.severity == "warning":
                for name in (*cause.levels, *([cause.schema] if cause.schema is not None else [])):
                    explanations.setdefault((cause.server, name), cause)
        return cls(verdict, causes, summary, limits, explanations)


def name_verdict(causes: Collection[OverloadCause]) -> Verdict | None:
    """Return the verdict that follows from the first cause with severity warning, or None if there is no such cause."""
    worst = next((cause for cause in causes if cause.severity == "warning"), None)
    return None if worst is None else "overloaded" if worst.is_apf else "not-apf"
