"""Finds causes at a server that is not overloaded now: a past overload, a short peak, or borrowed seats."""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint.doctor.causes.conclusion import OverloadCause
from apflint.doctor.causes.evidence_text import describe_span, offered_seats, seats_text, seconds_text
from apflint.doctor.causes.measurements import waits_between
from apflint.doctor.causes.overloaded_levels import MIN_DELAY_SECONDS, MIN_REJECTED, MIN_REJECTED_SHARE
from apflint.evaluate.configuration import CATCH_ALL
from apflint.wording import count_noun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.doctor.causes.measurements import LevelLoad, ServerLoad
    from apflint.doctor.level_state import ServerState

LONG_WAIT_SECONDS = 10.0
"""Minimum wait in seconds of a past overload. By default, the maximum wait is 15 s."""
MIN_PEAK_WAIT_SECONDS = 0.02
"""Minimum wait in seconds of requests in a short peak."""
MIN_PEAK_REQUESTS = 5
_MIN_BORROWING_USE = 0.45
"""Minimum ratio of the offered load to the nominal limit for a note that a level depends on borrowed seats."""


def find_past(
    server: ServerLoad, intervals: list[ServerState], explained: frozenset[str] = frozenset()
) -> OverloadCause | None:
    """Return a cause if the counters show an overload that is over, else None.

    The cause does not name a client, because a dump shows only the present requests. `intervals` are the states of the
    server between consecutive snapshots. Levels in `explained`, which other causes name, are ignored.
    """
    evidence: list[str] = []
    names: dict[str, None] = {}  # used as an ordered set
    for state in intervals:
        for level in state.levels:
            if level.is_exempt or level.is_deleted or level.name in explained or level.name in names:
                continue
            now = server.level(level.name)
            if now is not None and now.state.waiting:
                continue
            rejected = level.rejected or 0
            is_rejected = rejected >= MIN_REJECTED and rejected >= MIN_REJECTED_SHARE * level.requests
            long = waits_between(level.waits, LONG_WAIT_SECONDS) or 0
            is_delayed = long >= MIN_REJECTED and level.waits and long >= MIN_REJECTED_SHARE * level.waits.requests
            # A server that starts sends all requests to catch-all until it has read the FlowSchemas and
            # priority levels. It rejects some of these requests, but such rejections are not an overload.
            if level.name == CATCH_ALL and not is_delayed and rejected <= MIN_REJECTED_SHARE * _all_requests(state):
                continue
            mean = measured.wait.mean if (measured := server.level(level.name)) and state is intervals[-1] else None
            is_slow = not state.since_start and mean is not None and mean >= MIN_DELAY_SECONDS
            if is_slow and not is_rejected and not is_delayed:
                names[level.name] = None
                evidence.append(
                    f'"{level.name}": requests waited {seconds_text(mean or 0)} on average during an interval of {state.seconds or 0:.0f} s.'
                )
            elif is_rejected or is_delayed:
                names[level.name] = None
                span = "since the start of the server" if state.since_start else f"in {state.seconds or 0:.0f} s"
                parts = [f"{count_noun(rejected, 'request')} rejected"] if is_rejected else []
                parts += (
                    [f"{count_noun(long, 'request')} waited more than {LONG_WAIT_SECONDS:g} s"] if is_delayed else []
                )
                evidence.append(f'"{level.name}": {" and ".join(parts)} {span}.')
    if not evidence:
        return None
    return OverloadCause(
        "old-incident",
        "The counters show an overload that is over: nothing waits or is rejected now. The smoothed demand stays high after an"
        " overload, and halves every 5 minutes.",
        is_apf=True,
        severity="info",
        levels=tuple(names),
        evidence=tuple(evidence),
        would_not_help=(
            "Old counters are not a reason to change limits. If the overload returns, save metrics and dumps while it lasts.",
        ),
        server=server.name,
    )


def _all_requests(state: ServerState) -> int:
    return sum(level.requests for level in state.levels)


def find_notes(server: ServerLoad) -> Iterator[OverloadCause]:
    """Yield notes about a healthy server: levels that depend on borrowed seats, and short peaks."""
    waiting = [level for level in server.limited if level.state.waiting and level.state.demand_average is not None]
    if waiting:
        level = max(waiting, key=lambda level: level.state.waiting or 0)
        yield OverloadCause(
            "rollout-spike",
            f'A burst has just arrived at "{level.name}", or requests of this level wait only briefly. The server adjusts the limits every 10 s, so more seats may follow.',
            is_apf=True,
            severity="info",
            levels=tuple(level.name for level in waiting),
            evidence=(
                (
                    f"{count_noun(level.state.waiting or 0, 'request')} waiting. Limit now: {level.state.current}. Mean demand in the last"
                    f" completed period of 10 s: {level.state.demand_average or 0:.1f} seats."
                ),
            ),
            would_not_help=("A peak of some seconds does not need more seats, because queues absorb short peaks.",),
            server=server.name,
        )
        return
    if server.is_since_start:
        return
    busy = [level for level in server.limited if _borrows(server, level)]
    if busy:
        level = busy[0]
        offered = offered_seats(server, level) or 0
        yield OverloadCause(
            "healthy-busy",
            f'"{level.name}" borrows seats at times, and serves all of its requests: nothing has to be done.',
            is_apf=True,
            severity="info",
            levels=tuple(level.name for level in busy),
            evidence=(
                (
                    f"Offered load: {seats_text(offered)}. Highest demand for seats in the last completed period of"
                    f" 10 s: {level.state.demand_high or 0:.0f}. Nominal limit:"
                    f" {level.state.nominal}. Limit now: {level.state.current}."
                ),
            ),
            would_not_help=("A high use of seats is not a reason to change limits while no request waits.",),
            server=server.name,
        )
        return
    peaks = [(level, count) for level in server.limited if (count := _peak_requests(level))]
    if peaks:
        level, count = max(peaks, key=lambda peak: peak[1])
        yield OverloadCause(
            "rollout-spike",
            f'A short peak at "{level.name}" is over: its requests waited for a short time, and none was rejected.',
            is_apf=True,
            severity="info",
            levels=(level.name,),
            evidence=(
                (
                    f"{count_noun(count, 'request')} of {level.state.dispatched or 0:,} waited for more than"
                    f" {seconds_text(MIN_PEAK_WAIT_SECONDS)} {describe_span(server)}; the mean is {seconds_text(level.wait.mean or 0)}."
                ),
            ),
            would_not_help=("A peak of some seconds does not need more seats, because queues absorb short peaks.",),
            server=server.name,
        )


def _borrows(server: ServerLoad, level: LevelLoad) -> bool:
    offered, nominal, current = offered_seats(server, level), level.state.nominal, level.state.current
    return bool(
        offered is not None
        and nominal
        and current
        and current > nominal
        and offered >= _MIN_BORROWING_USE * nominal
        and (level.state.demand_high or 0) > nominal
    )


def _peak_requests(level: LevelLoad) -> int:
    count = waits_between(level.state.waits, MIN_PEAK_WAIT_SECONDS) or 0
    return count if count >= MIN_PEAK_REQUESTS else 0
