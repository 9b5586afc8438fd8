"""Makes witnesses ordinary: few groups, a common verb, a resource that exists.

A model of the solver is any request that proves a claim. Each of its attributes is replaced by more ordinary values as long as
the classifier confirms that the claim still holds.
"""

from __future__ import annotations

from itertools import chain, islice, product
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import ANONYMOUS, NODE_PREFIX, NODES
from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.resources import RESOURCES, get_resource
from apflint.proofs.request_space import (
    ANYBODY,
    HTTP_VERBS,
    PREFERRED,
    VERBS,
    Point,
    forced_groups,
    is_authentic_user,
    is_possible,
    rank,
    usual_groups,
)
from apflint.proofs.vocabulary import NAMESPACES, USERS
from apflint.proofs.witness import make_witness
from apflint.requests.request import COLLECTION_VERBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from apflint.proofs.request_space import Requesters, World
    from apflint.proofs.witness import Witness

    Find = Callable[[Requesters], Point | None]
    """Returns a request by a user of a set that proves a claim, or None if there is none."""

_COMMON_RESOURCES = (
    ("", "pods"),
    ("", "configmaps"),
    ("apps", "deployments"),
    ("", "nodes"),
    ("coordination.k8s.io", "leases"),
    ("", "secrets"),
)
"""API groups and resources that everybody knows."""
_MAX_RESOURCES = 24
"""Resources of an API group that are tried."""


class NotReplayedError(AssertionError):
    """The classifier does not confirm what the formula says about a request: a bug in the encoding."""


def find_witness(
    find: Find,
    holds: Callable[[Point], bool],
    world: World,
    among: Sequence[Requesters] = PREFERRED,
    *,
    point: Point | None = None,
) -> Witness | None:
    """Return the most ordinary witness for a claim, by a user of the earliest set that has one, or None if there is none.

    `point` is a request that proves the claim, if one is known. Raises NotReplayedError if the claim does not hold for a
    request that should prove it, or if nobody in `among` makes that request.
    """
    point = point or find_earliest(find, among)
    if point is None:
        return None
    at = rank(among, point.user, point.groups)
    if at == len(among) or not holds(point):
        raise NotReplayedError(str(point))

    def holds_as_well(other: Point) -> bool:
        return rank(among, other.user, other.groups) <= at and holds(other)

    plain = minimize(point, holds_as_well, world)
    for better in among[: rank(among, plain.user, plain.groups)]:
        if (other := find(better)) is not None:
            return find_witness(find, holds, world, (better,), point=other)
    witness = make_witness(plain)
    if not holds_as_well(witness.point):
        raise NotReplayedError(str(witness))
    return witness


def find_earliest(find: Find, among: Sequence[Requesters]) -> Point | None:
    """Return a request by a user of the earliest set that has one.

    Most questions have no answer at all, so all users are tried first: that costs one call instead of one for each set.
    """
    point = find(ANYBODY)
    if point is None or among[0].include(point.user, point.groups):
        return point
    return next(filter(None, map(find, among)), None)


def minimize(point: Point, holds: Callable[[Point], bool], world: World) -> Point:
    """Return a request as ordinary as possible for which the claim holds, too. It must hold for the point itself."""

    def take_first(points: Iterable[Point]) -> None:
        nonlocal point
        point = next((other for other in points if is_possible(other, world) and holds(other)), point)

    def drop(groups: tuple[str, ...]) -> None:
        """Drop as many of the groups as possible: all at once, or else from each half."""
        nonlocal point
        kept = {*point.groups}.difference(groups)
        other = point._replace(groups=tuple(group for group in point.groups if group in kept))
        if is_possible(other, world) and holds(other):
            point = other
        elif len(groups) > 1:
            drop(groups[: len(groups) // 2])
            drop(groups[len(groups) // 2 :])

    drop(point.groups)
    take_first(_other_users(point, world))
    drop(point.groups)
    take_first(_in_scope(Point(*point[:2], True, VERBS[0], *resource)) for resource in _COMMON_RESOURCES)
    if not point.is_resource:
        take_first([point._replace(path=point.path.removesuffix("*"))])
        take_first(point._replace(verb=verb) for verb in HTTP_VERBS)
        return point
    take_first(_other_resources(point))
    with_verbs = [point._replace(verb=verb) for verb in VERBS]
    take_first(other for changed in with_verbs for other in (_in_scope(changed), changed))
    take_first(_other_resources(point))
    return point


def _other_users(point: Point, world: World) -> Iterator[Point]:
    """Yield the request by other users with their groups, the most ordinary first."""
    free = set(point.groups) - set(forced_groups(point.user)) if is_authentic_user(point.user) else set(point.groups)
    nodes = [f"{NODE_PREFIX}node-1"] if NODES in free else []
    itself = () if point.user.startswith(SERVICE_ACCOUNT_PREFIX) else (point.user,)
    for user in (USERS[0], *nodes, *itself, f"{SERVICE_ACCOUNT_PREFIX}default:default", point.user, ANONYMOUS):
        forced = forced_groups(user)
        # Only nodes are in the group of nodes: no cluster sees an ordinary user in it.
        others = sorted(free.difference(forced, (NODES,) if user == USERS[0] != point.user else ()))
        yield point._replace(user=user, groups=usual_groups(user))
        yield point._replace(user=user, groups=forced)
        for group in others:
            yield point._replace(user=user, groups=(group, *forced))
        if world == "authenticated":
            yield point._replace(user=user, groups=(*others, *forced))


def _other_resources(point: Point) -> Iterator[Point]:
    """Yield the request for other resources, known ones first, in their scope; then the point itself."""
    tried = set()
    for group, resource in chain(_COMMON_RESOURCES, _similar_resources(point), ((point.api_group, point.resource),)):
        if (group, resource) not in tried:
            tried.add((group, resource))
            other = point._replace(api_group=group, resource=resource)
            yield from dict.fromkeys((_in_scope(other), _in_scope(other, "kube-system"), other))


def _similar_resources(point: Point) -> Iterator[tuple[str, str]]:
    """Yield API groups and resources that resemble those of the point."""
    name = point.resource.partition("/")[0]
    yield from ((known.group, point.resource) for known in RESOURCES if known.name == name)
    same_group = ((known.group, known.name) for known in RESOURCES if known.group == point.api_group)
    yield from islice(same_group, _MAX_RESOURCES)
    # For API groups that are not those of Kubernetes, plain words instead of the solver's choice.
    for group, resource in islice(product((point.api_group, "example.com"), (point.resource, "widgets")), 1, None):
        if "*" not in group and "*" not in resource and not get_resource(resource, group):
            yield group, resource


def _in_scope(point: Point, namespace: str = NAMESPACES[0]) -> Point:
    """Return the request in some namespace if its resource is namespaced, otherwise in none."""
    resource = point.resource.partition("/")[0]
    known = get_resource(resource, point.api_group)
    is_one_namespace = resource == "namespaces" and not point.api_group
    if known is None or (is_one_namespace and point.verb not in (*COLLECTION_VERBS, "create")):
        return point._replace(namespace=point.namespace or namespace)
    return point._replace(namespace=(point.namespace or namespace) if known.namespaced else "")
