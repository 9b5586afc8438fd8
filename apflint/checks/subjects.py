"""APF205, APF207, APF208: the subjects of a FlowSchema (`ValidateFlowSchemaSubject`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.checks.metadata import reject_name
from apflint.finding import forbidden, not_supported, required
from apflint.fix import Fix
from apflint.fixes.suggestions import correct_spelling, replace_value, set_field
from apflint.formats import check_dns_label, check_dns_subdomain
from apflint.model import SUBJECT_FIELDS
from apflint.wording import did_you_mean, join_words, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Problem
    from apflint.location import Place
    from apflint.model import ServiceAccountSubject, Subject
    from apflint.workspace import Workspace

_KINDS = {member: kind for kind, member in SUBJECT_FIELDS.items()}
_USER_PREFIX = "system:serviceaccount:"


def rule_without_subjects(workspace: Workspace) -> Iterator[Problem]:
    """APF205."""
    previous = None
    for place, rule in workspace.rules():
        if not rule.subjects:
            is_split = place.path[-1] != 0 and previous and not (previous.resource_rules or previous.non_resource_rules)
            yield required(
                place / "subjects",
                "rule has no subjects",
                notes=("A rule without subjects does not match everybody.",),
                help='is the "-" before this rule a mistake? the previous rule has subjects but no requests'
                if is_split
                else "to match everybody, list the groups system:authenticated and system:unauthenticated",
            )
        previous = rule


def mismatched_subject(workspace: Workspace) -> Iterator[Problem]:
    """APF207."""
    for place, subject in workspace.subjects():
        members = {"user": subject.user, "group": subject.group, "serviceAccount": subject.service_account}
        present = [member for member, value in members.items() if value is not None]
        if subject.kind not in SUBJECT_FIELDS:
            yield not_supported(
                place / "kind",
                f"unknown subject kind {quote(subject.kind)}" if subject.kind else "subject has no kind",
                help=did_you_mean(subject.kind, SUBJECT_FIELDS) or f"use {join_words(SUBJECT_FIELDS)}",
                fix=_fix_kind(place / "kind", subject.kind, present),
            )
            continue
        expected = SUBJECT_FIELDS[subject.kind]
        others = [member for member in present if member != expected]
        # Unsafe, because the kind may be right, and the member wrong.
        fix = (
            replace_value((*place.path, "kind"), subject.kind, _KINDS[others[0]], safe=False)
            if present == others and len(others) == 1
            else None
        )
        if expected not in present:
            yield required(
                place / expected,
                f"subject of kind {subject.kind} has no field {quote(expected)}",
                help=_suggest_member(subject, expected, others),
                fix=fix,
            )
        for member in others:
            yield forbidden(
                (place / member).at_key(),
                f"field {quote(member)} is not allowed in a subject of kind {subject.kind}",
                notes=("A subject is one user, one group or one service account.",),
                help=f"move {quote(member)} to its own subject, or remove it",
                fix=fix,
            )


def _fix_kind(place: Place, kind: str, present: list[str]) -> Fix | None:
    """Correct the spelling of the kind. If it is absent, take the kind of the member."""
    if kind:
        return correct_spelling(place.path, kind, SUBJECT_FIELDS)
    if len(present) != 1:
        return None
    kind = _KINDS[present[0]]
    return set_field(place.document, place.path, kind, f"write kind: {kind}", safe=True)


def _suggest_member(subject: Subject, expected: str, others: list[str]) -> str:
    value = "{namespace: ..., name: ...}" if expected == "serviceAccount" else "{name: ...}"
    namespace, _, name = (subject.user or "").removeprefix(_USER_PREFIX).partition(":")
    if expected == "serviceAccount" and (subject.user or "").startswith(_USER_PREFIX) and name:
        value = f"{{namespace: {namespace}, name: {name}}}"
    suggestion = f"add {expected}: {value}"
    return f"{suggestion}, or change kind to {_KINDS[others[0]]}" if len(others) == 1 else suggestion


def invalid_subject_name(workspace: Workspace) -> Iterator[Problem]:
    """APF208."""
    for place, subject in workspace.subjects():
        if subject.kind == "ServiceAccount" and subject.service_account is not None:
            yield from _invalid_service_account(place / "serviceAccount", subject.service_account)
        for kind, name in (("User", subject.user), ("Group", subject.group)):
            if subject.kind == kind and name == "":
                member = SUBJECT_FIELDS[kind]
                yield required(
                    place / member / "name", f"{member} has no name", help='add a name; "*" matches everybody'
                )


def _invalid_service_account(place: Place, account: ServiceAccountSubject) -> Iterator[Problem]:
    namespace, name = account
    if not name:
        yield required(
            place / "name",
            "service account has no name",
            help='add a name; "*" matches all service accounts of the namespace',
        )
    elif name != "*" and (wrong := check_dns_subdomain(name)):
        suggestion = 'list each service account; only "*" on its own is a wildcard' if "*" in name else None
        if name.startswith(_USER_PREFIX):
            suggestion = "write namespace and name separately, or use this name with kind User"
        fix = _split_user_name(place, account)
        yield reject_name(place / "name", "service account name", name, wrong, suggestion=suggestion, fix=fix)
    if not namespace:
        yield required(
            place / "namespace",
            "service account has no namespace",
            notes=("A subject cannot match the service accounts of all namespaces.",),
            help="add the namespace",
        )
    elif wrong := check_dns_label(namespace):
        suggestion = "to match all service accounts, use the group system:serviceaccounts" if namespace == "*" else None
        yield reject_name(place / "namespace", "namespace", namespace, wrong, suggestion=suggestion)


def _split_user_name(place: Place, account: ServiceAccountSubject) -> Fix | None:
    """Split the user name of a service account into namespace and name, unless another namespace is present."""
    namespace, _, name = account.name.removeprefix(_USER_PREFIX).partition(":")
    if not account.name.startswith(_USER_PREFIX) or account.namespace not in ("", namespace):
        return None
    if check_dns_label(namespace) or check_dns_subdomain(name):
        return None
    fix = replace_value((*place.path, "name"), account.name, name, safe=False)
    if account.namespace:
        return fix
    path = (*place.path, "namespace")
    more = set_field(place.document, path, namespace, f"write namespace: {namespace}", safe=False)
    return Fix(f"{fix.title} and {more.title}", safe=False, operations=(*fix.operations, *more.operations))
