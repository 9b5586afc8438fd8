"""APF512: subjects that probably nobody is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.checks import repair
from apflint.checks.wording import nearest, quote
from apflint.finding import Fix, Operation, Place, Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Path
    from apflint.model import Subject
    from apflint.workspace import Workspace

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


def unlisted_subject(workspace: Workspace) -> Iterator[Problem]:
    """APF512."""
    for schema in workspace.own_flow_schemas:
        for i, rule in enumerate(schema.spec.rules):
            for j, subject in enumerate(rule.subjects):
                path: Path = ("spec", "rules", i, "subjects", j)
                if subject.kind == "ServiceAccount" and subject.service_account is not None:
                    said, at = _strange_account(*subject.service_account), (*path, "serviceAccount", "name")
                elif subject.kind == "Group" and subject.group is not None:
                    said, at = _strange_group(subject.group), (*path, "group", "name")
                else:
                    continue
                if said is not None:
                    yield Problem(Place(schema.document, at), said, fix=_subject_fix(path, subject))


def _subject_fix(path: Path, subject: Subject) -> Fix | None:
    """Writes the user that was meant for a service account or a group, or the group whose name is misspelt."""
    if subject.kind == "ServiceAccount" and subject.service_account is not None:
        old, user = "serviceAccount", f"system:{subject.service_account.name}"
        members = [Operation("set", (*path, old, "name"), user), Operation("remove", (*path, old, "namespace"))]
    elif subject.group in _USERS:
        old, user, members = "group", subject.group, []
    else:
        return repair.spelled((*path, "group", "name"), subject.group or "", _GROUPS, safe=False)
    operations = (
        Operation("set", (*path, "kind"), "User"),
        Operation("rename", (*path, old), "user"),
        *members,
    )
    return Fix(f"make this subject the user {quote(user)}", safe=False, operations=operations)


def _strange_account(namespace: str, name: str) -> str | None:
    user = f"system:{name}"
    if namespace != "kube-system" or user not in _USERS:
        return None
    return (
        f"{quote(name)} is usually no service account: it authenticates as the user {quote(user)} with a certificate."
        f" Write `kind: User` with `user: {{name: {user}}}`"
    )


def _strange_group(group: str) -> str | None:
    if group in _USERS:
        return f"{quote(group)} is a user, not a group: nobody is in a group of this name"
    if not group.startswith("system:") or group in _GROUPS or group.startswith("system:serviceaccounts:"):
        return None
    near = nearest(group, _GROUPS)
    if near is None:
        return None
    return f"Kubernetes puts nobody into a group {quote(group)}. Did you mean {quote(near)}?"
