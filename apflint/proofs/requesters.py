"""Sets of users to which a question is restricted: ordinary users, and system users in exactly their own groups.

In the world `authenticated` anybody but a service account may be in any group, so a claim about requests may hold only for
`system:kube-scheduler` in a team's group, which no cluster has. A claim about requests that really occur is the union of
two answers: one for ORDINARY users and one for SYSTEM users. Ask the solver for each; do not ask it for any request and
discard the answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.evaluate.authentication import ANONYMOUS, AUTHENTICATED, NODE_PREFIX, NODES
from apflint.evaluate.match import ALL
from apflint.proofs.request_space import free_group, usual_groups
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from apflint.model import FlowSchema, Subject

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

    def includes(self, user: str, groups: Collection[str]) -> bool:
        """Whether the set has this user in these groups."""
        if self.kind == "anybody":
            return True
        if self.kind == "ordinary":
            return not user.startswith(SYSTEM_PREFIX) and NODES not in groups
        return (
            user.startswith(SYSTEM_PREFIX)
            and self.user in (None, user)
            and frozenset(groups) == frozenset(usual_groups(user))
        )

    def may_match(self, schema: FlowSchema) -> bool:
        """False only if the FlowSchema names none of these users, in the world `authenticated`."""
        return self.kind != "ordinary" or any(
            _may_be_ordinary(subject) for rule in schema.spec.rules for subject in rule.subjects
        )


ORDINARY = Requesters("ordinary")
"""Users whose name does not begin with `system:` and who are not in `system:nodes`; otherwise in any groups."""
SYSTEM = Requesters("system")
"""System users (service accounts included) in exactly the groups that authentication gives them."""
ANYBODY = Requesters("anybody")
"""All users of the world."""

REALISTIC = (ORDINARY, SYSTEM)
"""Users as clusters have them: nobody whose requests decide a claim only because a system user is in somebody's group."""
PREFERRED = (ORDINARY, SYSTEM, ANYBODY)
"""All users, those first that make the better example."""


def system_user(user: str) -> Requesters:
    """The set of one system user, in exactly its own groups."""
    return Requesters("system", user)


def rank(among: Sequence[Requesters], user: str, groups: Collection[str]) -> int:
    """The index of the first set that includes the user; the number of sets if none does."""
    return next((at for at, requesters in enumerate(among) if requesters.includes(user, groups)), len(among))


def _may_be_ordinary(subject: Subject) -> bool:
    if subject.kind == "User" and subject.user is not None:
        return subject.user == ALL or not subject.user.startswith(SYSTEM_PREFIX)
    if subject.kind == "Group" and subject.group is not None:
        return subject.group in (ALL, AUTHENTICATED) or (free_group(subject.group) and subject.group != NODES)
    return False
