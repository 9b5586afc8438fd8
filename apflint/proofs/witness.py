"""Witnesses: ordinary requests that prove a claim, as commands and as lines of a requests file.

The solver may find an unusual request. So this module tries a more ordinary value for each attribute (few groups, a
common verb, a resource that exists). The value is kept if the classifier confirms that the request still proves the
claim.
"""

from __future__ import annotations

from itertools import chain, islice, product
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import (
    ANONYMOUS,
    AUTHENTICATED,
    EXACT_GROUPS,
    NODE_PREFIX,
    NODES,
    UNAUTHENTICATED,
    complete_groups,
)
from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX, RequestDigest, UserInfo
from apflint.evaluate.resources import RESOURCES, find_resources, get_resource
from apflint.named_tuple import NamedTuple
from apflint.proofs.request_space import (
    ANYBODY,
    HTTP_VERBS,
    PREFERRED,
    VERBS,
    Point,
    forced_groups,
    is_authentic_user,
    is_possible,
    make_point,
    rank,
    usual_groups,
)
from apflint.proofs.vocabulary import NAMESPACES, USERS
from apflint.requests.request import COLLECTION_VERBS, METHOD_OF_VERB, parse_http
from apflint.requests.request_words import parse_words
from apflint.user_error import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from apflint.evaluate.requestinfo import RequestInfo
    from apflint.proofs.request_space import Requesters, World

    Find = Callable[[Requesters], Point | None]
    """Function that returns a request that proves the claim and is by a requester in the given set, or None."""

_OBJECT_NAME = "example"
"""Object name in requests for a single object."""
_COMMON_RESOURCES = (
    ("", "pods"),
    ("", "configmaps"),
    ("apps", "deployments"),
    ("", "nodes"),
    ("coordination.k8s.io", "leases"),
    ("", "secrets"),
)
"""API groups and names of well-known resources."""
_MAX_RESOURCES = 24
"""Maximum number of resources of one API group to try."""


class NotReplayedError(AssertionError):
    """Raised if the classifier does not confirm a request that the solver found. The encoding then has a bug."""


class Witness(NamedTuple):
    """A request that proves a claim, such as "this FlowSchema captures a request".

    The classifier has confirmed that the request proves the claim.
    """

    digest: RequestDigest
    words: tuple[str, ...] | None
    """Arguments of `apflint explain`, such as `("list", "pods", "-n", "dev", "--as", "alice")`, or None.

    None if the request lacks groups that `apflint explain` adds to every request of the user, as authentication does.
    Such requests exist only in the world `any`. `record` can describe such a request.
    """
    record: Mapping[str, object]
    """The request as a line of a file for `apflint explain --requests`."""

    @property
    def command(self) -> str:
        """Return a command such as `apflint explain list pods -n dev --as alice`.

        If no command can describe the request (`words` is None), return the record as text.
        """
        import shlex

        return f"apflint explain {shlex.join(self.words)}" if self.words is not None else f"{self.record}"

    @property
    def point(self) -> Point:
        """Return those attributes of the witness that the rules of FlowSchemas compare, such as user and verb."""
        return make_point(self.digest)


def find_witness(
    find: Find,
    holds: Callable[[Point], bool],
    world: World,
    among: Sequence[Requesters] = PREFERRED,
    *,
    point: Point | None = None,
    watches: bool = True,
) -> Witness | None:
    """Return a request that proves a claim, as ordinary as possible.

    Return None if no request by a requester in `among` proves the claim. The requester of the returned
    request is from the first set in `among` for which such a request exists.

    `find` searches for a request that proves the claim, by a requester in a set. `holds` returns
    whether a request proves the claim. `point` is a known request that proves the claim, or None.
    `watches` is whether the server classifies watches.

    Raises NotReplayedError if `holds` is false for `point` or for a request from `find`, or if no set
    in `among` contains the requester of this request.
    """
    point = point or find_earliest(find, among)
    if point is None:
        return None
    at = rank(among, point)
    if at == len(among) or not holds(point):
        raise NotReplayedError(str(point))

    def holds_as_well(other: Point) -> bool:
        return rank(among, other) <= at and holds(other)

    plain = minimize(point, holds_as_well, world, watches=watches)
    for better in among[: rank(among, plain)]:
        if (other := find(better)) is not None:
            return find_witness(find, holds, world, (better,), point=other, watches=watches)
    witness = make_witness(plain)
    if not holds_as_well(witness.point):
        raise NotReplayedError(str(witness))
    return witness


def find_earliest(find: Find, among: Sequence[Requesters]) -> Point | None:
    """Return the request that `find` returns for the earliest set in `among`, or None if it returns None for every set.

    Most searches find nothing. So the first call of `find` searches all requesters. If this call finds nothing, no
    further calls are necessary.
    """
    point = find(ANYBODY)
    if point is None or among[0].send(point):
        return point
    return next(filter(None, map(find, among)), None)


