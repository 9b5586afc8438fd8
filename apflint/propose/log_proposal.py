"""Proposes a change that would have prevented an incident in an audit log.

The search for a change simulates one half of the incident. The report contains the results of the other half, so that
the proposal is not fitted to the reported requests.
"""

from __future__ import annotations

import shlex
from functools import partial
from typing import TYPE_CHECKING

from apflint import builtin
from apflint.budgets import MAX_EVIDENCE_REQUESTS
from apflint.evaluate import system_request_rules
from apflint.load import load
from apflint.model import PolicyRulesWithSubjects
from apflint.named_tuple import NamedTuple
from apflint.propose.candidates import SHARES, list_candidates
from apflint.propose.change_texts import name_files, write_changed_manifests, write_log_policy_test
from apflint.propose.changes import NewFlowSchema, NewLevel, add_objects, apply_changes
from apflint.propose.effects import compare_clients, find_misses, list_goals
from apflint.propose.goals import find_refusal, match_all_requests, parse_subject
from apflint.propose.incidents import Incident, find_incidents, measure_usage
from apflint.propose.log_causes import CONFIGURATION_CAUSES, CONTAINED_CAUSES, find_log_cause, write_user
from apflint.propose.proof import MEASURED, Intention, prove
from apflint.propose.search import INTERRUPTED, Searched, Trials, search
from apflint.propose.trials import run_trial, select_part
from apflint.replay.classification import TupleClassifier
from apflint.replay.events import COMPLETE
from apflint.replay.filters import Filter
from apflint.replay.omissions import describe_omissions, find_omissions
from apflint.replay.statistics import list_servers
from apflint.simulate.field_overrides import LevelFieldChange
from apflint.simulate.log_survey import survey_log
from apflint.simulate.logged_requests import MICROSECONDS, stream_requests
from apflint.simulate.logged_simulation import check_survey, list_unpredictable, test_log
from apflint.simulate.scaling import NEUTRAL
from apflint.wording import count_noun, quote

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from apflint.doctor.causes.conclusion import Conclusion, OverloadCause
    from apflint.effective_configuration import Effective
    from apflint.model import Subject
    from apflint.propose.candidates import Candidate
    from apflint.propose.effects import ClientEffect, TrialGoals
    from apflint.propose.goals import Protection
    from apflint.propose.incidents import Usage
    from apflint.propose.log_causes import LogCause
    from apflint.propose.observed_state import MetricsTime, ObservedState
    from apflint.propose.proof import Proof
    from apflint.propose.search import Need, Tried
    from apflint.propose.trials import LogPart, TrialOutcome
    from apflint.releases import Release
    from apflint.replay.classification import Assignment
    from apflint.replay.loaded_log import Replay
    from apflint.replay.object_counts import ObjectCounts
    from apflint.simulate.back_test import BackTest
    from apflint.simulate.log_survey import LogSurvey
    from apflint.simulate.logged_simulation import LogAssumptions

MIN_MARGIN = 30 * MICROSECONDS
"""Minimum time in microseconds that is simulated before and after an incident."""
MIN_HELD_OUT_SECONDS = 20.0
"""Minimum duration in seconds of an incident that is divided into halves.

Each half then contains at least one adjustment of the levels' limits, which kube-apiserver makes every 10 s.
"""
LOADS = (1.5, 2.0)
"""Factors of the load for which a proposal is also simulated."""
MAX_EXAMINED = 5
"""Maximum number of further incidents whose causes are searched."""
_NOBODY = PolicyRulesWithSubjects((), (), ())


class LogGoals(NamedTuple):
    """The goals that the user states on the command line."""

    protections: tuple[Protection, ...] = ()
    """Clients and levels to protect. If empty, all clients except the cause are protected."""
    may_suffer: tuple[Subject, ...] = ()
    max_objects: int | None = None
    chosen: Filter = Filter()
    """The time of the incident, if it is not the worst one of the log."""


