"""APF515: FlowSchemas that capture API discovery of nearly all clients into a small level without queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.checks.level_facts import describe_seats
from apflint.evaluate.authentication import effective_groups
from apflint.evaluate.classify import classify
from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX
from apflint.finding import Problem
from apflint.location import Place
from apflint.record import NamedTuple
from apflint.wording import listed, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.evaluate.classify import MatchedBy
    from apflint.evaluate.limits import LevelLimits
    from apflint.load.document import Document
    from apflint.model import FlowSchema

_ROOTS = ("/api", "/apis")
"""Paths without which a client cannot find any resource (client-go, discovery_client.go, `GroupsAndMaybeResources`)."""
_OPENAPI = ("/openapi/v2", "/openapi/v3")


class _Capture(NamedTuple):
    """One discovery request of an arbitrary client that goes to a FlowSchema of the user."""

    schema: FlowSchema
    matched_by: MatchedBy
    path: str
    clients: str
    user: str
    usual_level: LevelLimits


def discovery_captured(effective: Effective) -> Iterator[Problem]:
    """APF515."""
    rejecting = {level.name: level for level in effective.limits.levels if level.response == "Reject"}
    candidates = [
        schema
        for schema in effective.own_flow_schemas
        if schema.spec.priority_level_configuration in rejecting
        and any(rule.non_resource_rules for rule in schema.spec.rules)
    ]
    if not candidates:
        return
    by_schema: dict[Document, list[_Capture]] = {}
    for capture in _captures(effective):
        by_schema.setdefault(capture.schema.document, []).append(capture)
    for schema in candidates:
        level = rejecting[schema.spec.priority_level_configuration]
        captures = [each for each in by_schema.get(schema.document, ()) if _is_smaller(level, each.usual_level)]
        if any(each.path in _ROOTS for each in captures):
            yield _problem(schema, level, captures)


def _is_smaller(level: LevelLimits, usual: LevelLimits) -> bool:
    return usual.type == "Exempt" or level.nominal < usual.nominal


def _problem(schema: FlowSchema, level: LevelLimits, captures: list[_Capture]) -> Problem:
    first = captures[0]
    paths = listed(dict.fromkeys(each.path for each in captures), "and")
    clients = listed(dict.fromkeys(each.clients for each in captures), "and")
    usual = listed(
        dict.fromkeys(f"{quote(each.usual_level.name)} ({describe_seats(each.usual_level)})" for each in captures),
        "and",
    )
    message = (
        f"this captures API discovery (GET {paths}) of all {clients}, as `apflint explain get {first.path} --as"
        f" {first.user}`. The priority level {quote(level.name)} has {describe_seats(level)} and no queues; discovery usually goes"
        f" to {usual}. If no seat is free, the server answers 429, and kubectl and starting controllers cannot find any"
        " resource. List only the paths you mean, or use a priority level with queues"
    )
    by = first.matched_by
    path = ("spec", "rules", by.rule, "nonResourceRules", by.non_resource_rule or 0)
    return Problem(Place(schema.document, path), message)


def _captures(effective: Effective) -> Iterator[_Capture]:
    """Yield the discovery requests that the user's FlowSchemas capture from clients that no manifest mentions."""
    from apflint.proofs.candidates import fresh
    from apflint.proofs.encoding import Point
    from apflint.proofs.witness import digest

    after, before = effective.configuration, effective.without_own
    names = fresh([rule for schema in after.order for rule in schema.spec.rules])
    account = f"{SERVICE_ACCOUNT_PREFIX}{names.namespace}:{names.account}"
    for clients, user in (("users", names.user), ("service accounts", account)):
        groups = effective_groups(user, ())[0]
        for path in (*_ROOTS, *_OPENAPI):
            request = digest(Point(user, groups, is_resource=False, verb="get", path=path))
            found = classify(after, request)
            usual = effective.limits.level(classify(before, request).priority_level.name)
            if found.matched_by is not None and usual is not None:
                yield _Capture(found.flow_schema, found.matched_by, path, clients, user, usual)
