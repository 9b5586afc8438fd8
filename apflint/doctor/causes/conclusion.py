"""The conclusion about API servers: a verdict, and the causes of waits and rejections, worst first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Verdict = Literal["healthy", "past", "overloaded", "not-apf"]
"""`not-apf`: requests are slow or rejected, and no change of API Priority and Fairness helps."""
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
    """What to do, with a command that shows the effect or the reason."""

    text: str
    """An instruction without a final period."""
    command: str | None = None


class OverloadCause(NamedTuple):
    """A cause of waits and rejections."""

    cause: CauseId
    message: str
    """What happens, in one or two sentences."""
    is_apf: bool
    """Whether objects of API Priority and Fairness, or the place of a request among them, are the cause."""
    severity: Literal["warning", "info"] = "warning"
    """`info`: nothing has to be done."""
    levels: tuple[str, ...] = ()
    """Affected levels, the worst first."""
    schema: str | None = None
    user: str | None = None
    verb: str | None = None
    resource: str | None = None
    since: str | None = None
    """For how long the level has been overloaded, as a clause, or None if unknown."""
    evidence: tuple[str, ...] = ()
    """Sentences with figures, units and what they are compared with."""
    actions: tuple[Action, ...] = ()
    would_not_help: tuple[str, ...] = ()
    """Sentences about changes that look right and are not."""
    unsure: str | None = None
    """What else could explain the figures, and what would show it. None if the cause is certain."""
    server: str = ""
    """File of the last snapshot of the server."""


class Conclusion(NamedTuple):
    """The verdict about all servers, and the causes, worst first."""

    verdict: Verdict
    causes: tuple[OverloadCause, ...]
    summary: str
    """One sentence."""
    limits: tuple[str, ...]
    """Sentences about what the files do not show, and what would show it."""
    explanations: Mapping[tuple[str, str], OverloadCause]
    """The cause that needs something to be done, by the file of the server and the name of the level or FlowSchema."""

    @property
    def warnings(self) -> tuple[OverloadCause, ...]:
        """The causes that need something to be done."""
        return tuple(cause for cause in self.causes if cause.severity == "warning")

    @classmethod
    def of(
        cls, verdict: Verdict, causes: tuple[OverloadCause, ...], summary: str, limits: tuple[str, ...]
    ) -> Conclusion:
        """Return a conclusion with the explanations that follow from its causes."""
        explanations: dict[tuple[str, str], OverloadCause] = {}
        for cause in causes:
            if cause.severity == "warning":
                for name in (*cause.levels, *([cause.schema] if cause.schema is not None else [])):
                    explanations.setdefault((cause.server, name), cause)
        return cls(verdict, causes, summary, limits, explanations)


def name_verdict(causes: Collection[OverloadCause]) -> Verdict | None:
    """Return the verdict that follows from the worst cause, or None without a warning."""
    worst = next((cause for cause in causes if cause.severity == "warning"), None)
    return None if worst is None else "overloaded" if worst.is_apf else "not-apf"