class LogEvidence(NamedTuple):
    """The evidence for a proposal: the log, and the simulated part of the log."""

    requests: int
    """Number of requests in the log."""
    servers: int
    seconds: float
    """Time between the first and the last request, in seconds."""
    incidents: tuple[Incident, ...]
    """The incidents, in descending order of harmed requests. The report is about the first incident."""
    back_test: BackTest | None
    period: tuple[int, int] | None
    """Start and end of the simulated time, in microseconds since 1970."""
    split: int | None
    """Time that divides the incident, in microseconds since 1970, or None if the incident is too short to be divided.

    The search uses the requests on one side of this time. The report uses the requests on the other side.
    """
    notes: tuple[str, ...]
    """Sentences about facts that the log does not show, and about the time of metrics."""
    metrics: tuple[MetricsTime, ...] = ()
    """The times of the metrics, if the log has an incident to compare them with."""


class LoadEffect(NamedTuple):
    """The effect of a proposal if the load is multiplied by a factor."""

    scale: float
    effects: tuple[ClientEffect, ...]
    misses: tuple[str, ...]


class LogProposal(NamedTuple):
    """A change that meets the goals in the simulation, with its texts and proofs."""

    candidate: Candidate
    before: Effective
    after: Effective
    """The configuration that results from the written manifests."""
    name: str
    manifests: str
    policy_test: str
    proof: Proof
    needs: tuple[Need, ...]
    effects: tuple[ClientEffect, ...]
    """Effects on clients, in the part of the log that the search did not use.

    If the incident is too short to be divided, the effects are those in the whole incident.
    """
    moved_share: float
    """Proportion of the simulated requests whose FlowSchema or level changes, from 0 to 1."""
    loads: tuple[LoadEffect, ...]
    unpredictable: tuple[str, ...]
    """Sentences about clients whose waits the simulation cannot predict."""

    @property
    def edits_objects(self) -> bool:
        """Whether the manifests contain changed copies of existing objects."""
        return edits_objects(self.candidate)


def edits_objects(candidate: Candidate) -> bool:
    """Return whether a candidate changes existing objects."""
    return any(not isinstance(change, NewLevel | NewFlowSchema) for change in candidate.changes)


class LogAnswer(NamedTuple):
    """The answer of `apflint propose` for a log: a proposal, or the reason why there is none."""

    evidence: LogEvidence
    cause: LogCause | None
    observed: OverloadCause | None
    """The cause that the metrics show, or None if there are no metrics, or if the metrics show no cause."""
    proposal: LogProposal | None
    reason: str
    """The reason why there is no proposal, as a clause, or "" if there is a proposal."""
    advice: str
    is_usable: bool
    """Whether the simulation reproduces the log."""
    searched: Searched | None
    rejected: tuple[str, ...]
    """Sentences about alternatives: changes that were tried, and changes that apflint never proposes."""
    others: tuple[tuple[Incident, LogCause | None], ...] = ()
    """Further incidents of the log with their causes, or None if no level is overloaded. At most `MAX_EXAMINED`."""
    is_interrupted: bool = False
    """Whether the user pressed Ctrl-C, so that the answer has only what was found until then."""

    @property
    def client_fix(self) -> str:
        """The clause that states what the owner of the client must change, instead of a change of objects.

        The value is "" if such a change is not known or not sufficient, for example because requests of
        other clients are also rejected or delayed. It is also "" if the metrics show that the client is not
        the cause, or if the simulation does not reproduce the log. In the last case, the configuration is
        probably not the one that was in force.
        """
        is_confirmed = self.observed is None or self.observed.cause in CONFIGURATION_CAUSES | CONTAINED_CAUSES
        return self.cause.client_fix if self.cause is not None and self.is_usable and is_confirmed else ""


