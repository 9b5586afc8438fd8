"""Concludes why the requests of a client are slow or rejected, from the causes that `doctor` or an audit log shows.

This module finds no causes. For each cause, it determines the role of the client: whether the client is the cause,
suffers from the cause, or is not affected.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Literal

from apflint import builtin
from apflint.client_diagnosis.certainty import Certainty, Question, judge
from apflint.client_diagnosis.evidence import find_in_dumps, rank_shares
from apflint.doctor.causes.capacity import QUEUE_INSTEAD
from apflint.doctor.causes.conclusion import Action
from apflint.doctor.causes.servers import describe_start
from apflint.doctor.causes.suggested_commands import fit_command
from apflint.evaluate.authentication import parse_service_account
from apflint.evaluate.configuration import EXEMPT
from apflint.named_tuple import NamedTuple
from apflint.propose.log_causes import CONFIGURATION_CAUSES, MIN_USER_SHARE, write_user
from apflint.releases import OLDEST_SIMULATED_MINOR
from apflint.spelling import find_intended
from apflint.unknown_seats import SEATS_URL
from apflint.wanted_seats import find_level_shares
from apflint.wording import count_noun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.client_diagnosis.evidence import ClientEvidence, ConcernedClient, Share, Sighting
    from apflint.client_diagnosis.log_evidence import ClientLog
    from apflint.doctor.causes.conclusion import OverloadCause, Verdict
    from apflint.doctor.causes.servers import RecentStart
    from apflint.doctor.level_state import LevelState, ServerState
    from apflint.evaluate.limits import LevelLimits
    from apflint.propose.incidents import Incident
    from apflint.propose.log_causes import LogCause

Role = Literal["culprit", "victim", "affected", "bystander", "unknown"]
"""The role of the client.

`culprit`: the client is the cause. `victim`: another client, a component or the configuration is the cause. `affected`:
a client at the same level is the cause, but the evidence does not show which client. `bystander`: no cause concerns the
client's requests. `unknown`: the evidence does not show the level of the requests."""
CAUSED_BY_CLIENT = frozenset(
    (
        *("client-timeouts", "exempt-abuse", "flood-contained", "flood-one-flow", "leases-captured", "list-heavy"),
        *("noisy-but-fair", "single-flow", "watch-init-storm"),
    )
)
"""Causes that name the user who makes requests wait: requests of this user, or requests of others.

Any other cause names a user only as an example of the affected users, such as those of a slow webhook.
"""
WHOLE_SERVER = frozenset(("etcd-slow", "restart"))
"""Causes that slow the requests of all levels, not only of overloaded levels."""
_OUTSIDE = frozenset(("slow-service", "restart", "imbalance"))
"""Causes in an audit log that do not result from API Priority and Fairness."""

_WIDE_CAUSES = frozenset(("exempt-abuse", "slow-service"))
"""Causes in an audit log that may delay requests of several levels. A log shows the cause at one of these levels."""
_UNKNOWN_LISTS = (
    "Without metrics, each list counts as one seat. The cause may instead be a client with large lists: add metrics."
)
_ASSUMED_SEATS = (
    "A log shows no limits, so apflint assumes {} seats of an API server{}. Add metrics, or"
    f" --server-concurrency N: {SEATS_URL}"
)
SEATS_FILE = "metrics-now.txt"
SAVE_SEATS = f"kubectl get --raw /metrics > {SEATS_FILE}"
_MAX_SIMILAR = 3
_MAX_COMMAND = 140
"""Maximum number of characters of a command that names all files: two lines of a terminal."""


class Placement(NamedTuple):
    """The FlowSchema and the priority level of requests of the client that the user asks about."""

    flow_schema: str
    level: str
    source: Literal["dump", "log", "configuration"]
    """The source of the placement. A dump shows the server's decision. `log` and `configuration` are computed by classification."""
    server: str = ""
    sightings: tuple[Sighting, ...] = ()
    """The requests with this FlowSchema and level in dumps and logs."""


