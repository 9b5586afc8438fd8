"""Factors of clients: the parser, and the effect on a load."""

from __future__ import annotations

import pytest
from support.simulations import Options, client, load, simulate

from apflint.simulate.arrivals import list_sources
from apflint.simulate.load import SECOND, Burst
from apflint.simulate.scaling import Scaling, parse_scaling
from apflint.user_error import UserError


def test_factors_of_all_clients_and_of_single_ones() -> None:
    found = parse_scaling(["2", "ci=50%", "a=b=3"], ["batch"])
    assert [found.find_factor(name) for name in ("ci", "a=b", "batch", "other")] == [0.5, 3.0, 0.0, 2.0]
    assert found.find_factor("alice list pods", "alice list", "alice") == 2.0
    own = found.set_factor("alice", 4).set_factor("alice list", 5)
    assert own.find_factor("alice list pods", "alice list", "alice") == 5.0
    assert own.find_factor("alice get pods", "alice get", "alice") == 4.0
    assert parse_scaling([], []) == Scaling()


@pytest.mark.parametrize(
    ("scales", "left_out", "message"),
    [
        (["x"], [], '--scale: "x" is not FACTOR or CLIENT=FACTOR, such as 2, 150% or ci=2'),
        (["ci="], [], '--scale: "ci=" is not FACTOR or CLIENT=FACTOR, such as 2, 150% or ci=2'),
        (["=2"], [], "--scale: the name of the client before = is empty"),
        (["0"], [], "--scale: 0 is not a number from 0.001 to 1,000,000; to leave out a client, use --without"),
        (["ci=0"], [], "--scale: 0 is not a number from 0.001 to 1,000,000; to leave out a client, use --without"),
        (["nan"], [], "--scale: nan is not a number from 0.001 to 1,000,000"),
        (["ci=-1"], [], "--scale: -1 is not a number from 0.001 to 1,000,000"),
        (["2", "3"], [], "--scale: the factor of all clients is given twice"),
        (["ci=2", "ci=3"], [], '--scale and --without: the client "ci" is given twice'),
        (["ci=2"], ["ci"], '--scale and --without: the client "ci" is given twice'),
        ([], ["ci", "ci"], '--scale and --without: the client "ci" is given twice'),
    ],
)
def test_invalid_factors(scales: list[str], left_out: list[str], message: str) -> None:
    with pytest.raises(UserError) as error:
        parse_scaling(scales, left_out)
    assert str(error.value) == message


def test_unknown_clients_have_a_suggestion() -> None:
    for scaling, message in (
        (parse_scaling(["runer=2"], []), '--scale: the load has no client "runer". Did you mean "runners"?'),
        (parse_scaling([], ["runer"]), '--without: the load has no client "runer". Did you mean "runners"?'),
        (parse_scaling([], ["xyz"]), '--without: the load has no client "xyz"'),
    ):
        with pytest.raises(UserError) as error:
            scaling.check_names(["runners", "argo"])
        assert str(error.value) == message
    parse_scaling(["argo=2"], ["runners"]).check_names(["runners", "argo"])


def test_a_client_that_is_left_out_does_not_change_the_arrivals_or_servers_of_others() -> None:
    both = load(
        client("a", rate=3.0, instances=3),
        client("b", user="bob", instances=4, bursts=(Burst(SECOND, 9),), rate=2.0),
    )._replace(servers=3)
    alone = both.scale(parse_scaling([], ["a"]))
    arrivals = [
        [(arrival.time, arrival.instance, arrival.service) for arrival in source.arrivals]
        for wanted in (both, alone)
        for source in list_sources(wanted, 1)
        if source.client.name == "b"
    ]
    assert arrivals[:2] == arrivals[2:]
    results = [simulate(wanted, Options("")) for wanted in (both, alone)]
    numbers = [
        [row.requests for level in result.levels for row in level.clients if row.name == "b"] for result in results
    ]
    assert numbers[0] == numbers[1]
    assert [row.name for level in results[1].levels for row in level.clients] == ["b"]
