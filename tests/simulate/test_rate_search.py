"""The search for the largest rate that works: its bounds, its precision, and the reported failures above the result."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st
from support.simulations import Options, client, load, simulate

from apflint.simulate import rate_search
from apflint.simulate.load import SECOND, ServiceTime
from apflint.simulate.rate_search import MAX_FACTOR, list_failures, search_rate
from apflint.simulate.scaling import Scaling

from .test_simulation import level

if TYPE_CHECKING:
    import pytest

    from apflint.simulate.simulation import SimulationResult

WORKS = simulate(load(client("a", rate=1.0)), Options(""))
BASE = load(
    client("big", groups=("a",), rate=20.0, service=ServiceTime(SECOND // 10)),
    client("other", user="bob", groups=("a",), rate=1.0, service=ServiceTime(SECOND // 10)),
    duration=60 * SECOND,
)
SMALL = Options(level("a", 400), seats=8)


def simulate_big(factor: float) -> SimulationResult:
    return simulate(BASE.scale(Scaling().set_factor("big", factor)), SMALL)


@given(st.floats(1 / 2000, 2000))
def test_answer_is_below_a_threshold_and_the_next_trial_above(
    threshold: float,
) -> None:
    tried: list[float] = []

    def attempt(factor: float) -> SimulationResult | None:
        tried.append(factor)
        return WORKS if factor <= threshold else None

    found = search_rate(attempt, SECOND)
    assert len(tried) == len(set(tried)) <= 24
    assert [trial.factor for trial in found.trials] == sorted(tried)
    assert found.best is not None
    assert found.best.factor <= threshold
    if found.above is None:
        assert found.best.factor == MAX_FACTOR
    else:
        assert found.above.factor > threshold
        assert not found.above.works
        assert not found.best.factor or found.above.factor <= 1.02 * found.best.factor + 1e-9


def test_rate_of_a_simulation() -> None:
    found = search_rate(simulate_big, SECOND)
    assert found.best is not None
    assert found.above is not None
    assert not list_failures(simulate_big(found.best.factor), SECOND)
    assert list(found.above.failures) == list_failures(simulate_big(found.above.factor), SECOND) != []
    assert 1.5 < found.best.factor < 4  # 8 seats execute 80 requests per second
    assert search_rate(simulate_big, SECOND) == found
    patient = search_rate(simulate_big, 10 * SECOND).best
    assert patient is not None
    assert patient.factor > found.best.factor


def test_no_rate_works_if_others_wait_without_the_client(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_search, "list_failures", lambda *_: ["other waits up to 9 s"])
    found = search_rate(simulate_big, SECOND)
    assert found.best is None
    assert found.trials[0].factor == 0
    assert found.trials[0].failures == ("other waits up to 9 s",)
