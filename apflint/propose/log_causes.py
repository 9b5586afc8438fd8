"""The cause of an incident, found in an audit log without metrics. `doctor` finds the same causes in metrics.

The names of causes are those of `doctor`. There is a proposal only for causes that a change of API Priority and
Fairness objects can remove.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.client_fixes import HONOR_RETRY_AFTER, LIMIT_RATE, USE_INFORMER
from apflint.effective_configuration import Effective
from apflint.evaluate import system_request_rules
from apflint.evaluate.configuration import CATCH_ALL, EXEMPT
from apflint.named_tuple import NamedTuple
from apflint.propose.goals import parse_subject, write_subject
from apflint.propose.incidents import MIN_HARMED
from apflint.replay.classification import TupleClassifier
from apflint.replay.only_harmed_client import is_hardly_harmed, is_mainly_harmed
from apflint.wording import count_noun, join_some, pluralize, quote
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from apflint.propose.incidents import KindUsage, Usage
    from apflint.replay.loaded_log import Replay

CONFIGURATION_CAUSES = frozenset(
    (
        *("list-heavy", "flood-one-flow", "leases-captured", "small-level", "single-flow", "catch-all"),
        "leader-election-starved",
    )
)
"""Causes that a change of FlowSchemas or priority levels can remove."""
CONTAINED_CAUSES = frozenset(("noisy-but-fair", "flood-contained"))
"""Causes for which nothing needs to change, because the client that is the cause delays only itself."""
_SERVER_USER = "system:apiserver"
_MIN_START_LISTS = 5
"""Minimum number of resources that an API server itself lists when it starts."""
_START_SECONDS = 60
"""Time in seconds after the start of an API server in which clients list and watch all objects again."""
_MIN_WATCHES = 0.3
"""Minimum proportion of watches among the harmed requests of a level for the cause to be watches."""
_MIN_EXEMPT = 0.3
"""Minimum proportion of all seats of the servers that exempt requests of clients occupy on average."""
_LONG_SECONDS = 0.5
"""Minimum execution time in seconds for calling a request for one object slow.

The objective of Kubernetes is 1 s for the 99th percentile.
"""
_GROWTH, _GROWTH_SECONDS = 3.0, 0.05
"""Minimum ratio, and minimum difference in seconds, of the service time during an incident to that before the incident."""
_MIN_SLOW = 0.5
"""Minimum proportion of slow requests in the seat-seconds of a level for the cause to be slow requests."""
_SEVERAL_OBJECTS = frozenset(("list", "watch", "deletecollection"))
_IMBALANCE = 2.0
"""Minimum ratio of the seat-seconds of two API servers for calling the load unequal."""
_MIN_HARMED_SERVER = 0.05
"""Minimum proportion of a level's harmed requests for calling the level overloaded at an API server."""
MIN_USER_SHARE = 0.5
"""Minimum proportion of the seat-seconds for a single user to be the cause."""
_MIN_IMPATIENT = 0.8
"""Minimum proportion of requests with a timeout set by the client among the rejections of a level."""
_WIDE = 1.5
"""Minimum average number of seats of requests for calling them wide."""
_NO_SEATS = 1e-9
"""Value for the seat-seconds of a level if no service time is known. This value avoids a division by zero."""
_FIX_FAIR = "if the client should wait less, change it"
"""The instruction if nothing needs to change, because the client waits only for its own requests."""
_MAX_NAMES = 3


class LogCause(NamedTuple):
    """The cause of an incident."""

    cause: str
    """Name of the cause, as in `doctor`, or `slow-service`."""
    message: str
    """Description of the incident and its cause, in one or two sentences."""
    level: str
    """The overloaded level."""
    schema: str = ""
    """Name of the FlowSchema whose requests are the cause, or "" if the cause is not a FlowSchema."""
    users: tuple[str, ...] = ()
    """The users who are the cause. Empty if no single user is the cause."""
    evidence: tuple[str, ...] = ()
    advice: str = ""
    """What the user can do, as a clause, if a change of objects does not help. "" if unknown."""
    client_fix: str = ""
    """What the owner of the client must change, as a clause. "" if requests of other clients are rejected or wait, too."""

    @property
    def is_contained(self) -> bool:
        """Whether the client that is the cause delays only itself, so that nothing needs to change."""
        return self.cause in CONTAINED_CAUSES

    @property
    def is_configuration(self) -> bool:
        """Whether a change of objects can remove the cause."""
        return self.cause in CONFIGURATION_CAUSES