class ClientCause(NamedTuple):
    """A cause of waits and rejections, found in metrics and dumps of servers, or in an audit log."""

    name: str
    message: str
    is_apf: bool
    is_harmless: bool
    """Whether no action is needed."""
    levels: tuple[str, ...]
    users: tuple[str, ...]
    """The users whom the cause names, the main one first."""
    actions: tuple[Action, ...]
    unsure: str | None
    source: Literal["servers", "log"]
    server: str = ""

    @property
    def is_client(self) -> bool:
        """Whether a client causes the waits and rejections, even if the evidence does not show which client."""
        return self.name in CAUSED_BY_CLIENT

    @property
    def clients(self) -> tuple[str, ...]:
        """The users who cause the delays or rejections.

        Empty if the evidence does not show which users are the cause, or if the cause is not a client.
        """
        return self.users if self.is_client else ()

    def concerns(self, placement: Placement) -> bool:
        """Return whether the cause may delay or reject the requests that have the server and level of `placement`."""
        if self.name in WHOLE_SERVER:
            return True
        is_same_server = not (self.server and placement.server) or self.server == placement.server
        return placement.level in self.levels and placement.level != EXEMPT and is_same_server


class ClientDiagnosis(NamedTuple):
    """The answer to the question why the requests of a client are slow or rejected."""

    client: ConcernedClient
    role: Role
    verdict: Verdict | None
    """The verdict of `doctor` about the servers, or None if there are neither metrics nor dumps."""
    placements: tuple[Placement, ...]
    """The FlowSchemas and levels of the requests. Placements that the cause concerns come first. Empty if unknown."""
    cause: ClientCause | None
    """The cause that concerns the client or, for a bystander, the worst cause of all."""
    more_causes: int
    """Number of further causes that need an action."""
    incident: Incident | None
    """The incident in the log with this cause, or None if the cause was found in metrics or dumps."""
    shares: tuple[Share, ...]
    """The shares of users in the seats of the first placement's level, the largest first. Empty if unknown."""
    shares_source: Literal["dump", "log"]
    flow_schemas: tuple[str, ...]
    """FlowSchemas of the requests at the level of `placement`, the FlowSchema with the most requests first. Empty if unknown."""
    level: LevelState | None
    """The state of the level of `placement` at the server, or None if unknown."""
    level_server: ServerState | None
    """The server of `level`, or None if `level` is None."""
    service_seconds: float | None
    """Mean execution time of the requests of this level at the server, or None if unknown."""
    start: RecentStart | None
    """A warning that a server has just started. None if no server has just started, or if the start is the cause."""
    actions: tuple[Action, ...]
    certainty: Certainty
    similar: tuple[str, ...]
    """Clients in the evidence with similar names, if the evidence does not show the client."""
    evidence: ClientEvidence

    @property
    def placement(self) -> Placement | None:
        """The first of `placements` (a FlowSchema and its priority level), or None if `placements` is empty."""
        return next(iter(self.placements), None)

    @property
    def is_apf(self) -> bool | None:
        """Whether API Priority and Fairness is the reason why requests of the client are slow or rejected. None if unknown."""
        if self.role == "unknown":
            return None
        return self.role != "bystander" and self.cause is not None and self.cause.is_apf

    @property
    def harmed(self) -> bool | None:
        """Whether the evidence shows that requests of the client wait or are rejected at `placement`.

        None if the evidence shows no requests of the client at `placement`.
        """
        placement = self.placement
        if placement is None or not placement.sightings:
            return None
        return any(sighting.harmed for sighting in placement.sightings)


class CommandWords(NamedTuple):
    """Parts of the user's command line, which the diagnosis repeats in suggested commands.

    All fields are quoted for the shell, except `configuration`, `seats` and `given`.
    """

    request: tuple[str, ...] = ()
    """The words that name the client and the request: `--as alice list pods`."""
    logs: tuple[str, ...] = ()
    configuration: tuple[str, ...] = ()
    """The options that name the configuration, without the seats: `-f manifests/ --kubernetes 1.36`."""
    seats: tuple[str, ...] = ()
    """The option for the seats of an API server, or () if the seats are unknown."""
    server_files: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """The files and directories that the user names, of any kind."""
    given: tuple[str, ...] = ()
    """The options about the configuration that the user gave."""
    is_live: bool = True
    """Whether the user asks about a running cluster."""

    def ask_about(self, user: str) -> str:
        """Return the `apflint why` command that asks about the same request of a different user, `user`."""
        return _join("apflint why --as", shlex.quote(user), *self.request[2:], *self.files, shlex.join(self.given))

    def ask_cluster(self) -> str:
        """Return an `apflint why` command that asks about the client and requests of this question in a live cluster."""
        where = shlex.join(self.given) if self.is_live else "--live"
        return _join("apflint why", *self.request, where, "--watch 10s")


