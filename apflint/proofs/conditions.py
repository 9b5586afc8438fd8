"""Questions about one configuration and many sets of requests, each said as a rule of a FlowSchema: one formula for all."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from apflint.evaluate.match import matches_policy_rule
from apflint.proofs.destinations import Goes, Resolver, rules_of
from apflint.proofs.encoding import Encoding
from apflint.proofs.examples import choose_witness, solve_among
from apflint.proofs.request_space import forced_groups
from apflint.proofs.requesters import ANYBODY, PREFERRED
from apflint.proofs.vocabulary import vocabulary
from apflint.proofs.witness import digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from apflint.evaluate.configuration import Configuration
    from apflint.model import FlowSchema, PolicyRulesWithSubjects
    from apflint.proofs.encoding import Point
    from apflint.proofs.parts import Witness, World
    from apflint.proofs.requesters import Requesters


_MANY = 24
"""In so many groups a request may be that is made more ordinary as it is."""


class Conditions:
    """What can be asked of a configuration about sets of requests; `rules` are all that are ever asked about."""

    def __init__(self, configuration: Configuration, rules: Iterable[PolicyRulesWithSubjects], world: World) -> None:
        self._configuration = configuration
        self._rules = tuple(rules)
        self._world = world
        self._resolve = Resolver(configuration)
        self._among: dict[frozenset[int], int] = {}

    def found(
        self,
        condition: PolicyRulesWithSubjects,
        schemas: Collection[FlowSchema],
        but_for: Sequence[PolicyRulesWithSubjects] = (),
    ) -> Witness | None:
        """A request that `condition` matches, none of `but_for` does, and that goes to one of `schemas`; None: there is none.

        For "such requests never reach this level", pass the FlowSchemas of the level; for "always", all the others.
        """
        wanted = frozenset(map(self._resolve.position, schemas))

        def find(requesters: Requesters) -> Point | None:
            return self._point(condition, wanted, but_for, requesters)

        point = solve_among(find, PREFERRED)
        if point is None:
            return None

        def holds(point: Point) -> bool:
            asked = digest(point)
            return (
                matches_policy_rule(asked, condition)
                and not any(matches_policy_rule(asked, each) for each in but_for)
                and self._resolve(point).position in wanted
            )

        return choose_witness(self._plainer(point, condition), holds, self._world)

    def there_is(self, condition: PolicyRulesWithSubjects, but_for: Sequence[PolicyRulesWithSubjects] = ()) -> bool:
        """Whether there is a request that `condition` matches and none of `but_for` does, wherever it goes."""
        return self._point(condition, frozenset(range(len(self._configuration.order))), but_for) is not None

    def _point(
        self,
        condition: PolicyRulesWithSubjects,
        positions: frozenset[int],
        but_for: Sequence[PolicyRulesWithSubjects],
        requesters: Requesters = ANYBODY,
    ) -> Point | None:
        """Such a request by one of these users that goes to one of these positions, as the solver finds it."""
        encoding, goes = self._formula
        among = self._among.get(positions)
        if among is None:
            among = self._among[positions] = goes.among(sorted(positions))
        wanted = [encoding.rule(condition), among, *(-encoding.rule(each) for each in but_for)]
        wanted.append(encoding.requesters(requesters))
        return encoding.point() if encoding.formula.solve(wanted) else None

    def _plainer(self, point: Point, condition: PolicyRulesWithSubjects) -> Point:
        """The same request by somebody who is in few groups, where a model is in many.

        Whoever is in fewer groups matches less. So it goes where it went as long as it has the groups that the FlowSchema
        names, is still asked about with those that the condition names, and what is excepted does not match it either.
        """
        if len(point.groups) <= _MANY:
            return point
        rules = (condition, *self._resolve(point).flow_schema.spec.rules)
        named = {subject.group for rule in rules for subject in rule.subjects}.union(forced_groups(point.user))
        return point._replace(groups=tuple(group for group in point.groups if group in named))

    @cached_property
    def _formula(self) -> tuple[Encoding, Goes]:
        encoding = Encoding(vocabulary((*rules_of(self._configuration.order), *self._rules), self._world))
        return encoding, Goes(encoding, self._configuration)
