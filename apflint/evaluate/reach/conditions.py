"""Questions about one configuration and many sets of requests, each said as a rule of a FlowSchema: one formula for all."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from apflint.evaluate.match import matches_policy_rule
from apflint.evaluate.reach.analysis import shown
from apflint.evaluate.reach.encode import Encoding
from apflint.evaluate.reach.order import Goes, Resolver, rules_of
from apflint.evaluate.reach.vocabulary import vocabulary
from apflint.evaluate.reach.witness import digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from apflint.evaluate.reach.encode import Point
    from apflint.evaluate.reach.parts import Witness, World
    from apflint.evaluate.resolve import Configuration
    from apflint.model import FlowSchema, PolicyRulesWithSubjects


class Conditions:
    """What can be asked of a configuration about sets of requests; `rules` are all that are ever asked about."""

    def __init__(self, configuration: Configuration, rules: Iterable[PolicyRulesWithSubjects], world: World) -> None:
        self._configuration = configuration
        self._rules = tuple(rules)
        self._world = world
        self._resolve = Resolver(configuration)
        self._among: dict[tuple[int, ...], int] = {}

    def found(
        self,
        condition: PolicyRulesWithSubjects,
        schemas: Collection[FlowSchema],
        but_for: Sequence[PolicyRulesWithSubjects] = (),
    ) -> Witness | None:
        """A request that `condition` matches, none of `but_for` does, and that goes to one of `schemas`; None: there is none.

        For "such requests never reach this level", pass the FlowSchemas of the level; for "always", all the others.
        """
        encoding, goes = self._formula
        positions = tuple(sorted(map(self._resolve.position, schemas)))
        among = self._among.get(positions)
        if among is None:
            among = self._among[positions] = goes.among(positions)
        if not encoding.formula.solve((encoding.rule(condition), among, *(-encoding.rule(each) for each in but_for))):
            return None
        wanted = frozenset(positions)

        def holds(point: Point) -> bool:
            asked = digest(point)
            return (
                matches_policy_rule(asked, condition)
                and not any(matches_policy_rule(asked, each) for each in but_for)
                and self._resolve(point).position in wanted
            )

        return shown(encoding.point(), holds, self._world)

    @cached_property
    def _formula(self) -> tuple[Encoding, Goes]:
        encoding = Encoding(vocabulary((*rules_of(self._configuration.order), *self._rules), self._world))
        return encoding, Goes(encoding, self._configuration)