def diagnose_client(client: ConcernedClient, evidence: ClientEvidence, words: CommandWords) -> ClientDiagnosis:
    """Return why the requests of a client are slow or rejected."""
    placements = _find_placements(client, evidence)
    causes = _list_causes(evidence)
    ranked = sorted(placements, key=lambda placement: _rank(client, placement, causes))
    first = next(iter(ranked), None)
    cause = _choose_cause(client, first, causes)
    role = _find_role(client, first, cause, evidence)
    is_logged = cause is not None and cause.source == "log"
    log = evidence.log if is_logged else evidence.matching_log
    level = evidence.level(first.level, first.server) if first is not None else None
    dumped = rank_shares(level.rows) if level is not None else ()
    logged = log.shares_at(first.level) if log is not None and first is not None else ()
    others = [other for other in causes if other is not cause and not other.is_harmless]
    similar = find_similar_users(client.user, evidence.users)
    question = Question(
        client,
        is_example=client.request is None,
        is_client_needed=cause is None or cause.name not in WHOLE_SERVER,
        unsure=cause.unsure if cause is not None and role in ("culprit", "victim", "affected") else None,
        level="" if first is None or first.source == "dump" else first.level,
    )
    return ClientDiagnosis(
        client,
        role,
        None if evidence.conclusion is None else evidence.conclusion.verdict,
        tuple(ranked),
        cause,
        len(others),
        log.incident if log is not None and is_logged else None,
        dumped or logged,
        "dump" if dumped else "log",
        () if level is None else level.schemas,
        None if level is None else level.state,
        None if level is None else evidence.find_server(level).state,
        None if level is None else level.service_seconds,
        None if cause is not None and cause.name == "restart" else _describe_start(evidence),
        tuple(_list_actions(client, role, cause, words, similar, evidence)),
        judge(evidence, question),
        similar,
        evidence,
    )


def _describe_start(evidence: ClientEvidence) -> RecentStart | None:
    """Return a warning about the server that started last, or None if this server has not just started."""
    known = [server for server in evidence.servers if server.age is not None]
    youngest = min(known, key=lambda server: server.age or 0, default=None)
    if youngest is None:
        return None
    return describe_start(youngest, "the server" if len(evidence.servers) == 1 else f"the server of {youngest.name}")


def find_similar_users(user: str, users: frozenset[str]) -> tuple[str, ...]:
    """Return the users that `user` may refer to: names that contain `user`, or a name that `user` misspells.

    The result is empty if `user` is in `users`. If `user` is the complete name of a service account, only a misspelling
    is possible, because no other user name contains such a name.
    """
    if user in users:
        return ()
    if parse_service_account(user) is None:
        parts = re.split("[:/]", user)
        same = [
            other for other in sorted(users) if other.split(":")[-len(parts) :] == parts or user in other.split(":")
        ]
        if same:
            return tuple(same[:_MAX_SIMILAR])
    intended = find_intended(user, sorted(users))
    return () if intended is None else (intended,)


def _find_placements(client: ConcernedClient, evidence: ClientEvidence) -> list[Placement]:
    """Return the FlowSchemas and levels of the client's requests in the dumps and in the log.

    If the user asks about a specific request, add the FlowSchema and level that the configuration gives
    to the request. If the user names only a client and the evidence shows no requests of the client,
    add the FlowSchema and level of an example request.

    The FlowSchemas and levels of logged requests are computed from the configuration. They may be wrong
    if the servers have objects that the configuration lacks. In this case, logged requests are ignored
    if a dump shows requests of the client.
    """
    dumped = list(find_in_dumps(evidence.servers, client))
    logged = evidence.log.sightings if evidence.log is not None else ()
    is_other = bool(evidence.list_unknown_objects())
    if dumped and is_other:
        logged = ()
    groups: dict[tuple[str, str, str], list[Sighting]] = {}
    for sighting in dumped:
        groups.setdefault((sighting.flow_schema, sighting.level, sighting.server), []).append(sighting)
    for sighting in logged:
        keys = [key for key in groups if key[:2] == (sighting.flow_schema, sighting.level)]
        for key in keys or [(sighting.flow_schema, sighting.level, "")]:
            groups.setdefault(key, []).append(sighting)
    found = [
        Placement(schema, level, seen[0].source, server, tuple(seen))
        for (schema, level, server), seen in groups.items()
    ]
    explanation = evidence.explanation
    if explanation is not None and explanation.unclassified is None and (not found or client.request is not None):
        schema, level = explanation.resolution.flow_schema.name, explanation.level.name
        if not any((placement.flow_schema, placement.level) == (schema, level) for placement in found):
            found.append(Placement(schema, level, "configuration"))
    return found


