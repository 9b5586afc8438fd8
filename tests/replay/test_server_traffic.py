"""Tests the rows of several API servers in a report, and the sentence about an uneven load of the servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit_logs import ENGINES, event, replay_json, write_log

from apflint.cli.app import run
from apflint.replay.server_traffic import ServerTraffic, find_imbalance

if TYPE_CHECKING:
    from pathlib import Path

servers = st.lists(
    st.builds(ServerTraffic, st.uuids().map(str), st.integers(0, 1000), *(st.just(0),) * 2, st.integers(0, 10**9)),
    max_size=4,
)


def write_servers(directory: Path, *requests: int) -> None:
    """Write a log for each API server. `requests` are the numbers of requests. Each server rejects one request."""
    for name, number in zip("abcd", requests, strict=False):
        (directory / name).mkdir()
        rejected = event(responseStatus={"code": 429}, annotations=None)
        events = [{**(event() if position else rejected), "auditID": f"{name}{position}"} for position in range(number)]
        write_log(directory / name / "audit.log", events)


@pytest.mark.parametrize("engine", ENGINES)
def test_imbalance_is_reported(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_servers(tmp_path, 90, 10)
    monkeypatch.chdir(tmp_path)
    command = ["replay", "a", "b", "--isolated", "--engine", engine]
    for form in ("text", "markdown", "html"):
        assert run([*command, "--format", form]) == 0
        printed = capsys.readouterr().out.replace("`", "")
        shares = "90% of the requests, 91% of the seat-seconds and 50% of the rejections. The even share is 50%."
        sentence = f"Imbalance: of 2 API servers, a/audit has {shares}"
        assert sentence in printed
    assert replay_json(capsys, *command[1:])["byServer"] == [
        {"server": "a/audit", "requests": 90, "rejected": 1, "waits": 0, "seatSeconds": 89.0},
        {"server": "b/audit", "requests": 10, "rejected": 1, "waits": 0, "seatSeconds": 9.0},
    ]
    assert run([*command, "--baseline", "a", "--since", "1h"]) == 0
    printed = capsys.readouterr().out
    assert sentence in printed
    assert "\nAPI SERVER" in printed


@pytest.mark.parametrize("requests", [(60, 50), (100,), (9, 1), (40, 40, 40)])
def test_even_and_small_loads_have_no_imbalance(
    requests: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_servers(tmp_path, *requests)
    assert run(["replay", str(tmp_path), "--isolated"]) == 0
    printed = capsys.readouterr().out
    assert "Imbalance" not in printed
    assert ("API SERVER" in printed) == (len(requests) > 1)


@settings(max_examples=50)
@given(servers)
def test_largest_server_is_named_in_any_order(found: list[ServerTraffic]) -> None:
    imbalance = find_imbalance(found)
    assert imbalance == find_imbalance(found[::-1])
    if imbalance is not None:
        assert imbalance.traffic.requests == max(server.requests for server in found) or (
            imbalance.traffic.seat_microseconds == max(server.seat_microseconds for server in found)
        )
