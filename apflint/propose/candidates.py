"""The candidates of a search: combinations of changes that may remove the cause of an incident, the smallest first.

Not all combinations are tried. New numbers of seats come from a short list of multiples of the seats that the requests
need.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.doctor.expected_levels import LEASE_LEVELS
from apflint.evaluate.authentication import AUTHENTICATED, parse_service_account
from apflint.evaluate.configuration import EXEMPT
from apflint.evaluate.flows import BY_NAMESPACE, BY_USER
from apflint.evaluate.shares import find_smallest_shares
from apflint.model import QueuingConfiguration
from apflint.named_tuple import NamedTuple
from apflint.propose.changes import (
    FlowSchemaFieldChange,
    NewFlowSchema,
    NewLevel,
    apply_changes,
    find_forbidden,
    find_last_built_in,
    is_system_flow_schema,
    measure,
)
from apflint.propose.goals import Isolation, is_several_users, parse_subject
from apflint.propose.isolation import NoProposal, propose_isolation
from apflint.propose.log_causes import rank_users
from apflint.simulate.field_overrides import LevelFieldChange

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.effective_configuration import Effective
    from apflint.evaluate.limits import LevelLimits
    from apflint.model import FlowSchema, Subject
    from apflint.propose.changes import Change, Cost
    from apflint.propose.incidents import Usage
    from apflint.propose.isolation import IsolationProposal
    from apflint.propose.log_causes import LogCause
    from apflint.replay.loaded_log import Replay

SHARES = "nominalConcurrencyShares"
_NEED_FACTORS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)
"""Numbers of seats to try, as multiples of the average number of seats that the requests need."""
_BORROWING = (50, 100, 200, 400, None)
_LENGTHS = (2, 4)
"""Factors to try for the number of queues and for the length of the queues."""
_MAX_USERS = 3
"""Maximum number of users whom a new FlowSchema names one by one, if they have no group in common."""
_STEPS = (1000, 500, 100, 50, 10, 5, 1)
FLOW_QUEUES = QueuingConfiguration(queues=64, hand_size=6, queue_length_limit=50)
ONE_FLOW_QUEUES = QueuingConfiguration(queues=1, hand_size=1, queue_length_limit=50)
"""Queues of a new level: `FLOW_QUEUES` for several flows, and `ONE_FLOW_QUEUES` for a single flow.

The queue length is the default of Kubernetes.
"""
_VITAL_LEVELS = LEASE_LEVELS | {"system"}
"""Levels of leases, heartbeats and kubelets. `workload-high`, the level of controllers, is not included."""
_SHARED_LEVELS = ("global-default", "workload-low")
"""Built-in levels for requests of all other users."""


class Candidate(NamedTuple):
    """Changes that a search tries together."""

    kind: str
    """Kind of the changes, for the summary of what was tried, such as `a separate priority level for X`."""
    changes: tuple[Change, ...]
    cost: Cost
    isolation: IsolationProposal | None = None
    """The proposal of a new FlowSchema and its level, or None if the candidate has no new FlowSchema."""
    schema: str = ""
    """Name of the user's FlowSchema whose precedence changes, or ""."""
    after: Effective | None = None
    """The configuration with the changes."""


class CandidateList(NamedTuple):
    """The candidates (combinations of changes) of a search, and the changes that are never proposed."""

    candidates: tuple[Candidate, ...]
    """The candidates in ascending order of cost."""
    impossible: tuple[str, ...]
    """Changes that seem useful but are never proposed, each with the reason, as sentences without a period."""


def list_candidates(replay: Replay, usage: Usage, cause: LogCause, max_objects: int | None = None) -> CandidateList:
    """Return the candidates that may remove a cause, and the changes that are not possible.

    `replay` has the configuration that was in force. Candidates with more than `max_objects` new objects are left out.
    """
    builder = _Builder(replay, usage, cause)
    found: list[Candidate] = []
    for kind, changes, isolation, schema in builder.list_all():
        forbidden = find_forbidden(builder.known, changes)
        if forbidden:
            builder.impossible.setdefault(f"{kind}: {forbidden[0]}", None)
            continue
        after = apply_changes(builder.known, changes)
        cost = measure(changes, builder.known, after)
        if max_objects is None or cost.objects <= max_objects:
            found.append(Candidate(kind, changes, cost, isolation, schema, after))
    found.sort(key=lambda candidate: candidate.cost)  # stable: candidates with equal costs keep their order
    return CandidateList(tuple(found), tuple(builder.impossible))


_Found = tuple[str, tuple["Change", ...], "IsolationProposal | None", str]


