"""Witnesses: requests that prove a claim, as commands to try and as lines of a requests file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.errors import UserError
from apflint.evaluate.authentication import ANONYMOUS, AUTHENTICATED, EXACT_GROUPS, UNAUTHENTICATED, complete_groups
from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.resources import find_resources, get_resource
from apflint.proofs.request_space import Point, make_point
from apflint.record import NamedTuple
from apflint.requests.request import COLLECTION_VERBS, METHOD_OF_VERB, parse_http
from apflint.requests.words import parse_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from apflint.evaluate.requestinfo import RequestInfo

OBJECT_NAME = "example"
"""Name of the object in requests for one object."""


class Witness(NamedTuple):
    """A request that proves a claim: the classifier confirms it."""

    digest: RequestDigest
    words: tuple[str, ...] | None
    """Arguments of `apflint explain`: `("list", "pods", "-n", "dev", "--as", "alice")`.

    None if the groups are not those that authentication gives, which happens only in the world `any`: the command line adds
    what authentication adds. `record` can express these.
    """
    record: Mapping[str, object]
    """The request as a line of a file for `apflint explain --requests`, which uses groups as they are."""

    @property
    def command(self) -> str:
        """The request as a command, `apflint explain list pods -n dev --as alice`, or as a record if no words express it."""
        import shlex

        return f"apflint explain {shlex.join(self.words)}" if self.words is not None else f"{self.record}"

    @property
    def point(self) -> Point:
        """What FlowSchemas look at in the request."""
        return make_point(self.digest)


def make_witness(point: Point) -> Witness:
    """Return the witness for a request; its words and its record stand for exactly this point."""
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
    """Return the groups to name so that authentication adds the others, or None if it would add too many."""
    groups = set(point.groups)
    for added in (set(complete_groups(point.user, ())[0]), set(complete_groups(point.user, ("",))[0]), set()):
        named = tuple(group for group in point.groups if group not in added)
        if set(complete_groups(point.user, named)[0]) == groups:
            return named
    return None


def _spell(point: Point) -> Iterator[tuple[tuple[str, ...], RequestInfo]]:
    """Yield arguments for the request, the shortest first, and the requests that they stand for.

    The last are method and path, which can express every request.
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
        words.append(point.namespace if is_namespace else OBJECT_NAME)
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
    # With a subresource, or without the name of a resource, only the deprecated prefix makes a watch.
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
        # As the first segment, these names have another meaning.
        base += "/namespaces/"
    segments = [resource]
    if subresource:
        segments += ["" if point.verb in ("list", "deletecollection") else OBJECT_NAME, subresource]
    elif not resource or not (is_collection or point.verb == "create"):
        segments.append(point.namespace if is_namespace else OBJECT_NAME)
    if is_namespace and subresource:
        segments[1] = point.namespace
    query = "?watch=true" if point.verb == "watch" and "/watch" not in base else ""
    path = "/".join((base, *map(_quote, segments)))
    return METHOD_OF_VERB.get(point.verb, "OPTIONS"), path + query


def _quote(text: str) -> str:
    from urllib.parse import quote  # 1.5 ms that hardly any request needs

    return quote(text, safe="/:@!$&'()*+,;=~")


def _option(option: str, value: str) -> tuple[str, ...]:
    return (f"{option}={value}",) if value.startswith("-") else (option, value)
