"""Laws of proposals from logs: equal input gives equal output, and the order of lines does not matter.

In addition, no smaller change suffices, and reports name all clients that lose.
"""

from __future__ import annotations

import gzip
import json
from contextlib import closing
from itertools import product
from random import Random
from typing import TYPE_CHECKING

import pytest
from support.recordings import ROOT

from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.propose.changes import FlowSchemaFieldChange, apply_changes, find_forbidden, measure
from apflint.propose.effects import compare_clients, find_misses, list_goals
from apflint.propose.goals import parse_protection, parse_subject
from apflint.propose.incidents import find_incidents, measure_usage
from apflint.propose.log_causes import find_log_cause
from apflint.propose.log_proposal import LogGoals, Naming, propose_from_log
from apflint.propose.observed_state import ObservedState
from apflint.propose.trials import run_trial, select_part
from apflint.releases import NEWEST
from apflint.replay.running import ReplayOptions, replay_sides
from apflint.simulate.field_overrides import LevelFieldChange
from apflint.simulate.log_survey import survey_log
from apflint.simulate.logged_simulation import test_log as back_test
from apflint.sources.audit_logs import find_audit_logs
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from apflint.propose.changes import Change
    from apflint.propose.log_proposal import LogAnswer
    from apflint.propose.trials import LogPart
    from apflint.replay.loaded_log import Replay

STORY = ROOT / "fixtures" / "propose" / "single-flow"
LINES = gzip.decompress((STORY / "audit.log.gz").read_bytes()).splitlines(keepends=True)
OBJECTS = (STORY / "manifests" / "batch.yaml").read_text("utf-8").split("---\n")
NAMING = Naming("apflint propose", lambda name, _: (f"{name}.yaml",), "")
OPTIONS = ReplayOptions(by=("namespace",), calls=True)


def build(objects: Sequence[str] = OBJECTS) -> Effective:
    inputs = [(f"{number}.yaml", text.encode()) for number, text in enumerate(objects)]
    return Effective(build_workspace(load_inputs(inputs), NEWEST), Assumptions(server_concurrency=30))


def answer(path: Path, lines: Sequence[bytes], effective: Effective, goals: LogGoals = LogGoals()) -> LogAnswer:  # noqa: B008  # the default value is immutable
    log = path / "audit.log"
    log.write_bytes(b"".join(lines))
    with closing(replay_sides(find_audit_logs([str(log)]), [effective], OPTIONS)) as replays:
        return propose_from_log(next(replays), None, ObservedState(), goals, NAMING)


def summarize(found: LogAnswer) -> object:
    proposal = found.proposal
    return (
        found.reason,
        found.rejected,
        found.cause,
        proposal and (proposal.manifests, proposal.policy_test, proposal.effects, proposal.loads, proposal.needs),
    )


def test_order_of_lines_and_objects_does_not_matter(tmp_path: Path) -> None:
    shuffled = [*LINES]
    Random(1).shuffle(shuffled)
    first = summarize(answer(tmp_path, LINES, build()))
    assert first == summarize(answer(tmp_path, LINES, build()))
    assert first == summarize(answer(tmp_path, shuffled, build([*reversed(OBJECTS)])))


def test_every_client_that_loses_is_reported(tmp_path: Path) -> None:
    found = answer(tmp_path, LINES, build(), LogGoals((parse_protection("batch=1s", ["batch"]),)))
    proposal = found.proposal
    assert proposal is not None
    reported = {effect.client for effect in proposal.effects}
    with open_parts(tmp_path) as (_, parts):
        before, after = (run_trial(parts[1], side) for side in (proposal.before, proposal.after))
        for effect in compare_clients(before, after):
            assert effect.client in reported
        for client, figures in after.clients.items():
            if client not in reported:
                assert figures.rejected == before.clients[client].rejected
                assert figures.wait_p99 <= before.clients[client].wait_p99 + 10_000_000