def _rank(client: ConcernedClient, placement: Placement, causes: list[ClientCause]) -> tuple[object, ...]:
    """Return a sort key: placements that a cause concerns come first, then placements with the most harmed requests."""
    concerned = next(
        (
            number
            for number, cause in enumerate(causes)
            if placement.level in cause.levels and (cause.concerns(placement) or client.user in cause.clients)
        ),
        len(causes),
    )
    harmed = max((sighting.harmed for sighting in placement.sightings), default=0)
    requests = max((sighting.requests for sighting in placement.sightings), default=0)
    return concerned, -harmed, -requests, placement.level, placement.flow_schema, placement.server


def _list_causes(evidence: ClientEvidence) -> list[ClientCause]:
    """Return the causes of slow or rejected requests, the worst cause first.

    These are the causes that `doctor` finds in metrics and dumps. If none of them is a warning, the
    cause in the audit log is added, unless `doctor` finds the same cause. If the metrics and dumps show
    only a past overload, the cause in the log replaces their causes.
    """
    conclusion, log = evidence.conclusion, evidence.log
    logged = [_from_log(log.cause, log, evidence.assumed_seats)] if log is not None and log.cause is not None else []
    if conclusion is None:
        return logged
    observed = [_from_overload(cause, evidence.matching_log) for cause in conclusion.causes]
    if conclusion.warnings:
        return observed
    names = {cause.name for cause in observed}
    added = [cause for cause in logged if cause.name not in names]
    return added if conclusion.verdict == "past" and added else [*observed, *added]


def _from_overload(cause: OverloadCause, log: ClientLog | None) -> ClientCause:
    """Convert a cause that `doctor` found to a `ClientCause`.

    Metrics rarely show the users that are the cause, but a log may show these users. If the log has the same cause, the
    cause is no longer uncertain.
    """
    users = [] if cause.user is None else [cause.user]
    logged = log.cause if log is not None else None
    is_confirmed = logged is not None and logged.cause == cause.cause
    if logged is not None and is_confirmed:
        users += [user for user in logged.users if user not in users]
    if not users and log is not None and cause.cause in CAUSED_BY_CLIENT:
        ranked = [share for level in cause.levels for share in log.shares_at(level)[:1]]
        users = [share.user for share in ranked if share.share >= MIN_USER_SHARE][:1]
    return ClientCause(
        cause.cause,
        cause.message,
        cause.is_apf,
        cause.severity == "info",
        cause.levels,
        tuple(users),
        cause.actions,
        None if is_confirmed else cause.unsure,
        "servers",
        cause.server,
    )


def _from_log(cause: LogCause, log: ClientLog, assumed_seats: int | None) -> ClientCause:
    """Convert a cause of slow or rejected requests in an audit log to a `ClientCause`.

    The levels of the result are all levels whose requests the cause may delay.
    """
    others = log.overloaded if cause.cause in _WIDE_CAUSES else ()
    is_measured = cause.cause in _OUTSIDE  # the causes in `_OUTSIDE` are certain even if the number of seats is unknown
    unsure = None if log.has_list_seats or is_measured else _UNKNOWN_LISTS
    if assumed_seats is not None and not is_measured:
        proven = "" if log.proven_seats is None else f", and the log proves {log.proven_seats}"
        unsure = _ASSUMED_SEATS.format(assumed_seats, proven)
    return ClientCause(
        cause.cause,
        cause.message,
        cause.cause not in _OUTSIDE,
        cause.is_contained,
        tuple(dict.fromkeys((cause.level, *others))),
        cause.users,
        (Action(cause.advice),) if cause.advice else (),
        unsure,
        "log",
    )


