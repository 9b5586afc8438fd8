"""The groups that a user has without anybody naming them."""

from __future__ import annotations

import re

from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX

ANONYMOUS = "system:anonymous"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"
SERVICE_ACCOUNTS = "system:serviceaccounts"
NODES = "system:nodes"
NODE_PREFIX = "system:node:"
EXACT_GROUPS = "exactGroups"
"""Key of a request record whose groups are complete although authentication would add others, as in a proof about any user."""

# `SplitUsername` in staging/src/k8s.io/apiserver/pkg/authentication/serviceaccount/util.go: the namespace is a DNS
# label, the name a DNS subdomain, and nothing follows.
_LABEL = "[a-z0-9](?:[a-z0-9-]*[a-z0-9])?"
_SERVICE_ACCOUNT = re.compile(
    rf"{SERVICE_ACCOUNT_PREFIX}(?=.{{1,63}}:)({_LABEL}):(?=.{{1,253}}\Z)({_LABEL}(?:\.{_LABEL})*)", re.ASCII
)


def service_account(user: str) -> tuple[str, str] | None:
    """Namespace and name of the service account with this user name; None if it is none (or a malformed one)."""
    match = _SERVICE_ACCOUNT.fullmatch(user)
    return None if match is None else (match[1], match[2])


def effective_groups(user: str, groups: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The groups as a server would have them, given those that were named; and what was added, in sentences.

    Everybody is in `system:authenticated`, but `system:anonymous` (and whoever was put there) is in
    `system:unauthenticated`. A service account's token gives it two groups. A node without groups gets `system:nodes`,
    which a kubelet's certificate always names. Sources: staging/src/k8s.io/apiserver/pkg/authentication/
    {group,request/anonymous,serviceaccount} and observation of 1.36.2. Groups that are named already are not repeated.
    """
    added: list[str] = []
    notes: list[str] = []

    def add(*names: str) -> None:
        added.extend(name for name in names if name not in groups)

    if user == ANONYMOUS:
        add(UNAUTHENTICATED)
        return (*groups, *added), tuple(map(_added_in_words, [added] if added else []))
    account = service_account(user)
    if account is not None:
        add(SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{account[0]}")
        if groups and added:
            notes.append("(With kubectl --as and --as-group a service account does not get its own two.)")
    elif user.startswith(SERVICE_ACCOUNT_PREFIX):
        notes.append(f'"{user}" is no valid name of a service account, so it gets no groups of service accounts.')
    elif user.startswith(NODE_PREFIX) and not groups:
        add(NODES)
    if UNAUTHENTICATED not in groups:
        add(AUTHENTICATED)
    if added:
        notes.insert(0, _added_in_words(added))
    return (*groups, *added), tuple(notes)


def _added_in_words(added: list[str]) -> str:
    *others, last = (f'"{name}"' for name in added)
    return (
        f"Authentication adds the groups {', '.join(others)} and {last}."
        if others
        else f"Authentication adds the group {last}."
    )