class _View(NamedTuple):
    """An incident at a level, and the configuration that was in force."""

    replay: Replay
    usage: Usage
    level: str

    @property
    def kinds(self) -> tuple[KindUsage, ...]:
        return self.usage.at(self.level)

    @property
    def seat_seconds(self) -> float:
        return sum(kind.seat_seconds for kind in self.kinds) or _NO_SEATS

    @property
    def servers(self) -> int:
        return len({server for (server, _), _ in self.usage.servers})

    @property
    def harmed(self) -> int:
        return sum(kind.harmed for kind in self.kinds)

    def seats_of(self, seat_seconds: float) -> float:
        """Convert seat-seconds to the average number of seats in one API server."""
        return seat_seconds / self.usage.incident.seconds / max(1, self.servers)


def find_log_cause(replay: Replay, usage: Usage) -> LogCause | None:
    """Return the cause of an incident, or None if no level is overloaded. `replay` has the configuration that was in force."""
    for level in usage.overloaded[:1]:
        view = _View(replay, usage, level)
        for find in _FINDERS:
            if (cause := find(view)) is not None:
                return _add_client_fix(view, cause)
    return None


def _add_client_fix(view: _View, cause: LogCause) -> LogCause:
    """Return the cause with a suggestion to fix its client, or the unchanged cause if no fix is suggested.

    A fix is suggested only if the cause has exactly one client, and if hardly any requests of other
    clients are rejected or wait.
    """
    if len(cause.users) != 1 or not (cause.is_configuration or cause.is_contained):
        return cause
    (user,) = cause.users
    levels = view.usage.overloaded
    affected = [kind for kind in view.usage.kinds if kind.level in levels]
    own = [kind for kind in affected if kind.user == user]
    harmed = sum(kind.harmed for kind in own)
    others = [kind for kind in affected if kind.user != user]
    other_harmed, other_requests = sum(kind.harmed for kind in others), sum(kind.requests for kind in others)
    # Check each level: in a sum, a level with many requests would hide the harm at a level with few requests.
    is_everywhere = all(
        is_hardly_harmed(
            sum(kind.harmed for kind in others if kind.level == level),
            sum(kind.requests for kind in others if kind.level == level),
        )
        for level in levels
    )
    if not is_everywhere or not is_mainly_harmed(harmed, other_harmed):
        return cause
    fixes = [USE_INFORMER if own[0].kind[1] == "list" else LIMIT_RATE]
    fixes += [HONOR_RETRY_AFTER] if any(kind.rejected for kind in own) else []
    requests = sum(kind.requests for kind in own)
    compared = (
        f"{other_harmed:,} of {count_noun(other_requests, 'request')} of the other clients"
        if others
        else "no other client sends requests there"
    )
    sentence = (
        f"Only {user} is harmed: {harmed:,} of its {count_noun(requests, 'request')} are rejected or wait for more than 500 ms, and"
        f" {compared}."
    )
    first = _FIX_FAIR if cause.cause == "noisy-but-fair" else "fix the client"
    return cause._replace(evidence=(*cause.evidence, sentence), client_fix=f"{first}: it must {', and '.join(fixes)}")


def rank_users(kinds: Sequence[KindUsage]) -> list[tuple[str, float]]:
    """Return the users of requests with their seat-seconds, in descending order of seat-seconds."""
    totals: dict[str, float] = {}
    for kind in kinds:
        totals[kind.user] = totals.get(kind.user, 0.0) + kind.seat_seconds
    return sorted(totals.items(), key=lambda item: (-item[1], item[0]))


def _find_restart(view: _View) -> LogCause | None:
    listed = {
        kind.kind[2]
        for kind in view.usage.kinds
        if kind.user == _SERVER_USER and kind.kind[1] == "list" and kind.kind[2]
    }
    if len(listed) < _MIN_START_LISTS:
        return None
    return LogCause(
        "restart",
        f"An API server started: its own client lists {len(listed)} resources during the incident, and the other"
        " clients list and watch their objects again.",
        view.level,
        advice=f"find out why the server restarted; the load of a start ends about {_START_SECONDS} seconds after the start",
    )


