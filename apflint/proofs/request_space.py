"""Which requests exist, as FlowSchemas see them: users with their groups, verbs, resources, namespaces and paths.

Requests that cannot exist are left out: a slash in a namespace or API group, or two in a resource; other verbs than the server
derives from HTTP methods (`apflint.evaluate.requestinfo`); non-resource requests with resource paths; and requests that API
Priority and Fairness does not classify.
"""

from __future__ import annotations

import re
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
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


World = Literal["authenticated", "any"]
"""Which requests exist: those with groups that authentication gives, or all users with all sets of groups."""

VERBS = ("list", "get", "create", "update", "watch", "patch", "delete", "deletecollection", "")
"""Verbs of the resource requests that are classified, the most ordinary first; "" is that of OPTIONS. `proxy` is long-running."""
LIST_VERBS = ("list", "deletecollection")
"""Verbs of requests for all objects of a resource."""
HTTP_VERBS = ("get", "post", "put", "delete", "patch", "head", "options")
"""Verbs of non-resource requests: methods in lower case. Any other token is one, too."""
SERVICE_ACCOUNTS_OF = f"{SERVICE_ACCOUNTS}:"
"""Prefix of the group of the service accounts of a namespace."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+", re.ASCII)


class Point(NamedTuple):
    """A request: everything that FlowSchemas look at. Attributes that do not apply are empty."""

    user: str
    groups: tuple[str, ...]
    is_resource: bool
    verb: str
    api_group: str = ""
    resource: str = ""
    """With its subresource: `pods/log`."""
    namespace: str = ""
    path: str = ""


def make_digest(point: Point) -> RequestDigest:
    """Return the request in the form of the classifier, without an object name and without the path of a resource."""
    user = UserInfo(point.user, point.groups)
    if not point.is_resource:
        return RequestDigest(RequestInfo(False, point.verb, "", "", "", "", "", "", "", point.path), user)
    resource, _, subresource = point.resource.partition("/")
    return RequestDigest(
        RequestInfo(True, point.verb, "", point.api_group, "", point.namespace, resource, subresource, "", ""), user
    )


def make_point(digest: RequestDigest) -> Point:
    """Return everything that FlowSchemas look at in the request."""
    info, user = digest
    if not info.is_resource_request:
        return Point(user.name, user.groups, False, info.verb, path=info.path)
    resource = rs_join(info.resource, info.subresource)
    return Point(user.name, user.groups, True, info.verb, info.api_group, resource, info.namespace)


def is_possible(point: Point, world: World) -> bool:
    """Return whether the request exists in this world, and API Priority and Fairness classifies it."""
    if world == "authenticated" and not has_authentic_groups(point.user, point.groups):
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
    """Return whether authentication can give this user name: not an empty one, nor a malformed one of a service account."""
    return user != "" and (not user.startswith(SERVICE_ACCOUNT_PREFIX) or parse_service_account(user) is not None)


def is_ordinary_user(user: str) -> bool:
    """Return whether the user can be in groups that authentication does not dictate: not anonymous, no service account."""
    return user != ANONYMOUS and parse_service_account(user) is None


def is_free_group(group: str) -> bool:
    """Return whether ordinary users can be in the group or not, in the world `authenticated`."""
    return group not in (AUTHENTICATED, UNAUTHENTICATED, SERVICE_ACCOUNTS) and not group.startswith(SERVICE_ACCOUNTS_OF)


def has_authentic_groups(user: str, groups: Collection[str]) -> bool:
    """Return whether a request in the world `authenticated` can have this user and these groups.

    A node (`system:node:...`) can lack `system:nodes`: the group comes from its certificate, authentication does not add
    it, and a kube-apiserver 1.36.2 classified impersonated nodes without it.
    """
    present, forced = frozenset(groups), frozenset(forced_groups(user))
    if not is_ordinary_user(user):
        return present == forced
    return is_authentic_user(user) and forced <= present and all(map(is_free_group, present - forced))


def forced_groups(user: str) -> tuple[str, ...]:
    """Return the groups that every request of a user has, in the world `authenticated`."""
    account = parse_service_account(user)
    if user == ANONYMOUS:
        return (UNAUTHENTICATED,)
    if account is not None:
        return (SERVICE_ACCOUNTS, SERVICE_ACCOUNTS_OF + account[0], AUTHENTICATED)
    return (AUTHENTICATED,)


def usual_groups(user: str) -> tuple[str, ...]:
    """Return the groups that a user usually has: the certificate of a node names `system:nodes`."""
    return (*((NODES,) if user.startswith(NODE_PREFIX) else ()), *forced_groups(user))


# Resources and paths.


class ResourceTraits(NamedTuple):
    """Restrictions on the other attributes of requests for a resource."""

    watch_only: bool = False
    """Long-running, so that it is classified only with the verb `watch`."""
    no_namespace: bool = False
    """`.../namespaces/x/status` is about the namespace itself, so a resource `status` is in none."""
    no_collection: bool = False
    """A resource without a name cannot be listed: the server ignores slashes at the end of a path."""


def resource_traits(resource: str) -> ResourceTraits:
    """Return the traits of `resource` or `resource/subresource`."""
    name, _, subresource = resource.partition("/")
    return ResourceTraits(subresource in LONG_RUNNING_SUBRESOURCES, name in ("status", "finalize"), resource == "")


def is_long_running_path(path: str) -> bool:
    """Return whether requests with this path are classified only with the verb `watch`."""
    return path.startswith(LONG_RUNNING_PATH)


def is_resource_path(path: str) -> bool:
    """Return whether a server parses a decoded path as that of a resource (`parse_request_info`)."""
    parts = path.strip("/").split("/")
    return len(parts) >= 4 if parts[0] == "apis" else parts[0] == "api" and len(parts) >= 3


def is_valid_text(value: str) -> bool:
    """Return whether a URL can contain the string: half of a surrogate pair cannot be encoded."""
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


# Sets of users to which a question is restricted.
#
# In the world `authenticated` anybody but a service account can be in any group, so a claim about requests may hold only for
# `system:kube-scheduler` in a team's group, which no cluster has. A claim about requests that really occur is the union of
# two answers: one for ORDINARY users and one for SYSTEM users. Ask the solver for each; do not ask for any request and discard it.

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
"""System users that every vocabulary of the world `authenticated` contains, besides those that FlowSchemas name."""


class Requesters(NamedTuple):
    """A set of users, each with the groups that count."""

    kind: Literal["ordinary", "system", "anybody"]
    user: str | None = None
    """The only user of the set; for `system` only."""

    def include(self, user: str, groups: Collection[str]) -> bool:
        """Return whether this user in these groups is in the set."""
        if self.kind == "anybody":
            return True
        if self.kind == "ordinary":
            return not user.startswith(SYSTEM_PREFIX) and NODES not in groups
        return (
            user.startswith(SYSTEM_PREFIX)
            and self.user in (None, user)
            and frozenset(groups) == frozenset(usual_groups(user))
        )


ORDINARY = Requesters("ordinary")
"""Users whose name does not begin with `system:` and who are not in `system:nodes`; otherwise in any groups."""
SYSTEM = Requesters("system")
"""System users (service accounts included) in exactly the groups that authentication gives them."""
ANYBODY = Requesters("anybody")
"""All users of the world."""
REALISTIC = (ORDINARY, SYSTEM)
"""Users as clusters have them: no system user is in an additional group."""
PREFERRED = (ORDINARY, SYSTEM, ANYBODY)
"""All users, starting with those that make the better example."""


def rank(among: Sequence[Requesters], user: str, groups: Collection[str]) -> int:
    """Return the index of the first set that includes the user, or the number of sets if none does."""
    return next((at for at, requesters in enumerate(among) if requesters.include(user, groups)), len(among))
