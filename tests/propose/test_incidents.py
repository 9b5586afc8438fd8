"""Proposals for recorded incidents: a change of the right kind that meets the goals, or the cause and no proposal."""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from support.incidents import COMPLETE, INCIDENTS
from support.recordings import ROOT

from apflint.doctor.level_state import compute_state
from apflint.doctor.snapshot import group_servers
from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.output.console import Style
from apflint.output.log_proposal import log_answer_json, report_log_answer
from apflint.output.proposal_files import ProposalFiles
from apflint.output.report import render_report
from apflint.propose.incidents import Incident
from apflint.propose.log_proposal import MIN_HELD_OUT_SECONDS, LogGoals, Naming, propose_from_log
from apflint.propose.observed_state import ObservedState
from apflint.propose.trials import run_trial, select_part
from apflint.releases import NEWEST
from apflint.replay.classification import TupleClassifier
from apflint.replay.object_counts import parse_metrics
from apflint.replay.running import ReplayOptions, replay_sides
from apflint.simulate.back_test import REJECTED_SHARE, are_alike
from apflint.simulate.load import SECOND
from apflint.simulate.log_survey import survey_log
from apflint.simulate.logged_simulation import list_unpredictable
from apflint.simulate.logged_simulation import test_log as back_test
from apflint.sources.audit_logs import find_audit_logs
from apflint.sources.server_state_files import read_parts
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.propose.log_proposal import LogAnswer

FIXTURES = ROOT / "fixtures" / "propose"
"""Audit logs of two of the incidents, and the objects of the user. Their metrics are in `INCIDENTS`."""


class Expected(NamedTuple):
    """The correct answer for an incident."""

    cause: str
    """The cause that the metrics show."""
    from_log: str
    """The cause that the log shows, or "" if the log shows no incident."""
    kind: str = ""
    """Beginning of the kind of change, or "" if no change is right."""


EXPECTED = {
    "catch-all": Expected("catch-all", "catch-all", "partner-acme, partner-bolt to the level"),
    "client-timeouts": Expected("client-timeouts", "client-timeouts"),
    "etcd-slow": Expected("etcd-slow", "slow-service"),
    "exempt-abuse": Expected("exempt-abuse", "exempt-abuse"),
    "flood-one-flow": Expected(
        "flood-one-flow", "flood-one-flow", "a separate priority level for system:serviceaccount:ci:image-tagger"
    ),
    "flood-one-flow/fixed": Expected("flood-contained", "flood-contained"),
    "healthy-busy": Expected("healthy-busy", ""),
    "imbalance": Expected("imbalance", "imbalance"),
    "inversion": Expected("inversion", "slow-service"),
    "leader-election-starved": Expected("leader-election-starved", "leader-election-starved"),
    "leases-captured": Expected("leases-captured", "leases-captured", "matchingPrecedence 1000 of platform-shared"),
    "list-heavy": Expected(
        "list-heavy", "list-heavy", "a separate priority level for system:serviceaccount:inventory:asset-sync"
    ),
    "list-heavy/fixed": Expected("", "noisy-but-fair"),
    # The metrics are from 3 minutes after the incident in the log, so they do not count.
    "old-incident": Expected(
        "", "flood-one-flow", "a separate priority level for system:serviceaccount:ci:image-tagger"
    ),
    "restart": Expected("restart", "restart"),
    "rollout-spike": Expected("rollout-spike", ""),
    "single-flow": Expected("single-flow", "single-flow", "distinguisherMethod of batch"),
    "single-flow/fixed": Expected("noisy-but-fair", "noisy-but-fair"),
    "slow-webhook": Expected("slow-webhook", "slow-service"),
    "slow-webhook/fixed": Expected("", ""),
    "small-level": Expected("small-level", "small-level", "more shares for reporting"),
    "small-level/fixed": Expected("", ""),
    "watch-init-storm": Expected("watch-init-storm", "watch-init-storm"),
}
"""The recorded incidents, and changes that prevent them.

The table in docs/commands/propose.md is about the same incidents.
"""


NOT_SEATS = {
    *("client-timeouts", "etcd-slow", "exempt-abuse", "imbalance", "inversion", "restart", "slow-webhook"),
    "watch-init-storm",
}
"""Incidents whose answer contains only the cause, without a simulation."""


def find_metrics(directory: Path) -> list[str]:
    """Return metrics and dumps before and during an incident. The files of the other API server are last."""
    own = [
        str(path) for moment in ("0-before", "1-during", "2-during") for path in sorted(directory.glob(f"{moment}*"))
    ]
    return [*own, *(str(path) for path in sorted((directory / "peer").glob("1-during*")))]


