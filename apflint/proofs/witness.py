"""From a point of the vocabulary to a request, to the words that `apflint explain` takes, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.errors import UserError
from apflint.evaluate.authentication import ANONYMOUS, AUTHENTICATED, EXACT_GROUPS, UNAUTHENTICATED, complete_groups
from apflint.evaluate.match import RequestDigest, UserInfo, rs_join
from apflint.evaluate.requestinfo import RequestInfo
from apflint.evaluate.resources import find_resources, get_resource
from apflint.proofs.encoding import Point
from apflint.proofs.parts import Witness
from apflint.proofs.request_space import (
    VERBS,
    authentic,
    is_resource_path,
    legal_http_verb,
    legal_resource,
    legal_segment,
    legal_text,
    path_traits,
    resource_traits,
    verb_traits,
)
from apflint.record import NamedTuple
from apflint.requests.http import parse_http
from apflint.requests.request import COLLECTION_VERBS, METHOD_OF_VERB
from apflint.requests.words import parse_words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.proofs.parts import World
    from apflint.requests.request import Request

NAME = "example"
"""The name of the object that a witness is about, where it needs one."""


class Origin(NamedTuple):
    """Where a request comes from: the arguments of `explain` before user and groups, and the request they mean."""

    words: tuple[str, ...]
    info: RequestInfo


def digest(point: Point) -> RequestDigest:
    """What is matched against FlowSchemas, in the least that it takes: no name, no path of a resource."""
    user = UserInfo(point.user, point.groups)
    if not point.is_resource:
        return RequestDigest(RequestInfo(False, point.verb, "", "", "", "", "", "", "", point.path), user)
    resource, _, subresource = point.resource.partition("/")
    return RequestDigest(
        RequestInfo(True, point.verb, "", point.api_group, "", point.namespace, resource, subresource, "", ""), user
    )


def as_point(found: Witness) -> Point:
    """What FlowSchemas look at in the request that is shown."""
    info, user = found.digest
    if not info.is_resource_request:
        return Point(user.name, user.groups, False, info.verb, path=info.path)
    resource = rs_join(info.resource, info.subresource)
    return Point(user.name, user.groups, True, info.verb, info.api_group, resource, info.namespace)


def possible(point: Point, world: World) -> bool:
    """Whether there is such a request in this world, and API Priority and Fairness classifies it."""
    if world == "authenticated" and not authentic(point.user, point.groups):
        return False
    if not point.is_resource:
        return (
            point.path.startswith("/")
            and not is_resource_path(point.path)
            and legal_text(point.path)
            and legal_http_verb(point.verb)
            and (point.verb == "watch" or not path_traits(point.path).watch_only)
        )
    traits, verb = resource_traits(point.resource), verb_traits(point.verb)
    return (
        point.verb in VERBS
        and legal_segment(point.api_group)
        and legal_resource(point.resource)
        and legal_segment(point.namespace)
        and (verb.watch_only or not traits.watch_only)
        and not (traits.no_namespace and point.namespace)
        and not (traits.no_collection and verb.no_collection)
    )


def witness(point: Point) -> Witness:
    """The request in the words of `explain`, and as a line of a requests file. The words give back the very same point."""
    origin = next(each for each in _origins(point) if _same(each.info, point))
    user = UserInfo(point.user, point.groups)
    extra = _extra_groups(point)
    words = None
    if extra is not None:
        user = UserInfo(point.user, complete_groups(point.user, extra)[0])
        words = (*origin.words, *_option("--as", point.user))
        for group in extra:
            words += _option("--as-group", group)
    method, path = _http(point)
    record: dict[str, object] = {"user": user.name, "groups": list(user.groups), "method": method, "path": path}
    if AUTHENTICATED not in user.groups and UNAUTHENTICATED not in user.groups:
        record[EXACT_GROUPS] = True
    return Witness(RequestDigest(origin.info, user), words, record)


def _extra_groups(point: Point) -> tuple[str, ...] | None:
    """The groups to name so that with those that authentication adds there are all; None if it adds one too many."""
    wanted = set(point.groups)
    for left_out in (set(complete_groups(point.user, ())[0]), set(complete_groups(point.user, ("",))[0]), set()):
        extra = tuple(group for group in point.groups if group not in left_out)
        if set(complete_groups(point.user, extra)[0]) == wanted:
            return extra
    return None


def _origins(point: Point) -> Iterator[Origin]:
    """Ways to ask for it, the plainest first; the last is method and path, by which everything can be asked for."""
    words = _resource_words(point) if point.is_resource else _path_words(point)
    if words is not None:
        try:
            namespace = point.namespace if "-n" in words else None
            plain = words if namespace is None else words[: words.index("-n")]
            request: Request = parse_words(plain, user=ANONYMOUS, namespace=namespace)
            yield Origin(words, request.info)
        except UserError:
            pass
    method, path = _http(point)
    yield Origin(("--method", method, "--path", path), parse_http(method, path, user=ANONYMOUS).info)


def _resource_words(point: Point) -> tuple[str, ...] | None:
    resource, slash, subresource = point.resource.partition("/")
    if not point.verb or not resource or "." in resource or resource.startswith("-"):
        return None
    known = find_resources(resource)
    if known and (known[0].name, known[0].group) == (resource, point.api_group):
        what = resource
    else:
        what = f"{resource}.{point.api_group}"
    own = resource == "namespaces" and not point.api_group and point.namespace
    words = [point.verb, f"{what}{slash}{subresource}"]
    if subresource or point.verb not in (*COLLECTION_VERBS, "create"):
        words.append(point.namespace if own else NAME)
    if point.namespace and not own:
        if point.namespace.startswith("-"):
            return None
        words += ["-n", point.namespace]
    return tuple(words)


def _path_words(point: Point) -> tuple[str, ...] | None:
    return None if point.verb.startswith("-") else (point.verb, _quoted(point.path))


def _same(info: RequestInfo, point: Point) -> bool:
    if info.is_resource_request != point.is_resource or info.verb != point.verb:
        return False
    if not point.is_resource:
        return info.path == point.path
    return (info.api_group, rs_join(info.resource, info.subresource), info.namespace) == (
        point.api_group,
        point.resource,
        point.namespace,
    )


def _http(point: Point) -> tuple[str, str]:
    """Method and URL of the request."""
    if not point.is_resource:
        return point.verb.upper(), _quoted(point.path)
    resource, _, subresource = point.resource.partition("/")
    known = get_resource(resource, point.api_group)
    version = known.version if known else "v1"
    folder = f"/apis/{_quoted(point.api_group)}/{version}" if point.api_group else f"/api/{version}"
    collection = point.verb in COLLECTION_VERBS
    # With a subresource, or without the name of a resource, a watch is only told by the old prefix.
    if point.verb == "watch" and (subresource or not resource):
        folder += "/watch"
    own = resource == "namespaces" and not point.api_group
    whole = (
        own
        and point.namespace
        and not collection
        and point.verb != "create"
        and subresource in ("", "status", "finalize")
    )
    if point.namespace and not whole:
        folder += f"/namespaces/{_quoted(point.namespace)}"
    elif not point.namespace and resource in ("namespaces", "watch", "proxy"):
        # A first segment of this name would be taken for something else.
        folder += "/namespaces/"
    parts = [resource]
    if subresource:
        parts += ["" if point.verb in ("list", "deletecollection") else NAME, subresource]
    elif not resource or not (collection or point.verb == "create"):
        parts.append(point.namespace if whole else NAME)
    if whole and subresource:
        parts[1] = point.namespace
    query = "?watch=true" if point.verb == "watch" and "/watch" not in folder else ""
    path = "/".join((folder, *(_quoted(part) for part in parts)))
    return METHOD_OF_VERB.get(point.verb, "OPTIONS"), path + query


def _quoted(text: str) -> str:
    from urllib.parse import quote  # 1.5 ms, and hardly any request needs it

    return quote(text, safe="/:@!$&'()*+,;=~")


def _option(option: str, value: str) -> tuple[str, ...]:
    return (f"{option}={value}",) if value.startswith("-") else (option, value)
