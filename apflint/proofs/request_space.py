"""The set of possible requests, reduced to the attributes that FlowSchemas test.

A request is impossible if a namespace or API group contains a slash, or a resource contains two slashes. A request is
also impossible if the server cannot derive its verb from an HTTP method (`apflint.evaluate.requestinfo`), or if a
non-resource request has a resource path. Requests that API Priority and Fairness does not classify are treated as
impossible, too.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

from apflint.evaluate.authentication import (
    ANONYMOUS,
    AUTHENTICATED,
    NODE_PREFIX,
    NODES,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    parse_service_account,
)
from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX, RequestDigest, UserInfo, rs_join
from apflint.evaluate.requestinfo import LONG_RUNNING_PATH, LONG_RUNNING_SUBRESOURCES, RequestInfo
from apflint.evaluate.resources import find_resources
from apflint.evaluate.rule_index import matched_values_of_path
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


World = Literal["authenticated", "any"]
"""An assumption about users. `authenticated`: users have the groups that authentication gives them. `any`: users may have any
groups. See `apflint.proofs`."""

VERBS = ("list", "get", "create", "update", "watch", "patch", "delete", "deletecollection", "")
"""Verbs of classified resource requests, the most ordinary verb first. "" is the verb of OPTIONS requests."""
LIST_VERBS = ("list", "deletecollection")
"""Verbs of requests for all objects of a resource."""
HTTP_VERBS = ("get", "post", "put", "delete", "patch", "head", "options")
"""Common verbs of non-resource requests: HTTP methods in lower case. Other verbs are possible, because a method can be any token."""
SERVICE_ACCOUNTS_OF = f"{SERVICE_ACCOUNTS}:"
"""Prefix of the group of the service accounts of a namespace."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+", re.ASCII)


class Point(NamedTuple):
    """The attributes of a request that FlowSchemas test. Attributes that do not apply are empty."""

    user: str
    groups: tuple[str, ...]
    is_resource: bool
    verb: str
    api_group: str = ""
    resource: str = ""
    """Resource, followed by its subresource if there is one, such as `pods/log`."""
    namespace: str = ""
    path: str = ""

    @property
    def matched_values(self) -> tuple[str, ...]:
        """The values that the rules of FlowSchemas are compared with.

        The value is (verb, API group, resource, namespace) for a resource request, and (verb, first
        segment of the path, path) for a non-resource request.
        """
        if self.is_resource:
            return self.verb, self.api_group, self.resource, self.namespace
        return matched_values_of_path(self.verb, self.path)


def make_digest(point: Point) -> RequestDigest:
    """Return the request in the form that the classifier reads, without object name.

    A resource request also has no path, because the classifier does not read the path.
    """
    user = UserInfo(point.user, point.groups)
    if not point.is_resource:
        return RequestDigest(RequestInfo(False, point.verb, "", "", "", "", "", "", "", point.path), user)
    resource, _, subresource = point.resource.partition("/")
    return RequestDigest(
        RequestInfo(True, point.verb, "", point.api_group, "", point.namespace, resource, subresource, "", ""), user
    )


def make_point(digest: RequestDigest) -> Point:
    """Return the attributes of a request that determine which FlowSchemas match the request."""
    info, user = digest
    if not info.is_resource_request:
        return Point(user.name, user.groups, False, info.verb, path=info.path)
    resource = rs_join(info.resource, info.subresource)
    return Point(user.name, user.groups, True, info.verb, info.api_group, resource, info.namespace)


def is_possible(point: Point, world: World, *, watches: bool = True) -> bool:
    """Return True if the request can exist in this world, and if the server classifies the request.

    `watches` is the value of `Configuration.classifies_watches`: whether the server classifies watch
    requests.
    """
    return is_possible_requester(point, world) and is_possible_operation(point, watches=watches)


def is_possible_requester(point: Point, world: World) -> bool:
    """Return whether the user of the request can have the groups of the request.

    In the world `authenticated`, these are the groups that authentication can give to the user. In the
    world `any`, a user can have any groups.
    """
    return world != "authenticated" or has_authentic_groups(point.user, point.groups)