class Naming(NamedTuple):
    """The command line, manifests and cluster that the texts of a proposal mention."""

    command: str
    manifests: Callable[[str, bool], tuple[str, ...]]
    """Function that returns command-line arguments for the configuration with the proposal.

    Paths are relative to the directory of the policy test. The arguments of the function are the name for the files,
    and whether the files contain changed copies of existing objects.
    """
    cluster: str


def propose_from_log(
    replay: Replay,
    counts: ObjectCounts | None,
    observed: ObservedState,
    goals: LogGoals,
    naming: Naming,
    show: Callable[[str, int, int], object] = lambda *_: None,
) -> LogAnswer:
    """Return the smallest change that would have prevented the worst incident of a log, or the reason why there is none.

    `observed` is the state of the servers in metrics. `show` is called with the current activity, and with the number and
    the maximum number of its finished steps. The maximum is 0 if it is unknown.
    """
    return _Proposer(replay, counts, observed, goals, naming, show).propose()


class _Proposer:
    def __init__(
        self,
        replay: Replay,
        counts: ObjectCounts | None,
        observed: ObservedState,
        goals: LogGoals,
        naming: Naming,
        show: Callable[[str, int, int], object],
    ) -> None:
        self.replay, self.counts, self.state = replay, counts, observed
        self.conclusion: Conclusion | None = None
        self.goals, self.naming, self._show = goals, naming, show
        self.step = ""
        """Current activity of the proposer, as a clause that begins with a capital letter."""
        self.searched: Searched | None = None
        extent = replay.extent
        self.evidence = LogEvidence(
            extent.requests,
            len(list_servers(replay.log)),
            (extent.end - extent.start) / MICROSECONDS,
            (),
            None,
            None,
            None,
            tuple(_list_notes(replay, counts)),
        )
        self.cause: LogCause | None = None
        self.survey: LogSurvey | None = None
        self.observed = _find_worst(observed.conclusion)

    def show(self, step: str, done: int = 0, maximum: int = 0) -> None:
        self.step = step
        self._show(step, done, maximum)

    def propose(self) -> LogAnswer:
        """Return a proposal, or the reason why there is none.

        After Ctrl-C, the answer contains only what was found before Ctrl-C.
        """
        try:
            answer = self._propose()
        except KeyboardInterrupt:
            doing = f"{self.step[:1].lower()}{self.step[1:]}"
            found = None if self.searched is None else self.searched.found
            best = (
                "" if found is None else f"; the search had already found a change that meets the goals: {found.kind}"
            )
            answer = self._decline(f"interrupted ({doing}){best}")
            return answer._replace(searched=self.searched, is_interrupted=True)
        if answer.is_interrupted:
            return answer
        others: list[tuple[Incident, LogCause | None]] = []
        try:
            for incident in answer.evidence.incidents[1 : MAX_EXAMINED + 1]:
                self.show(f"Searching the cause of incident {len(others) + 2}")
                others.append((incident, self._examine(incident)[-1]))
        except KeyboardInterrupt:
            return answer._replace(others=tuple(others), is_interrupted=True)
        return answer._replace(others=tuple(others))

    def _examine(self, incident: Incident) -> tuple[LogSurvey, Usage, LogCause | None]:
        """Return (survey of the log around an incident, use of seats during the incident, cause of the incident).

        The cause is None if no level is overloaded.
        """
        period = self.evidence.period if incident is self.evidence.incidents[0] else self._choose_period(incident)[0]
        replay = self.replay._replace(period=period)
        survey = survey_log(replay, 1)
        check_survey(replay, survey, NEUTRAL)
        usage = measure_usage(replay, survey, incident)
        return survey, usage, find_log_cause(replay, usage)

    def _choose_incident(self, found: tuple[Incident, ...]) -> tuple[Incident, ...]:
        """Return all incidents in the order in which they should be treated, or () if none is in the chosen period.

        The incidents in the period that the user chose come first, then the incidents outside of this
        period. Both groups keep the order of `found`.
        """
        chosen = self.goals.chosen.resolve(self.replay.extent.end)
        since = 0 if chosen.since is None else chosen.since.microseconds
        until = self.replay.extent.end + 1 if chosen.until is None else chosen.until.microseconds
        inside = tuple(incident for incident in found if incident.start < until and since < incident.end)
        return (*inside, *(incident for incident in found if incident not in inside)) if inside else ()

    def _propose(self) -> LogAnswer:
        self.show("Searching incidents")
        found = self._choose_incident(find_incidents(self.replay))
        if not found and self.goals.protections and self.goals.chosen == Filter():
            found = (Incident(self.replay.extent.start, self.replay.extent.end + 1, 0),)
        self.evidence = self.evidence._replace(incidents=found)
        if not found:
            if self.goals.chosen != Filter():
                return self._decline("no incident is in this time")
            return self._decline(
                "the log has no incident: hardly any request is rejected or waits for more than 500 ms"
            )
        self._observe(found[0])
        period, is_cut = self._choose_period(found[0])
        if is_cut:
            note = f"The simulation includes only the first {MAX_EVIDENCE_REQUESTS:,} requests of the incident."
            self.evidence = self.evidence._replace(notes=(*self.evidence.notes, note))
            found = (found[0]._replace(end=min(found[0].end, period[1])), *found[1:])
        self.evidence = self.evidence._replace(period=period, incidents=found)
        replay = self.replay._replace(period=period)
        survey, usage, self.cause = self._examine(found[0])
        self.survey = survey
        if (declined := self._decline_by_cause()) is not None:
            return declined
        cause = self.cause
        assert cause is not None, "if there is no cause, `_decline_by_cause` has returned an answer"
        self.show("Comparing the simulation with the log")
        tested = test_log(replay, survey, lambda *_: None)
        test, assumed = tested.back_test, tested.assumptions
        self.evidence = self.evidence._replace(back_test=test)
        if tested.is_interrupted:
            raise KeyboardInterrupt
        if not test.is_usable:
            return self._decline("the simulation does not reproduce the log", is_usable=False)
        return self._search(found[0], period, usage, cause, assumed[0], survey.start)

    def _observe(self, incident: Incident) -> None:
        """Set the conclusion to that of the metrics that count for an incident, and note their times."""
        observed = self.state.compare(incident)
        self.conclusion, self.observed = observed.conclusion, _find_worst(observed.conclusion)
        notes = (*self.evidence.notes, *observed.notes)
        self.evidence = self.evidence._replace(notes=notes, metrics=observed.times)

    def _decline(self, reason: str, advice: str = "", *, is_usable: bool = True) -> LogAnswer:
        return LogAnswer(self.evidence, self.cause, self.observed, None, reason, advice, is_usable, None, ())

    def _decline_by_cause(self) -> LogAnswer | None:
        """Return an answer without a proposal if no change of objects removes the cause, or None if a change may help."""
        conclusion, cause = self.conclusion, self.cause
        if conclusion is not None and not self.goals.protections:
            if conclusion.verdict == "past":
                return self._decline(
                    "the metrics show no overload now, but an earlier one",
                    "to propose a change for the earlier overload in the log, replace --metrics with --server-concurrency"
                    f" {self.replay.known.limits.server_concurrency}",
                )
            if conclusion.verdict == "healthy":
                return self._decline("the metrics show no overload: no request waits or is rejected unexpectedly")
        warning = None if conclusion is None else next(iter(conclusion.warnings), None)
        if warning is not None and warning.cause not in CONFIGURATION_CAUSES:
            advice = warning.actions[0].text if warning.actions else ""
            if warning.cause == "inversion" and warning.user is not None:
                return self._decline_inversion(warning.user, advice)
            return self._decline(
                f"the cause is {warning.cause}, and a change of seats does not remove this cause",
                advice,
            )
        if cause is None:
            return self._decline("no priority level is overloaded: too few requests are rejected or wait")
        if cause.is_contained and not self.goals.protections:
            return self._decline(
                f"the cause is {cause.cause}: only requests of the client that causes the load wait or are rejected",
                cause.advice,
            )
        if cause.is_contained:
            self.cause = cause._replace(cause="small-level", users=(), advice="")
        elif not cause.is_configuration:
            return self._decline(
                f"the cause is {cause.cause}, and a change of seats does not remove this cause", cause.advice
            )
        return None

    def _decline_inversion(self, user: str, advice: str) -> LogAnswer:
        """Return the answer for an inversion: the webhook `user` waits at a level whose requests need this webhook."""
        reason = "the cause is inversion (a webhook waits at the level whose requests wait for it), and no simulation shows how fast the webhook is at another level"
        client = write_user(user)
        if find_refusal(parse_subject(client)) is None:
            advice = f"{advice}: apflint propose --isolate {shlex.quote(client)} --seats N"
        return self._decline(reason, advice)

    def _choose_period(self, incident: Incident) -> tuple[tuple[int, int], bool]:
        """Return the period to simulate, and whether the period omits a part of the incident."""
        extent = self.replay.extent
        margin = max(MIN_MARGIN, incident.end - incident.start)
        for size in (margin, MIN_MARGIN, 0):
            start, end = max(extent.start, incident.start - size), min(extent.end + 1, incident.end + size)
            replay = self.replay._replace(period=(start, end))
            received = [request.received for request in stream_requests(replay)]
            if len(received) <= MAX_EVIDENCE_REQUESTS:
                return (start, end), False
        return (start, received[MAX_EVIDENCE_REQUESTS]), True

    def _search(
        self,
        incident: Incident,
        period: tuple[int, int],
        usage: Usage,
        cause: LogCause,
        assumed: LogAssumptions,
        origin: int,
    ) -> LogAnswer:
        select = partial(select_part, self.replay, known=assumed, origin=origin, counts=self.counts, incident=incident)
        middle = (incident.start + incident.end) // 2
        seen = reported = select(period=period)
        if incident.seconds >= MIN_HELD_OUT_SECONDS:
            seen, reported = select(period=(period[0], middle)), select(period=(middle, period[1]))
            self.evidence = self.evidence._replace(split=middle)
        effective = self.replay.known
        first, second = run_trial(seen, effective), run_trial(reported, effective)
        wanted, verified = (self._list_goals(part, outcome) for part, outcome in ((seen, first), (reported, second)))
        if not find_misses(wanted, first, first) and not find_misses(verified, second, second):
            return self._decline("the goals are met without a change")
        peaks = _find_peaks(effective.release, first, second)
        listed = list_candidates(self.replay, usage, cause, self.goals.max_objects)
        trials = Trials(seen, wanted, first, self.show)

        def reject(candidate: Candidate) -> tuple[str, ...]:
            after = candidate.after or effective
            misses = find_misses(verified, second, run_trial(reported, after))
            failures = prove(effective, after, find_intention(candidate, effective, after), peaks, MEASURED).failures
            return (*(f"in the part of the log that the search does not use, {miss}" for miss in misses), *failures)

        searched = search(trials, listed.candidates, reject, partial(self._keep_part, cause))
        self.searched = searched
        if searched.ended == INTERRUPTED:
            best = "" if searched.found is None else f"; the last change that met the goals is: {searched.found.kind}"
            answer = self._decline(
                f"the search was interrupted after {count_noun(len(searched.tried), 'change')}{best}"
            )
            rejected = tuple(_summarize_tried(searched.tried))
            return answer._replace(searched=searched, rejected=rejected, is_interrupted=True)
        rejected = (*_summarize_tried(searched.tried), *self._try_forbidden(cause, trials), *listed.impossible)
        if searched.found is None:
            reason = (
                "no change that the search tried meets the goals" if searched.tried else "no allowed change can help"
            )
            return self._decline(reason, cause.advice)._replace(searched=searched, rejected=rejected)
        proposal = self._build(searched, reported, second, verified, peaks)
        answer = self._decline("")._replace(searched=searched, rejected=rejected)
        if proposal.proof.failures:
            return answer._replace(reason="; ".join(proposal.proof.failures))
        return answer._replace(proposal=proposal)

    def _list_goals(self, part: LogPart, outcome: TrialOutcome) -> TrialGoals:
        return list_goals(part, outcome.clients, self.cause, self.goals.protections, self.goals.may_suffer)

    def _keep_part(self, cause: LogCause, candidate: Candidate) -> tuple[str, ...]:
        """Return one clause if the client's new level would get too few seats, else ().

        The client is the cause of the incident. Its new level needs as many seats as the overloaded level
        has, divided by the number of users of that level.
        """
        isolation = candidate.isolation
        if isolation is None or not cause.users or candidate.after is None:
            return ()
        limits = candidate.after.limits.level(isolation.level)
        if limits is None or isolation.new_level is None or limits.nominal >= isolation.goal.seats:
            return ()
        return (
            (
                f"the level for {', '.join(cause.users)} has {limits.nominal} seats, but an equal division of"
                f" {quote(cause.level)} among its users gives {isolation.goal.seats} seats to each user"
            ),
        )

    def _try_forbidden(self, cause: LogCause, trials: Trials) -> tuple[str, ...]:
        """If the overloaded level is built in, simulate twice its shares, and return a sentence about the effect.

        No proposal changes a built-in level, so the sentence only informs the user. Return () if the level
        is not built in, is exempt or has no shares, or if no further simulation is permitted.
        """
        known = self.replay.known
        limits = known.limits.level(cause.level)
        if limits is None or limits.is_exempt or limits.shares == 0 or trials.is_exhausted:
            return ()
        if cause.level not in builtin.list_names(known.release, "PriorityLevelConfiguration"):
            return ()
        change = LevelFieldChange(cause.level, SHARES, 2 * limits.shares)
        misses = trials.find_misses(apply_changes(known, (change,)))
        does = misses[0] if misses else "the goals would be met"
        return (
            f"no proposal changes the built-in level {cause.level}, but a simulation with twice its shares shows: {does}",
        )

    def _build(
        self, searched: Searched, part: LogPart, before: TrialOutcome, goals: TrialGoals, peaks: dict[str, int]
    ) -> LogProposal:
        candidate = searched.found
        assert candidate is not None, "the search found it"
        known, cause = self.replay.known, self.cause
        assert cause is not None, "the search is for its cause"
        evidence = "The waits and rejections in comments are results of a simulation of an audit log."
        text = write_changed_manifests(
            candidate, known, candidate.after or known, searched.needs, self.naming.command, evidence
        )
        after = read_result(candidate, known, text)
        self.show("Simulating the result")
        outcome = run_trial(part, after)
        loads = []
        for scale in LOADS:
            self.show(f"Simulating {scale:g} times the load")
            old, new = run_trial(part, known, scale), run_trial(part, after, scale)
            loads.append(LoadEffect(scale, compare_clients(old, new), find_misses(goals, old, new)))
        assert self.survey is not None, "the cause follows from it"
        changed = part.replay._replace(known=after, assignments=_assign(part, after))
        name = name_files(candidate)
        suite = write_log_policy_test(
            candidate,
            after,
            cause,
            self.replay.log.tuples,
            self.naming.manifests(name, edits_objects(candidate)),
            self.naming.cluster,
        )
        return LogProposal(
            candidate,
            known,
            after,
            name,
            text,
            suite,
            prove(known, after, find_intention(candidate, known, after), peaks, MEASURED),
            searched.needs,
            compare_clients(before, outcome),
            _count_moved(part, after),
            tuple(loads),
            tuple(list_unpredictable(self.survey, changed)),
        )