@lru_cache  # tests can share an answer, because it is immutable
def propose(directory: Path, *, has_metrics: bool, log: Path | None = None) -> LogAnswer:
    """Return the answer for a recorded incident. `log` replaces its audit log."""
    observed = INCIDENTS / directory.relative_to(FIXTURES) if directory.is_relative_to(FIXTURES) else directory
    label = json.loads((observed / "label.json").read_text("utf-8"))
    manifests = [path for path in (directory / "objects.json", *directory.glob("manifests/*.yaml")) if path.is_file()]
    workspace = build_workspace(load_inputs((path.name, path.read_bytes()) for path in manifests), NEWEST)
    effective = Effective(workspace, Assumptions(server_concurrency=label["server_flags"]["total_seats"]))
    during = observed / "2-during.metrics.txt.gz"
    counts = parse_metrics(gzip.decompress(during.read_bytes()).decode()) if during.is_file() else None
    observed_state = ObservedState()
    if has_metrics:
        servers = group_servers(read_parts(find_metrics(observed)))
        observed_state = ObservedState(tuple(compute_state(server, None) for server in servers))
    logs = [str(path) for path in (directory / "audit.log.gz", directory / "peer" / "audit.log.gz") if path.is_file()]
    options = ReplayOptions(by=("namespace",), counts=counts, calls=True)
    replays = replay_sides(find_audit_logs(logs if log is None else [str(log)]), [effective], options)
    naming = Naming("apflint propose", lambda name, _: ("manifests", f"{name}.yaml"), "")
    answer = propose_from_log(next(replays), counts, observed_state, LogGoals(), naming)
    replays.close()
    return answer


CLIENT_FIXES = {
    "flood-one-flow": "fix the client: it must limit its rate, and wait for Retry-After",
    "flood-one-flow/fixed": "fix the client: it must limit its rate, and wait for Retry-After",
    "old-incident": "fix the client: it must limit its rate, and wait for Retry-After",
    "list-heavy/fixed": "if the client should wait less, change it: it must use an informer (list once, then watch), or list one namespace",
    "single-flow/fixed": "if the client should wait less, change it: it must limit its rate",
}
"""The incidents in which only the client that is the cause is harmed, and what its owner must change."""


def check_client_fix(answer: LogAnswer, name: str) -> None:
    """Assert that the owner of a client must change it first, if and only if the client harms only itself."""
    assert answer.client_fix == CLIENT_FIXES.get(name, "")
    says_only = [] if answer.cause is None else [line for line in answer.cause.evidence if line.startswith("Only ")]
    assert bool(says_only) == (name in CLIENT_FIXES)


