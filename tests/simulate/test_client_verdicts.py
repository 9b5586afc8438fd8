"""Verdicts on clients: every sentence, and the order of the sentences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from apflint.simulate.client_verdicts import MAX_VERDICTS, give_client_verdicts, join_clients
from apflint.simulate.histogram import TimePercentiles
from apflint.simulate.load import SECOND

from .test_verdict_sentences import RESULT, level_of, result_of

if TYPE_CHECKING:
    from apflint.simulate.simulation import SimulationResult
    from apflint.simulate.statistics import ClientResult

MILLISECOND = SECOND // 1000


def waits(longest: int, p99: int | None = None) -> TimePercentiles:
    return TimePercentiles(10, 0, 0, longest if p99 is None else p99, longest)


def result(*clients: ClientResult, **others: ClientResult) -> SimulationResult:
    """Return a result with `clients` at the level workload-low.

    `others` contains further clients by the name of their level.
    """
    levels = [level_of(*clients)]
    levels += [level_of(client, name=name.replace("_", "-")) for name, client in others.items()]
    return RESULT._replace(levels=tuple(levels))


def waiting(name: str, longest: int, **values: Any) -> ClientResult:
    return result_of(name, {}, **{"waited": 38, "waits": waits(longest), **values})


CALM = result_of("calm", {})


@pytest.mark.parametrize(("found", "sentences"), [
    (result(CALM), ["No client is rejected, and none waits."]),
    (result(waiting("calm", 31 * MILLISECOND)), ["No client is rejected, and the longest wait is 31 ms."]),
    (
        result(waiting("controller", 8 * SECOND, waits=waits(8 * SECOND, 6 * SECOND)), CALM),
        ["controller waits up to 8.0 s (P99 6.0 s): 38% of its lists.", "Nobody else is rejected or waits."],
    ),
    (
        result(waiting("controller", 8 * SECOND), waiting("calm", 100 * MILLISECOND)),
        ["controller waits up to 8.0 s (P99 8.0 s): 38% of its lists.",
         "Nobody else is rejected or waits longer than 100 ms."],
    ),
    (
        result(result_of("ci", {"queue-full": 7}, last_rejection=61 * SECOND, failed=3, unfinished=1)),
        ["ci is rejected: 7% of its lists from 0:00 to 1:01 (workload-low: queue-full). 2 of 100 requests never succeeded."],
    ),
    (
        result(result_of("ci", {"time-out": 7}, waits=waits(15 * SECOND), verb="patch", expired=1)),
        [("ci is rejected: 7% of its patches at 0:00 (workload-low: time-out). It waits up to 15 s (P99 15 s). 1 attempt"
         " reached the deadline during the execution.")],
    ),
    (
        result(result_of("ci", {}, expired=2, failed=2)),
        ["ci: 2 attempts reached the deadline during the execution. 2 of 100 requests never succeeded."],
    ),
    (
        result(result_of("ci", {"queue-full": 1}), workload_high=result_of("ci", {"time-out": 3}, verb="get")._replace(level="high")),
        ["ci is rejected: 2% of its requests at 0:00 (low and high: queue-full, time-out)."],
    ),
])  # fmt: skip
def test_sentences(found: SimulationResult, sentences: list[str]) -> None:
    expected = [sentence.replace("(workload-low: ", "(low: ") for sentence in sentences]
    assert give_client_verdicts(found).sentences == expected


def test_rejected_clients_come_first_and_then_those_that_wait_longest() -> None:
    found = result(
        waiting("b", 2 * SECOND),
        waiting("a", 3 * SECOND),
        result_of("d", {"queue-full": 1}),
        result_of("c", {"queue-full": 2}),
    )
    assert [name for name, _ in give_client_verdicts(found).clients] == ["c", "d", "a", "b"]
    assert all(verdict.startswith(name) for name, verdict in give_client_verdicts(found).clients)


@pytest.mark.parametrize(("more", "sentence"), [
    (1, "1 more client is rejected, or waits: see --format json."),
    (2, "2 more clients are rejected, or wait: see --format json."),
])  # fmt: skip
def test_number_of_sentences_is_limited(more: int, sentence: str) -> None:
    found = result(CALM, *(waiting(f"c{number}", SECOND) for number in range(MAX_VERDICTS + more)))
    verdicts = give_client_verdicts(found)
    assert len(verdicts.clients) == MAX_VERDICTS + more
    assert verdicts.sentences[MAX_VERDICTS:] == [sentence, "Nobody else is rejected or waits."]


def test_numbers_of_a_client_are_those_of_all_its_levels() -> None:
    first, second = waiting("a", SECOND, executed=5), waiting("a", 3 * SECOND, requests=7, attempts=9)
    (totals,) = join_clients(result(first, system=second._replace(level="system")))
    assert (totals.requests, totals.attempts, totals.waited, totals.levels) == (107, 109, 76, ("low", "system"))
    assert totals.waits == second.waits


def test_load_without_requests_has_no_verdict() -> None:
    assert give_client_verdicts(RESULT._replace(levels=())).sentences == []
