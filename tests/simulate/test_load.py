"""Clients of a load: which requests they send, and whether the users or requests of several clients differ."""

from __future__ import annotations

import pytest
from support.simulations import client

from apflint.requests.request_words import parse_command_line


@pytest.mark.parametrize(("request_", "user", "groups"), [
    ("list pods -n x", "u-{n}", ()),
    ("get pods p-{n} -n x", "u", ()),
    ("list pods -n x-{n}", "u", ()),
    ("list pods -n x", "u", ("a", "g-{n}")),
    ("--path /a/{n}", "u", ()),
])  # fmt: skip
def test_number_of_a_client_replaces_its_placeholder(request_: str, user: str, groups: tuple[str, ...]) -> None:
    many = client("a", request=request_, user=user, groups=groups, instances=50)
    assert many.differ
    assert many.arguments_of(41) == parse_command_line(
        request_.replace("{n}", "42"), user.replace("{n}", "42"), tuple(group.replace("{n}", "42") for group in groups)
    )
    same = client("a", request=request_.replace("{n}", ""), user="u", instances=50)
    assert not same.differ
    assert same.arguments_of(41) == same.arguments
