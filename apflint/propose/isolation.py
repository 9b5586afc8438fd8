"""Proposes a separate priority level for the requests of a tenant. The proposal needs no audit log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.evaluate.authentication import single_user
from apflint.evaluate.configuration import CATCH_ALL
from apflint.evaluate.flows import BY_USER
from apflint.evaluate.match import ALL, UserInfo, matches_subject
from apflint.evaluate.shares import find_smallest_shares
from apflint.model import PolicyRulesWithSubjects, QueuingConfiguration, Subject
from apflint.named_tuple import NamedTuple
from apflint.proofs.candidates import make_requester
from apflint.proofs.one_configuration import Analysis
from apflint.proofs.witness import make_witness
from apflint.propose.changes import (
    NewFlowSchema,
    NewLevel,
    find_last_built_in,
    is_system_flow_schema,
)
from apflint.propose.goals import find_refusal, match_all_requests, write_subject
from apflint.propose.proof import Intention
from apflint.simulate.field_overrides import LevelFieldChange
from apflint.user_error import UserError
from apflint.wording import join_words, pluralize, quote

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from apflint.effective_configuration import Effective
    from apflint.evaluate.configuration import Configuration
    from apflint.evaluate.limits import LevelLimits
    from apflint.model import FlowSchema
    from apflint.proofs.witness import Witness
    from apflint.propose.changes import Change
    from apflint.propose.goals import Isolation

LENDABLE_PERCENT, BORROWING_LIMIT_PERCENT = 50, 100
QUEUING = QueuingConfiguration(queues=64, hand_size=6, queue_length_limit=50)
"""Queues of a new level for several flows, as in the built-in level `node-high`.

Four busy flows fill all queues of another flow with a probability of 0.1% (`apflint shards --recommend 0.001
--elephants 4`).
"""
ONE_FLOW_QUEUING = QueuingConfiguration(queues=1, hand_size=1, queue_length_limit=300)
"""Queues of a new level for a single flow: one queue that holds as many requests as `QUEUING` allows for a flow."""
_EVERYBODY = Subject("User", ALL, None, None)
_STEPS = (1000, 500, 100, 50, 10, 5, 1)
"""Preferred divisors of a new precedence, because round numbers are easier to read in a list of FlowSchemas."""
_SHARES = "nominalConcurrencyShares"
_MAX_NAME = 63


class Captor(NamedTuple):
    """A FlowSchema that captures requests of a typical client of the tenant, with an example request (`find_captors`)."""

    flow_schema: FlowSchema
    position: int
    witness: Witness

    @property
    def level(self) -> str:
        """The priority level of the FlowSchema."""
        return self.flow_schema.spec.priority_level_configuration


class IsolationProposal(NamedTuple):
    """Changes that give a tenant its own level, and the FlowSchemas whose requests are intended to move."""

    goal: Isolation
    level: str
    changes: tuple[Change, ...]
    sources: tuple[FlowSchema, ...]
    """FlowSchemas that lose requests of the tenant to the new FlowSchema, which precedes them.

    Empty if only shares change.
    """
    captors: tuple[Captor, ...]
    """The FlowSchemas in `sources` that capture requests of clients that belong only to the tenant."""
    staying: tuple[Captor, ...]
    """FlowSchemas before the new FlowSchema, which still capture requests of the tenant."""

    @property
    def name(self) -> str:
        """Name of the new FlowSchema, or of the existing priority level if the proposal changes only shares.

        The default names of the written files contain this name.
        """
        return self.level if self.flow_schema is None else self.flow_schema.name

    @property
    def flow_schema(self) -> NewFlowSchema | None:
        """The new FlowSchema, or None if only shares change."""
        return next((change for change in self.changes if isinstance(change, NewFlowSchema)), None)

    @property
    def new_level(self) -> NewLevel | None:
        """The new priority level, or None if the tenant already has its own level."""
        return next((change for change in self.changes if isinstance(change, NewLevel)), None)

    @property
    def shares_change(self) -> LevelFieldChange | None:
        """The change of the shares of the tenant's existing level, or None if the level is new."""
        return next((change for change in self.changes if isinstance(change, LevelFieldChange)), None)

    def find_intention(self, after: Effective) -> Intention:
        """Return the tenant's requests, and the FlowSchemas from which and to which these requests must move.

        `after` is the configuration with the changes. It contains the new FlowSchema, if there is one.
        """
        new = self.flow_schema
        targets = tuple(schema for schema in after.configuration.order if new is not None and schema.name == new.name)
        return Intention(self.goal.rule, self.sources, targets)


