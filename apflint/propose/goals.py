"""The goals of `apflint propose`: clients get their own priority level, or are protected from long waits.

The module also finds clients for which no proposal is possible.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import (
    AUTHENTICATED,
    NODE_PREFIX,
    NODES,
    SERVICE_ACCOUNTS,
    UNAUTHENTICATED,
    parse_service_account,
    single_user,
)
from apflint.evaluate.match import ALL, SERVICE_ACCOUNT_PREFIX
from apflint.evaluate.system_request_rules import PLATFORM_NAMESPACE_PREFIXES, PLATFORM_USER_PREFIXES
from apflint.model import (
    NonResourcePolicyRule,
    PolicyRulesWithSubjects,
    ResourcePolicyRule,
    ServiceAccountSubject,
    Subject,
)
from apflint.named_tuple import NamedTuple
from apflint.string_formats import check_dns_label, check_dns_subdomain
from apflint.user_error import UserError
from apflint.wording import quote

if TYPE_CHECKING:
    from collections.abc import Collection

_EXAMPLES = "write user:NAME, group:NAME, serviceaccount:NAMESPACE/NAME, or serviceaccount:NAMESPACE/*"
_SYSTEM_PREFIX = "system:"
_SERVICE_ACCOUNTS_OF = f"{SERVICE_ACCOUNTS}:"
_WAIT = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(ms|s|m)", re.ASCII)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0}
EVERY_RESOURCE = ResourcePolicyRule((ALL,), (ALL,), (ALL,), cluster_scope=True, namespaces=(ALL,))
EVERY_PATH = NonResourcePolicyRule((ALL,), (ALL,))


class Isolation(NamedTuple):
    """The goal that some clients, together called a tenant, have a priority level that no other client uses."""

    subjects: tuple[Subject, ...]
    seats: int
    """Nominal seats of the level in each API server."""

    @property
    def rule(self) -> PolicyRulesWithSubjects:
        """The rule that matches all requests of the tenant."""
        return match_all_requests(self.subjects)


class Protection(NamedTuple):
    """The goal that requests of a client, or of a priority level, are not rejected, and that their wait is limited."""

    target: Subject | str
    """A client, or the name of a priority level."""
    wait_seconds: float | None
    """Limit of the 99th percentile of the wait in seconds, or None for the default limit."""


def parse_subject(text: str) -> Subject:
    """Parse `user:NAME`, `group:NAME` or `serviceaccount:NAMESPACE/NAME`. Raises UserError for other text.

    A user name of a service account, such as `system:serviceaccount:ci:runner`, becomes a service account. So each
    client has only one form.
    """
    kind, _, name = text.partition(":")
    if not name:
        raise UserError(f"{quote(text)} names no client: {_EXAMPLES}")
    if not name.isprintable():
        raise UserError(f"{quote(text)} has characters that cannot be printed")
    match kind.lower():
        case "user":
            account = parse_service_account(name)
            return Subject("User", name, None, None) if account is None else _create_account(*account)
        case "group":
            namespace = name.removeprefix(_SERVICE_ACCOUNTS_OF)
            if namespace != name and not check_dns_label(namespace):
                return _create_account(namespace, ALL)
            return Subject("Group", None, name, None)
        case "serviceaccount":
            return _parse_account(text, name)
    raise UserError(f"{quote(text)} names no client: {_EXAMPLES}")


def _parse_account(text: str, name: str) -> Subject:
    namespace, _, account = name.partition("/")
    problem = check_dns_label(namespace) or (None if account == ALL else check_dns_subdomain(account))
    if not account:
        problem = "write NAMESPACE/NAME, or NAMESPACE/* for all service accounts of a namespace"
    if problem:
        raise UserError(f"{quote(text)} is not a service account: {problem}")
    return _create_account(namespace, account)


def _create_account(namespace: str, name: str) -> Subject:
    return Subject("ServiceAccount", None, None, ServiceAccountSubject(namespace, name))


def parse_protection(text: str, levels: Collection[str]) -> Protection:
    """Parse `SUBJECT[=WAIT]` or `LEVEL[=WAIT]`, such as `group:tenants=1s`. `levels` are the names of the priority levels.

    Raises UserError for other text.
    """
    name, equals, wait = text.rpartition("=")
    match = _WAIT.fullmatch(wait) if equals else None
    if match is None:
        name = text
    if equals and match is None and name not in levels:
        raise UserError(f"{quote(wait)} is not a wait, such as 500ms, 1s or 2m")
    seconds = None if match is None else float(match[1]) * _SECONDS[match[2]]
    return Protection(name if name in levels else parse_subject(name), seconds)


def match_all_requests(subjects: tuple[Subject, ...]) -> PolicyRulesWithSubjects:
    """Return the rule that matches all requests of the subjects."""
    return PolicyRulesWithSubjects(subjects, (EVERY_RESOURCE,), (EVERY_PATH,))


def write_subject(subject: Subject) -> str:
    """Return a subject in the form that `parse_subject` reads."""
    if (account := subject.service_account) is not None:
        return f"serviceaccount:{account.namespace}/{account.name}"
    return f"user:{subject.user}" if subject.kind == "User" else f"group:{subject.group}"


def is_several_users(subject: Subject) -> bool:
    """Return whether a subject may match several users, so that their requests can be separate flows."""
    return single_user(subject) is None


def find_refusal(subject: Subject) -> str | None:
    """Return a clause that says why no proposal is possible for a subject, or None if a proposal is possible.

    This function checks only the name of the subject. The module `proof` checks whether a proposal
    moves requests of system components.
    """
    name, text = (subject.user if subject.kind == "User" else subject.group) or "", write_subject(subject)
    if name == ALL or (subject.kind == "Group" and name in (AUTHENTICATED, UNAUTHENTICATED, SERVICE_ACCOUNTS)):
        return f"{text} matches clients of all kinds, so unrelated clients would share the new level"
    if (subject.kind, name) == ("Group", "system:masters"):
        return f"{text} is exempt: its requests never wait, and Kubernetes relies on that in an emergency"
    if (subject.kind, name) == ("Group", NODES) or name.startswith(NODE_PREFIX):
        return f"{text} matches kubelets, whose heartbeats and requests use the levels node-high and system"
    account = subject.service_account
    is_platform = name.startswith(PLATFORM_USER_PREFIXES)
    if account is not None:
        is_platform = account.namespace.startswith(PLATFORM_NAMESPACE_PREFIXES)
    if is_platform:
        return f"{text} is a component of the platform, so Kubernetes or the platform chooses the level of its requests"
    if name.startswith(SERVICE_ACCOUNT_PREFIX):
        return f"{text} is not the user name of a service account: write serviceaccount:NAMESPACE/NAME"
    if name.startswith(_SYSTEM_PREFIX):
        return f"{text} is a name that Kubernetes reserves for its components"
    return None