def is_possible_operation(point: Point, *, watches: bool = True) -> bool:
    """Return whether some user can send the request, and API Priority and Fairness classifies it. See `is_possible`."""
    if point.verb == "watch" and not watches:
        return False
    if not point.is_resource:
        return (
            point.path.startswith("/")
            and not is_resource_path(point.path)
            and is_valid_text(point.path)
            and is_valid_http_verb(point.verb)
            and (point.verb == "watch" or not is_long_running_path(point.path))
        )
    traits = resource_traits(point.resource)
    return (
        point.verb in VERBS
        and is_valid_segment(point.api_group)
        and is_valid_resource(point.resource)
        and is_valid_segment(point.namespace)
        and (point.verb == "watch" or not traits.watch_only)
        and not (traits.no_namespace and point.namespace)
        and not (traits.no_collection and point.verb in LIST_VERBS)
    )


# Users and their groups.


def is_authentic_user(user: str) -> bool:
    """Return whether authentication can give this user name: it is not empty, and not a malformed service account name."""
    return user != "" and (not user.startswith(SERVICE_ACCOUNT_PREFIX) or parse_service_account(user) is not None)


def is_ordinary_user(user: str) -> bool:
    """Return False for the anonymous user and for service accounts, and True for all other users.

    The groups of the anonymous user and of service accounts are fixed. Other users can also be in any
    other groups.
    """
    return user != ANONYMOUS and parse_service_account(user) is None


def is_free_group(group: str) -> bool:
    """Return whether a user can have this group in addition to the groups that authentication adds."""
    return group not in (AUTHENTICATED, UNAUTHENTICATED, SERVICE_ACCOUNTS) and not group.startswith(SERVICE_ACCOUNTS_OF)


def has_authentic_groups(user: str, groups: Collection[str]) -> bool:
    """Return whether kube-apiserver's authentication can give a user exactly these groups.

    A node (`system:node:...`) may lack the group `system:nodes`, because this group comes from the
    node's certificate. In a test, kube-apiserver 1.36.2 classified impersonated nodes without this
    group.
    """
    forced = forced_groups(user)
    for group in forced:
        if group not in groups:
            return False
    others = [group for group in groups if group not in forced]
    return is_authentic_user(user) and all(map(is_free_group, others)) if is_ordinary_user(user) else not others


def forced_groups(user: str) -> tuple[str, ...]:
    """Return the groups that authentication gives to every request of a user (the world `authenticated`).

    Example: a service account is in `system:serviceaccounts`, in `system:serviceaccounts:NAMESPACE`,
    and in `system:authenticated`.
    """
    account = parse_service_account(user)
    if user == ANONYMOUS:
        return (UNAUTHENTICATED,)
    return (AUTHENTICATED,) if account is None else _service_account_groups(account[0])


@lru_cache(maxsize=1024)  # thousands of service accounts share few namespaces
def _service_account_groups(namespace: str) -> tuple[str, ...]:
    return (SERVICE_ACCOUNTS, SERVICE_ACCOUNTS_OF + namespace, AUTHENTICATED)


def usual_groups(user: str) -> tuple[str, ...]:
    """Return the groups that a user usually has.

    The groups of a node include `system:nodes`, which its certificate contains.
    """
    return (*((NODES,) if user.startswith(NODE_PREFIX) else ()), *forced_groups(user))


def with_usual_groups(point: Point) -> Point:
    """Return the request with the usual groups of its user if the user is a system user, else the unchanged request."""
    return point._replace(groups=usual_groups(point.user)) if point.user.startswith(SYSTEM_PREFIX) else point


# Resources and paths.


class ResourceTraits(NamedTuple):
    """Restrictions on the verb and the namespace of requests for a resource."""

    watch_only: bool = False
    """Whether only watches of the resource are classified, because other requests are long-running."""
    no_namespace: bool = False
    """Whether requests never have a namespace.

    An example is `status`: in `.../namespaces/x/status`, the server reads `status` as a subresource.
    """
    no_collection: bool = False
    """Whether the resource cannot be listed. True for the empty name, because the server ignores slashes at the end of a path:
    `/api/v1/namespaces/x/` is not a list."""


@lru_cache(maxsize=1024)  # most rules name the same resources
def resource_traits(resource: str) -> ResourceTraits:
    """Return the restrictions for a resource such as `pods`, or for a subresource such as `pods/log`."""
    name, _, subresource = resource.partition("/")
    return ResourceTraits(subresource in LONG_RUNNING_SUBRESOURCES, name in ("status", "finalize"), resource == "")