def _choose_cause(
    client: ConcernedClient, placement: Placement | None, causes: list[ClientCause]
) -> ClientCause | None:
    """Return the cause in `causes` that best explains the waits and rejections of the client.

    Causes that name the client come first, then causes that may delay or reject requests with
    `placement`, then all others. Of equally good causes, return the first one, which is the worst.
    Return None if `causes` is empty.
    """
    named = (cause for cause in causes if client.user in cause.clients)
    concerning = (cause for cause in causes if placement is not None and cause.concerns(placement))
    return next(named, None) or next(concerning, None) or next(iter(causes), None)


def _find_role(
    client: ConcernedClient, placement: Placement | None, cause: ClientCause | None, evidence: ClientEvidence
) -> Role:
    if evidence.find_unclassified(client) is not None:
        return "bystander"
    if cause is not None and client.user in cause.clients:
        return "culprit"
    if cause is not None and cause.name in WHOLE_SERVER:
        return "victim"
    if placement is None or not _is_shown(client, placement, evidence):
        return "unknown"
    if cause is None or cause.is_harmless or not cause.concerns(placement):
        return "bystander" if _is_calm(placement, evidence) else "unknown"
    return "affected" if cause.is_client and not cause.clients else "victim"


def _is_calm(placement: Placement, evidence: ClientEvidence) -> bool:
    """Return whether the evidence shows that the level of the requests neither delays nor rejects them.

    The caller has found no harmful cause at this level. A dump alone is not sufficient, because a dump shows no
    rejections. If a log is the only evidence, return False for every overloaded level: the log shows the cause of only
    one overloaded level, so the causes at other levels are unknown.
    """
    level = evidence.level(placement.level)
    if evidence.log is not None and not evidence.servers:
        return placement.level not in evidence.log.overloaded
    return evidence.log is not None or (level is not None and level.state.rejected is not None)


def _is_shown(client: ConcernedClient, placement: Placement, evidence: ClientEvidence) -> bool:
    """Return whether the level of the client's requests is certain, and the evidence shows the load of this level.

    If the level does not come from a dump, it is computed from the configuration. Then it is uncertain
    in two cases:

    - The servers have objects that the configuration does not contain.
    - The level is the level of an example request, although the evidence should contain requests of the
      client. This is the case if there is a log, or if the evidence contains a similar user name.
    """
    if placement.source != "dump" and evidence.list_unknown_objects():
        return False
    is_example = client.request is None and not placement.sightings
    if is_example and (evidence.log is not None or find_similar_users(client.user, evidence.users)):
        return False
    return evidence.level(placement.level) is not None or (evidence.log is not None and not evidence.servers)


def _list_actions(
    client: ConcernedClient,
    role: Role,
    cause: ClientCause | None,
    words: CommandWords,
    similar: tuple[str, ...],
    evidence: ClientEvidence,
) -> Iterator[Action]:
    """Yield the actions that the user can take, the most useful first."""
    if similar and role in ("unknown", "bystander"):
        yield Action("name the client as the evidence does", words.ask_about(similar[0]))
        return
    if evidence.log is not None and client.user in evidence.log.groups - evidence.users:
        listing = ("apflint replay", *words.logs, "--where", shlex.quote(f"group={client.user}"), "--by user")
        yield Action("name a user instead of this group: the command lists the users in the log", " ".join(listing))
        return
    # A user who has only files from the server may have no access to the cluster: do not suggest --live.
    live = None
    if words.is_live or not (words.server_files or words.logs):
        live = words.ask_cluster()
    if role == "unknown":
        where = (
            ", such as from the running cluster"
            if live
            else ": save the metrics twice, 10 s apart, and a dump of requests"
        )
        yield Action(f"collect the evidence while the requests are slow{where}", live)
        return
    if role == "bystander" or cause is None:
        yield Action(
            'look for "client-side throttling" in the log of the client, and measure again while it is slow', live
        )
        return
    actions = cause.actions or (
        Action("find the smallest change of objects that would have prevented the waits and rejections"),
    )
    actions = tuple(_name_shares(action, cause, evidence) for action in _add_queues(actions, cause, evidence))
    if not words.is_live:
        actions = tuple(action._replace(command=fit_command(action.command, words.configuration)) for action in actions)
    actions = tuple(_list_changes(actions, _write_proposal(client, role, cause, words, evidence), evidence))
    yield from sorted(actions, key=lambda action: action.is_by_client != (role == "culprit"))


