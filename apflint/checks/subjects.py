"""APF205, APF207, APF208, APF512: subjects that are rejected (`ValidateFlowSchemaSubject`) or probably match no client.

The known names of users and groups are from staging/src/k8s.io/apiserver/pkg/authentication/user/user.go. Bootstrap
tokens add groups that start with `system:bootstrappers:` (`BootstrapGroupPattern` in
staging/src/k8s.io/cluster-bootstrap/token/api/types.go).
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from apflint.checks.metadata import reject_name
from apflint.edit_operations import Fix, Operation, Remove, Rename, Set
from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX
from apflint.finding import Problem, forbidden, not_supported, required
from apflint.fixes.field_fixes import correct_spelling, replace_value, set_field
from apflint.model import SUBJECT_FIELDS
from apflint.spelling import TooManyComparisonsError, did_you_mean, is_within_distance, spend_comparisons
from apflint.string_formats import check_dns_label, check_dns_subdomain
from apflint.wording import count_noun, join_words, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective_configuration import Effective
    from apflint.location import Place
    from apflint.model import ServiceAccountSubject, Subject
    from apflint.workspace import Workspace

_KINDS = {member: kind for kind, member in SUBJECT_FIELDS.items()}
_ACCOUNTS, _NODE, _NODES = "system:serviceaccounts:", "system:node:", "system:nodes:"
_GROUPS: tuple[str, ...] = (
    "system:authenticated",
    "system:unauthenticated",
    "system:masters",
    "system:nodes",
    "system:serviceaccounts",
    "system:bootstrappers",
    "system:monitoring",
)
_USERS: tuple[str, ...] = (
    "system:kube-controller-manager",
    "system:kube-scheduler",
    "system:apiserver",
    "system:anonymous",
)
_LETTERS = {word: frozenset(word) for word in (*_GROUPS, *_USERS, "system:kube-proxy")}
_OTHER_USERS = ("system:kube-apiserver", "system:cloud-controller-manager", "system:aggregator", "system:admin")
"""Users whose names resemble names in `_USERS`. These users are valid: certificates of Kubernetes distributions contain
them."""
_SHORT_WORD = 8
"""Minimum number of letters of a long word. In a misspelling, at most two letters of a long word are wrong, and at most one letter
of a shorter word."""
_MAX_EDITS = {word: 1 if len(word.partition(":")[2]) < _SHORT_WORD else 2 for word in _LETTERS}
"""Maps each known name to the maximum number of wrong letters in a misspelling of the name."""


def rule_without_subjects(workspace: Workspace) -> Iterator[Problem]:
    """APF205: report rules without subjects."""
    previous = None
    for place, rule in workspace.rules():
        if not rule.subjects:
            is_split = place.path[-1] != 0 and previous and not (previous.resource_rules or previous.non_resource_rules)
            yield required(
                place / "subjects",
                "rule has no subjects",
                notes=("Absent subjects do not mean everybody.",),
                help='is the "-" before this rule a mistake? the previous rule has subjects, but no resourceRules and no nonResourceRules'
                if is_split
                else "to match everybody, list the groups system:authenticated and system:unauthenticated",
            )
        previous = rule


def mismatched_subject(workspace: Workspace) -> Iterator[Problem]:
    """APF207: report subjects whose fields do not fit their kind."""
    for place, subject in workspace.subjects():
        values = ("user", subject.user), ("group", subject.group), ("serviceAccount", subject.service_account)
        present = [member for member, value in values if value is not None]
        expected = SUBJECT_FIELDS.get(subject.kind)
        if present == [expected]:
            continue
        if expected is None:
            fix = correct_spelling((*place.path, "kind"), subject.kind, SUBJECT_FIELDS)
            if not subject.kind and len(present) == 1:
                kind = _KINDS[present[0]]
                fix = set_field(place.document, (*place.path, "kind"), kind, f"write kind: {kind}", safe=True)
            yield not_supported(
                place / "kind",
                f"unknown subject kind {quote(subject.kind)}" if subject.kind else "subject has no kind",
                help=did_you_mean(subject.kind, SUBJECT_FIELDS) or f"use {join_words(SUBJECT_FIELDS)}",
                fix=fix,
            )
            continue
        others = [member for member in present if member != expected]
        fix = None
        if expected not in present:
            suggestion = f"add {expected}: {_suggest_value(subject, expected)}"
            if len(others) == 1:
                kind = _KINDS[others[0]]
                suggestion += f", or change kind to {kind}"
                # The fix is unsafe, because the kind may be right, and the field of the other kind may be wrong.
                fix = replace_value((*place.path, "kind"), subject.kind, kind, safe=False)
            message = f"subject of kind {subject.kind} requires the field {quote(expected)}"
            yield required(place / expected, message, help=suggestion, fix=fix)
        for member in others:
            yield forbidden(
                (place / member).at_key(),
                f"field {quote(member)} is not allowed in a subject of kind {subject.kind}",
                notes=("A subject is one user, one group or one service account.",),
                help=f"move {quote(member)} to its own subject, or remove it",
                fix=fix,
            )


def _suggest_value(subject: Subject, member: str) -> str:
    """Return the YAML value to suggest for the missing field `member` of a subject, such as `{name: ...}`.

    If `member` is `serviceAccount` and `subject.user` is the user name of a service account, the
    value contains the namespace and the name of the service account.
    """
    if member != "serviceAccount":
        return "{name: ...}"
    namespace, _, name = (subject.user or "").removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    is_account = name and str(subject.user).startswith(SERVICE_ACCOUNT_PREFIX)
    return f"{{namespace: {namespace}, name: {name}}}" if is_account else "{namespace: ..., name: ...}"


def invalid_subject_name(workspace: Workspace) -> Iterator[Problem]:
    """APF208: report users, groups and service accounts without a valid name."""
    for place, subject in workspace.subjects():
        if subject.kind == "ServiceAccount" and subject.service_account is not None:
            yield from _invalid_service_account(place / "serviceAccount", subject.service_account)
        elif subject.kind in ("User", "Group") and (subject.user if subject.kind == "User" else subject.group) == "":
            at = place / SUBJECT_FIELDS[subject.kind] / "name"
            yield required(at, f"{subject.kind.lower()} has no name", help='add a name; "*" matches everybody')


def _invalid_service_account(place: Place, account: ServiceAccountSubject) -> Iterator[Problem]:
    namespace, name = account
    if not name:
        suggestion = 'add a name; "*" matches all service accounts of the namespace'
        yield required(place / "name", "service account has no name", help=suggestion)
    elif name != "*" and (wrong := check_dns_subdomain(name)):
        advice = 'list each service account; only "*" on its own is a wildcard' if "*" in name else None
        if name.startswith(SERVICE_ACCOUNT_PREFIX):
            advice = "write namespace and name separately, or use this name with kind User"
        fix = _split_user_name(place, account)
        yield reject_name(place / "name", "service account name", name, wrong, suggestion=advice, fix=fix)
    if not namespace:
        yield required(
            place / "namespace",
            "service account has no namespace",
            notes=("A subject cannot match the service accounts of all namespaces.",),
            help="add the namespace",
        )
    elif wrong := check_dns_label(namespace):
        advice = "to match all service accounts, use the group system:serviceaccounts" if namespace == "*" else None
        yield reject_name(place / "namespace", "namespace", namespace, wrong, suggestion=advice)


def _split_user_name(place: Place, account: ServiceAccountSubject) -> Fix | None:
    """Return a fix that splits the user name of a service account into namespace and name, or None if the fix is impossible."""
    namespace, _, name = account.name.removeprefix(SERVICE_ACCOUNT_PREFIX).partition(":")
    if not account.name.startswith(SERVICE_ACCOUNT_PREFIX) or account.namespace not in ("", namespace):
        return None
    if check_dns_label(namespace) or check_dns_subdomain(name):
        return None
    fix = replace_value((*place.path, "name"), account.name, name, safe=False)
    if account.namespace:
        return fix
    path = (*place.path, "namespace")
    more = set_field(place.document, path, namespace, f"write namespace: {namespace}", safe=False)
    return Fix(f"{fix.title} and {more.title}", safe=False, operations=(*fix.operations, *more.operations))


def unlisted_subject(effective: Effective) -> Iterator[Problem]:
    """APF512: report users, groups and service accounts that probably match no client."""
    not_compared: list[Place] = []
    for place, subject in effective.own.subjects():
        intended = None
        if subject.kind == "ServiceAccount" and subject.service_account is not None:
            namespace, name = subject.service_account
            if namespace == "kube-system" and f"system:{name}" in _USERS:
                intended = "User", f"system:{name}"
        elif name := {"User": subject.user, "Group": subject.group}.get(subject.kind) or "":
            try:
                intended = _find_intended(subject.kind, name)
            except TooManyComparisonsError:
                not_compared.append(place)
        if intended is not None:
            yield _unlisted(place, subject.kind, name, *intended)
    if not_compared:
        count = count_noun(len(not_compared), "subject")
        yield Problem(
            not_compared[0],
            f"{count} {'is' if len(not_compared) == 1 else 'are'} not compared with the users and groups of Kubernetes",
            severity="info",
            notes=("There are too many similar names.",),
        )


def _unlisted(place: Place, kind: str, name: str, right_kind: str, right_name: str) -> Problem:
    """Return a problem for a subject that probably matches no client, because its kind or name is wrong.

    `right_kind` and `right_name` are the probably intended kind and name.
    """
    member, right_member, right = SUBJECT_FIELDS[kind], SUBJECT_FIELDS[right_kind], quote(right_name)
    note, title = "This subject probably matches no client.", f"make this subject the {right_member} {right}"
    if kind == "ServiceAccount":
        message = f"{quote(name)} is usually the user {right}, not a service account"
        note, advice = "It authenticates with a certificate.", f"use kind: User with user: {{name: {right_name}}}"
    elif kind == right_kind:
        message, advice = f"Kubernetes has no {member} {quote(name)}", f"did you mean {right}?"
        title = f"change {quote(name)} to {right}"
    else:
        message, advice = f"{quote(name)} is a {right_member}, not a {member}", f"use kind: {right_kind}"
    operations: list[Operation] = []
    if kind != right_kind:
        operations += (Set((*place.path, "kind"), right_kind), Rename((*place.path, member), right_member))
    if name != right_name:
        operations.append(Set((*place.path, member, "name"), right_name))
    if kind == "ServiceAccount":
        operations.append(Remove((*place.path, member, "namespace")))
    fix = Fix(title, safe=False, operations=tuple(operations))
    return Problem(place / member / "name", message, fix=fix, notes=(note,), help=advice)


def _find_intended(kind: str, name: str) -> tuple[str, str] | None:
    """Return (kind, name) of the subject that was probably intended instead of a user or group, or None if there is none."""
    known, others, other_kind, prefix = (*_USERS, "system:kube-proxy"), _GROUPS, "Group", _ACCOUNTS
    if kind == "Group":
        known, others, other_kind, prefix = _GROUPS, _USERS, "User", SERVICE_ACCOUNT_PREFIX
    if name in others:
        return other_kind, name
    if name.startswith(prefix):
        namespace, _, account = name.removeprefix(prefix).partition(":")
        if account:
            return "User", f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{account}"
        return ("Group", _ACCOUNTS + namespace) if namespace else None
    if kind == "User" and name.startswith(_NODES) and name != _NODES:
        return "User", _NODE + name.removeprefix(_NODES)
    is_usual = name in _OTHER_USERS or name.startswith(_ACCOUNTS)
    similar = None if is_usual else _find_misspelled(name, known)
    return (kind, similar) if similar else None


def _find_misspelled(name: str, known: tuple[str, ...]) -> str | None:
    """Return the known name that `name` misspells, or None if `name` is a known name or resembles no known name.

    A misspelled name differs from the known name in upper and lower case, or in one letter that is wrong, missing,
    additional or swapped. A long name may differ in two letters. Raises TooManyComparisonsError if the comparisons
    exceed the limit of the run.
    """
    lower = name.lower()
    for word in () if name in known else known:
        # `maximum` edits change the length by at most `maximum`, and remove at most `maximum` different
        # letters of the word. This quick test excludes most words before the slow comparison.
        maximum = _MAX_EDITS[word]
        is_near = abs(len(lower) - len(word)) <= maximum and len(_LETTERS[word].difference(lower)) <= maximum
        if is_near and _is_misspelling(lower, word):
            return word
    return None


@lru_cache(maxsize=4096)  # a FlowSchema in several clusters causes the same comparisons in each cluster
def _is_misspelling(name: str, word: str) -> bool:
    spend_comparisons(name, (word,))
    return is_within_distance(name, word, _MAX_EDITS[word])
