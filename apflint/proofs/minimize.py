"""From any request of which a claim holds to one that people recognise.

A solver's model is any request that does; the one that is shown should have few groups, an ordinary verb and a resource
that exists. So each attribute in turn is replaced with something more ordinary as long as the claim still holds, which
the classifier says, not the solver.
"""

from __future__ import annotations

from itertools import chain, islice, product
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import ANONYMOUS, NODE_PREFIX, NODES
from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.resources import RESOURCES, get_resource
from apflint.proofs.encoding import Point
from apflint.proofs.request_space import HTTP_VERBS, VERBS, authentic_user, forced_groups, usual_groups
from apflint.proofs.vocabulary import NAMESPACES, USERS
from apflint.proofs.witness import possible
from apflint.requests.request import COLLECTION_VERBS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from apflint.proofs.parts import World

_ORDINARY = (
    ("", "pods"),
    ("", "configmaps"),
    ("apps", "deployments"),
    ("", "nodes"),
    ("coordination.k8s.io", "leases"),
    ("", "secrets"),
)
_MANY = 24


def ordinary(point: Point, holds: Callable[[Point], bool], world: World) -> Point:
    """A request as ordinary as can be for which the claim holds, too. It must hold for the point itself."""

    def first(points: Iterable[Point]) -> Point:
        nonlocal point
        point = next((each for each in points if each == point or (possible(each, world) and holds(each))), point)
        return point

    def shed(groups: tuple[str, ...]) -> None:
        """Leaves out as many as can be: all at once, or else those of each half."""
        nonlocal point
        left = {*point.groups}.difference(groups)
        other = point._replace(groups=tuple(each for each in point.groups if each in left))
        if possible(other, world) and holds(other):
            point = other
        elif len(groups) > 1:
            shed(groups[: len(groups) // 2])
            shed(groups[len(groups) // 2 :])

    if len(point.groups) > _MANY:  # a model of a large configuration is in hundreds of groups
        shed(point.groups)
    first(_users(point, world))
    shed(point.groups)
    first(chain(_plain_requests(point), (point,)))
    if not point.is_resource:
        first(point._replace(verb=verb) for verb in (*HTTP_VERBS, point.verb))
        return point
    first(_things(point))
    first(each for verb in VERBS for each in (_in_scope(point._replace(verb=verb)), point._replace(verb=verb)))
    first(_things(point))
    return point


def _users(point: Point, world: World) -> Iterator[Point]:
    """Other users with the groups that come with them, the most ordinary first; then the point itself."""
    free = set(point.groups) - set(forced_groups(point.user)) if authentic_user(point.user) else set(point.groups)
    nodes = [f"{NODE_PREFIX}node-1"] if NODES in free else []
    kin = () if point.user.startswith(SERVICE_ACCOUNT_PREFIX) else (point.user,)
    for user in (USERS[0], *nodes, *kin, f"{SERVICE_ACCOUNT_PREFIX}default:default", point.user, ANONYMOUS):
        forced = forced_groups(user)
        # Only nodes are in the group of nodes: an ordinary user in it is not a request that a cluster sees.
        others = sorted(free.difference(forced, (NODES,) if user == USERS[0] != point.user else ()))
        yield point._replace(user=user, groups=usual_groups(user))
        yield point._replace(user=user, groups=forced)
        for group in others:
            yield point._replace(user=user, groups=(group, *forced))
        if world == "authenticated":
            yield point._replace(user=user, groups=(*others, *forced))
    yield point


def _plain_requests(point: Point) -> Iterator[Point]:
    """Requests by the same user for what everybody knows."""
    return (_in_scope(Point(*point[:2], True, VERBS[0], group, resource)) for group, resource in _ORDINARY)


def _things(point: Point) -> Iterator[Point]:
    """Other resources, those that exist first, in a scope that is theirs; then the point itself."""
    seen = set()
    for group, resource in chain(_ORDINARY, _akin(point), ((point.api_group, point.resource),)):
        if (group, resource) not in seen:
            seen.add((group, resource))
            other = point._replace(api_group=group, resource=resource)
            yield from dict.fromkeys((_in_scope(other), _in_scope(other, "kube-system"), other))


def _akin(point: Point) -> Iterator[tuple[str, str]]:
    """API groups and resources that are like those of the point: hardly ever asked for, so made when they are."""
    name = point.resource.partition("/")[0]
    yield from ((each.group, point.resource) for each in RESOURCES if each.name == name)
    yield from islice(((each.group, each.name) for each in RESOURCES if each.group == point.api_group), _MANY)
    # Of groups that are not Kubernetes' own: a plain word rather than whatever the solver came upon.
    for group, resource in islice(product((point.api_group, "example.com"), (point.resource, "widgets")), 1, None):
        if "*" not in group and "*" not in resource and not get_resource(resource, group):
            yield group, resource


def _in_scope(point: Point, usual: str = NAMESPACES[0]) -> Point:
    """The point in some namespace if its resource lives in one, otherwise in none."""
    resource = point.resource.partition("/")[0]
    known = get_resource(resource, point.api_group)
    if known is None or (
        resource == "namespaces" and not point.api_group and point.verb not in (*COLLECTION_VERBS, "create")
    ):
        return point._replace(namespace=point.namespace or usual)
    return point._replace(namespace=(point.namespace or usual) if known.namespaced else "")
