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
    from apflint.model import Subject

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
_NO_CLIENT = "This subject probably matches no client."


class _Correction(NamedTuple):
    message: str
    note: str
    help: str
    kind: str
    """The kind of subject that was probably intended."""
    name: str
    """Its name."""


def unlisted_subject(effective: Effective) -> Iterator[Problem]:
    """APF512."""
    for place, subject in effective.own.subjects():
        correction, member = _correct(subject)
        if correction is not None:
            yield Problem(
                place / member / "name",
                correction.message,
                fix=_fix(place, subject, member, correction),
                notes=(correction.note,),
                help=correction.help,
            )


def _correct(subject: Subject) -> tuple[_Correction | None, str]:
    """Return what was probably intended, or None if nothing is wrong; and the member with the name."""
    if subject.kind == "ServiceAccount" and subject.service_account is not None:
        return _correct_account(*subject.service_account), "serviceAccount"
    if subject.kind == "Group" and subject.group is not None:
        return _correct_group(subject.group), "group"
    if subject.kind == "User" and subject.user is not None:
        return _correct_user(subject.user), "user"
    return None, ""


def _fix(place: Place, subject: Subject, member: str, correction: _Correction) -> Fix:
    path, kind, new = place.path, correction.kind, correction.name
    old = subject.user if member == "user" else subject.group
    rename: tuple[Operation, ...] = (Set((*path, member, "name"), new),) if new != old else ()
    if kind == subject.kind:
        return Fix(f"change {quote(old)} to {quote(new)}", safe=False, operations=rename)
    convert: tuple[Operation, ...] = (Set((*path, "kind"), kind), Rename((*path, member), kind.lower()))
    remove: tuple[Operation, ...] = (Remove((*path, member, "namespace")),) if member == "serviceAccount" else ()
    title = f"make this subject the {kind.lower()} {quote(new)}"
    return Fix(title, safe=False, operations=(*convert, *rename, *remove))


def _correct_account(namespace: str, name: str) -> _Correction | None:
    user = f"system:{name}"
    if namespace != "kube-system" or user not in _USERS:
        return None
    return _Correction(
        f"{quote(name)} is usually not a service account, but the user {quote(user)}",
        "It authenticates with a certificate.",
        f"use kind: User with user: {{name: {user}}}",
        "User",
        user,
    )


def _correct_group(group: str) -> _Correction | None:
    if group in _USERS:
        return _convert(group, "User")
    if group in _GROUPS or group.startswith(_ACCOUNTS):
        return None
    if group.startswith(SERVICE_ACCOUNT_PREFIX):
        namespace, _, name = group.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
        if name:
            return _convert(group, "User")
        return _respell("Group", group, _ACCOUNTS + namespace) if namespace else None
    similar = _find_misspelled(group, _GROUPS)
    return None if similar is None else _respell("Group", group, similar)


def _correct_user(user: str) -> _Correction | None:
    if user in _GROUPS:
        return _convert(user, "Group")
    if user.startswith(_ACCOUNTS):
        namespace, _, name = user.removeprefix(_ACCOUNTS).partition(":")
        if name:
            return _respell("User", user, f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}")
        return _convert(user, "Group") if namespace else None
    if user.startswith(_NODES) and user != _NODES:
        return _respell("User", user, _NODE + user.removeprefix(_NODES))
    similar = None if user in _OTHER_USERS else _find_misspelled(user, _MISSPELLED_USERS)
    return None if similar is None else _respell("User", user, similar)


def _convert(name: str, kind: str) -> _Correction:
    wrong = "group" if kind == "User" else "user"
    return _Correction(f"{quote(name)} is a {kind.lower()}, not a {wrong}", _NO_CLIENT, f"use kind: {kind}", kind, name)


def _respell(kind: str, name: str, intended: str) -> _Correction:
    question = f"did you mean {quote(intended)}?"
    return _Correction(f"Kubernetes has no {kind.lower()} {quote(name)}", _NO_CLIENT, question, kind, intended)


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
