"""Questions about more than one configuration, or about a configuration and a condition."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.reach.analysis import shown
from apflint.evaluate.reach.encode import Encoding
from apflint.evaluate.reach.guesses import CORNERS, fresh, guesses
from apflint.evaluate.reach.order import Goes, NotReplayedError, Resolver, rules_of
from apflint.evaluate.reach.parts import Move
from apflint.evaluate.reach.vocabulary import vocabulary
from apflint.evaluate.reach.witness import digest

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from apflint.evaluate.reach.encode import Point
    from apflint.evaluate.reach.parts import Witness, World
    from apflint.evaluate.resolve import Configuration
    from apflint.model import FlowSchema, PolicyRulesWithSubjects


def moved(
    old: Configuration, new: Configuration, world: World, leaving: Collection[FlowSchema] | None
) -> Iterator[Move]:
    """See `apflint.evaluate.reach.moved`."""
    if [(each.name, each.spec) for each in old.order] == [(each.name, each.spec) for each in new.order]:
        return
    before, after = Resolver(old), Resolver(new)
    sources = range(len(old.order)) if leaving is None else sorted({before.position(schema) for schema in leaving})
    found: set[tuple[int, int]] = set()
    for point in _moving(old, new, world, (before, after), sources, found):
        pair = (before(point).position, after(point).position)
        source, target = old.order[pair[0]], new.order[pair[1]]
        if pair in found or pair[0] not in sources or _where(source) == _where(target):
            raise NotReplayedError(str(point))
        found.add(pair)

        def holds(point: Point, pair: tuple[int, int] = pair) -> bool:
            return (before(point).position, after(point).position) == pair

        levels = (source.spec.priority_level_configuration, target.spec.priority_level_configuration)
        yield Move(source, target, *levels, shown(point, holds, world))


def _moving(
    old: Configuration,
    new: Configuration,
    world: World,
    resolvers: tuple[Resolver, Resolver],
    sources: Collection[int],
    found: set[tuple[int, int]],
) -> Iterator[Point]:
    """A request for each pair of positions that is not in `found` yet, which the caller adds to; guesses first."""
    before, after = resolvers
    rules = (*rules_of(old.order), *rules_of(new.order))
    unheard = fresh(rules)
    # Guesses find most pairs at a hundredth of the cost, and in the order of the FlowSchemas.
    for schema in (*new.order, *old.order):
        for point in (guess for corner in CORNERS for guess in guesses(schema, unheard, world, corner)):
            pair = (before(point).position, after(point).position)
            same = _where(old.order[pair[0]]) == _where(new.order[pair[1]])
            if not same and pair[0] in sources and pair not in found:
                yield point
    encoding = Encoding(vocabulary(rules, world))
    formula = encoding.formula
    goes_before, goes_after = Goes(encoding, old), Goes(encoding, new)
    there = {_where(schema): at for at, schema in enumerate(new.order)}
    kept = ((at, there[_where(old.order[at])]) for at in sources if _where(old.order[at]) in there)
    blocked: set[tuple[int, int]] = set()
    formula.clause(*(goes_before.to(at) for at in sources))
    for pair in kept:
        formula.clause(-goes_before.to(pair[0]), -goes_after.to(pair[1]))
    while True:
        for pair in found - blocked:
            formula.clause(-goes_before.to(pair[0]), -goes_after.to(pair[1]))
        blocked |= found
        if not formula.solve(()):
            return
        yield encoding.point()


def captures(
    configuration: Configuration, without: Configuration, schema: FlowSchema, protected: FlowSchema, world: World
) -> Witness | None:
    """See `apflint.evaluate.reach.captures`."""
    with_it, without_it = Resolver(configuration), Resolver(without)
    here, there = with_it.position(schema), without_it.position(protected)
    encoding = Encoding(vocabulary((*rules_of(configuration.order), *rules_of(without.order)), world))
    wanted = (Goes(encoding, configuration).to(here), Goes(encoding, without).to(there))
    if not encoding.formula.solve(wanted):
        return None
    return shown(
        encoding.point(),
        lambda point: (with_it(point).position, without_it(point).position) == (here, there),
        world,
    )


def found(
    configuration: Configuration, condition: PolicyRulesWithSubjects, schemas: Collection[FlowSchema], world: World
) -> Witness | None:
    """See `apflint.evaluate.reach.found`."""
    from apflint.evaluate.match import matches_policy_rule

    resolver = Resolver(configuration)
    positions = frozenset(resolver.position(schema) for schema in schemas)
    encoding = Encoding(vocabulary((*rules_of(configuration.order), condition), world))
    wanted = (encoding.rule(condition), Goes(encoding, configuration).among(sorted(positions)))
    if not encoding.formula.solve(wanted):
        return None
    return shown(
        encoding.point(),
        lambda point: matches_policy_rule(digest(point), condition) and resolver(point).position in positions,
        world,
    )


def _where(schema: FlowSchema) -> tuple[object, str]:
    """What tells destinations apart: the name of the FlowSchema (its rules where it has none yet) and the level."""
    return schema.name or (schema.metadata.generate_name, schema.spec.rules), schema.spec.priority_level_configuration