class NoProposal(NamedTuple):
    """The reason why there is no proposal, and advice."""

    reason: str
    """The reason, as a clause."""
    advice: str = ""
    """What the user can do instead, as a clause. Empty if unknown."""


def propose_isolation(effective: Effective, goal: Isolation) -> IsolationProposal | NoProposal:
    """Return the smallest changes that give a tenant its own level with `goal.seats` seats.

    If there are no such changes, return the reason. The tenant is a set of clients (`goal.subjects`).
    Raises UserError if `goal.seats` is not from 1 to the seats of an API server. The function does not
    prove that the changes move the requests of the tenant, so the caller must prove this.
    """
    for subject in goal.subjects:
        if reason := find_refusal(subject):
            return NoProposal(reason)
    total = effective.limits.server_concurrency
    if not 1 <= goal.seats <= total:
        raise UserError(f"--seats {goal.seats}: use 1 to {total}, the seats of an API server (--server-concurrency)")
    search = _Search(effective, goal)
    if not search.movable:
        return search.explain_immovable()
    return search.propose()


class _Search:
    """Searches for changes that give the requests of the tenant a separate priority level.

    The search starts from `captors`: the FlowSchemas that capture requests of the tenant in the current
    configuration.
    """

    def __init__(self, effective: Effective, goal: Isolation) -> None:
        self.effective, self.goal = effective, goal
        self.configuration = effective.configuration
        self.captors = tuple(find_captors(self.configuration, goal.subjects))
        self.last_built_in = find_last_built_in(self.configuration, effective.release)
        system = (
            captor.position for captor in self.captors if is_system_flow_schema(captor.flow_schema, effective.release)
        )
        self.last_fixed = max((self.last_built_in, *system))
        """Position of the last FlowSchema that must stay before the new FlowSchema."""
        self.movable = tuple(captor for captor in self.captors if captor.position > self.last_fixed)

    def explain_immovable(self) -> NoProposal:
        """Return the reason why no new FlowSchema can capture requests of the tenant, with advice if there is any.

        The reason is that FlowSchemas for the system must stay before a new FlowSchema.
        """
        names = join_words((f"{quote(captor.flow_schema.name)}" for captor in self.captors), "and")
        tenant = describe_tenant(self.goal)
        if self.last_fixed > self.last_built_in or self.last_built_in < 0:
            return NoProposal(
                f"all requests of {tenant} go to {names}, which are for the system and must stay before other FlowSchemas"
            )
        last = self.configuration.order[self.last_built_in]
        return NoProposal(
            f"all requests of {tenant} are captured by {names}. To capture requests first, a new FlowSchema would also have to be before"
            f" {quote(last.name)} (matchingPrecedence {last.spec.matching_precedence}), which is for the system",
            f"raise matchingPrecedence of your FlowSchema above {last.spec.matching_precedence}, or let it reference another level",
        )

    def propose(self) -> IsolationProposal | NoProposal:
        """Return the changes that move requests of the tenant to its level, or the reason why there are none.

        If no request of the tenant can move (`movable` is empty), call `explain_immovable` instead.
        """
        own = self._find_own_level()
        others = tuple(captor for captor in self.movable if captor.level != own)
        shares = self._find_shares(own)
        if shares is None:
            return NoProposal(
                f"no number of shares gives the priority level {self.goal.seats} of the {self._total} seats of an API server"
            )
        resized = () if own is None else self._resize(own, shares)
        if not others:
            return self._change_shares(own or "", resized)
        earliest = min(captor.position for captor in others)
        precedence, first = self._find_precedence(earliest)
        if precedence is None:
            return self._explain_precedence(earliest)
        name = self._choose_name()
        level = own or name
        changes: tuple[Change, ...] = resized if own is not None else (self._build_level(level, shares),)
        has_queues = own is None or (self._limits_of(own).queues or 0) > 1
        method = BY_USER if self._has_several_users and has_queues else None
        sources = self.configuration.order[first:]
        rule = self._keep_used_entries(sources)
        return IsolationProposal(
            self.goal,
            level,
            (*changes, NewFlowSchema(name, level, precedence, method, (rule,))),
            sources,
            tuple(captor for captor in self.captors if captor.position >= first),
            tuple(captor for captor in self.captors if captor.position < first),
        )

    def _keep_used_entries(self, sources: Sequence[FlowSchema]) -> PolicyRulesWithSubjects:
        """Return the rule of the new FlowSchema, which matches the requests of the tenant.

        The rule contains resource rules only if FlowSchemas in `sources` capture resource requests of the
        tenant. It contains non-resource rules only if FlowSchemas in `sources` capture non-resource
        requests of the tenant.
        """
        rule = self.goal.rule
        parts = rule._replace(non_resource_rules=()), rule._replace(resource_rules=())
        analysis = Analysis(self.configuration, more_rules=parts)
        resources, paths = (analysis.find_request_in(part, sources) is not None for part in parts)
        return rule._replace(
            resource_rules=rule.resource_rules if resources else (),
            non_resource_rules=rule.non_resource_rules if paths else (),
        )

    def _resize(self, own: str, shares: int) -> tuple[LevelFieldChange, ...]:
        """Return the change of the level `own` to `shares`, or () if it already has these shares or the wanted seats."""
        limits = self._limits_of(own)
        if limits.shares == shares or limits.nominal == self.goal.seats:
            return ()
        return (LevelFieldChange(own, _SHARES, shares),)

    def _change_shares(self, own: str, changes: tuple[LevelFieldChange, ...]) -> IsolationProposal | NoProposal:
        if changes:
            return IsolationProposal(self.goal, own, changes, (), (), self.captors)
        return NoProposal(
            f"{describe_tenant(self.goal)} already has its own priority level {quote(own)} with"
            f" {pluralize(self._limits_of(own).nominal, 'nominal seat')} in each API server"
        )

    def _find_shares(self, own: str | None) -> int | None:
        """Return the smallest number of shares that gives the tenant's level the wanted seats, or None if no number does."""
        others = sum(level.shares for level in self.effective.limits.levels if level.name != own)
        return find_smallest_shares(self.goal.seats, others, self._total)

    @property
    def _total(self) -> int:
        return self.effective.limits.server_concurrency

    def _limits_of(self, name: str) -> LevelLimits:
        return next(level for level in self.effective.limits.levels if level.name == name)

    def _explain_precedence(self, earliest: int) -> NoProposal:
        order = self.configuration.order
        low = f"{quote(order[self.last_fixed].name)} ({order[self.last_fixed].spec.matching_precedence})"
        high = f"{quote(order[earliest].name)} ({order[earliest].spec.matching_precedence})"
        return NoProposal(
            f"no matchingPrecedence is free between {low} and {high}",
            "leave room between the precedences of your FlowSchemas",
        )

    def _find_own_level(self) -> str | None:
        """Return the priority level that gets only requests of the tenant and is not built-in, or None if there is none."""
        built_in = builtin.list_names(self.effective.release, "PriorityLevelConfiguration")
        names = dict.fromkeys(captor.level for captor in self.movable if captor.level not in built_in)
        everything = match_all_requests((_EVERYBODY,))
        analysis = Analysis(self.configuration, more_rules=(everything, self.goal.rule))
        for name in names:
            schemas = [
                schema for schema in self.configuration.order if schema.spec.priority_level_configuration == name
            ]
            if analysis.find_request_in(everything, schemas, [self.goal.rule]) is None:
                return name
        return None

    def _find_precedence(self, earliest: int) -> tuple[int | None, int]:
        """Return a free precedence before a FlowSchema, and the position of the first FlowSchema after this precedence.

        `earliest` is the position of the FlowSchema. If there is no free precedence directly before this
        FlowSchema, search before the previous FlowSchema, and so on. The new FlowSchema then precedes
        further FlowSchemas, so it also captures the requests of the tenant that these FlowSchemas captured
        before.

        Return (None, `earliest`) if no precedence is free.
        """
        order = self.configuration.order
        for first in range(earliest, self.last_fixed, -1):
            low = order[first - 1].spec.matching_precedence if first else 0
            high = order[first].spec.matching_precedence
            for step in _STEPS:
                multiples = range(low // step * step + step, high, step)
                if multiples:
                    # `min` calls the lambda immediately, so `low` and `high` have the values of this iteration.
                    return min(multiples, key=lambda number: abs(2 * number - low - high)), first
        return None, earliest

    @property
    def _has_several_users(self) -> bool:
        return len(self.goal.subjects) > 1 or single_user(self.goal.subjects[0]) is None

    def _build_level(self, name: str, shares: int) -> NewLevel:
        queuing = QUEUING if self._has_several_users else ONE_FLOW_QUEUING
        return NewLevel(name, shares, LENDABLE_PERCENT, BORROWING_LIMIT_PERCENT, queuing)

    def _choose_name(self) -> str:
        """Return a name for the new FlowSchema and the new priority level that no other such object has.

        The name is that of the first subject of the goal. If it is used, a number follows, such as `ci-2`.
        """
        configuration, release = self.configuration, self.effective.release
        used = {schema.name for schema in (*configuration.order, *configuration.dangling)}
        used |= {*configuration.levels, *configuration.unusable}
        used |= builtin.list_names(release, "FlowSchema") | builtin.list_names(release, "PriorityLevelConfiguration")
        name = make_name(self.goal.subjects[0])
        number = 2
        chosen = name
        while chosen in used:
            chosen, number = f"{name}-{number}", number + 1
        return chosen


def make_name(subject: Subject) -> str:
    """Return a subject's name converted to an object name, which allows only lowercase letters, digits, `-` and `.`."""
    text = (subject.user if subject.kind == "User" else subject.group) or ""
    if (account := subject.service_account) is not None:
        text = account.namespace if account.name == ALL else f"{account.namespace}-{account.name}"
    parts = (re.sub(r"[^a-z0-9]+", "-", part).strip("-") for part in text.lower().split("."))
    return ".".join(filter(None, parts))[:_MAX_NAME].rstrip("-.") or "tenant"


def describe_tenant(goal: Isolation) -> str:
    """Return the subjects of a tenant in the form that `--isolate` accepts."""
    return join_words(map(write_subject, goal.subjects), "and")


def find_captors(configuration: Configuration, subjects: Sequence[Subject]) -> Iterator[Captor]:
    """Yield the FlowSchemas that capture requests of a typical client of each subject, in matching order.

    A typical client of a group belongs only to this group. A typical service account of a namespace has a name that no
    rule contains.
    """
    found: dict[int, Captor] = {}
    unmentioned = Analysis(configuration).unmentioned
    for subject in subjects:
        user, groups = make_requester(subject, unmentioned)
        reduced = _reduce(configuration, UserInfo(user, groups))
        analysis = Analysis(reduced)
        for schema in reduced.order:
            witness = analysis.find_request(schema)
            if witness is not None:
                position = next(at for at, other in enumerate(configuration.order) if other.document is schema.document)
                point = witness.point._replace(user=user, groups=groups)
                found.setdefault(position, Captor(configuration.order[position], position, make_witness(point)))
    yield from (found[position] for position in sorted(found))


def _reduce(configuration: Configuration, user: UserInfo) -> Configuration:
    """Return the configuration as one user sees it: only rules with a subject that matches the user remain.

    The subjects of the remaining rules are replaced by one subject that matches all users. FlowSchemas
    without such a rule are left out, except `catch-all`.
    """
    reduced = []
    for schema in configuration.order:
        rules = tuple(
            PolicyRulesWithSubjects((_EVERYBODY,), rule.resource_rules, rule.non_resource_rules)
            for rule in schema.spec.rules
            if any(matches_subject(user, subject) for subject in rule.subjects)
        )
        if rules or schema.name == CATCH_ALL:
            reduced.append(schema._replace(spec=schema.spec._replace(rules=rules)))
    return configuration._replace(order=tuple(reduced))
