"""APF512: subjects that probably match no client.

Names of Kubernetes: staging/src/k8s.io/apiserver/pkg/authentication/user/user.go. Bootstrap tokens add groups that start
with `system:bootstrappers:` (`BootstrapGroupPattern` in staging/src/k8s.io/cluster-bootstrap/token/api/types.go).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX
from apflint.finding import Problem
from apflint.fix import Fix, Operation, Remove, Rename, Set
from apflint.record import NamedTuple
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.effective import Effective
    from apflint.location import Place

_ACCOUNTS, _NODE, _NODES = "system:serviceaccounts:", "system:node:", "system:nodes:"
_GROUPS = (
    "system:authenticated",
    "system:unauthenticated",
    "system:masters",
    "system:nodes",
    "system:serviceaccounts",
    "system:bootstrappers",
    "system:monitoring",
)
_USERS = ("system:kube-controller-manager", "system:kube-scheduler", "system:apiserver", "system:anonymous")
_MISSPELLED_USERS = (*_USERS, "system:kube-proxy")
_OTHER_USERS = ("system:kube-apiserver", "system:cloud-controller-manager", "system:aggregator", "system:admin")
"""Users in certificates of distributions whose names resemble those above."""
_SHORT_WORD = 8
"""Length below which two different letters make another word instead of a misspelling."""


class _Intended(NamedTuple):
    """The subject that was probably intended."""

    kind: str
    name: str


def unlisted_subject(effective: Effective) -> Iterator[Problem]:
    """APF512."""
    for place, subject in effective.own.subjects():
        if subject.kind == "User" and subject.user is not None:
            member, name, intended = "user", subject.user, _find_intended_for_user(subject.user)
        elif subject.kind == "Group" and subject.group is not None:
            member, name, intended = "group", subject.group, _find_intended_for_group(subject.group)
        elif subject.kind == "ServiceAccount" and subject.service_account is not None:
            namespace, name = subject.service_account
            user = f"system:{name}"
            is_user = namespace == "kube-system" and user in _USERS
            member, intended = "serviceAccount", _Intended("User", user) if is_user else None
        else:
            continue
        if intended is not None:
            yield _problem(place, member, name, intended)


def _problem(place: Place, member: str, name: str, intended: _Intended) -> Problem:
    kind, right = intended.kind.lower(), quote(intended.name)
    note = "This subject probably matches no client."
    if member == "serviceAccount":
        message = f"{quote(name)} is usually not a service account, but the user {right}"
        note, advice = "It authenticates with a certificate.", f"use kind: User with user: {{name: {intended.name}}}"
    elif member == kind:
        message, advice = f"Kubernetes has no {kind} {quote(name)}", f"did you mean {right}?"
    else:
        message, advice = f"{quote(name)} is a {kind}, not a {member}", f"use kind: {intended.kind}"
    operations: list[Operation] = []
    if member != kind:
        operations += (Set((*place.path, "kind"), intended.kind), Rename((*place.path, member), kind))
    if name != intended.name:
        operations.append(Set((*place.path, member, "name"), intended.name))
    if member == "serviceAccount":
        operations.append(Remove((*place.path, member, "namespace")))
    title = f"change {quote(name)} to {right}" if member == kind else f"make this subject the {kind} {right}"
    fix = Fix(title, safe=False, operations=tuple(operations))
    return Problem(place / member / "name", message, fix=fix, notes=(note,), help=advice)


def _find_intended_for_group(group: str) -> _Intended | None:
    if group in _USERS:
        return _Intended("User", group)
    if group in _GROUPS or group.startswith(_ACCOUNTS):
        return None
    if group.startswith(SERVICE_ACCOUNT_PREFIX):
        namespace, _, name = group.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
        if name:
            return _Intended("User", group)
        return _Intended("Group", _ACCOUNTS + namespace) if namespace else None
    similar = _find_misspelled(group, _GROUPS)
    return None if similar is None else _Intended("Group", similar)


def _find_intended_for_user(user: str) -> _Intended | None:
    if user in _GROUPS:
        return _Intended("Group", user)
    if user.startswith(_ACCOUNTS):
        namespace, _, name = user.removeprefix(_ACCOUNTS).partition(":")
        if name:
            return _Intended("User", f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
        return _Intended("Group", user) if namespace else None
    if user.startswith(_NODES) and user != _NODES:
        return _Intended("User", _NODE + user.removeprefix(_NODES))
    similar = None if user in _OTHER_USERS else _find_misspelled(user, _MISSPELLED_USERS)
    return None if similar is None else _Intended("User", similar)


def _find_misspelled(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` is a misspelling of, or None if it is a known name itself or unlike all of them.

    A misspelling has another case, or one wrong, missing, additional or swapped letter; two in a long name.
    """
    words = tuple(known)
    for word in () if name in words else words:
        maximum = 1 if len(word.partition(":")[2]) < _SHORT_WORD else 2
        if abs(len(word) - len(name)) <= 2 and _measure_distance(name.lower(), word) <= maximum:
            return word
    return None


def _measure_distance(word: str, other: str) -> int:
    """Return how many letters to insert, remove, replace or swap with their neighbor (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
