"""Finds subjects of a rule that behave alike, so that a proof of reachability for one of them applies to all of them."""

from __future__ import annotations

from collections import Counter
from functools import cached_property
from typing import TYPE_CHECKING

from apflint.evaluate.authentication import parse_service_account
from apflint.evaluate.match import ALL
from apflint.evaluate.rule_index import matching_users
from apflint.proofs.request_space import SERVICE_ACCOUNTS_OF, SYSTEM_PREFIX

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from apflint.model import FlowSchema, PolicyRulesWithSubjects, Subject

_FEW_SUBJECTS = 32
"""If a rule has at most this number of subjects, all of its subjects are tried, even if some behave alike."""


class AlikeSubjects:
    """Finds the subjects of a rule that behave alike in a configuration.

    Two users whose names do not begin with `system:` behave alike if the configuration has no further
    subject with one of their names. No rule then distinguishes the requests of the two users. The same
    applies to two groups. Two service accounts behave alike if, in addition, no subject matches all
    service accounts of either namespace.
    """

    def __init__(self, order: Sequence[FlowSchema]) -> None:
        self._order = order

    def representatives(self, rule: PolicyRulesWithSubjects) -> Collection[int]:
        """Return indices of those subjects of a rule that a proof must try.

        If the subjects with these indices are reachable, all subjects of the rule are reachable. Of the
        subjects that behave alike, the result includes only the first and the last. A request reaches a
        subject only if no earlier subject matches the request, and the last subject has the most earlier
        subjects. So if a request reaches the last subject, the same request by users of the other subjects
        reaches the other subjects. The first subject is included so that the first example request is the
        same as without this optimization.
        """
        if len(rule.subjects) <= _FEW_SUBJECTS:
            return range(len(rule.subjects))
        alike: dict[str, list[int]] = {}
        numbers: set[int] = set()
        for number, subject in enumerate(rule.subjects):
            kind = self._kind(subject)
            if kind is None:
                numbers.add(number)
            else:
                alike.setdefault(kind, []).append(number)
        for same in alike.values():
            numbers |= {same[0], same[-1]}
        return sorted(numbers)

    def _kind(self, subject: Subject) -> str | None:
        """Return the key of a group of subjects that behave alike, or None if the subject is in no such group.

        The key is `User`, `Group` or `ServiceAccount`. Two subjects of a rule behave alike if they have
        the same key.
        """
        users = matching_users(subject)
        if users is None or self._counts[users] > 1:
            return None
        kind, name = users
        if not name.startswith(SYSTEM_PREFIX):
            return None if name in ("", ALL) or kind == "Namespace" else kind
        account = parse_service_account(name) if kind == "User" else None
        if account is None or ("Namespace", account[0]) in self._counts:
            return None
        return None if ("Group", SERVICE_ACCOUNTS_OF + account[0]) in self._counts else "ServiceAccount"

    @cached_property
    def _counts(self) -> Counter[tuple[str, str] | None]:
        rules = (rule for schema in self._order for rule in schema.spec.rules)
        return Counter(matching_users(subject) for rule in rules for subject in rule.subjects)