def minimize(point: Point, holds: Callable[[Point], bool], world: World, *, watches: bool = True) -> Point:
    """Return a request that is easier to understand than `point`, and for which `holds` is also true.

    The function removes groups and replaces attributes by common values, as long as `holds` stays true.
    For example, it replaces an unusual resource by a well-known one. `holds` must be true for `point`.
    """

    def is_candidate(other: Point) -> bool:
        return is_possible(other, world, watches=watches) and holds(other)

    def take_first(points: Iterable[Point]) -> None:
        nonlocal point
        point = next(filter(is_candidate, points), point)

    def drop(groups: tuple[str, ...]) -> None:
        """Remove the groups if the claim stays true. Otherwise, try each half of the groups separately."""
        nonlocal point
        kept = {*point.groups}.difference(groups)
        other = point._replace(groups=tuple(group for group in point.groups if group in kept))
        if is_candidate(other):
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
    """Yield copies of the request `point` with different users and groups.

    An ordinary user comes first, and `system:anonymous` comes last. For each user, the first copy has
    the usual groups of the user.
    """
    free = set(point.groups) - set(forced_groups(point.user)) if is_authentic_user(point.user) else set(point.groups)
    nodes = [f"{NODE_PREFIX}node-1"] if NODES in free else []
    itself = () if point.user.startswith(SERVICE_ACCOUNT_PREFIX) else (point.user,)
    for user in (USERS[0], *nodes, *itself, f"{SERVICE_ACCOUNT_PREFIX}default:default", point.user, ANONYMOUS):
        forced = forced_groups(user)
        # In real clusters, only nodes are in the group `system:nodes`. So do not add this group to an ordinary user,
        # unless this user already is the user of `point`.
        others = sorted(free.difference(forced, (NODES,) if user == USERS[0] != point.user else ()))
        yield point._replace(user=user, groups=usual_groups(user))
        yield point._replace(user=user, groups=forced)
        for group in others:
            yield point._replace(user=user, groups=(group, *forced))
        if world == "authenticated":
            yield point._replace(user=user, groups=(*others, *forced))


def _other_resources(point: Point) -> Iterator[Point]:
    """Yield copies of the request for different resources, common resources first. The resource of `point` comes last."""
    tried = set()
    for group, resource in chain(_COMMON_RESOURCES, _similar_resources(point), ((point.api_group, point.resource),)):
        if (group, resource) not in tried:
            tried.add((group, resource))
            other = point._replace(api_group=group, resource=resource)
            yield from dict.fromkeys((_in_scope(other), _in_scope(other, "kube-system"), other))


def _similar_resources(point: Point) -> Iterator[tuple[str, str]]:
    """Yield (API group, resource) pairs with which the request of a witness may be easier to understand.

    First come the API groups that serve a resource of the same name, then resources of the same API
    group. If Kubernetes does not serve the request's resource, plain names such as `widgets` in
    `example.com` follow.
    """
    name = point.resource.partition("/")[0]
    yield from ((known.group, point.resource) for known in RESOURCES if known.name == name)
    same_group = ((known.group, known.name) for known in RESOURCES if known.group == point.api_group)
    yield from islice(same_group, _MAX_RESOURCES)
    # Finally, replace the API group by `example.com`, the resource by `widgets`, or both, because the
    # solver may have chosen strange names. Skip wildcards and resources that Kubernetes serves.
    for group, resource in islice(product((point.api_group, "example.com"), (point.resource, "widgets")), 1, None):
        if "*" not in group and "*" not in resource and not get_resource(resource, group):
            yield group, resource


def _in_scope(point: Point, namespace: str = NAMESPACES[0]) -> Point:
    """Return the request with a namespace that fits its resource.

    If the resource is cluster-scoped, the request gets no namespace. Otherwise, the request keeps its namespace, or
    gets `namespace` if it has none.
    """
    resource = point.resource.partition("/")[0]
    known = get_resource(resource, point.api_group)
    is_one_namespace = resource == "namespaces" and not point.api_group
    if known is None or (is_one_namespace and point.verb not in (*COLLECTION_VERBS, "create")):
        return point._replace(namespace=point.namespace or namespace)
    return point._replace(namespace=(point.namespace or namespace) if known.namespaced else "")


