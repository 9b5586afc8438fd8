"""APF515: which FlowSchemas count as capturing API discovery of nearly all clients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.builders import PATHS, findings, flow_schema, full_text, group, priority_level, service_account, user
from support.explanations import explain

if TYPE_CHECKING:
    from pathlib import Path

QUEUING = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}
SMALL = priority_level("small", 5)


def capturing(*subjects: dict[str, Any], precedence: int = 5000, **path: list[str]) -> dict[str, Any]:
    paths = [{**PATHS, **path}]
    return flow_schema("mine", "small", precedence, subjects=[*subjects], paths=paths)


@pytest.mark.parametrize(
    ("subject", "clients"),
    [
        (user("*"), "all users and service accounts"),
        (group("system:authenticated"), "all users and service accounts"),
        (group("system:serviceaccounts"), "all service accounts"),
    ],
)
def test_capture_of_discovery_of_all_clients_is_reported(
    subject: dict[str, Any], clients: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = capturing(subject)
    (found,) = findings(mine, SMALL, only="APF515")
    assert (found.field, found.severity) == ("spec.rules[0].nonResourceRules[0]", "warning")
    assert f"GET /api, /apis, /openapi/v2 and /openapi/v3) of {clients}" in found.message
    assert '"small" has 12 seats and no queues' in full_text(found)
    assert explain(found.example, tmp_path, capsys, mine, SMALL)["flowSchema"] == "mine"


@pytest.mark.parametrize(
    "objects",
    [
        (capturing(user("*")), priority_level("small", 5, QUEUING)),
        (capturing(user("*")), priority_level("small", 100)),
        (capturing(user("*"), precedence=9950), SMALL),
        (capturing(group("system:serviceaccounts"), precedence=9100), SMALL),
        (capturing(user("alice"), group("sso:dev"), service_account("ci", "*")), SMALL),
        (capturing(user("*"), nonResourceURLs=["/openapi/*", "/metrics"]), SMALL),
        (capturing(user("*"), verbs=["post"]), SMALL),
        (flow_schema("mine", "small", 5000, subjects=[user("*")]), SMALL),
        (capturing(user("*")),),
    ],
    ids=[
        "queues",
        "seats",
        "after global-default",
        "after service-accounts",
        "named",
        "openapi",
        "post",
        "pods",
        "open",
    ],
)
def test_harmless_capture_of_discovery_is_not_reported(objects: tuple[dict[str, Any], ...]) -> None:
    assert not findings(*objects, only="APF515")


def test_discovery_of_an_earlier_flow_schema_is_not_captured() -> None:
    earlier = flow_schema("earlier", "workload-low", 4000, subjects=[user("*")], paths=[PATHS])
    assert not findings(earlier, capturing(user("*")), SMALL, only="APF515")


def test_partial_capture_names_its_paths() -> None:
    (found,) = findings(capturing(user("*"), nonResourceURLs=["/apis/*", "/apis"]), SMALL, only="APF515")
    assert "(GET /apis) of all users" in found.message
