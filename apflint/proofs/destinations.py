"""Where requests go in the matching order: as the classifier says it, and as literals of a formula."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from apflint.budgets import MAX_REACHABILITY_WORK
from apflint.evaluate.classify import Classifier
from apflint.evaluate.configuration import CATCH_ALL
from apflint.proofs.encoding import Encoding
from apflint.proofs.parts import Part, proof_work
from apflint.proofs.vocabulary import vocabulary
from apflint.proofs.witness import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from apflint.evaluate.classify import Resolution
    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.proofs.encoding import Point
    from apflint.proofs.parts import Key, World

_MEMORY = 1024
"""Answers that are remembered: the same request is asked about again soon, or never."""


class NotReplayedError(AssertionError):
    """The formula says something about a request that the classifier does not: a bug here."""


class Resolver:
    """Where requests go in one configuration, by position in its order."""

    def __init__(self, configuration: Configuration) -> None:
        self.configuration = configuration
        self.classifier = Classifier(configuration, _MEMORY)
        self._positions = {schema.document: at for at, schema in enumerate(configuration.order)}

    def __call__(self, point: Point) -> Resolution:
        """What becomes of the request."""
        return self.classifier(digest(point))

    def find(self, schema: FlowSchema) -> int | None:
        """Return the index of a FlowSchema in the order, or None if it is not there, for example because it dangles."""
        order = self.configuration.order
        at = self._positions.get(schema.document)
        if at is None or order[at] is not schema:
            # The same object of another reading of the files, or one of several that were derived from one document.
            value = schema.metadata, schema.spec
            at = next((at for at, other in enumerate(order) if (other.metadata, other.spec) == value), None)
        return at

    def position(self, schema: FlowSchema) -> int:
        """Return the index of a FlowSchema in the order. Raises ValueError if it is not there."""
        at = self.find(schema)
        if at is None:
            raise ValueError(f'the FlowSchema "{schema.name}" is not effective in this configuration')
        return at


class Goes:
    """Literals for where requests go in one configuration."""

    def __init__(self, encoding: Encoding, configuration: Configuration) -> None:
        self._encoding = encoding
        self._order = configuration.order
        self.taken = encoding.taken(configuration.order)
        self._fallback = max(
            (at for at, schema in enumerate(configuration.order) if schema.name == CATCH_ALL), default=None
        )

    def to(self, position: int) -> int:
        """True when a request goes to the FlowSchema at this position."""
        formula = self._encoding.formula
        taken = formula.all_of((self._encoding.schema(self._order[position]), -self.taken[position]))
        return formula.any_of((taken, -self.taken[-1])) if position == self._fallback else taken

    def among(self, positions: Iterable[int]) -> int:
        """True when a request goes to one of the FlowSchemas at these positions."""
        return self._encoding.formula.any_of(self.to(position) for position in positions)


class Sweep:
    """A formula for questions in matching order, in which "no earlier FlowSchema matches" is a fact, not an assumption.

    Facts make the formula smaller, so thousands of questions cost a fraction of what they cost with assumptions.
    """

    def __init__(self, configuration: Configuration, world: World) -> None:
        self._order = configuration.order
        self._world = world
        self._position = 0
        self._work: int = MAX_REACHABILITY_WORK
        self.skipped: dict[int, None] = {}
        """Positions of FlowSchemas with questions that were not asked because of `MAX_REACHABILITY_WORK`."""

    @cached_property
    def _encoding(self) -> Encoding:
        return Encoding(vocabulary(rules_of(self._order), self._world))

    def may_ask(self, key: Key) -> bool:
        """Charge the budget for a question about a part; if it is exhausted, note the FlowSchema as skipped."""
        position, rule, member, entry = key
        self._work -= proof_work(len(self._order), Part(self._order[position], rule, member, entry))
        if self._work < 0:
            self.skipped[position] = None
        return self._work >= 0

    def up_to(self, position: int) -> Encoding:
        """Return the formula in which no FlowSchema before `position` matches. Ask in matching order."""
        encoding = self._encoding
        for schema in self._order[self._position : position]:
            encoding.formula.clause(-encoding.schema(schema))
        self._position = position
        return encoding


def rules_of(order: Sequence[FlowSchema]) -> list[PolicyRulesWithSubjects]:
    """All rules of some FlowSchemas."""
    return [rule for schema in order for rule in schema.spec.rules]
