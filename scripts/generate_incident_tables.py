"""Generate the tables about recorded incidents in docs/exactness.md.

    python scripts/generate_incident_tables.py            update the page
    python scripts/generate_incident_tables.py --check    fail if the page is not up to date

The script simulates the audit log of each recording with the objects and seats of its server. It also simulates each
recorded change with the log from before the change. The run takes about half a minute.
"""

from __future__ import annotations

import gc
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from generated_files import update_or_check

from apflint.releases import parse_release
from apflint.replay.running import ReplayOptions, replay_sides
from apflint.simulate.back_test import LevelFigures, are_alike
from apflint.simulate.logged_simulation import simulate_log
from apflint.simulate.scaling import NEUTRAL
from apflint.simulate.verdict_sentences import format_time
from apflint.sources.audit_logs import find_audit_logs
from apflint.sources.effective_configurations import read_configuration
from apflint.sources.input_types import create_request
from apflint.sources.object_counts import read_object_counts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective_configuration import Effective
from apflint.simulate.logged_simulation import LoggedRun, LogSimulation

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "fixtures" / "simulate" / "incidents"
PAGE = ROOT / "docs" / "exactness.md"
FIXED = "-fixed"
MAX_REJECTED_DIFFERENCE = 0.15
"""Maximum difference of the rejections of a prediction, as a part of the requests of the level."""
_MIN_WAIT = 300_000_000
"""Minimum 99th percentile of the waits, in nanoseconds, for showing a level without rejections."""
_BACK_TESTS = "<!-- {} of the table of back-tests -->\n"
_PREDICTIONS = "<!-- {} of the table of predictions -->\n"


class Prediction(NamedTuple):
    """The prediction of a simulation for a level after a change, and the behavior of the server after the change."""

    incident: str
    level: str
    recorded: LevelFigures
    recorded_requests: int
    simulated: LevelFigures
    simulated_requests: int
    explained: str
    """The reason why the simulation cannot predict the level, or an empty string if it reports no reason."""

    @property
    def is_right(self) -> bool:
        """Whether the prediction is within the tolerances."""
        shares = [
            figures.rejected / requests if requests else 0.0
            for figures, requests in (
                (self.recorded, self.recorded_requests),
                (self.simulated, self.simulated_requests),
            )
        ]
        waits = [figures.wait_p99 or 0 for figures in (self.recorded, self.simulated)]
        return abs(shares[0] - shares[1]) <= MAX_REJECTED_DIFFERENCE and are_alike(waits[0], waits[1])


def list_recordings() -> dict[str, dict[str, object]]:
    """Return the facts about each recording: the seats of the server, and the change before the recording, if any.

    The keys are names of recordings.
    """
    recordings: dict[str, dict[str, object]] = json.loads((LOGS / "recordings.json").read_text("utf-8"))
    return recordings


def read_side(objects: str, seats: object) -> Effective:
    """Return the configuration of a server with `seats` seats and the objects of the recording `objects`."""
    words = (str(LOGS / f"{objects}.objects.json"),)
    request = create_request(words, parse_release("1.36"), int(str(seats)), isolated=True)
    return read_configuration(request._replace(uses_project=False)).effective


def simulate_recording(name: str, *others: str) -> LogSimulation:
    """Simulate the log of a recording with its own objects, and then with the objects of each recording in `others`."""
    seats = list_recordings()[name]["seats"]
    sides = [read_side(objects, seats) for objects in (name, *others)]
    counts = read_object_counts(str(LOGS / f"{name}.metrics.txt"), ())
    options = ReplayOptions(engine="python", by=("namespace",), counts=counts, calls=True)
    gc.disable()  # as `apflint simulate` does, because garbage collection makes the simulation slower
    try:
        return simulate_log(replay_sides(find_audit_logs([str(LOGS / f"{name}.log.gz")]), sides, options), NEUTRAL, 1)
    finally:
        gc.enable()


