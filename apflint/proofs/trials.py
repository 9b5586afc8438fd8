"""Single requests, tried against a configuration without the solver.

A request that was tried proves that something happens. That no request was found proves nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.proofs.candidates import guesses
from apflint.proofs.witness import digest, witness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.evaluate.classify import Resolution
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.proofs.candidates import Fresh
    from apflint.proofs.destinations import Resolver
    from apflint.proofs.encoding import Point
    from apflint.proofs.parts import Witness, World


class Trials:
    """Requests tried against one configuration in one world."""

    def __init__(self, resolve: Resolver, fresh: Fresh, world: World) -> None:
        self.fresh = fresh
        """Values that no FlowSchema of the configuration names."""
        self._resolve = resolve
        self._world = world

    def position(self, schema: FlowSchema) -> int | None:
        """Return the index of a FlowSchema in the order, or None if it is not effective."""
        return self._resolve.find(schema)

    def requests(self, schema: FlowSchema, rule: PolicyRulesWithSubjects, corner: int = 0) -> Iterator[Point]:
        """Yield requests that `rule` would match if it were the only rule of the FlowSchema (see `guesses`)."""
        only = schema._replace(spec=schema.spec._replace(rules=(rule,)))
        return guesses(only, self.fresh, self._world, corner)

    def resolve(self, point: Point) -> Resolution:
        """Return where the request goes."""
        return self._resolve(point)

    def next_match(self, point: Point, position: int) -> FlowSchema | None:
        """Return the first FlowSchema behind `position` that matches the request, or None if none does."""
        return self._resolve.classifier.next_match(digest(point), position + 1)

    def witness(self, point: Point) -> Witness:
        """Return the request in the words of `explain`."""
        return witness(point)