def _find_worst(conclusion: Conclusion | None) -> OverloadCause | None:
    """Return the worst cause, or None if there is none."""
    return None if conclusion is None else next(iter(conclusion.warnings or conclusion.causes), None)


def _assign(part: LogPart, effective: Effective) -> list[Assignment]:
    classifier = TupleClassifier(effective, part.counts)
    return [classifier.assign(attributes) for attributes in part.replay.log.tuples]


def _count_moved(part: LogPart, after: Effective) -> float:
    """Return the proportion of requests whose FlowSchema or level changes."""
    new = _assign(part, after)
    moved = total = 0
    for client in part.survey.clients:
        total += client.requests
        number = part.replay.log.tuples.index(client.attributes)
        found = new[number]
        moved += client.requests * ((client.flow_schema, client.level) != (found.flow_schema, found.priority_level))
    return moved / total if total else 0.0


def read_result(candidate: Candidate, known: Effective, text: str) -> Effective:
    """Return the configuration that results from a candidate, with the new objects as they are in `text`.

    `known` is the configuration before the changes of the candidate, and `text` is the YAML text of the
    new objects.
    """
    fields = tuple(change for change in candidate.changes if not isinstance(change, NewLevel | NewFlowSchema))
    if len(fields) == len(candidate.changes):
        return apply_changes(known, fields)
    return add_objects(apply_changes(known, fields), [load(f"{name_files(candidate)}.yaml", text.encode())])