def predict(name: str) -> list[Prediction]:
    """Return the predictions for the levels of a recording after a change of the configuration.

    The result contains levels with rejections or long waits in the recording after the change or in
    the simulation. It also contains all levels for which the prediction is wrong.
    """
    found = simulate_recording(name, name + FIXED)
    after = simulate_recording(name + FIXED)
    recorded = {level.name: level for level in after.survey.levels}
    run: LoggedRun = found.runs[-1]
    predictions = []
    for level in run.result.levels:
        logged = recorded.get(level.name)
        figures = LevelFigures(0, None) if logged is None else LevelFigures(logged.rejected, logged.wait_p99)
        simulated = LevelFigures(sum(level.rejected.values()), None if level.waits is None else level.waits.p99)
        users = {client.user for client in level.clients}
        explained = [reason for reason in run.unpredictable if any(f"of {user}:" in reason for user in users)]
        requests = 0 if logged is None else logged.requests
        prediction = Prediction(
            name, level.name, figures, requests, simulated, level.attempts, explained[0] if explained else ""
        )
        if _is_shown(figures, simulated) or not prediction.is_right:
            predictions.append(prediction)
    return predictions


def _is_shown(*sides: LevelFigures) -> bool:
    return any(figures.rejected or (figures.wait_p99 or 0) > _MIN_WAIT for figures in sides)


def _format(figures: LevelFigures) -> str:
    return f"{figures.rejected:,} | {format_time(figures.wait_p99) if figures.wait_p99 else '-'}"


def render_back_tests() -> str:
    """Return the table of back-tests: the levels with rejections or waits, and whether the back-test is usable."""
    rows = [
        "| recording | level | requests | rejected: log | P99 wait: log | rejected: simulation | P99 wait: simulation | usable |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in list_recordings():
        found = simulate_recording(name).back_test
        levels = [level for level in found.levels if _is_shown(level.logged, level.simulated) or not level.is_usable]
        rows += (
            f"| {name} | {level.name} | {level.requests:,} | {_format(level.logged)} | {_format(level.simulated)} |"
            f" {'yes' if level.is_usable else 'no'} |"
            for level in levels
        )
        if not levels:
            rows.append(
                f"| {name} | all levels | {sum(level.requests for level in found.levels):,} | 0 | - | 0 | - | yes |"
            )
    return "\n".join(rows) + "\n"


def render_predictions() -> str:
    """Return the table of predictions."""
    recordings = list_recordings()
    rows = [
        "| recording | change | level | rejected: server | P99 wait: server | rejected: simulation | P99 wait: simulation | within the tolerance |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name in recordings:
        if name + FIXED in recordings:
            rows += _list_prediction_rows(name, str(recordings[name + FIXED]["fix"]))
    return "\n".join(rows) + "\n"


def _list_prediction_rows(name: str, change: str) -> Iterator[str]:
    predictions = predict(name)
    for item in predictions:
        verdict = "yes" if item.is_right else "no, and the report says so" if item.explained else "no"
        yield (
            f"| {name} | {change} | {item.level} | {_share(item.recorded, item.recorded_requests)} |"
            f" {_share(item.simulated, item.simulated_requests)} | {verdict} |"
        )
    if not predictions:
        yield f"| {name} | {change} | all levels | 0 | - | 0 | - | yes |"


def _share(figures: LevelFigures, requests: int) -> str:
    wait = format_time(figures.wait_p99) if figures.wait_p99 else "-"
    return f"{figures.rejected:,} of {requests:,} | {wait}"


def replace_table(page: str, marks: str, table: str) -> str:
    """Return the page with `table` in place of the text between the two comments that `marks` describes."""
    begin, end = marks.format("begin"), marks.format("end")
    before, rest = page.split(begin)
    return f"{before}{begin}\n{table}\n{end}{rest.split(end)[1]}"


def main() -> int:
    """Update or check the page. Returns the exit code."""
    page = replace_table(PAGE.read_text("utf-8"), _PREDICTIONS, render_predictions())
    return update_or_check({PAGE: replace_table(page, _BACK_TESTS, render_back_tests())})


if __name__ == "__main__":
    sys.exit(main())
