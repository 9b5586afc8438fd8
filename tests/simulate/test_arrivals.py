"""Arrivals: a seed gives the same requests on every machine and in every version."""

from __future__ import annotations

from itertools import islice

from support.simulations import client, load

from apflint.simulate.arrivals import Arrival, list_sources
from apflint.simulate.load import SECOND, Burst, log_normal
from apflint.simulate.random_draws import Draws

MILLISECOND = SECOND // 1000


def test_random_numbers_are_those_of_splitmix64() -> None:
    """The upper 52 bits equal those of the first outputs of the reference implementation, for the seed 0."""
    draws = Draws(1)
    draws._start = 0
    outputs = 0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F
    assert [draws(number) for number in (1, 2, 3)] == [((output >> 12) + 0.5) / 2**52 for output in outputs]


def test_random_numbers_of_a_seed() -> None:
    assert Draws(1, "a", "gap")(0) == 0.5100250057567138
    assert Draws(2, "a", "gap")(0) == 0.4938720252584353


def test_arrivals_of_a_seed() -> None:
    service = log_normal(10 * MILLISECOND, 90 * MILLISECOND)
    wanted = load(
        client(
            "open", user="u-{n}", instances=4, rate=2.0, bursts=(Burst(9 * SECOND, 3, 2 * SECOND),), service=service
        ),
        client("closed", instances=3, think=SECOND, service=service),
    )
    sources = list_sources(wanted, 7)
    assert [(source.client.name, source.differ, source.is_closed) for source in sources] == [
        ("open", True, False),
        ("open", True, False),
        ("closed", False, True),
    ]
    opened, burst, closed = (list(islice(source.arrivals, 4)) for source in sources)
    assert opened == [
        Arrival(25_535_364, 0, 0, 0, 32_754_761),
        Arrival(44_120_705, 0, 1, 2, 21_747_071),
        Arrival(109_653_900, 0, 2, 3, 15_174_705),
        Arrival(599_139_406, 0, 3, 2, 4_836_966),
    ]
    assert burst == [Arrival(9_000_000_000, 1, 0, 0, 8_865_481), Arrival(9_666_666_666, 1, 1, 1, 15_496_897)]
    assert closed == [
        Arrival(48_982_186, 2, 1, 1, 27_061_174),
        Arrival(354_798_380, 2, 0, 0, 3_796_711),
        Arrival(730_124_209, 2, 2, 2, 4_452_686),
    ]


def test_no_request_arrives_after_the_end() -> None:
    bursts = Burst(9 * SECOND, 4, 4 * SECOND), Burst(10 * SECOND, 1)
    sources = list_sources(load(client("a", bursts=bursts)), 1)
    assert [[arrival.time for arrival in source.arrivals] for source in sources] == [[9 * SECOND], []]
    (source,) = list_sources(load(client("a", instances=99, think=20 * SECOND)), 1)
    times = [arrival.time for arrival in source.arrivals]
    assert times == sorted(times)
    assert 0 < len(times) < 99
    assert times[-1] < 10 * SECOND
