"""Which requests reach what: an exact decision procedure over all requests that there can be.

All functions take the `Configuration` of `apflint.evaluate.resolve.configuration`, and remember the last few that they
were asked about (by identity), so ask the same object again.

What a *request* is here: one that API Priority and Fairness classifies. Long-running ones (`pods/exec`, `pods/log`, verb
`proxy`, ...) never are, watches excepted (`seen_by_apf`). Watches count in every release, although servers up to 1.21 skip
them too. `world` says who may ask:

- `"authenticated"` (default): groups are what authentication gives. Everybody is in `system:authenticated`, but
  `system:anonymous` in `system:unauthenticated` and nowhere else; a service account is in its three groups and in no
  other, and nobody else is in groups of service accounts; user names that begin with `system:serviceaccount:` are those
  of service accounts. All other groups may be anybody else's, or not: a node may lack `system:nodes`.
- `"any"`: every user name with every set of groups, as impersonation can make many of them.

A part of a FlowSchema *decides* about a request when the FlowSchema takes it (the first in the order that matches) and
`apflint.evaluate.resolve.matched_by` names the part: the first rule that matches, in it the first subject, and the first
resource rule or non-resource rule. A part that never decides can be removed, and all such parts at once, without any
request going elsewhere. The reverse does not hold: in `[User alice, Group system:authenticated]` alice could be removed,
but she does decide, so nothing is said about her.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.proofs import pair
from apflint.proofs.parts import Move, Part, Witness, World, proof_work
from apflint.proofs.requesters import PREFERRED, REALISTIC
from apflint.proofs.single import Analysis
from apflint.proofs.ties import Budget, Ties, find_ties
from apflint.proofs.trials import Trials

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from apflint.evaluate.resolve import Configuration
    from apflint.model import FlowSchema
    from apflint.proofs.requesters import Requesters

__all__ = [
    "Budget",
    "Move",
    "Part",
    "Ties",
    "Trials",
    "Witness",
    "World",
    "blockers",
    "captures",
    "matches_nothing",
    "moved",
    "proof_work",
    "reachable",
    "shadows",
    "ties",
    "trials",
    "unreachable",
]


def reachable(
    configuration: Configuration, target: FlowSchema | Part, world: World = "authenticated"
) -> Witness | None:
    """A request about which `target` decides; None if there is none in this world. The schema must be in the order.

    The request that falls back to `catch-all` because nothing matches (in the world `any`) counts for `catch-all`.
    """
    return _analysis(configuration, world).reachable(target)


def unreachable(
    configuration: Configuration,
    schemas: Collection[FlowSchema] | None = None,
    world: World = "authenticated",
    skipped: list[FlowSchema] | None = None,
) -> Iterator[Part]:
    """All that never decides in these FlowSchemas (default: in all), in order; of what is inside such a part only the part.

    A FlowSchema without rules is one of them, too. At the end, `skipped` receives the FlowSchemas that were not analyzed
    completely because of `MAX_REACHABILITY_WORK`.
    """
    return _analysis(configuration, world).unreachable(configuration.order if schemas is None else schemas, skipped)


def ties(
    configuration: Configuration,
    group: Sequence[FlowSchema],
    matters: Callable[[FlowSchema, FlowSchema], bool],
    budget: Budget,
    world: World = "authenticated",
    *,
    among: Sequence[Requesters] = REALISTIC,
) -> Ties:
    """Return which FlowSchemas of a group (in matching order) share requests with others, where such a tie `matters`.

    A tie needs a request by one of `among` that goes to the earlier one and that the later one matches, too.
    """
    return find_ties(_analysis(configuration, world), group, matters, among, budget)


def moved(
    old: Configuration,
    new: Configuration,
    world: World = "authenticated",
    *,
    leaving: Collection[FlowSchema] | None = None,
    among: Sequence[Requesters] = PREFERRED,
) -> Iterator[Move]:
    """Every pair of FlowSchemas such that a request goes to one in `old` and to the other in `new`.

    Only pairs that differ in the name of the FlowSchema or of the level; each once, with a request. Finite: at most one
    for each pair. With `leaving` (FlowSchemas of `old`), only what goes away from these, which is faster. Only requests by
    one of `among` count; the witness of a pair is by a user of the earliest set that has one.
    """
    return pair.moved(old, new, world, leaving, among)


def captures(
    configuration: Configuration,
    without: Configuration,
    schema: FlowSchema,
    protected: FlowSchema,
    world: World = "authenticated",
    *,
    among: Sequence[Requesters] = PREFERRED,
) -> Witness | None:
    """A request that goes to `schema` in `configuration` and to `protected` in `without`; None if there is none.

    Only requests by one of `among` count; the witness is by a user of the earliest set that has one. To know all that the
    user's objects take from a suggested FlowSchema, `moved(without, configuration)` is faster.
    """
    return pair.captures(configuration, without, schema, protected, world, among)


def blockers(
    configuration: Configuration, schema: FlowSchema, world: World = "authenticated"
) -> tuple[FlowSchema, ...]:
    """Earlier FlowSchemas that together capture every request that an unreachable one matches.

    If there are up to two dozen, none of them could be spared; more may include some that are not needed. Empty if the
    FlowSchema matches nothing in the first place. ValueError for one that is reachable.
    """
    return tuple(part.schema for part in shadows(configuration, Part(schema), world))


def shadows(configuration: Configuration, target: Part, world: World = "authenticated") -> tuple[Part, ...]:
    """Return the same as `blockers` for any part: earlier FlowSchemas, earlier rules, and earlier entries of its list.

    Empty if the part matches nothing in the first place. ValueError for a part that decides.
    """
    return _analysis(configuration, world).shadows(target)


def trials(configuration: Configuration, world: World = "authenticated") -> Trials:
    """Return what tries single requests against a configuration: cheap, as the solver is not loaded."""
    return _analysis(configuration, world).trials


def matches_nothing(configuration: Configuration, target: Part, world: World = "authenticated") -> bool:
    """Return whether no request matches the part, whatever comes before it. Much cheaper than `shadows`."""
    return _analysis(configuration, world).matches_nothing(target)


_REMEMBERED: list[Analysis] = []
_MANY = 4
"""So many configurations are remembered: the rules ask about one or two, in both worlds."""


def _analysis(configuration: Configuration, world: World) -> Analysis:
    for known in _REMEMBERED:
        if known.configuration is configuration and known.world == world:
            return known
    made = Analysis(configuration, world)
    _REMEMBERED.insert(0, made)
    del _REMEMBERED[_MANY:]
    return made