def _add_queues(actions: tuple[Action, ...], cause: ClientCause, evidence: ClientEvidence) -> tuple[Action, ...]:
    """Return the actions, with `QUEUE_INSTEAD` added if the overloaded level has no queues.

    `actions` already contains `QUEUE_INSTEAD` if metrics show that the level rejects requests because
    it has no queues. A log does not show this reason, so use the `limitResponse` in the configuration.
    Do not add the action for mandatory levels, whose objects cannot be changed.
    """
    if QUEUE_INSTEAD in actions or cause.name not in CONFIGURATION_CAUSES or not cause.levels:
        return actions
    limits = _find_limits(cause.levels[0], evidence)
    if limits is None or limits.response != "Reject" or limits.name in builtin.MANDATORY:
        return actions
    return (*actions[:1], QUEUE_INSTEAD, *actions[1:])


def _name_shares(action: Action, cause: ClientCause, evidence: ClientEvidence) -> Action:
    """Return `action`. If it gives a level more seats, add to its text how many shares give these seats.

    Return `action` unchanged if the shares cannot be computed, or do not change.
    """
    seats, known = action.nominal_seats, evidence.known
    if seats is None or known is None or evidence.assumed_seats is not None or not cause.levels:
        return action
    name = cause.levels[0]
    limits, level = _find_limits(name, evidence), evidence.level(name, cause.server)
    if limits is None or level is None or level.state.nominal not in (None, limits.nominal):
        return action
    change = find_level_shares(known, name, seats)
    if change is None or change.after == change.before:
        return action
    return action._replace(text=f"{action.text}. {count_noun(change.after, 'share')} give {count_noun(seats, 'seat')}")


def _find_limits(level: str, evidence: ClientEvidence) -> LevelLimits | None:
    """Return the limits of a level in the configuration, or None if the servers have another configuration."""
    if evidence.known is None or evidence.list_unknown_objects():
        return None
    return evidence.known.limits.level(level)


def _list_changes(actions: tuple[Action, ...], proposal: str | None, evidence: ClientEvidence) -> Iterator[Action]:
    """Yield the actions. Give the command `proposal` to the first action that an administrator performs.

    The commands of `doctor` have placeholders for files, but `proposal` names the files of the user. If
    the seats of the servers are unknown, yield another action instead of the first action of the
    administrator. Its command first saves metrics, which show the seats, because a proposal depends on
    the seats. If `proposal` is None, the actions stay the same.
    """
    change = next((action for action in actions if not action.is_by_client), None)
    for action in actions:
        if action is not change or proposal is None:
            yield action
        elif evidence.assumed_seats is None:
            yield action._replace(command=proposal)
        else:
            command = f"{SAVE_SEATS} && {proposal} --metrics {SEATS_FILE}"
            yield Action("find the smallest change for the seats that the metrics show", command)


def _write_proposal(
    client: ConcernedClient, role: Role, cause: ClientCause, words: CommandWords, evidence: ClientEvidence
) -> str | None:
    """Return a command that proposes a change of objects.

    Return None if there is no log, if the release cannot be simulated, or if no change of objects can remove the cause.
    """
    if not words.logs or cause.name not in CONFIGURATION_CAUSES:
        return None
    if evidence.known is not None and evidence.known.release.minor < OLDEST_SIMULATED_MINOR:
        return None
    goal = "" if role == "culprit" else f"--protect {shlex.quote(write_user(client.user))}"
    configuration, seats = shlex.join(words.configuration), shlex.join(words.seats)
    command = _join("apflint propose", *words.logs, configuration, seats, goal)
    if cause.source == "log":  # metrics that do not show the cause are from another time, so omit them
        return command
    given = seats if set(words.seats) <= set(words.given) else ""
    metrics = [f"--metrics {name}" for name in words.server_files]
    complete = _join("apflint propose", *words.logs, configuration, given, goal, *metrics)
    return complete if metrics and len(complete) <= _MAX_COMMAND else command


def _join(*parts: str) -> str:
    return " ".join(filter(None, parts))