def cluster_scoped_groups(resource: str) -> frozenset[str]:
    """Return the API groups in which Kubernetes serves a resource such as `nodes` or `nodes/status` without namespaces.

    The core group is omitted for the resource `namespaces`, because requests for a Namespace object have a namespace: the server
    reads the object's name in the path as the namespace of the request.
    """
    name = resource.partition("/")[0]
    return frozenset(
        known.group
        for known in find_resources(name)
        if known.name == name and not known.namespaced and (name, known.group) != ("namespaces", "")
    )


def is_in_scope(point: Point) -> bool:
    """Return False for a request for a cluster-scoped resource in a namespace, such as `nodes` in `default`.

    The server classifies this request and answers 404, so no client sends it.
    """
    return not point.namespace or point.api_group not in cluster_scoped_groups(point.resource)


def is_long_running_path(path: str) -> bool:
    """Return whether requests with this path are classified only with the verb `watch`."""
    return path.startswith(LONG_RUNNING_PATH)


def is_resource_path(path: str) -> bool:
    """Return whether a server parses a decoded path as the path of a resource (`parse_request_info`)."""
    parts = path.strip("/").split("/")
    return len(parts) >= 4 if parts[0] == "apis" else parts[0] == "api" and len(parts) >= 3


def is_valid_text(value: str) -> bool:
    """Return whether a URL can contain the string. Lone surrogates cannot be encoded."""
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


def is_valid_segment(value: str) -> bool:
    """Return whether the string can be an API group or a namespace in a path."""
    return "/" not in value and is_valid_text(value)


def is_valid_resource(value: str) -> bool:
    """Return whether the string can be `resource` or `resource/subresource`."""
    return value.count("/") <= 1 and not value.endswith("/") and is_valid_text(value)


def is_valid_http_verb(value: str) -> bool:
    """Return whether the string can be the verb of a non-resource request: a method (an RFC 9110 token) in lower case."""
    return _TOKEN.fullmatch(value) is not None and value != "proxy"


# Sets of requesters, to which a search for a request can be restricted.
#
# In the world `authenticated` (see `apflint.proofs`), most users can be in any group. So an unrestricted search may
# find an unrealistic requester, such as `system:kube-scheduler` in the group of a team. The search may also find a
# request that no client sends, such as a request for `nodes` in a namespace. To find only realistic requests, search
# once for ORDINARY and once for SYSTEM.

SYSTEM_PREFIX = "system:"
NODE = f"{NODE_PREFIX}node-1"
SYSTEM_USERS = (
    NODE,
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:kube-proxy",
    "system:serviceaccount:kube-system:default",
    ANONYMOUS,
)
"""System users that are in every vocabulary of the world `authenticated`, even if no FlowSchema names them."""


class Requesters(NamedTuple):
    """A set of requesters: users with their groups.

    In a search for requests by requesters of the sets `ordinary` and `system`, requests that no client sends are
    excluded: requests for cluster-scoped resources in a namespace (`is_in_scope`). The set `anybody` does not exclude
    them.
    """

    kind: Literal["ordinary", "system", "anybody"]
    user: str | None = None
    """The only user of the set `system`, or None for all system users. Not used for other sets."""
    without: tuple[str, ...] = ()
    """Prefixes of the names of users who are not in the set `system`. Not used for other sets."""

    def send(self, point: Point) -> bool:
        """Return whether a requester of this set sends the request."""
        user, groups = point.user, point.groups
        if self.kind == "anybody":
            return True
        if not is_in_scope(point):
            return False
        if self.kind == "ordinary":
            return not user.startswith(SYSTEM_PREFIX) and NODES not in groups
        return (
            user.startswith(SYSTEM_PREFIX)
            and self.user in (None, user)
            and not user.startswith(self.without)
            and frozenset(groups) == frozenset(usual_groups(user))
        )


ORDINARY = Requesters("ordinary")
"""Users whose name does not begin with `system:`. These users may be in any group except `system:nodes`."""
SYSTEM = Requesters("system")
"""Users whose name begins with `system:`, including service accounts, in exactly their usual groups."""
ANYBODY = Requesters("anybody")
"""All requesters of the world."""
REALISTIC = (ORDINARY, SYSTEM)
"""The requesters of requests that occur in clusters. In these sets, system users are in no additional groups."""
PREFERRED = (ORDINARY, SYSTEM, ANYBODY)
"""Sets that together contain all requesters. An example request is preferably by a requester of an earlier set."""


def rank(among: Sequence[Requesters], point: Point) -> int:
    """Return the index of the first set in `among` whose requesters send the request, else `len(among)`."""
    return next((at for at, requesters in enumerate(among) if requesters.send(point)), len(among))
