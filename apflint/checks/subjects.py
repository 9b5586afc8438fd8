"""APF205, APF207, APF208: who a rule of a FlowSchema is about (`ValidateFlowSchemaSubject`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import formats
from apflint.finding import Cause, Problem
from apflint.fix import Fix
from apflint.fixes import suggestions
from apflint.location import Place, field_path
from apflint.model import SUBJECT_FIELDS
from apflint.wording import listed, placeholder_hint, quote, suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.load.document import Document
    from apflint.location import Path
    from apflint.model import Subject
    from apflint.workspace import Workspace


def rule_without_subjects(workspace: Workspace) -> Iterator[Problem]:
    """APF205."""
    for schema in workspace.flow_schemas:
        for number, rule in enumerate(schema.spec.rules):
            if not rule.subjects:
                path = ("spec", "rules", number, "subjects")
                message = (
                    "this rule has no subjects, so nobody would match it."
                    " For everybody write the groups system:authenticated and system:unauthenticated"
                )
                before = schema.spec.rules[number - 1] if number else None
                if before and not before.resource_rules and not before.non_resource_rules:
                    message = "this rule has no subjects, and the rule before has no requests: is there a `-` too many?"
                yield Problem(Place(schema.document, path), message, Cause("FieldValueRequired", field_path(path)))


def mismatched_subject(workspace: Workspace) -> Iterator[Problem]:
    """APF207."""
    for document, path, subject in _subjects(workspace):
        if subject.kind not in SUBJECT_FIELDS:
            at = (*path, "kind")
            wrong = f"unknown subject kind {quote(subject.kind)}" if subject.kind else "subject has no kind"
            message = f"{wrong}. Use {listed(SUBJECT_FIELDS)}.{suggest(subject.kind, SUBJECT_FIELDS)}".rstrip(".")
            fix = _kind_fix(document, at, subject)
            yield Problem(Place(document, at), message, Cause("FieldValueNotSupported", field_path(at)), fix=fix)
            continue
        present = {
            "user": subject.user is not None,
            "group": subject.group is not None,
            "serviceAccount": subject.service_account is not None,
        }
        due = SUBJECT_FIELDS[subject.kind]
        others = [name for name in present if present[name] and name != due]
        if not present[due]:
            at = (*path, due)
            hint = _other_kind(subject, others)
            example = "{namespace: ..., name: ...}" if due == "serviceAccount" else "{name: ...}"
            message = f"subject of kind {subject.kind} has no {quote(due)}. Add `{due}: {example}`.{hint}"
            cause = Cause("FieldValueRequired", field_path(at))
            yield Problem(Place(document, at), message.rstrip("."), cause, fix=_other_kind_fix(path, subject, others))
        for name in others:
            at = (*path, name)
            message = (
                f"{quote(name)} is not allowed in a subject of kind {subject.kind}: a subject names one user, one group or one"
                f" service account. Move {quote(name)} into a subject of its own, or remove it"
            )
            cause = Cause("FieldValueForbidden", field_path(at))
            fix = None if present[due] else _other_kind_fix(path, subject, others)
            yield Problem(Place(document, at, key=True), message, cause, fix=fix)


def _kind_fix(document: Document, path: Path, subject: Subject) -> Fix | None:
    """The kind spelled as it is meant; where it is missing, the one of the member that is there."""
    if subject.kind:
        return suggestions.correct_spelling(path, subject.kind, SUBJECT_FIELDS)
    owner = ((subject.user, "User"), (subject.group, "Group"), (subject.service_account, "ServiceAccount"))
    kinds = [kind for member, kind in owner if member is not None]
    return (
        suggestions.set_field(document, path, kinds[0], f"write kind: {kinds[0]}", safe=True)
        if len(kinds) == 1
        else None
    )


def _other_kind_fix(path: Path, subject: Subject, others: list[str]) -> Fix | None:
    """The kind of the one member that is there; unsafe, for the kind may be what was meant."""
    if len(others) != 1:
        return None
    kind = next(kind for kind, member in SUBJECT_FIELDS.items() if member == others[0])
    return suggestions.replace_value((*path, "kind"), subject.kind, kind, safe=False)


def _other_kind(subject: Subject, others: list[str]) -> str:
    """What to write for a subject whose member belongs to another kind."""
    if len(others) != 1:
        return ""
    kind = next(kind for kind, member in SUBJECT_FIELDS.items() if member == others[0])
    hint = f" Or change kind to {kind}: the subject has {quote(others[0])}."
    prefix, user = "system:serviceaccount:", subject.user or ""
    namespace, _, name = user.removeprefix(prefix).partition(":")
    if subject.kind == "ServiceAccount" and user.startswith(prefix) and name:
        hint += f" The service account of this user is `{{namespace: {namespace}, name: {name}}}`."
    return hint


def invalid_subject_name(workspace: Workspace) -> Iterator[Problem]:
    """APF208."""
    for document, path, subject in _subjects(workspace):
        if subject.kind == "ServiceAccount" and subject.service_account is not None:
            yield from _service_account(document, (*path, "serviceAccount"), subject.service_account)
        for kind, name in (("User", subject.user), ("Group", subject.group)):
            if subject.kind == kind and name == "":
                at = (*path, kind.lower(), "name")
                message = f"{kind.lower()} has no name. Add one; the name '*' matches everybody"
                yield Problem(Place(document, at), message, Cause("FieldValueRequired", field_path(at)))


def _service_account(document: Document, path: Path, account: tuple[str, str]) -> Iterator[Problem]:
    namespace, name = account
    at = (*path, "name")
    if not name:
        message = "service account has no name. Add one; the name '*' matches all service accounts of the namespace"
        yield Problem(Place(document, at), message, Cause("FieldValueRequired", field_path(at)))
    elif name != "*" and (wrong := formats.check_dns_subdomain(name)):
        message = f"{quote(name)} is no service account's name: {wrong}.{_account_hint(name)}"
        fix = _account_fix(document, path, namespace, name)
        yield Problem(Place(document, at), message, Cause("FieldValueInvalid", field_path(at)), fix=fix)
    at = (*path, "namespace")
    if not namespace:
        message = "service account has no namespace. Add the namespace: a subject cannot name all namespaces"
        yield Problem(Place(document, at), message, Cause("FieldValueRequired", field_path(at)))
    elif wrong := formats.check_dns_label(namespace):
        star = (
            " There is no way to name all namespaces here; the group system:serviceaccounts has all service accounts."
        )
        hint = star if namespace == "*" else placeholder_hint(namespace)
        message = f"{quote(namespace)} is no namespace: {wrong}.{hint}"
        yield Problem(Place(document, at), message, Cause("FieldValueInvalid", field_path(at)))


def _account_fix(document: Document, path: Path, namespace: str, name: str) -> Fix | None:
    """Takes a service account's user name apart, unless another namespace is written beside it."""
    home, _, own = name.removeprefix("system:serviceaccount:").partition(":")
    if not name.startswith("system:serviceaccount:") or namespace not in ("", home):
        return None
    if formats.check_dns_label(home) or formats.check_dns_subdomain(own):
        return None
    fix = suggestions.replace_value((*path, "name"), name, own, safe=False)
    if namespace:
        return fix
    more = suggestions.set_field(document, (*path, "namespace"), home, f"write namespace: {home}", safe=False)
    return Fix(f"{fix.title} and {more.title}", safe=False, operations=(*fix.operations, *more.operations))


def _account_hint(name: str) -> str:
    if name.startswith("system:serviceaccount:"):
        return " Write the namespace and the name apart, or the whole as the name of a User."
    if "*" in name:
        return " There are no patterns; '*' alone is all service accounts of the namespace."
    return placeholder_hint(name)


def _subjects(workspace: Workspace) -> Iterator[tuple[Document, Path, Subject]]:
    for schema in workspace.flow_schemas:
        for i, rule in enumerate(schema.spec.rules):
            for j, subject in enumerate(rule.subjects):
                yield schema.document, ("spec", "rules", i, "subjects", j), subject
