"""Loads from command-line options: the same requests as from a load file, and errors that name the option."""

from __future__ import annotations

import pytest

from apflint.replay.object_counts import ObjectTotals
from apflint.simulate.load import SECOND, Load, ObjectCount
from apflint.simulate.load_parser import parse_load
from apflint.simulate.spoken_load import SpokenLoad
from apflint.user_error import UserError

FILE = """
duration: 5m
warmup: 0s
clients: [{name: bob, as: bob, groups: [dev], request: list pods -A, rate: 20/s, service: 40ms}]
objects: {pods: {count: 7, size: 900}, deployments.apps: 8}
"""
COUNTS = {"pods": ObjectTotals(7, 900), "deployments.apps": ObjectTotals(8)}


def test_same_load_as_in_a_file() -> None:
    written = parse_load("load.yaml", FILE.encode()).load
    assert isinstance(written, Load)
    spoken = SpokenLoad("list pods -A", "bob", ("dev",), 20.0).to_load(COUNTS)
    assert spoken.clients[0]._replace(path=written.clients[0].path) == written.clients[0]
    assert spoken._replace(clients=written.clients) == written
    assert spoken.objects["", "pods"] == ObjectCount(7, 900)
    other = SpokenLoad("apflint explain list pods -A --as=bob --as-group dev", rate=20.0, duration=SECOND).to_load({})
    assert other.clients == spoken.clients
    assert other.duration == SECOND


@pytest.mark.parametrize(
    ("spoken", "message"),
    [
        (SpokenLoad("list pods", rate=1.0), "--request has no user: add --as, as in --as alice"),
        (SpokenLoad("list pods", "bob"), "--request requires --rate, as in --rate 20/s"),
        (
            SpokenLoad("list podz", "bob", rate=1.0),
            '--request: "podz" is not a resource of Kubernetes itself. Did you mean',
        ),
        (SpokenLoad("list", "bob", rate=1.0), '--request: "list" is incomplete: name a verb and a resource'),
        (SpokenLoad("list 'pods", "bob", rate=1.0), "--request: cannot parse the request"),
        (SpokenLoad("list pods --as al", "bob", rate=1.0), "--request: the user is given twice"),
    ],
)
def test_invalid_words(spoken: SpokenLoad, message: str) -> None:
    with pytest.raises(UserError) as error:
        spoken.to_load({})
    assert str(error.value).startswith(message)
