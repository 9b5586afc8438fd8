"""Classification of attribute tuples: the FlowSchema, level and seats of the requests that have these attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.evaluate.authentication import complete_groups, has_fixed_groups
from apflint.evaluate.classify import Classifier
from apflint.evaluate.flows import BY_NAMESPACE, BY_USER
from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.requestinfo import RequestInfo, is_long_running, is_seen_by_apf, parse_path
from apflint.evaluate.seats import MINIMUM_SEATS, estimate_seats
from apflint.named_tuple import NamedTuple
from apflint.replay.object_counts import NOT_COUNTED
from apflint.requests.list_options import parse_list_options
from apflint.user_error import UserError

if TYPE_CHECKING:
    from apflint.effective_configuration import Effective
    from apflint.evaluate.seats import Count
    from apflint.replay.events import AttributeTuple
    from apflint.replay.object_counts import ObjectCounts

Outcome = Literal["classified", "long-running", "no user"]


class Assignment(NamedTuple):
    """FlowSchema, level and seats of the requests with one attribute tuple."""

    outcome: Outcome
    """`classified`, `long-running` for requests that API Priority and Fairness skips, or `no user` if authentication failed."""
    flow_schema: str | None = None
    priority_level: str | None = None
    distinguished_by: str | None = None
    """`ByUser` or `ByNamespace`, or None if all requests of the FlowSchema are one flow."""
    seats: int = MINIMUM_SEATS
    """Estimated seats while a request executes. 1 for writes: the audit log does not show how many watchers they notify."""
    lacks_count: bool = False
    """Whether the seats depend on an unknown number or size of objects. The request is then assumed to take 1 seat."""
    has_seats_at_end: bool = True
    """Whether requests hold their seats until they end. Watches release their seats when they are initialized."""
    certain: bool = True
    """Whether the FlowSchema is certain. False if it depends on groups that the log does not contain."""


class TupleClassifier:
    """Finds the FlowSchema, priority level and seats of logged requests under one configuration.

    Many requests have equal attributes (`AttributeTuple`), so callers classify each distinct tuple only
    once.
    """

    def __init__(self, known: Effective, counts: ObjectCounts | None = None) -> None:
        """Create a classifier. Without object counts, all requests take 1 seat."""
        self._counts = counts
        self._release = known.release
        self._max_seats = {level.name: level.max_seats or 0 for level in known.limits.levels}
        self._classify = Classifier(known.configuration)
        self._watches = known.release.classifies_watches
        self._queues = {level.name: level.queues or 0 for level in known.limits.levels}
        rules = [rule for schema in known.configuration.order for rule in schema.spec.rules]
        self._groups = {subject.group for rule in rules for subject in rule.subjects if subject.group}
        self.namespaces = frozenset(
            namespace for rule in rules for entry in rule.resource_rules for namespace in entry.namespaces
        )
        """The namespaces that FlowSchemas name. FlowSchemas do not distinguish other namespaces."""

    def assign(self, attributes: AttributeTuple) -> Assignment:
        """Return the FlowSchema, priority level and seats that requests with `attributes` get.

        If API Priority and Fairness does not classify the requests, the result only says why.
        """
        if attributes.user is None:
            return Assignment("no user")
        info = make_request_info(attributes)
        if not is_seen_by_apf(info, watches=self._watches):
            return Assignment("long-running")
        groups = attributes.groups
        user = UserInfo(attributes.user, complete_groups(attributes.user, ())[0] if groups is None else groups)
        resolution = self._classify(RequestDigest(info, user))
        certain = True
        if groups is None and not has_fixed_groups(attributes.user):
            # The log does not contain the groups of this user. Unknown groups could make the request match an earlier
            # FlowSchema. The result is certain if the request of a user who is in all groups matches the same
            # FlowSchema.
            everything = UserInfo(user.name, (*user.groups, *sorted(self._groups.difference(user.groups))))
            certain = self._classify(RequestDigest(info, everything)).position == resolution.position
        schema, level = resolution.flow_schema, resolution.priority_level.name
        method = schema.spec.distinguisher_method
        has_flows = self._queues[level] > 1 and method in (BY_USER, BY_NAMESPACE)
        seats, lacks_count = self._estimate_seats(attributes, level)
        return Assignment(
            "classified",
            schema.name,
            level,
            method if has_flows else None,
            seats,
            lacks_count,
            has_seats_at_end=not is_long_running(info),
            certain=certain,
        )

    def _estimate_seats(self, attributes: AttributeTuple, level: str) -> tuple[int, bool]:
        """Return the seats of a request, and whether they depend on an unknown number or size of objects."""
        verb, release = attributes.verb, self._release
        if self._counts is None or attributes.path or verb not in ("list", "watch"):
            return MINIMUM_SEATS, False
        options = parse_list_options(attributes.list_options)

        def estimate(objects: Count, size: int = 0) -> int:
            return estimate_seats(release, verb, options, objects, size, self._max_seats[level])

        resource = ".".join(filter(None, (attributes.resource, attributes.api_group)))
        stored = self._counts.get(resource)
        if stored is not None and stored.number == NOT_COUNTED:
            return estimate("stale"), False
        if stored is not None and (stored.size is not None or not release.estimates_seats_by_size):
            return estimate(stored.number, stored.size or 0), False
        seats = estimate("unknown")
        return seats, estimate("stale") > seats


def make_request_info(attributes: AttributeTuple) -> RequestInfo:
    """Return the attributes of a request as a `RequestInfo`, which is compared with the rules of FlowSchemas."""
    resource, subresource = attributes.resource, attributes.subresource
    path, is_resource = "", not attributes.path
    if not is_resource:
        try:
            path = parse_path(attributes.path)
        except UserError:  # `*` in `OPTIONS *` is not a path
            path = attributes.path
    prefix = ("apis" if attributes.api_group else "api") if is_resource else ""
    return RequestInfo(
        is_resource,
        attributes.verb,
        prefix,
        attributes.api_group,
        "",
        attributes.namespace,
        resource,
        subresource,
        "",
        path,
    )