def find_intention(candidate: Candidate, before: Effective, after: Effective) -> Intention:
    """Return the requests that should move to other FlowSchemas if the changes of a candidate are applied.

    `before` and `after` are the configurations without and with the changes. If the candidate changes
    neither the FlowSchema of a client nor a precedence, the result contains no FlowSchemas, so that no
    request should move.
    """
    isolation = candidate.isolation
    if isolation is not None:
        return isolation.find_intention(after)
    if candidate.schema:
        order = [schema.name for schema in after.configuration.order]
        sources = tuple(schema for schema in before.configuration.order if schema.name == candidate.schema)
        place = order.index(candidate.schema)
        return Intention(_NOBODY, sources, after.configuration.order[:place], returns=True)
    return Intention(match_all_requests(()), (), ())


def _find_peaks(release: Release, *outcomes: TrialOutcome) -> dict[str, int]:
    """Return the seats that each level for requests of the system must keep, by level name.

    This number is the largest number of seats of the level that were in use in one API server in the
    simulations `outcomes`, but at most the nominal limit of the level.
    """
    peaks: dict[str, int] = {}
    system = system_request_rules.list_levels(release)
    for outcome in outcomes:
        for name, level in outcome.levels.items():
            if name in system:
                peaks[name] = max(peaks.get(name, 0), min(level.peak, level.limits.nominal))
    return peaks


