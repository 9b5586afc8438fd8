"""Which FlowSchema and priority level a request gets, and which of its rules, subjects and entries matches.

`classify` follows `startRequest` in staging/src/k8s.io/apiserver/pkg/util/flowcontrol/apf_controller.go. `Classifier`
gives the same answers faster for many requests; a property test compares the two.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.match import (
    matches_flow_schema,
    matches_non_resource_policy_rule,
    matches_policy_rule,
    matches_resource_policy_rule,
    matches_subject,
)
from apflint.evaluate.rule_index import RuleIndex
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.match import RequestDigest, UserInfo
    from apflint.evaluate.rule_index import SubjectList
    from apflint.model import FlowSchema, PriorityLevelConfiguration

MAX_REMEMBERED = 65_536
"""Number of answers, and of users, that a classifier remembers before it forgets all of them."""


class MatchedBy(NamedTuple):
    """The part of a FlowSchema that matches a request: its first matching rule, and the first subject and entry in it.

    Indices start at 0. Either `resource_rule` or `non_resource_rule` is None, by the type of the request.
    """

    rule: int
    subject: int
    resource_rule: int | None
    non_resource_rule: int | None


class Resolution(NamedTuple):
    """The FlowSchema and the priority level of a request."""

    flow_schema: FlowSchema
    priority_level: PriorityLevelConfiguration
    position: int
    """Index of the FlowSchema in the matching order. The FlowSchemas before it do not match."""
    matched_by: MatchedBy | None
    """None if no FlowSchema matches and the server falls back to `catch-all`."""


def classify(configuration: Configuration, digest: RequestDigest) -> Resolution:
    """Classify a request: the first FlowSchema in the matching order that matches it, and the priority level of that.

    The request must be one that API Priority and Fairness sees (`apflint.evaluate.requestinfo.is_seen_by_apf`).
    """
    for position, schema in enumerate(configuration.order):
        if matches_flow_schema(digest, schema.spec):
            level = configuration.levels[schema.spec.priority_level_configuration]
            return Resolution(schema, level, position, matched_by(digest, schema))
    return _fall_back(configuration)


def _fall_back(configuration: Configuration) -> Resolution:
    """Return the resolution of a request that no FlowSchema matches.

    Only a user in neither system:authenticated nor system:unauthenticated makes such a request; no server creates one.
    """
    position = max(at for at, schema in enumerate(configuration.order) if schema.name == CATCH_ALL)
    schema = configuration.order[position]
    return Resolution(schema, configuration.levels[schema.spec.priority_level_configuration], position, None)


def matched_by(digest: RequestDigest, schema: FlowSchema) -> MatchedBy | None:
    """Return the part of a FlowSchema that matches the request, or None if the FlowSchema does not match it."""
    info = digest.request_info
    for number, rule in enumerate(schema.spec.rules):
        if not matches_policy_rule(digest, rule):
            continue
        subject = next(at for at, subject in enumerate(rule.subjects) if matches_subject(digest.user, subject))
        if info.is_resource_request:
            entries = enumerate(rule.resource_rules)
            return MatchedBy(
                number, subject, next(at for at, entry in entries if matches_resource_policy_rule(info, entry)), None
            )
        paths = enumerate(rule.non_resource_rules)
        return MatchedBy(
            number, subject, None, next(at for at, entry in paths if matches_non_resource_policy_rule(info, entry))
        )
    return None


class Classifier:
    """Classifies many requests against one configuration: an index of its rules, and a memory of answers."""

    def __init__(self, configuration: Configuration, max_remembered: int = MAX_REMEMBERED) -> None:
        self._configuration = configuration
        self._index = RuleIndex(configuration.order)
        self._max_remembered = max_remembered
        self._subjects: dict[UserInfo, list[SubjectList]] = {}
        self._resolutions: dict[object, Resolution] = {}

    def __call__(self, digest: RequestDigest) -> Resolution:
        """Return `classify(configuration, digest)`."""
        info, user = digest
        key = (
            (user, info.verb, info.resource, info.subresource, info.api_group, info.namespace)
            if info.is_resource_request
            else (user, info.verb, info.path)
        )
        resolution = self._resolutions.get(key)
        if resolution is None:
            if len(self._resolutions) >= self._max_remembered:
                self._resolutions.clear()
            resolution = self._resolutions[key] = self._classify(digest)
        return resolution

    def next_match(self, digest: RequestDigest, start: int) -> FlowSchema | None:
        """Return the first FlowSchema from position `start` of the order on that matches the request, or None."""
        match = self._index.first_match(digest.request_info, self._subject_lists(digest.user), start)
        return None if match is None else self._configuration.order[match.subject.position]

    def _classify(self, digest: RequestDigest) -> Resolution:
        info, user = digest
        match = self._index.first_match(info, self._subject_lists(user))
        if match is None:
            return _fall_back(self._configuration)
        position, rule, subject, _ = match.subject
        schema = self._configuration.order[position]
        return Resolution(
            schema,
            self._configuration.levels[schema.spec.priority_level_configuration],
            position,
            MatchedBy(rule, subject, match.entry_number, None)
            if info.is_resource_request
            else MatchedBy(rule, subject, None, match.entry_number),
        )

    def _subject_lists(self, user: UserInfo) -> list[SubjectList]:
        lists = self._subjects.get(user)
        if lists is None:
            if len(self._subjects) >= self._max_remembered:
                self._subjects.clear()
            lists = self._subjects[user] = self._index.matching_subjects(user)
        return lists