def check(answer: LogAnswer, expected: Expected) -> None:
    """Assert that an answer has the right kind of change, and that the change has the promised effect."""
    assert (answer.proposal is not None) == bool(expected.kind), (answer.reason, answer.rejected)
    proposal = answer.proposal
    if proposal is None:
        assert answer.reason
        return
    assert proposal.candidate.kind.startswith(expected.kind)
    assert answer.is_usable
    assert (answer.evidence.split is None) == (answer.evidence.incidents[0].seconds < MIN_HELD_OUT_SECONDS)
    assert not proposal.proof.failures
    assert proposal.needs
    assert proposal.manifests
    assert proposal.policy_test
    users = answer.cause.users if answer.cause is not None else ()
    for effect in proposal.effects:
        if effect.client.user not in users:
            assert effect.after.rejected <= effect.before.rejected
            assert effect.after.wait_p99 <= max(SECOND // 2, 1.5 * effect.before.wait_p99)


def skip_without(directory: Path) -> None:
    if not (directory / "audit.log.gz").is_file():
        pytest.skip(f"{directory} is absent: set APFLINT_RECORDINGS to test the audit logs of recorded incidents")


@pytest.mark.parametrize("name", EXPECTED)
def test_proposals_with_metrics(name: str) -> None:
    skip_without(COMPLETE / name)
    expected, answer = EXPECTED[name], propose(COMPLETE / name, has_metrics=True)
    check(answer, expected)
    check_client_fix(answer, name)
    if expected.cause:
        assert answer.observed is not None
        assert answer.observed.cause == expected.cause
    if not expected.kind and expected.cause in NOT_SEATS:
        assert f"the cause is {expected.cause}" in answer.reason
        assert answer.searched is None


@pytest.mark.parametrize("name", EXPECTED)
def test_proposals_from_logs_alone(name: str) -> None:
    skip_without(COMPLETE / name)
    expected, answer = EXPECTED[name], propose(COMPLETE / name, has_metrics=False)
    assert (answer.cause.cause if answer.cause is not None else "") == expected.from_log
    # Without metrics, the report shows that a server is slow, but not the cause.
    check(answer, expected)
    check_client_fix(answer, name)


def test_answer_for_an_inversion_names_the_command_that_helps() -> None:
    skip_without(COMPLETE / "inversion")
    answer = propose(COMPLETE / "inversion", has_metrics=True)
    assert "no simulation shows how fast the webhook is" in answer.reason
    assert "apflint propose --isolate serviceaccount:policy/opa --seats N" in answer.advice


def test_text_of_a_later_precedence_names_no_new_flow_schema() -> None:
    skip_without(COMPLETE / "leases-captured")
    answer = propose(COMPLETE / "leases-captured", has_metrics=False)
    files = ProposalFiles("a.yaml", "a-test.yaml", "a-alerts.yaml", (), "")
    answered: Any = log_answer_json(answer, files)
    (finding,) = answered["change"]["findings"]
    assert finding["rule"] == "APF501"
    assert finding["why"].startswith("other FlowSchemas capture these requests after the change")


@pytest.mark.parametrize("name", [name for name, expected in EXPECTED.items() if expected.kind])
def test_recorded_changes_are_of_the_proposed_kind(name: str) -> None:
    """The recorded cure and the proposal change the same kind of object in the same direction."""
    fixed = COMPLETE / name / "fixed" / "label.json"
    if not fixed.is_file():
        pytest.skip("no cure of this incident is recorded")
    text = json.loads(fixed.read_text("utf-8"))["fix"]
    proposal = propose(COMPLETE / name, has_metrics=True).proposal
    assert proposal is not None
    is_level = len(proposal.candidate.changes) == 2
    assert is_level == ("new level" in text)
    if is_level:
        assert "borrowingLimitPercent 0" in text
        assert "borrowingLimitPercent: 0" in proposal.manifests
    else:
        assert proposal.candidate.kind.split()[0] in text or "Shares" in text


@pytest.mark.parametrize("name", ["flood-one-flow", "list-heavy", "single-flow", "small-level"])
def test_simulated_cures_are_like_recorded_ones(name: str) -> None:
    """Simulating the log of the incident with the recorded cure gives similar results to the log recorded after the cure."""
    skip_without(COMPLETE / name / "fixed")
    label = json.loads((COMPLETE / name / "label.json").read_text("utf-8"))
    seats = label["server_flags"]["total_seats"]
    before, after = (
        Effective(
            build_workspace(load_inputs([("objects.json", (directory / "objects.json").read_bytes())]), NEWEST),
            Assumptions(server_concurrency=seats),
        )
        for directory in (COMPLETE / name, COMPLETE / name / "fixed")
    )
    counts = parse_metrics(gzip.decompress((COMPLETE / name / "2-during.metrics.txt.gz").read_bytes()).decode())
    options = ReplayOptions(by=("namespace",), counts=counts, calls=True)
    with closing(replay_sides(find_audit_logs([str(COMPLETE / name / "audit.log.gz")]), [before], options)) as replays:
        replay = next(replays)
        survey = survey_log(replay, 1)
        assumed = back_test(replay, survey, lambda *_: None).assumptions
        whole = replay.extent.start, replay.extent.end + 1
        part = select_part(replay, whole, assumed[0], survey.start, counts, Incident(0, 0, 0))
        simulated = run_trial(part, after)
        changed = replay._replace(
            known=after, assignments=[*map(TupleClassifier(after, counts).assign, replay.log.tuples)]
        )
        unpredicted = [
            sentence for sentence in list_unpredictable(survey, changed) if sentence.startswith("the waits of")
        ]
    log = str(COMPLETE / name / "fixed" / "audit.log.gz")
    with closing(replay_sides(find_audit_logs([log]), [after], options)) as replays:
        recorded = survey_log(next(replays), 1)
    for level in recorded.levels:
        found = simulated.levels[level.name]
        difference = abs(sum(found.rejected.values()) - level.rejected)
        assert difference <= max(5, REJECTED_SHARE * level.requests), level
        wait = 0 if found.waits is None else found.waits.p99
        shown = level.wait_p99 or 0
        assert are_alike(max(shown, min(wait, SECOND // 2)), wait) or unpredicted, level
    assert bool(unpredicted) == (name == "list-heavy")


CUTS = {
    "without the time before": lambda seconds: seconds >= 16,
    "the beginning": lambda seconds: seconds <= 24,
    "without the end": lambda seconds: seconds <= 40,
}
"""The parts of the logs to use, as seconds since the first request."""


@pytest.mark.parametrize("name", ["single-flow", "list-heavy"])
@pytest.mark.parametrize("cut", CUTS)
def test_part_of_a_log_has_the_same_answer(name: str, cut: str, tmp_path: Path) -> None:
    lines = gzip.decompress((FIXTURES / name / "audit.log.gz").read_bytes()).splitlines(keepends=True)
    times = [datetime.fromisoformat(json.loads(line)["requestReceivedTimestamp"]) for line in lines]
    start = min(times)
    kept = (line for line, time in zip(lines, times, strict=True) if CUTS[cut]((time - start).total_seconds()))
    (tmp_path / "audit.log.gz").write_bytes(gzip.compress(b"".join(kept), 1))
    answer = propose(FIXTURES / name, has_metrics=False, log=tmp_path / "audit.log.gz")
    assert answer.proposal is not None, answer.reason
    assert answer.proposal.candidate.kind.startswith(EXPECTED[name].kind)
    assert (answer.evidence.split is None) == (answer.evidence.incidents[0].seconds < MIN_HELD_OUT_SECONDS)


def reject(source: Path, user: str, number: int, file: Path) -> Path:
    """Write an audit log whose server rejects requests of a user, in the middle of the log. Return its path."""
    lines = gzip.decompress(source.read_bytes()).splitlines()
    events = [json.loads(line) for line in lines]
    ends = [event for event in events if event["stage"] == "ResponseComplete" and event["user"]["username"] == user]
    for event in ends[len(ends) // 2 :][:number]:
        event["responseStatus"] = {"metadata": {}, "code": 429}
        event["stageTimestamp"] = event["requestReceivedTimestamp"]
        event.pop("annotations", None)  # authorization adds annotations, but APF rejects a request before authorization
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, events)).encode(), 1))
    return file


@pytest.mark.parametrize(("rejected", "is_only_harmed"), [(4, True), (5, False)])
def test_other_clients_may_have_hardly_any_rejections(rejected: int, *, is_only_harmed: bool, tmp_path: Path) -> None:
    """The other clients have 431 requests, and at most 1% of them are hardly any, as for `replay`."""
    directory = COMPLETE / "flood-one-flow"
    skip_without(directory)
    user = "system:serviceaccount:web:frontend"
    log = reject(directory / "audit.log.gz", user, rejected, tmp_path / "audit.log.gz")
    answer = propose(directory, has_metrics=False, log=log)
    assert answer.cause is not None
    assert answer.cause.cause == "flood-one-flow"
    assert bool(answer.cause.client_fix) == is_only_harmed
    assert any(f"{rejected} of 431 requests" in line for line in answer.cause.evidence) == is_only_harmed


@pytest.mark.parametrize(
    ("servers", "text"),
    [
        (1, "1 nominal seat in each API server\n"),
        (3, "1 nominal seat in each API server; with the 3 API servers of the log, 3 in all\n"),
    ],
)
def test_report_has_the_seats_of_all_servers_in_the_log(servers: int, text: str) -> None:
    skip_without(COMPLETE / "flood-one-flow")
    answer = propose(COMPLETE / "flood-one-flow", has_metrics=True)
    answer = answer._replace(evidence=answer.evidence._replace(servers=servers))
    files = ProposalFiles("a.yaml", "a-test.yaml", "a-alerts.yaml", (), "")
    assert text in render_report("", report_log_answer(answer, files, "objects"), "text", Style())


def test_report_names_the_client_before_the_change() -> None:
    skip_without(COMPLETE / "flood-one-flow")
    answer = propose(COMPLETE / "flood-one-flow", has_metrics=True)
    assert answer.proposal is not None
    files = ProposalFiles("a.yaml", "a-test.yaml", "a-alerts.yaml", (), "")
    text = render_report("", report_log_answer(answer, files, "objects"), "text", Style())
    labels = [line.split()[0] for line in text.splitlines() if line[:1].isalpha()]
    assert labels.index("Cause") < labels.index("First") < labels.index("Proposal")
    assert log_answer_json(answer, files)["clientFix"] == CLIENT_FIXES["flood-one-flow"]


@pytest.mark.parametrize("name", ["single-flow", "list-heavy"])
@pytest.mark.parametrize("has_metrics", [False, True])
def test_fixtures(name: str, has_metrics: bool) -> None:
    check(propose(FIXTURES / name, has_metrics=has_metrics), EXPECTED[name])
