"""Captures of requests that the system itself sends, from the priority levels reserved for them (APF507).

A capture is a pair: a protected FlowSchema of the release, and a FlowSchema of the user that now gets some requests which a
user of the system sends and which go to the protected one without the user's FlowSchemas. All pairs are found: typical
requests and guesses prove most of them, and the solver finds the others or proves that there are none.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.level_facts import describe, describe_seats
from apflint.checks.reachability import given
from apflint.checks.system_users import (
    is_subject,
    names_only_system_users,
    system_users,
    typical_requests,
)
from apflint.evaluate.configuration import matching_order
from apflint.evaluate.match import ALL
from apflint.finding import Problem
from apflint.location import Place
from apflint.record import NamedTuple
from apflint.wording import listed, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.checks.system_users import SystemUsers
    from apflint.effective import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.finding import Severity
    from apflint.load.document import Document
    from apflint.model import FlowSchema
    from apflint.proofs.encoding import Point
    from apflint.proofs.passages import Pair, Passages


class _Capture(NamedTuple):
    """Requests of the system that go from a protected FlowSchema to one of the user's."""

    protected: FlowSchema
    schema: FlowSchema
    point: Point
    is_common: bool
    """Whether users of every cluster are affected, not only nodes and service accounts that the FlowSchema names."""


class _Level(NamedTuple):
    """The priority level that captured requests go to."""

    name: str
    limits: LevelLimits | None
    """None if no file defines the level."""
    is_built_in: bool
    outsider: str | None
    """A command for a request in this level that goes to no protected FlowSchema without the user's FlowSchemas, if any."""

    @property
    def is_dedicated(self) -> bool:
        """Whether the level serves only requests of the system, and none of those that a built-in level is meant for."""
        return self.outsider is None and not self.is_built_in


def capture_problems(effective: Effective, candidates: Sequence[FlowSchema]) -> Iterator[Problem]:
    """Yield a problem for each of these FlowSchemas that captures requests of the system to a worse priority level."""
    moves = effective.passages
    by_schema: dict[Document, list[_Capture]] = {}
    for capture in _captures(effective, moves, candidates):
        by_schema.setdefault(capture.schema.document, []).append(capture)
    levels: dict[str, _Level] = {}
    for captures in by_schema.values():
        name = _level_of(captures[0].schema)
        if name not in levels:
            levels[name] = _level(effective, moves, name)
        captures.sort(key=lambda capture: matching_order(capture.protected))
        worse = [capture for capture in captures if _is_worse(effective, levels[name], capture)]
        if worse:
            yield _problem(effective, moves, levels[name], worse)


def protected_flow_schemas(effective: Effective) -> list[FlowSchema]:
    """Return the protected FlowSchemas of the release as they are without those of the user, in matching order."""
    names = builtin.protected_flow_schemas(effective.release)
    return [schema for schema in effective.without_own.order if schema.name in names]


def _protected_as_released(effective: Effective) -> list[FlowSchema]:
    """Return the protected FlowSchemas as the release defines them: a redefinition may name users that are not the system's."""
    names = builtin.protected_flow_schemas(effective.release)
    return [schema for schema in builtin.workspace_objects(effective.release).flow_schemas if schema.name in names]


def _level_of(schema: FlowSchema) -> str:
    return schema.spec.priority_level_configuration


def _captures(effective: Effective, moves: Passages, candidates: Sequence[FlowSchema]) -> Iterator[_Capture]:
    """Yield every pair once, with a request that proves it."""
    protected = protected_flow_schemas(effective)
    users = system_users(effective.assumed.order, _protected_as_released(effective))
    users_of = {
        pair: those
        for schema in candidates
        if (affected := users.users_of(schema))
        for pair, source in _pairs(moves, protected, schema)
        if (those := tuple(user for user in affected if is_subject(user, source)))
    }
    for pair, point in _proofs(moves, users_of, users):
        source, target = moves.schemas(pair)
        yield _Capture(source, target, point, point.user in users.common)


def _pairs(moves: Passages, protected: Sequence[FlowSchema], schema: FlowSchema) -> Iterator[tuple[Pair, FlowSchema]]:
    """Yield the protected FlowSchemas from which one of the user's may capture something to another level."""
    from apflint.proofs.overlap import may_overlap

    for source in protected:
        if (
            matching_order(schema) < matching_order(source)
            and schema.name != source.name
            and _level_of(schema) != _level_of(source)
            and may_overlap(schema, source, "authenticated")
        ):
            yield (moves.old.position(source), moves.new.position(schema)), source


