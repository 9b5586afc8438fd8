"""What requests there are: who can ask, in which groups, and which attributes go together.

What no request can have is left out: a slash in a namespace, an API group, or twice in a resource; other verbs than the
server makes of HTTP methods (`apflint.evaluate.requestinfo`); paths that are those of resources; and whatever API Priority
and Fairness never sees.
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
from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.requestinfo import LONG_RUNNING_PATH, LONG_RUNNING_SUBRESOURCES
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection


VERBS = ("list", "get", "create", "update", "watch", "patch", "delete", "deletecollection", "")
"""All verbs of resource requests that are classified, the most ordinary first; "" is OPTIONS and the like. `proxy` never is."""
HTTP_VERBS = ("get", "post", "put", "delete", "patch", "head", "options")
"""Verbs of non-resource requests: methods in lower case. Any other token is one, too."""
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+", re.ASCII)
_ACCOUNTS_OF = f"{SERVICE_ACCOUNTS}:"

UserKind = Literal["anonymous", "account", "ordinary"]


def user_kind(user: str) -> UserKind:
    """What authentication makes of a user name."""
    if user == ANONYMOUS:
        return "anonymous"
    return "ordinary" if parse_service_account(user) is None else "account"


def authentic_user(user: str) -> bool:
    """Whether authentication gives such a user name: not an empty one, and no malformed one of a service account."""
    return user != "" and (not user.startswith(SERVICE_ACCOUNT_PREFIX) or parse_service_account(user) is not None)


def authentic(user: str, groups: Collection[str]) -> bool:
    """Whether a request in the world `authenticated` may have this user and these groups.

    A node (`system:node:...`) may lack `system:nodes`: the group comes from its certificate, authentication does not add
    it, and a kube-apiserver 1.36.2 was seen to classify impersonated nodes without it.
    """
    have = frozenset(groups)
    account = parse_service_account(user)
    if user == ANONYMOUS:
        return have == {UNAUTHENTICATED}
    if account is not None:
        return have == {SERVICE_ACCOUNTS, _ACCOUNTS_OF + account[0], AUTHENTICATED}
    return (
        authentic_user(user)
        and AUTHENTICATED in have
        and UNAUTHENTICATED not in have
        and not any(group == SERVICE_ACCOUNTS or group.startswith(_ACCOUNTS_OF) for group in have)
    )


def forced_groups(user: str) -> tuple[str, ...]:
    """The groups that a user has at least, in the world `authenticated`."""
    account = parse_service_account(user)
    if user == ANONYMOUS:
        return (UNAUTHENTICATED,)
    if account is not None:
        return (SERVICE_ACCOUNTS, _ACCOUNTS_OF + account[0], AUTHENTICATED)
    return (AUTHENTICATED,)


def usual_groups(user: str) -> tuple[str, ...]:
    """The groups that a user has usually: a node's certificate names `system:nodes`."""
    return (*((NODES,) if user.startswith(NODE_PREFIX) else ()), *forced_groups(user))


def free_group(group: str) -> bool:
    """Whether ordinary users may or may not be in the group, in the world `authenticated`."""
    return group not in (AUTHENTICATED, UNAUTHENTICATED, SERVICE_ACCOUNTS) and not group.startswith(_ACCOUNTS_OF)


class Traits(NamedTuple):
    """What a resource or a path does not go with."""

    watch_only: bool
    """Long-running, so it is classified only with the verb `watch`."""
    no_namespace: bool = False
    """`.../namespaces/x/status` is about the namespace itself, so a resource `status` is in none."""
    no_collection: bool = False
    """A resource without a name cannot be listed: slashes at the end of a path are not there for the server."""


def resource_traits(resource: str) -> Traits:
    """Traits of a resource, or of `resource/subresource`."""
    name, _, subresource = resource.partition("/")
    return Traits(subresource in LONG_RUNNING_SUBRESOURCES, name in ("status", "finalize"), resource == "")


def verb_traits(verb: str) -> Traits:
    """Which of the traits of a resource a verb has to do with."""
    return Traits(verb == "watch", no_collection=verb in ("list", "deletecollection"))


def path_traits(path: str) -> Traits:
    """Traits of the path of a non-resource request."""
    return Traits(path.startswith(LONG_RUNNING_PATH))


def is_resource_path(path: str) -> bool:
    """Whether a server takes the path (decoded) for that of a resource (`request_info`)."""
    parts = path.strip("/").split("/")
    return len(parts) >= 4 if parts[0] == "apis" else parts[0] == "api" and len(parts) >= 3


def legal_text(value: str) -> bool:
    """Whether a URL can carry it: half of a surrogate pair is no text."""
    return value.isascii() or not any("\ud800" <= char <= "\udfff" for char in value)


def legal_segment(value: str) -> bool:
    """Whether it can be an API group or a namespace in a path."""
    return "/" not in value and legal_text(value)


def legal_resource(value: str) -> bool:
    """Whether it can be a resource, or `resource/subresource`."""
    return value.count("/") <= 1 and not value.endswith("/") and legal_text(value)


def legal_http_verb(value: str) -> bool:
    """Whether it can be the verb of a non-resource request: a method in lower case (RFC 9110 on tokens). `proxy` is long-running."""
    return _TOKEN.fullmatch(value) is not None and value != "proxy"
