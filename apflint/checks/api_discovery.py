"""APF515: FlowSchemas that capture API discovery of nearly all clients into a small level without queues."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.checks.descriptions import describe_seats
from apflint.evaluate.authentication import complete_groups
from apflint.evaluate.classify import classify
from apflint.evaluate.match import SERVICE_ACCOUNT_PREFIX
from apflint.finding import Problem
from apflint.location import Place
from apflint.record import NamedTuple
from apflint.wording import join_words, quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.evaluate.classify import MatchedBy
    from apflint.evaluate.limits import LevelLimits
    from apflint.model import FlowSchema

_ROOTS = ("/api", "/apis")
"""Paths that every client needs to find resources (client-go, discovery_client.go, `GroupsAndMaybeResources`)."""
_OPENAPI = ("/openapi/v2", "/openapi/v3")


class _Capture(NamedTuple):
    """A discovery request that goes to a FlowSchema of the user."""

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
    all_captures = list(_find_captures(effective)) if candidates else []
    for schema in candidates:
        level = rejecting[schema.spec.priority_level_configuration]
        captures = [
            capture
            for capture in all_captures
            if capture.schema.document is schema.document
            and (capture.usual_level.type == "Exempt" or level.nominal < capture.usual_level.nominal)
        ]
        if any(capture.path in _ROOTS for capture in captures):
            yield _problem(schema, level, captures)


def _problem(schema: FlowSchema, level: LevelLimits, captures: list[_Capture]) -> Problem:
    first = captures[0]
    paths = join_words(dict.fromkeys(capture.path for capture in captures), "and")
    clients = join_words(dict.fromkeys(capture.clients for capture in captures), "and")
    usual = {capture.usual_level.name: describe_seats(capture.usual_level) for capture in captures}
    usual_levels = join_words((f"{quote(name)} ({seats})" for name, seats in usual.items()), "and")
    matched_by = first.matched_by
    path = ("spec", "rules", matched_by.rule, "nonResourceRules", matched_by.non_resource_rule or 0)
    return Problem(
        Place(schema.document, path),
        f"FlowSchema captures API discovery (GET {paths}) of all {clients}",
        notes=(
            f"The priority level {quote(level.name)} has {describe_seats(level)} and no queues.",
            f"Discovery usually goes to {usual_levels}.",
            "If no seat is free, the server answers 429, and kubectl and starting controllers find no resources.",
        ),
        help="list only the intended paths, or use a priority level with queues",
        example=f"apflint explain get {first.path} --as {first.user}",
    )


def _find_captures(effective: Effective) -> Iterator[_Capture]:
    """Yield the discovery requests that FlowSchemas capture from clients that no manifest names."""
    from apflint.proofs.candidates import Unmentioned
    from apflint.proofs.request_space import Point, make_digest

    after, before = effective.configuration, effective.without_own
    names = Unmentioned.by([rule for schema in after.order for rule in schema.spec.rules])
    account = f"{SERVICE_ACCOUNT_PREFIX}{names.namespace}:{names.account}"
    for clients, user in (("users", names.user), ("service accounts", account)):
        groups = complete_groups(user, ())[0]
        for path in (*_ROOTS, *_OPENAPI):
            request = make_digest(Point(user, groups, is_resource=False, verb="get", path=path))
            destination = classify(after, request)
            usual = effective.limits.level(classify(before, request).priority_level.name)
            if destination.matched_by is not None and usual is not None:
                yield _Capture(destination.flow_schema, destination.matched_by, path, clients, user, usual)