def _find_watches(view: _View) -> LogCause | None:
    watches = [kind for kind in view.kinds if kind.is_watch]
    harmed = sum(kind.harmed for kind in watches)
    if not watches or harmed < _MIN_WATCHES * view.harmed:
        return None
    top = max(watches, key=lambda kind: (kind.harmed, kind.kind))
    return LogCause(
        "watch-init-storm",
        f"{count_noun(sum(kind.requests for kind in watches), 'watch', 'watches')} begin at {quote(view.level)}, most of them by {top.user}. Each"
        " watch holds its seats until its first events are sent, but the log does not show when they are sent.",
        view.level,
        top.flow_schema,
        (top.user,),
        advice="let the clients start one after the other, and watch fewer objects",
    )


def _find_exempt(view: _View) -> LogCause | None:
    kinds = [kind for kind in view.usage.at(EXEMPT) if kind.user != _SERVER_USER]
    used = view.seats_of(sum(kind.seat_seconds for kind in kinds))
    total = view.replay.known.limits.server_concurrency
    if used < _MIN_EXEMPT * total:
        return None
    (user, _), *_ = rank_users(kinds)
    return LogCause(
        "exempt-abuse",
        f"Exempt requests hold {used:.1f} of {total} seats of an API server, and {user} holds the most of these seats. No limit"
        " applies to exempt requests, so the other levels have fewer seats at this time.",
        EXEMPT,
        EXEMPT,
        (user,),
        advice=f"take {user} out of the groups that are exempt, so that a FlowSchema can place its requests",
    )


def _is_slow(kind: KindUsage) -> bool:
    if kind.kind[1] in _SEVERAL_OBJECTS:
        return False
    if kind.calm_service is None:
        return kind.service >= _LONG_SECONDS
    grown = kind.service >= _GROWTH * kind.calm_service and kind.service - kind.calm_service >= _GROWTH_SECONDS
    return grown or kind.service >= max(_LONG_SECONDS, _GROWTH * kind.calm_service)


def _find_slow_service(view: _View) -> LogCause | None:
    slow = [kind for kind in view.kinds if _is_slow(kind)]
    share = sum(kind.seat_seconds for kind in slow) / (view.seat_seconds or 1)
    if not slow or share < _MIN_SLOW:
        return None
    top = slow[0]
    user, verb, resource = top.kind
    before = "" if top.calm_service is None else f" ({top.calm_service:.3f} s before)"
    return LogCause(
        "slow-service",
        f"Requests are slow, and more seats do not make them faster. At {quote(view.level)}, a {verb} of {resource} by {user} takes {top.service:.2f} s"
        f"{before}, and slow requests for single objects hold {share:.0%} of the seats.",
        view.level,
        top.flow_schema,
        tuple(dict.fromkeys(kind.user for kind in slow)),
        advice="look at admission webhooks and at etcd: `apflint doctor` with the metrics shows which of them is slow",
    )


def _find_imbalance(view: _View) -> LogCause | None:
    load = {server: seat_seconds for (server, level), seat_seconds in view.usage.servers if level == view.level}
    counts = {server: harmed for (server, level), harmed in view.usage.harmed_servers if level == view.level}
    harmed = {server for server in load if counts.get(server, 0) >= _MIN_HARMED_SERVER * view.harmed}
    others = load.keys() - harmed
    if not harmed or not others:
        return None
    if min(load[server] for server in harmed) < _IMBALANCE * max(load[server] for server in others):
        return None
    names = [view.replay.log.servers[server] for server in sorted(harmed)]
    return LogCause(
        "imbalance",
        f"Requests of {quote(view.level)} wait only at {join_some(names, _MAX_NAMES)}. At {count_noun(len(others), 'other API server')}"
        f" with as many seats, the level uses at most {max(load[server] for server in others) / max(load.values()):.0%} of the seat-seconds that it uses at the busiest API server.",
        view.level,
        advice="spread the connections: use --goaway-chance or another load balancer algorithm, or restart the clients",
    )


