"""Classification: determines the FlowSchema and priority level of a request, and which rule of the FlowSchema matches.

An entry is an item of `resourceRules` or `nonResourceRules` in a rule. `classify` follows `startRequest` in
staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go. `Classifier` returns the same results as
`classify`, and is faster for many requests. A property test compares both.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.match import (
    matches_non_resource_policy_rule,
    matches_policy_rule,
    matches_resource_policy_rule,
    matches_subject,
)
from apflint.evaluate.rule_index import RuleIndex, is_resource_request, matched_values
from apflint.named_tuple import NamedTuple

if TYPE_CHECKING:
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.match import RequestDigest, UserInfo
    from apflint.model import FlowSchema, PriorityLevelConfiguration

MAX_REMEMBERED = 65_536
"""Default maximum number of entries in each cache of a `Classifier`, and maximum number of flows that an `Explainer` caches."""


class MatchedBy(NamedTuple):
    """The first rule of a FlowSchema that matches a request, and the first items of this rule that match.

    All fields are indices from 0. `subject` is the index of the subject. `resource_rule` is None for
    non-resource requests, and `non_resource_rule` is None for resource requests.
    """

    rule: int
    subject: int
    resource_rule: int | None
    non_resource_rule: int | None


class Resolution(NamedTuple):
    """The FlowSchema and the priority level that a request gets."""

    flow_schema: FlowSchema
    priority_level: PriorityLevelConfiguration
    position: int
    """Index of the FlowSchema in `Configuration.order`. No earlier FlowSchema matches the request."""
    matched_by: MatchedBy | None
    """Matching part of the FlowSchema, or None if no FlowSchema matches and the server falls back to `catch-all`."""


def classify(configuration: Configuration, digest: RequestDigest) -> Resolution:
    """Return the first FlowSchema in matching order that matches the request, together with its priority level.

    If no FlowSchema matches, return `catch-all`. Call this function only for a request that API
    Priority and Fairness classifies (`requestinfo.is_seen_by_apf`).
    """
    for position, schema in enumerate(configuration.order):
        part = matched_by(digest, schema)
        if part is not None:
            return _resolve(configuration, position, part)
    return _fall_back(configuration)


def _resolve(configuration: Configuration, position: int, part: MatchedBy | None) -> Resolution:
    schema = configuration.order[position]
    return Resolution(schema, configuration.levels[schema.spec.priority_level_configuration], position, part)


def _fall_back(configuration: Configuration) -> Resolution:
    """Return the FlowSchema `catch-all` and its priority level for a request that no FlowSchema matches.

    The server does the same. This case does not occur in a real cluster. Authentication puts every
    user into `system:authenticated` or `system:unauthenticated`, and `catch-all` matches both groups.
    """
    position = max(at for at, schema in enumerate(configuration.order) if schema.name == CATCH_ALL)
    return _resolve(configuration, position, None)


def matched_by(digest: RequestDigest, schema: FlowSchema) -> MatchedBy | None:
    """Return which rule, subject and entry of a FlowSchema match the request, or None if no rule matches."""
    info, user = digest
    for number, rule in enumerate(schema.spec.rules):
        if matches_policy_rule(digest, rule):
            subject = next(at for at, subject in enumerate(rule.subjects) if matches_subject(user, subject))
            if not info.is_resource_request:
                paths = enumerate(rule.non_resource_rules)
                entry = next(at for at, entry in paths if matches_non_resource_policy_rule(info, entry))
                return MatchedBy(number, subject, None, entry)
            entries = enumerate(rule.resource_rules)
            entry = next(at for at, entry in entries if matches_resource_policy_rule(info, entry))
            return MatchedBy(number, subject, entry, None)
    return None


class Classifier:
    """Classifies many requests against one configuration, with an index of the rules and caches of results."""

    def __init__(self, configuration: Configuration, max_remembered: int = MAX_REMEMBERED) -> None:
        self._configuration = configuration
        self._index = RuleIndex(configuration.order)
        self._matching_subjects = lru_cache(max_remembered)(self._index.matching_subjects)
        self.resolve = lru_cache(max_remembered)(self._resolve)
        """Function that returns the result of `classify`. Its arguments are the user and the `matched_values` of a
        request."""

    def __call__(self, digest: RequestDigest) -> Resolution:
        """Return `classify(configuration, digest)`."""
        return self.resolve(digest.user, matched_values(digest.request_info))

    def next_match(self, user: UserInfo, request: tuple[str, ...], start: int) -> FlowSchema | None:
        """Return the first FlowSchema in `Configuration.order[start:]` that matches the request, or None if none does.

        `request` is the result of `apflint.evaluate.rule_index.matched_values` for the request.
        """
        match = self._index.first_match(request, self._matching_subjects(user), start)
        return None if match is None else self._configuration.order[match[0].position]

    def _resolve(self, user: UserInfo, request: tuple[str, ...]) -> Resolution:
        match = self._index.first_match(request, self._matching_subjects(user))
        if match is None:
            return _fall_back(self._configuration)
        (position, rule, subject, _), entry = match
        is_resource = is_resource_request(request)
        part = MatchedBy(rule, subject, entry if is_resource else None, None if is_resource else entry)
        return _resolve(self._configuration, position, part)