def _proofs(moves: Passages, users_of: dict[Pair, tuple[str, ...]], users: SystemUsers) -> Iterator[tuple[Pair, Point]]:
    """Yield each pair that a request proves: by a user of every cluster if possible, and a typical request if possible."""
    left = dict(users_of)
    common = frozenset(users.common)
    for some in (common, frozenset(chain.from_iterable(users.named.values()))):
        affected = dict.fromkeys(user for those in left.values() for user in those if user in some)
        for user in affected:
            for point in typical_requests(user):
                if left.pop(pair := moves.pair(point), None):
                    yield pair, point
        for pair, those in tuple(left.items()):
            if (guess := moves.guess(pair, [user for user in those if user in some])) is not None:
                del left[pair]
                yield pair, guess
        for user in affected:
            wanted = [pair for pair, those in left.items() if user in those]
            for point in moves.find(wanted, user) if wanted else ():
                left.pop(moves.pair(point))
                yield moves.pair(point), point


def _level(effective: Effective, moves: Passages, name: str) -> _Level:
    protected = {schema.document for schema in protected_flow_schemas(effective)}
    others = [schema for schema in effective.without_own.order if schema.document not in protected]
    point = moves.between(others, [schema for schema in effective.assumed.order if _level_of(schema) == name])
    return _Level(
        name,
        effective.limits.level(name),
        name in builtin.names(effective.release, "PriorityLevelConfiguration"),
        None if point is None else moves.witness(point).command,
    )


def _is_worse(effective: Effective, level: _Level, capture: _Capture) -> bool:
    reserved = effective.limits.level(_level_of(capture.protected))
    if level.limits is None or reserved is None:
        return True
    return not (level.is_dedicated and level.limits.is_at_least_as_good_as(reserved))


def _problem(effective: Effective, moves: Passages, level: _Level, captures: list[_Capture]) -> Problem:
    schema = captures[0].schema
    shown = listed((f"{quote(one.protected.name)} (`{_command(moves, one)}`)" for one in captures), "and")
    noun = "FlowSchema" if len(captures) == 1 else "FlowSchemas"
    return Problem(
        Place(schema.document, ("metadata", "name")),
        f"this captures requests that the system itself sends, from the built-in {noun} {shown}."
        f" {_comparison(effective, level, captures)}. {_advice(level, captures)}{given(effective, schema)}",
        severity=_severity(level, captures),
    )


def _command(moves: Passages, capture: _Capture) -> str:
    from apflint.proofs.requesters import system_user

    if capture.point in typical_requests(capture.point.user):
        return moves.exact_witness(capture.point).command
    return moves.witness(capture.point, (system_user(capture.point.user),)).command


def _reserved(captures: Sequence[_Capture]) -> list[str]:
    return list(dict.fromkeys(_level_of(capture.protected) for capture in captures))


def _comparison(effective: Effective, level: _Level, captures: Sequence[_Capture]) -> str:
    """Say where the requests go instead of where, with the figures of both levels."""
    reserved = {name: effective.limits.level(name) for name in _reserved(captures)}
    form = describe if level.is_dedicated else describe_seats
    others = listed((f"{quote(name)} ({form(found)})" for name, found in reserved.items() if found), "and")
    shared = ""
    if level.outsider:
        example = "" if level.is_built_in else f" (`{level.outsider}`)"
        shared = f", which also serves other clients{example},"
    figures = f" ({form(level.limits)})" if level.limits else ""
    return f"They go to the priority level {quote(level.name)}{figures}{shared} instead of {others}"


def _advice(level: _Level, captures: Sequence[_Capture]) -> str:
    schema, reserved = captures[0].schema, listed(map(quote, _reserved(captures)))
    if level.is_dedicated and level.limits is not None:
        return f"Give {quote(level.name)} at least as many seats and as much room to queue, or use {reserved}"
    if level.is_dedicated or names_only_system_users(schema):
        return f"Use {reserved}, or a priority level for these clients alone with at least as many seats"
    last = max(capture.protected.spec.matching_precedence for capture in captures)
    return f"Name the clients you mean, or use a matchingPrecedence above {last}"


def _severity(level: _Level, captures: Sequence[_Capture]) -> Severity | None:
    """Return `info` if somebody chose this level for these clients, or if no API of Kubernetes itself is affected."""
    if not any(capture.is_common for capture in captures) or _only_custom_resources(captures[0].schema):
        return "info"
    rejects = level.limits is not None and not level.limits.queues
    return None if level.outsider or rejects else "info"


def _only_custom_resources(schema: FlowSchema) -> bool:
    from apflint.evaluate.resources import RESOURCES

    known = {resource.group for resource in RESOURCES} | {ALL}
    return all(
        not rule.non_resource_rules and all(known.isdisjoint(each.api_groups) for each in rule.resource_rules)
        for rule in schema.spec.rules
    )
