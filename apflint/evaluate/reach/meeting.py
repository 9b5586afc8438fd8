"""Whether two FlowSchemas can have a request in common at all: a cheap test, exact when it says no."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.groups import service_account
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.reach.worlds import forced_groups, free_group

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.evaluate.reach.parts import World
    from apflint.model import FlowSchema, PolicyRulesWithSubjects, ResourcePolicyRule, Subject


def may_overlap(a: FlowSchema, b: FlowSchema, world: World) -> bool:
    """False only when no request matches both."""
    return any(_rules_meet(one, other, world) for one in a.spec.rules for other in b.spec.rules)


def _rules_meet(a: PolicyRulesWithSubjects, b: PolicyRulesWithSubjects, world: World) -> bool:
    if not any(_subjects_meet(one, other, world) for one in a.subjects for other in b.subjects):
        return False
    if any(_resource_rules_meet(one, other) for one in a.resource_rules for other in b.resource_rules):
        return True
    # Whether paths meet is left to the solver.
    return any(_lists_meet(one.verbs, other.verbs) for one in a.non_resource_rules for other in b.non_resource_rules)


def _subjects_meet(a: Subject, b: Subject, world: World) -> bool:
    one, other = sorted((_names(a), _names(b)), key=lambda names: names is None)
    if one is None:
        return True  # two groups, or whoever it is
    exact, text = one
    if other is not None:
        if exact and other[0]:
            return text == other[1]
        return text.startswith(other[1]) if exact else other[1].startswith(text) or text.startswith(other[1])
    group = b.group if a.kind != "Group" else a.group
    if world == "any" or "Group" not in (a.kind, b.kind) or group is None or group == ALL:
        return True
    account = service_account(text) if exact else service_account(f"{text}x")
    if account is None:
        return True
    return not free_group(group) and group in forced_groups(f"{SERVICE_ACCOUNT_PREFIX}{account[0]}:x")


def _names(subject: Subject) -> tuple[bool, str] | None:
    """The one user name that a subject matches (True), or what such names begin with (False); None: the name does not tell."""
    if subject.kind == "User" and subject.user is not None and subject.user != ALL:
        return True, subject.user
    account = subject.service_account
    if subject.kind == "ServiceAccount" and account is not None:
        prefix = f"{SERVICE_ACCOUNT_PREFIX}{account.namespace}:"
        return (False, prefix) if account.name == ALL else (True, prefix + account.name)
    return None


def _resource_rules_meet(a: ResourcePolicyRule, b: ResourcePolicyRule) -> bool:
    return (
        _lists_meet(a.verbs, b.verbs)
        and _lists_meet(a.api_groups, b.api_groups)
        and _lists_meet(a.resources, b.resources)
        and ((a.cluster_scope and b.cluster_scope) or _lists_meet(a.namespaces, b.namespaces))
    )


def _lists_meet(a: Sequence[str], b: Sequence[str]) -> bool:
    if not a or not b:
        return False
    return (ALL in (*a, *b) and (tuple(a) == (ALL,) or tuple(b) == (ALL,))) or not set(a).isdisjoint(b)