def find_captured(view: _View) -> dict[str, list[int]]:
    """Return the FlowSchemas that capture requests of system components, with these requests.

    The keys are the names of the FlowSchemas, and the values are indices in `log.tuples`. A request
    belongs to a system component if a protected FlowSchema would capture it in a cluster with only
    built-in objects. The result omits the protected FlowSchemas, which are the built-in FlowSchemas for
    the system.
    """
    known = view.replay.known
    release = known.release
    defaults = TupleClassifier(Effective(build_workspace((), release), known.assumptions))
    protected = builtin.list_protected_flow_schemas(release)
    found: dict[str, list[int]] = {}
    for kind in view.kinds:
        if kind.flow_schema in protected:
            continue
        for number in kind.attributes:
            if defaults.assign(view.replay.log.tuples[number]).flow_schema in protected:
                found.setdefault(kind.flow_schema, []).append(number)
    return found


def _find_captured_leases(view: _View) -> LogCause | None:
    captured = find_captured(view)
    if not captured:
        return None
    schema = max(captured, key=lambda name: (len(captured[name]), name))
    users = sorted({view.replay.log.tuples[number].user or "" for number in captured[schema]})
    harmed = sum(kind.harmed for kind in view.kinds if set(kind.attributes) & set(captured[schema]))
    if not harmed:
        return None
    own = rank_users([kind for kind in view.kinds if not set(kind.attributes) & set(captured[schema])])
    return LogCause(
        "leases-captured",
        f"The FlowSchema {quote(schema)} captures requests that belong to built-in FlowSchemas, such as leases and heartbeats of"
        f" {join_some(users, _MAX_NAMES)}. At {quote(view.level)}, the servers rejected or delayed {count_noun(harmed, 'captured request')}.",
        view.level,
        schema,
        tuple(user for user, seats in own[:1] if seats >= MIN_USER_SHARE * view.seat_seconds),
    )


def _find_starved_system(view: _View) -> LogCause | None:
    if view.level not in system_request_rules.list_levels(view.replay.known.release):
        return None
    limits = view.replay.known.limits.level(view.level)
    users = [user for user, _ in rank_users(view.kinds)]
    nominal = 0 if limits is None else limits.nominal
    return LogCause(
        "leader-election-starved" if view.level == "leader-election" else "small-level",
        f"The requests of {quote(view.level)}, a level for the system, need {view.seats_of(view.seat_seconds):.1f} seats, but the level has"
        f" {nominal}. Users: {join_some(users, _MAX_NAMES)}.",
        view.level,
        advice=f"give {quote(view.level)} more shares manually, because it is a built-in object, or let operators renew their leases less often",
    )


def _find_single_flow(view: _View) -> LogCause | None:
    schema = view.kinds[0].flow_schema
    own = [kind for kind in view.kinds if kind.flow_schema == schema]
    ranked = rank_users(own)
    assignment = view.replay.assignments[own[0].attributes[0]]
    limits = view.replay.known.limits.level(view.level)
    others = [kind for kind in own if kind.user != ranked[0][0] and kind.harmed]
    if assignment.distinguished_by is not None or not others or limits is None or (limits.queues or 0) < 2:
        return None
    if ranked[0][1] < MIN_USER_SHARE * sum(seats for _, seats in ranked):
        return None
    return LogCause(
        "single-flow",
        f"The FlowSchema {quote(schema)} has no flow distinguisher, so {len(ranked)} users share one flow and wait as long as"
        f" {ranked[0][0]}, who takes {ranked[0][1] / view.seat_seconds:.0%} of the seats of {quote(view.level)}.",
        view.level,
        schema,
        (ranked[0][0],),
    )


def _find_contained(view: _View) -> LogCause | None:
    """Return a cause if a user delays only itself, at a level that does not borrow seats from other levels."""
    ranked = rank_users(view.kinds)
    user, seats = ranked[0]
    limits = view.replay.known.limits.level(view.level)
    others = sum(kind.harmed for kind in view.kinds if kind.user != user)
    if limits is None or view.level == CATCH_ALL or others >= MIN_HARMED:
        return None
    rejected = sum(kind.rejected for kind in view.kinds)
    # The log does not show waits of less than 500 ms. If the user sends wide requests (with many
    # seats), or so many requests that some are rejected, other clients may have such short waits. So do
    # not claim that the user delays only itself.
    is_wide = next(kind for kind in view.kinds if kind.user == user).seats >= _WIDE
    if len(ranked) > 1 and limits.attainable > limits.nominal and (rejected or is_wide):
        return None
    alone = (
        "No other client uses this level"
        if len(ranked) == 1
        else "Fair queuing protects the other clients of this level"
    )
    return LogCause(
        "flood-contained" if rejected else "noisy-but-fair",
        f"{user} needs {view.seats_of(seats):.1f} seats of {quote(view.level)}, which has {pluralize(limits.nominal, 'nominal seat')}. {alone}. Nobody else is"
        " rejected or waits for more than 500 ms.",
        view.level,
        view.kinds[0].flow_schema,
        (user,),
        advice=f"if this client should wait less, protect it with --protect {write_user(user)}",
    )