def _list_notes(replay: Replay, counts: ObjectCounts | None) -> Iterator[str]:
    """Yield sentences about facts that the log does not show."""
    if not all(assignment.certain for assignment in replay.assignments):
        yield "The log does not show the groups of some users, so the FlowSchemas of their requests are uncertain."
    omissions = find_omissions(replay.log)
    if COMPLETE in omissions.stages or not omissions.has_decisions:
        yield from describe_omissions(omissions)
    if replay.unanswered:
        yield f"The simulation leaves out {count_noun(replay.unanswered, 'request')} without an event for the response."
    if counts is None:
        yield "Without --metrics, apflint does not know how many objects a list request loads, so each request takes 1 seat."


def _summarize_tried(tried: Sequence[Tried]) -> Sequence[str]:
    """Return a sentence for each kind of tried change that misses goals.

    The sentence contains the kind, the number of tried changes, and the first goal that the last tried
    change of this kind misses.
    """
    by_kind: dict[str, list[Tried]] = {}
    for entry in tried:
        if entry.misses:
            by_kind.setdefault(entry.candidate.kind, []).append(entry)
    return [
        f"{kind}{f' ({len(entries)} tried)' if len(entries) > 1 else ''}: {entries[-1].misses[0]}"
        for kind, entries in by_kind.items()
    ]