class open_parts:  # noqa: N801  # used like a function
    """Opens the log of the incident, and divides it as `propose` does."""

    def __init__(self, path: Path) -> None:
        log = path / "audit.log"
        log.write_bytes(b"".join(LINES))
        self._replays = replay_sides(find_audit_logs([str(log)]), [build()], OPTIONS)

    def __enter__(self) -> tuple[Replay, list[LogPart]]:
        replay = next(self._replays)
        (incident,) = find_incidents(replay)
        survey = survey_log(replay, 1)
        assumed = back_test(replay, survey, lambda *_: None).assumptions
        middle, extent = (incident.start + incident.end) // 2, replay.extent
        periods = ((extent.start, middle), (middle, extent.end + 1))
        parts = [select_part(replay, period, assumed[0], survey.start, None, incident) for period in periods]
        return replay, parts

    def __exit__(self, *_: object) -> None:
        self._replays.close()


def list_grid() -> Iterator[tuple[Change, ...]]:
    """Yield all combinations of a few values of the fields of the level and of the FlowSchema of the user."""
    fields: list[list[Change | None]] = [
        [None, *(FlowSchemaFieldChange("batch", "distinguisherMethod", value) for value in ("ByUser", "ByNamespace"))],
        [None, *(LevelFieldChange("batch", "nominalConcurrencyShares", value) for value in (28, 50))],
        [None, *(LevelFieldChange("batch", "borrowingLimitPercent", value) for value in (100, None))],
        [None, *(LevelFieldChange("batch", "queueLengthLimit", value) for value in (30, 120))],
    ]
    for values in product(*fields):
        yield tuple(change for change in values if change is not None)


@pytest.mark.parametrize("wait", ["500ms", "300ms", "20ms"])
def test_nothing_smaller_on_a_grid_meets_the_goals(tmp_path: Path, wait: str) -> None:
    """Every combination of the grid that is smaller than the proposed change misses a goal.

    The search does not try every combination of the grid.
    """
    users = [f"user:{name}={wait}" for name in ("emil", "fritz", "gina")]
    goals = LogGoals(tuple(parse_protection(text, ()) for text in users), (parse_subject("user:dora"),), max_objects=0)
    found = answer(tmp_path, LINES, build(), goals)
    assert found.proposal is not None
    smallest = found.proposal.candidate.cost
    with open_parts(tmp_path) as (replay, parts):
        (incident,) = find_incidents(replay)
        cause = find_log_cause(replay, measure_usage(replay, survey_log(replay, 1), incident))
        known = replay.known
        before = [run_trial(part, known) for part in parts]
        wanted = [
            list_goals(part, outcome.clients, cause, goals.protections, goals.may_suffer)
            for part, outcome in zip(parts, before, strict=True)
        ]
        for changes in list_grid():
            assert not find_forbidden(known, changes)
            after = apply_changes(known, changes)
            cost = measure(changes, known, after)
            if cost >= smallest:
                continue
            meets = all(
                not find_misses(own, old, run_trial(part, after))
                for part, own, old in zip(parts, wanted, before, strict=True)
            )
            assert not meets, (changes, cost)


def test_no_proposal_changes_objects_of_the_server_or_captures_the_system(tmp_path: Path) -> None:
    found = answer(tmp_path, LINES, build())
    assert found.searched is not None
    for entry in found.searched.tried:
        assert not find_forbidden(build(), entry.candidate.changes)


def test_a_log_of_another_server_is_not_used(tmp_path: Path) -> None:
    """With more seats than the logged server, the simulation has no waits, so it does not reproduce the log."""
    effective = build()
    other = Effective(effective.workspace, effective.assumptions._replace(server_concurrency=600))
    found = answer(tmp_path, LINES, other)
    assert (found.proposal, found.is_usable, found.searched) == (None, False, None)


def test_short_incident_is_not_divided(tmp_path: Path) -> None:
    early = [line for line in LINES if json.loads(line)["requestReceivedTimestamp"] < "2026-11-23T16:29:38"]
    found = answer(tmp_path, early, build())
    assert found.evidence.split is None
    assert found.evidence.incidents
