"""APF512: subjects that probably match no client.

Kubernetes' own names: staging/src/k8s.io/apiserver/pkg/authentication/user/user.go; bootstrap tokens add groups that begin
with `system:bootstrappers:` (`BootstrapGroupPattern` in staging/src/k8s.io/cluster-bootstrap/token/api/types.go).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.finding import Problem
from apflint.fix import Fix, Operation, Remove, Rename, Set
from apflint.location import Place
from apflint.record import NamedTuple
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from apflint.effective import Effective
    from apflint.location import Path
    from apflint.model import Subject

_ACCOUNT, _ACCOUNTS, _NODE, _NODES = (
    "system:serviceaccount:",
    "system:serviceaccounts:",
    "system:node:",
    "system:nodes:",
)
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
_MISSPELT_USERS = (*_USERS, "system:kube-proxy")
_OTHER_USERS = ("system:kube-apiserver", "system:cloud-controller-manager", "system:aggregator", "system:admin")
"""Users that distributions have in their certificates. Only names near to those above matter: these never do."""
_SHORT_WORD = 8
"""In words shorter than this, a second wrong letter makes another word rather than a misspelt one."""


class _Correction(NamedTuple):
    message: str
    kind: str
    """The kind of subject that was probably intended."""
    name: str
    """Its name."""


def unlisted_subject(effective: Effective) -> Iterator[Problem]:
    """APF512."""
    for schema in effective.own_flow_schemas:
        for i, rule in enumerate(schema.spec.rules):
            for j, subject in enumerate(rule.subjects):
                path: Path = ("spec", "rules", i, "subjects", j)
                found, member = _correction(subject)
                if found is not None:
                    place = Place(schema.document, (*path, member, "name"))
                    yield Problem(place, found.message, fix=_fix(path, subject, member, found))


def _correction(subject: Subject) -> tuple[_Correction | None, str]:
    """Return what was probably intended, or None if nothing is wrong; and the member that has the name."""
    if subject.kind == "ServiceAccount" and subject.service_account is not None:
        return _account_correction(*subject.service_account), "serviceAccount"
    if subject.kind == "Group" and subject.group is not None:
        return _group_correction(subject.group), "group"
    if subject.kind == "User" and subject.user is not None:
        return _user_correction(subject.user), "user"
    return None, ""


def _fix(path: Path, subject: Subject, member: str, found: _Correction) -> Fix:
    name_path = (*path, member, "name")
    if found.kind == subject.kind:
        title = f"change {quote(subject.user if member == 'user' else subject.group)} to {quote(found.name)}"
        return Fix(title, safe=False, operations=(Set(name_path, found.name),))
    operations: list[Operation] = [
        Set((*path, "kind"), found.kind),
        Rename((*path, member), found.kind.lower()),
    ]
    if found.name != (subject.user if member == "user" else subject.group):
        operations.append(Set(name_path, found.name))
    if member == "serviceAccount":
        operations.append(Remove((*path, member, "namespace")))
    title = f"make this subject the {found.kind.lower()} {quote(found.name)}"
    return Fix(title, safe=False, operations=tuple(operations))


def _account_correction(namespace: str, name: str) -> _Correction | None:
    user = f"system:{name}"
    if namespace != "kube-system" or user not in _USERS:
        return None
    return _Correction(
        f"{quote(name)} is usually not a service account: it authenticates as the user {quote(user)} with a certificate."
        f" Write `kind: User` with `user: {{name: {user}}}`",
        "User",
        user,
    )


def _group_correction(group: str) -> _Correction | None:
    if group in _USERS:
        return _Correction(
            f"{quote(group)} is a user, not a group, so this subject probably matches no client. Write `kind: User`",
            "User",
            group,
        )
    if group in _GROUPS or group.startswith(_ACCOUNTS):
        return None
    if group.startswith(_ACCOUNT):
        namespace, _, name = group.removeprefix(_ACCOUNT).partition(":")
        if name:
            message = f"{quote(group)} is a user, not a group, so this subject probably matches no client"
            return _Correction(f"{message}. Write `kind: User`", "User", group)
        return _misspelt("group", group, "Group", _ACCOUNTS + namespace) if namespace else None
    near = _near(group, _GROUPS)
    return None if near is None else _misspelt("group", group, "Group", near)


def _user_correction(user: str) -> _Correction | None:
    if user in _GROUPS:
        return _Correction(
            f"{quote(user)} is a group, not a user, so this subject probably matches no client. Write `kind: Group`",
            "Group",
            user,
        )
    if user.startswith(_ACCOUNTS):
        namespace, _, name = user.removeprefix(_ACCOUNTS).partition(":")
        if name:
            return _misspelt("user", user, "User", f"{_ACCOUNT}{namespace}:{name}")
        message = f"{quote(user)} is a group, not a user, so this subject probably matches no client"
        return _Correction(f"{message}. Write `kind: Group`", "Group", user) if namespace else None
    if user.startswith(_NODES) and user != _NODES:
        return _misspelt("user", user, "User", _NODE + user.removeprefix(_NODES))
    if user in _OTHER_USERS:
        return None
    near = _near(user, _MISSPELT_USERS)
    return None if near is None else _misspelt("user", user, "User", near)


def _misspelt(what: str, name: str, kind: str, intended: str) -> _Correction:
    return _Correction(
        f"Kubernetes has no {what} {quote(name)}, so this subject probably matches no client."
        f" Did you mean {quote(intended)}?",
        kind,
        intended,
    )


def _near(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that `name` is a misspelling of, or None if it is one itself or is unlike all of them.

    Misspelt: other case, or one wrong, missing, additional or swapped letter; two in a long name.
    """
    words = tuple(known)
    if name in words:
        return None
    for word in words:
        if abs(len(word) - len(name)) > 2:
            continue
        limit = 1 if len(word.partition(":")[2]) < _SHORT_WORD else 2
        if _distance(name.lower(), word) <= limit:
            return word
    return None


def _distance(one: str, other: str) -> int:
    """Return how many letters to insert, remove, replace or swap with their neighbor (optimal string alignment)."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, wanted in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and one[i - 2] == wanted:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
    return row[-1]