class _Builder:
    def __init__(self, replay: Replay, usage: Usage, cause: LogCause) -> None:
        self.replay, self.usage, self.cause = replay, usage, cause
        self.known = replay.known
        self.release = self.known.release
        self.total = self.known.limits.server_concurrency
        self.built_in_levels = builtin.list_names(self.release, "PriorityLevelConfiguration")
        self.built_in_schemas = builtin.list_names(self.release, "FlowSchema")
        self.impossible: dict[str, None] = {}
        servers = {server for (server, _), _ in usage.servers}
        self.seconds = usage.incident.seconds * max(1, len(servers))

    def list_all(self) -> Iterator[_Found]:
        if self.cause.cause == "leases-captured":  # more seats would not move the leases to their own level
            yield from self._change_precedence()
            return
        yield from self._change_distinguisher()
        yield from self._change_level()
        yield from self._place_clients()

    @property
    def limits(self) -> LevelLimits | None:
        return self.known.limits.level(self.cause.level)

    def _schema(self, name: str) -> FlowSchema | None:
        return next((schema for schema in self.known.configuration.order if schema.name == name), None)

    def _change_precedence(self) -> Iterator[_Found]:
        """Yield changes of matchingPrecedence for the FlowSchema that causes the incident.

        Each change places this FlowSchema after the FlowSchemas for the most important requests of the
        system, or after all FlowSchemas for the system. Some changes also set the distinguisherMethod
        `ByUser`, or give the priority level more shares.
        """
        schema = self._schema(self.cause.schema)
        if schema is None or schema.name in self.built_in_schemas:
            return
        order = self.known.configuration.order
        system = [at for at, other in enumerate(order) if is_system_flow_schema(other, self.release)]
        vital = [at for at in system if order[at].spec.priority_level_configuration in _VITAL_LEVELS]
        every = [*system, find_last_built_in(self.known.configuration, self.release)]
        used = {other.spec.matching_precedence for other in order if other is not schema}
        for last in sorted({max(found) for found in (vital, every) if found}):
            low = order[last].spec.matching_precedence
            high = min((number for number in used if number > low), default=low + 1001)
            free = [number for step in _STEPS for number in range(low // step * step + step, high, step)]
            if low < schema.spec.matching_precedence or not free:
                continue
            change = FlowSchemaFieldChange(schema.name, "matchingPrecedence", free[0])
            kind = f"matchingPrecedence {free[0]} of {schema.name}"
            yield kind, (change,), None, schema.name
            if schema.spec.distinguisher_method != BY_USER:
                method = FlowSchemaFieldChange(schema.name, "distinguisherMethod", BY_USER)
                yield f"{kind}, with ByUser", (change, method), None, schema.name
            for more in self._list_share_changes(max(1.0, self._need())):
                yield f"{kind}, with more shares for {self.cause.level}", (change, more), None, schema.name

    def _change_distinguisher(self) -> Iterator[_Found]:
        schema = self._schema(self.cause.schema)
        limits = self.limits
        if schema is None or limits is None or (limits.queues or 0) < 2:
            return
        for method in (BY_USER, BY_NAMESPACE):
            if schema.spec.distinguisher_method is None:
                change = FlowSchemaFieldChange(schema.name, "distinguisherMethod", method)
                yield f"distinguisherMethod of {schema.name}", (change,), None, ""

    def _need(self, users: Sequence[str] | None = None) -> float:
        kinds = self.usage.at(self.cause.level)
        seat_seconds = sum(kind.seat_seconds for kind in kinds if users is None or kind.user in users)
        return seat_seconds / self.seconds

    def _list_seats(self, need: float) -> list[int]:
        return sorted({ceil(need * factor) for factor in _NEED_FACTORS if 1 <= ceil(need * factor) <= self.total})

    def _list_share_changes(self, need: float) -> list[LevelFieldChange]:
        """Return changes that give the overloaded level more shares.

        `need` is the average number of seats that the requests of this level need.
        """
        name, limits = self.cause.level, self.limits
        others = sum(level.shares for level in self.known.limits.levels if level.name != name)
        return [
            LevelFieldChange(name, SHARES, found)
            for seats in self._list_seats(need)
            if (found := find_smallest_shares(seats, others, self.total)) is not None
            and limits is not None
            and found > limits.shares
        ]

    def _change_level(self) -> Iterator[_Found]:
        """Yield changes of the overloaded level."""
        name, limits = self.cause.level, self.limits
        if limits is None or name == EXEMPT:
            return
        shares = self._list_share_changes(max(self._need(), 1.0))
        kind = f"more shares for {name}"
        for change in shares:
            yield kind, (change,), None, ""
        spec = self.known.configuration.levels[name].spec.limited
        borrowing = None if spec is None else spec.borrowing_limit_percent
        if borrowing is not None and self.release.has_borrowing:
            wider = [value for value in _BORROWING if value is None or value > borrowing]
            for value in wider:
                change = LevelFieldChange(name, "borrowingLimitPercent", value)
                yield f"borrowingLimitPercent of {name}", (change,), None, ""
            for change in shares:
                pair = (change, LevelFieldChange(name, "borrowingLimitPercent", None))
                yield f"more shares and borrowingLimitPercent for {name}", pair, None, ""
        queuing = None if spec is None else spec.limit_response.queuing
        if queuing is not None:
            for factor in _LENGTHS:
                longer = LevelFieldChange(name, "queueLengthLimit", queuing.queue_length_limit * factor)
                yield f"longer queues of {name}", (longer,), None, ""
            for factor in _LENGTHS:
                more = LevelFieldChange(name, "queues", queuing.queues * factor)
                yield f"more queues of {name}", (more,), None, ""

    def _place_clients(self) -> Iterator[_Found]:
        """Yield new FlowSchemas that send the requests of clients to an existing or a new level."""
        users = self.cause.users
        if self.cause.cause in ("flood-one-flow", "list-heavy", "single-flow"):
            for subject in map(_subject_of, users):
                yield from self._isolate((subject,), users, is_cause=True)
        elif self.cause.cause in ("small-level", "catch-all") and self.cause.level in self.built_in_levels:
            for subjects, placed in self._list_victims():
                yield from self._isolate(subjects, placed, is_cause=False)

    def _list_victims(self) -> Iterator[tuple[tuple[Subject, ...], tuple[str, ...]]]:
        """Yield (subjects, users) for each new level that may protect the clients of the overloaded level.

        `users` are the names of all users of the overloaded level. The subjects are a group that exactly
        these users have, and whose name does not begin with `system:`. If there are few users, the users
        themselves are also yielded as subjects.
        """
        users = tuple(user for user, _ in rank_users(self.usage.at(self.cause.level)))
        groups: dict[str, set[str]] = {}
        for attributes in self.replay.log.tuples:
            for group in attributes.groups or ():
                groups.setdefault(group, set()).add(attributes.user or "")
        for group in sorted(groups):
            if groups[group] == set(users) and group != AUTHENTICATED and not group.startswith("system:"):
                yield (parse_subject(f"group:{group}"),), users
        if len(users) <= _MAX_USERS:
            yield tuple(map(_subject_of, users)), users

    def _isolate(self, subjects: tuple[Subject, ...], users: Sequence[str], *, is_cause: bool) -> Iterator[_Found]:
        need = self._need(users)
        names = ", ".join(users[:_MAX_USERS])
        seats = [self._fair_part()] if is_cause else self._list_seats(max(need, 1.0))
        for count in seats:
            found = propose_isolation(self.known, Isolation(subjects, count))
            if isinstance(found, NoProposal):
                self.impossible.setdefault(f"a separate priority level for {names}: {found.reason}", None)
                return
            schema, level = found.flow_schema, found.new_level
            if schema is None or level is None:
                continue
            if count == seats[0]:
                for target in self._list_targets(is_cause=is_cause):
                    moved = schema._replace(level=target)
                    placed = found._replace(level=target, changes=(moved,))
                    yield f"{names} to the level {target}", (moved,), placed, ""
            several = len(subjects) > 1 or is_several_users(subjects[0])
            queues = FLOW_QUEUES if several else ONE_FLOW_QUEUES
            # Try a level that may borrow without limit (the default), and one that may not borrow.
            for borrowing in (None, 0) if self.release.has_borrowing else (None,):
                plain = level._replace(lendable_percent=0, borrowing_limit_percent=borrowing, queuing=queues)
                own = found._replace(changes=(plain, schema))
                yield f"a separate priority level for {names}", (plain, schema), own, ""

    def _fair_part(self) -> int:
        """Return the number of seats for a level of the client that causes the overload, at least 1.

        The result is the nominal limit of the overloaded level, divided by the number of users at this
        level. If the limits of the level are unknown, return 1.
        """
        limits = self.limits
        users = rank_users(self.usage.at(self.cause.level))
        return 1 if limits is None else max(1, limits.nominal // max(1, len(users)))

    def _list_targets(self, *, is_cause: bool) -> list[str]:
        """Return the existing levels to which a candidate may move clients.

        A level is returned only if the log contains users of the level, so that the simulation shows which
        users lose seats. If `is_cause` is true, the clients to move cause the overload. In this case, no
        level is returned, because the clients would harm the users of an existing level.
        """
        if is_cause:
            return []
        names = sorted(level.name for level in self.known.limits.levels if level.name not in self.built_in_levels)
        return [name for name in (*names, *_SHARED_LEVELS) if name != self.cause.level and self.usage.at(name)]


def _subject_of(user: str) -> Subject:
    account = parse_service_account(user)
    return parse_subject(f"user:{user}" if account is None else f"serviceaccount:{account[0]}/{account[1]}")


def list_fields(candidate: Candidate) -> tuple[tuple[str, Change], ...]:
    """Return (field, change) for each value of a candidate that may be unnecessary.

    `change` is a copy of the original change that omits the value, or contains half of it.
    """
    found: list[tuple[str, Change]] = []
    for change in candidate.changes:
        if isinstance(change, NewLevel):
            if change.borrowing_limit_percent is not None:
                found.append(("borrowingLimitPercent", change._replace(borrowing_limit_percent=None)))
            if change.shares > 1:
                found.append(("shares", change._replace(shares=change.shares // 2)))
        elif isinstance(change, NewFlowSchema) and change.distinguisher_method is not None:
            found.append(("distinguisherMethod", change._replace(distinguisher_method=None)))
        elif isinstance(change, LevelFieldChange) and change.value is not None and change.value > 1:
            found.append((change.field, change._replace(value=change.value // 2)))
    return tuple(found)