def write_user(user: str) -> str:
    """Return a user as an argument of `--protect`."""
    return write_subject(parse_subject(f"user:{user}"))


def _find_dominating(view: _View) -> LogCause | None:
    ranked = rank_users(view.kinds)
    user, seats = ranked[0]
    limits = view.replay.known.limits.level(view.level)
    is_shared = len(ranked) > 1 and view.level != CATCH_ALL
    if not is_shared or seats < MIN_USER_SHARE * view.seat_seconds or limits is None:
        return None
    if view.seats_of(view.seat_seconds - seats) > limits.nominal:
        return None
    top = next(kind for kind in view.kinds if kind.user == user)
    _, verb, resource = top.kind
    is_wide = top.seats >= _WIDE
    rate = top.requests / view.usage.incident.seconds
    width = f", {top.seats:.0f} seats each" if is_wide else ""
    return LogCause(
        "list-heavy" if is_wide and verb in _SEVERAL_OBJECTS else "flood-one-flow",
        f"{user} sends {rate:.1f} {verb} requests for {resource} a second{width}: {view.seats_of(seats):.1f} of the"
        f" {view.seats_of(view.seat_seconds):.1f} seats that the requests of {quote(view.level)} need. The others need"
        f" {view.seats_of(view.seat_seconds - seats):.1f}, and the level has {limits.nominal}.",
        view.level,
        top.flow_schema,
        (user,),
        evidence=(_describe_service(top),),
    )


def _describe_service(kind: KindUsage) -> str:
    before = "" if kind.calm_service is None else f", {kind.calm_service:.3f} s before"
    return f"Service time: {kind.service:.3f} s{before}."


def _find_timeouts(view: _View) -> LogCause | None:
    rejected = sum(kind.rejected for kind in view.kinds)
    impatient = [kind for kind in view.kinds if kind.impatient]
    if not rejected or sum(kind.impatient for kind in impatient) < _MIN_IMPATIENT * rejected:
        return None
    users = tuple(dict.fromkeys(kind.user for kind in sorted(impatient, key=lambda kind: -kind.impatient)))
    return LogCause(
        "client-timeouts",
        f"Requests of {join_some(users, _MAX_NAMES)} leave the queue of {quote(view.level)} after a quarter of their short timeout, while"
        " other requests that wait for the same time are executed.",
        view.level,
        impatient[0].flow_schema,
        users,
        advice="raise the timeouts of the clients that leave the queue, or give them a separate level"
        " (`apflint propose --isolate`)",
    )


def _find_small_level(view: _View) -> LogCause | None:
    limits = view.replay.known.limits.level(view.level)
    nominal = 0 if limits is None else limits.nominal
    users = [user for user, _ in rank_users(view.kinds)]
    own = "that match only the FlowSchema catch-all" if view.level == CATCH_ALL else f"of {quote(view.level)}"
    return LogCause(
        "catch-all" if view.level == CATCH_ALL else "small-level",
        f"The requests {own} need {view.seats_of(view.seat_seconds):.1f} seats, and the level has {pluralize(nominal, 'nominal seat')}."
        f" Users: {join_some(users, _MAX_NAMES)}.",
        view.level,
        view.kinds[0].flow_schema,
        evidence=(_describe_service(view.kinds[0]),),
    )


_FINDERS: tuple[Callable[[_View], LogCause | None], ...] = (
    _find_restart,
    _find_watches,
    _find_exempt,
    _find_slow_service,
    _find_imbalance,
    _find_captured_leases,
    _find_starved_system,
    _find_single_flow,
    _find_contained,
    _find_dominating,
    _find_timeouts,
    _find_small_level,
)
"""The functions that find causes, the most specific cause first."""
