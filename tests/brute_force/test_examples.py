"""The independent parser reads the user and the request of example commands."""

from __future__ import annotations

import pytest

from .examples import examples
from .server import Request, User

ALICE = User("alice", frozenset({"system:authenticated"}))
NODE = "system:node:node-1"


@pytest.mark.parametrize(
    ("command", "user", "request_"),
    [
        ("list pods -n ci --as alice", ALICE, Request(True, "list", "", "pods", "ci")),
        ("get widgets.example.com/status x --as alice", ALICE, Request(True, "get", "example.com", "widgets/status")),
        ("get leases x -n ci --as alice", ALICE, Request(True, "get", "coordination.k8s.io", "leases", "ci")),
        ("get leases. x -n ci --as alice", ALICE, Request(True, "get", "", "leases", "ci")),
        ("get namespaces x --as alice", ALICE, Request(True, "get", "", "namespaces", "x")),
        ("post '/readyz/*' --as alice", ALICE, Request(False, "post", path="/readyz/*")),
        (
            "--method PUT --path /api/v1/namespaces/ci/pods/x --as alice",
            ALICE,
            Request(True, "update", "", "pods", "ci"),
        ),
        (
            f"get /livez --as {NODE}",
            User(NODE, frozenset({"system:authenticated", "system:nodes"})),
            Request(False, "get", path="/livez"),
        ),
        (
            f"get /livez --as {NODE} --as-group dev",
            User(NODE, frozenset({"system:authenticated", "dev"})),
            Request(False, "get", path="/livez"),
        ),
    ],
)
def test_commands(command: str, user: User, request_: Request) -> None:
    (example,) = examples(f"both match, as `apflint explain {command}`. The name decides")
    assert (example.user, example.request) == (user, request_)