def make_witness(point: Point) -> Witness:
    """Return the witness for a request. Its fields `words` and `record` describe exactly this request."""
    user = UserInfo(point.user, point.groups)
    words, info = next(spelled for spelled in _spell(point) if make_point(RequestDigest(spelled[1], user)) == point)
    more_groups = _find_named_groups(point)
    command = None
    if more_groups is not None:
        user = UserInfo(point.user, complete_groups(point.user, more_groups)[0])
        command = (*words, *_option("--as", point.user))
        for group in more_groups:
            command += _option("--as-group", group)
    method, url = _http(point)
    record: dict[str, object] = {"user": user.name, "groups": list(user.groups), "method": method, "path": url}
    if AUTHENTICATED not in user.groups and UNAUTHENTICATED not in user.groups:
        record[EXACT_GROUPS] = True
    return Witness(RequestDigest(info, user), command, record)


def _find_named_groups(point: Point) -> tuple[str, ...] | None:
    """Return the groups for `--as-group`, without groups that authentication adds.

    Return None if authentication would add a group that the request does not have.
    """
    groups = set(point.groups)
    for added in (set(complete_groups(point.user, ())[0]), set(complete_groups(point.user, ("",))[0]), set()):
        named = tuple(group for group in point.groups if group not in added)
        if set(complete_groups(point.user, named)[0]) == groups:
            return named
    return None


def _spell(point: Point) -> Iterator[tuple[tuple[str, ...], RequestInfo]]:
    """Yield pairs (arguments of `apflint explain`, attributes of the request that these arguments describe).

    The shortest arguments come first. The last arguments are method and path, which can describe every request.
    """
    words = _resource_words(point) if point.is_resource else (point.verb, _quote(point.path))
    if words is not None and not point.verb.startswith("-"):
        try:
            namespace = point.namespace if "-n" in words else None
            plain = words if namespace is None else words[: words.index("-n")]
            yield words, parse_words(plain, user=ANONYMOUS, namespace=namespace).info
        except UserError:
            pass
    method, url = _http(point)
    yield ("--method", method, "--path", url), parse_http(method, url, user=ANONYMOUS).info


def _resource_words(point: Point) -> tuple[str, ...] | None:
    resource, slash, subresource = point.resource.partition("/")
    if not point.verb or not resource or "." in resource or resource.startswith("-"):
        return None
    known = find_resources(resource)
    is_default = known and (known[0].name, known[0].group) == (resource, point.api_group)
    is_namespace = resource == "namespaces" and not point.api_group and point.namespace
    words = [point.verb, f"{resource if is_default else f'{resource}.{point.api_group}'}{slash}{subresource}"]
    if subresource or point.verb not in (*COLLECTION_VERBS, "create"):
        words.append(point.namespace if is_namespace else _OBJECT_NAME)
    if point.namespace and not is_namespace:
        if point.namespace.startswith("-"):
            return None
        words += ["-n", point.namespace]
    return tuple(words)


def _http(point: Point) -> tuple[str, str]:
    """Return method and URL of the request."""
    if not point.is_resource:
        return point.verb.upper(), _quote(point.path)
    resource, _, subresource = point.resource.partition("/")
    known = get_resource(resource, point.api_group)
    version = known.version if known else "v1"
    base = f"/apis/{_quote(point.api_group)}/{version}" if point.api_group else f"/api/{version}"
    is_collection = point.verb in COLLECTION_VERBS
    # For subresources and the empty resource, the server ignores the query parameter `watch`. A watch of such resources
    # needs the deprecated path prefix `/watch`.
    if point.verb == "watch" and (subresource or not resource):
        base += "/watch"
    is_namespace = (
        resource == "namespaces"
        and not point.api_group
        and point.namespace
        and not is_collection
        and point.verb != "create"
        and subresource in ("", "status", "finalize")
    )
    if point.namespace and not is_namespace:
        base += f"/namespaces/{_quote(point.namespace)}"
    elif not point.namespace and resource in ("namespaces", "watch", "proxy"):
        # Directly after the API version, these resource names have a special meaning. After `/namespaces/`, the same
        # names are ordinary resources.
        base += "/namespaces/"
    segments = [resource]
    if subresource:
        segments += ["" if point.verb in ("list", "deletecollection") else _OBJECT_NAME, subresource]
    elif not resource or not (is_collection or point.verb == "create"):
        segments.append(point.namespace if is_namespace else _OBJECT_NAME)
    if is_namespace and subresource:
        segments[1] = point.namespace
    query = "?watch=true" if point.verb == "watch" and "/watch" not in base else ""
    path = "/".join((base, *map(_quote, segments)))
    return METHOD_OF_VERB.get(point.verb, "OPTIONS"), path + query


def _quote(text: str) -> str:
    from urllib.parse import quote  # imported here because hardly any request needs quoting

    return quote(text, safe="/:@!$&'()*+,;=~")


def _option(option: str, value: str) -> tuple[str, ...]:
    return (f"{option}={value}",) if value.startswith("-") else (option, value)
