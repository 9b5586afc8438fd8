"""Classification of attribute tuples: what API Priority and Fairness does with the requests that have these attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from apflint.errors import UserError
from apflint.evaluate.authentication import NODE_PREFIX, complete_groups, parse_service_account
from apflint.evaluate.classify import Classifier
from apflint.evaluate.flows import BY_NAMESPACE, BY_USER
from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.requestinfo import RequestInfo, is_long_running, is_seen_by_apf, parse_path
from apflint.record import NamedTuple

if TYPE_CHECKING:
    from apflint.effective import Effective
    from apflint.replay.events import AttributeTuple

Outcome = Literal["classified", "long-running", "no user"]


class Assignment(NamedTuple):
    """What API Priority and Fairness does with the requests of one attribute tuple."""

    outcome: Outcome
    """`classified`, `long-running` if it skips them, or `no user` if authentication failed."""
    flow_schema: str | None = None
    priority_level: str | None = None
    distinguished_by: str | None = None
    """`ByUser` or `ByNamespace`, or None if all requests of the FlowSchema are one flow."""
    seats: int = 1
    """Seats while a request executes. Lists may take more: the audit log does not show how many objects they load."""
    has_seats_at_end: bool = True
    """Whether requests hold their seats until they end. Watches hold seats only until they are initialized."""
    certain: bool = True
    """False if the FlowSchema depends on groups that the log does not contain."""


class TupleClassifier:
    """Classifies attribute tuples under one configuration."""

    def __init__(self, known: Effective) -> None:
        self._classify = Classifier(known.configuration)
        self._watches = known.release.classifies_watches
        self._queues = {level.name: level.queues or 0 for level in known.limits.levels}
        rules = [rule for schema in known.configuration.order for rule in schema.spec.rules]
        self._groups = {subject.group for rule in rules for subject in rule.subjects if subject.group}
        self.namespaces = frozenset(
            namespace for rule in rules for entry in rule.resource_rules for namespace in entry.namespaces
        )
        """The namespaces that FlowSchemas name. All other namespaces are equal to them."""

    def assign(self, attributes: AttributeTuple) -> Assignment:
        """Return what API Priority and Fairness does with requests of these attributes."""
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
            # More groups can only match earlier FlowSchemas. So if all groups together match no earlier one, none do.
            everything = UserInfo(user.name, (*user.groups, *sorted(self._groups.difference(user.groups))))
            certain = self._classify(RequestDigest(info, everything)).position == resolution.position
        schema, level = resolution.flow_schema, resolution.priority_level.name
        method = schema.spec.distinguisher_method
        has_flows = self._queues[level] > 1 and method in (BY_USER, BY_NAMESPACE)
        return Assignment(
            "classified",
            schema.name,
            level,
            method if has_flows else None,
            has_seats_at_end=not is_long_running(info),
            certain=certain,
        )


def make_request_info(attributes: AttributeTuple) -> RequestInfo:
    """Return the attributes of a request in the form that FlowSchemas are compared with."""
    resource, subresource = attributes.resource, attributes.subresource
    path, is_resource = "", not attributes.path
    if not is_resource:
        try:
            path = parse_path(attributes.path)
        except UserError:  # not a path, as in `OPTIONS *`
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


def has_fixed_groups(user: str) -> bool:
    """Return whether the groups of a user follow from the user name: service accounts, nodes and anonymous users."""
    return parse_service_account(user) is not None or user.startswith(NODE_PREFIX) or user == "system:anonymous"
