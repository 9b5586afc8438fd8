"""Effects of authentication: the groups that authentication adds to a user, and the user names of service accounts."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.wording import join_words

if TYPE_CHECKING:
    from apflint.model import Subject

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
SERVICE_ACCOUNTS = "system:serviceaccounts"
NODES = "system:nodes"
NODE_PREFIX = "system:node:"
_API_SERVER = "system:apiserver"
"""User of the requests that kube-apiserver sends to itself."""
MASTERS = "system:masters"
EXACT_GROUPS = "exactGroups"
"""Key of a JSON request. If the value is true, apflint does not add the groups that authentication would add.

Proofs in the world `any` (see `apflint.proofs`) print requests with this key.
"""

# The user name of a service account consists of the prefix, the namespace (a DNS label), a colon, and the name (a DNS
# subdomain). Source: `SplitUsername` in staging/src/k8s.io/apiserver/pkg/authentication/serviceaccount/util.go.
_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_SERVICE_ACCOUNT = re.compile(
    rf"{SERVICE_ACCOUNT_PREFIX}(?=.{{1,63}}:)({_LABEL}):(?=.{{1,253}}\Z)({_LABEL}(?:\.{_LABEL})*)", re.ASCII
)


@lru_cache(maxsize=1024)  # proofs parse the same user names repeatedly
def parse_service_account(user: str) -> tuple[str, str] | None:
    """Return namespace and name of the service account with the user name `user`, or None if the user name is not valid."""
    match = _SERVICE_ACCOUNT.fullmatch(user)
    return None if match is None else (match[1], match[2])


def complete_groups(user: str, groups: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (groups of `user` after authentication, sentences that explain added or missing groups).

    The user `system:anonymous` gets `system:unauthenticated`. All other users get `system:authenticated`, unless
    `groups` contains `system:unauthenticated`. Service accounts get two more groups. If `groups` is empty, a node gets
    `system:nodes`, which the certificate of every kubelet contains. If `groups` is empty, the user of the API server
    itself gets `system:masters`. Sources:
    `AuthorizeClientBearerToken` in staging/src/k8s.io/apiserver/pkg/server/config.go, and
    staging/src/k8s.io/apiserver/pkg/authentication/{group,request/anonymous,serviceaccount}; observed on 1.36.2.
    """
    expected = []
    notes = []
    account = parse_service_account(user)
    if account is not None:
        expected = [SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{account[0]}"]
    elif user.startswith(SERVICE_ACCOUNT_PREFIX):
        notes = [f'"{user}" is not a valid name of a service account, so it gets no groups of service accounts.']
    elif user.startswith(NODE_PREFIX) and not groups:
        expected = [NODES]
    elif user == _API_SERVER and not groups:
        expected = [MASTERS]
    elif ":" not in user and parse_service_account(name := SERVICE_ACCOUNT_PREFIX + user.replace("/", ":")) is not None:
        # Findings and policy tests write service accounts as NAMESPACE/NAME, so users may copy this form.
        notes = [f'The user name of a service account is "{name}".']
    if account is not None and groups and not {*expected} <= {*groups}:
        notes = ["(With kubectl --as and --as-group, the server does not add the two groups of a service account.)"]
    if user == ANONYMOUS:
        expected.append(UNAUTHENTICATED)
    elif UNAUTHENTICATED not in groups:
        expected.append(AUTHENTICATED)
    added = [name for name in expected if name not in groups]
    if added:
        names = join_words((f'"{name}"' for name in added), "and")
        notes.insert(0, f"Authentication adds the group{'s' if len(added) > 1 else ''} {names}.")
    return (*groups, *added), tuple(notes)


def has_fixed_groups(user: str) -> bool:
    """Return whether the user name determines the groups.

    True for service accounts, nodes, the API server and the anonymous user.
    """
    return parse_service_account(user) is not None or user.startswith(NODE_PREFIX) or user in (_API_SERVER, ANONYMOUS)


def single_user(subject: Subject) -> str | None:
    """Return the user name if a subject matches exactly one user name, or None if the subject may match several users."""
    account = subject.service_account
    if subject.kind == "ServiceAccount" and account is not None and account.name != ALL:
        return f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:{account.name}"
    return subject.user if subject.kind == "User" and subject.user != ALL else None
