"""`--where`, `--since` and `--until` select the same requests with every engine, in the report and with `--each`."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.audit_logs import ENGINES, event, replay_each, replay_json, write_log

from apflint.cli.app import run
from apflint.replay.filters import Moment, parse_condition, parse_dimensions, parse_moment
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path

START = 1795326560
ALLOWED = {"authorization.k8s.io/decision": "allow"}


def at(second: float) -> str:
    return datetime.fromtimestamp(START + second, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def request(name: str, second: float, user: str, groups: list[str], **changes: Any) -> dict[str, Any]:
    return event(
        auditID=name,
        requestReceivedTimestamp=at(second),
        stageTimestamp=at(second + 0.5),
        user={"username": user, "groups": [*groups, "system:authenticated"]},
        **changes,
    )


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write logs of two API servers, with the five requests `a` to `e`."""
    node = {"resource": "nodes", "subresource": "status", "name": "n", "apiVersion": "v1"}
    write_log(
        tmp_path / "one.log",
        [
            request("a", 0, "alice", ["dev"]),
            request("b", 10, "Alice", ["ops"], requestURI="/api/v1/namespaces/team_b/pods", userAgent="it's 100%"),
            request("c", 20, "bob", ["dev", "ops"], responseStatus={"code": 429}, annotations=None),
        ],
    )
    write_log(
        tmp_path / "two.log",
        [
            request(
                "d",
                30,
                "system:node:n",
                ["system:nodes"],
                verb="update",
                requestURI="/api/v1/nodes/n/status",
                objectRef=node,
                responseStatus={"code": 500},
            ),
            request("e", 40, "alice", ["dev"], annotations=None, responseStatus={"code": 401}),
        ],
    )
    monkeypatch.chdir(tmp_path)
    return str(tmp_path)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (["user=alice"], "ae"),
        (["user=?lice"], ""),
        (["user=*lice"], "abe"),
        (["user=alice", "user=bob"], "ace"),
        (["user!=alice", "user!=bob"], "bd"),
        (["user=*lice", "user!=A*"], "ae"),
        (["user=alice", "verb=update"], ""),
        (["group=dev"], "ace"),
        (["group!=dev"], "bd"),
        (["group=dev", "group=system:n*"], "acde"),
        (["userAgent=it's 100%"], "b"),
        (["userAgent=*100%*"], "b"),
        (["userAgent=*1_0*"], ""),
        (["verb!=list"], "d"),
        (["resource=nodes/status"], "d"),
        (["namespace=team-a"], "ace"),
        (["namespace=team?b"], ""),
        (["namespace=team_*"], "b"),
        (["namespace="], "d"),
        (["flowSchema=global-default"], "abc"),
        (["flowSchema!=global-default"], "de"),
        (["priorityLevel=node-*"], "d"),
        (["flow=global-default alice"], "a"),
        (["status=429", "status=500"], "cd"),
        (["status=4*"], "ce"),
        (["server=*/two"], "de"),
        (["server!=*/two"], "abc"),
        (["server=two"], ""),
    ],
)
def test_conditions(
    conditions: list[str], expected: str, engine: str, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--engine", engine, *(word for condition in conditions for word in ("--where", condition))]
    assert "".join(sorted(line["auditID"] for line in replay_each(capsys, log, *options))) == expected
    report = replay_json(capsys, log, *options)
    assert report["requests"] == len(expected)
    assert report["events"] == 5
    assert sum(level["requests"] for level in report["levels"]) == len(expected.replace("e", ""))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("deployments.apps", "a"),
        ("deployments", "a"),
        ("deployments.apps/scale", "b"),
        ("deployments/scale", "b"),
        ("deployments*", "ab"),
        ("*.apps*", "ab"),
        ("deployments (apps)", ""),
        ("deployments.extensions", ""),
        ("/apis/*", "c"),
    ],
)
def test_resources_match_with_and_without_group(
    pattern: str, expected: str, engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reference = {"resource": "deployments", "apiGroup": "apps", "name": "web", "namespace": "team-a"}
    log = write_log(
        tmp_path / "audit.log",
        [
            event(auditID="a", verb="get", objectRef=reference),
            event(auditID="b", verb="get", objectRef={**reference, "subresource": "scale"}),
            event(auditID="c", verb="get", objectRef=None, requestURI="/apis/apps"),
        ],
    )
    options = [log, "--engine", engine, "--where"]
    assert "".join(sorted(line["auditID"] for line in replay_each(capsys, *options, f"resource={pattern}"))) == expected
    others = "".join(name for name in "abc" if name not in expected)
    assert "".join(sorted(line["auditID"] for line in replay_each(capsys, *options, f"resource!={pattern}"))) == others
    groups = replay_json(capsys, *options, f"resource={pattern}", "--by", "resource")["by"]["groups"]
    names = {"a": "deployments.apps", "b": "deployments.apps/scale", "c": "/apis/apps"}
    assert {group["resource"] for group in groups} == {names[audit_id] for audit_id in expected}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--since", at(10), "--until", at(30)], "bc"),
        (["--since", "2026-11-22T05:49:40"], "cde"),
        (["--since", "2026-11-22 06:49:40+01:00"], "cde"),
        (["--since", "2026-11-23"], ""),
        (["--since", "20s"], "cde"),
        (["--since", "30s", "--until", "10s"], "bc"),
        (["--since", "1d"], "abcde"),
        (["--until", "1h"], ""),
    ],
)
def test_periods(options: list[str], expected: str, engine: str, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = replay_each(capsys, log, "--engine", engine, *options)
    assert "".join(sorted(line["auditID"] for line in lines)) == expected


@pytest.mark.parametrize(
    ("condition", "message"),
    [
        ("flowSchema=probe", 'the configuration has no FlowSchema "probe"; did you mean "probes"?'),
        ("priorityLevel!=x", 'the configuration has no priority level "x"'),
    ],
)
def test_unknown_names(condition: str, message: str, log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", log, "--where", condition]) == 2
    assert capsys.readouterr().err == f"apflint: --where: {message}\n"


def test_filter_that_matches_nothing(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["replay", log, "--where", "user=alcie", "--since", "1h"]) == 0
    since = at(40 - 3600)[:19].replace("T", " ")
    sentence = f"Only requests since {since} UTC and with user=alcie: no request is selected; the log covers "
    assert any(line.startswith(sentence) for line in capsys.readouterr().out.splitlines())


@given(st.tuples(*(st.integers(0, 999),) * 4))
def test_durations(parts: tuple[int, int, int, int]) -> None:
    text = "".join(f"{part}{unit}" for part, unit in zip(parts, "dhms", strict=True))
    days, hours, minutes, seconds = parts
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    assert parse_moment("--since", text) == Moment(total * 1_000_000, is_before_end=True)


@pytest.mark.parametrize("text", ["usr", "user,usr", "user,user", " , "])
def test_invalid_dimension_names_the_option(text: str) -> None:
    with pytest.raises(UserError, match=r"^--by: "):
        parse_dimensions(text)


def test_condition_is_shown_as_it_was_given() -> None:
    for text in ("user=alice", "verb!=watch", "user=a=b", "userAgent!=*!x"):
        assert str(parse_condition(text)) == text


@pytest.mark.parametrize("engine", ENGINES)
def test_patterns_are_dimensions(engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All nodes are one group, and all pods of a Deployment are one group. `user` and `userAgent` still contain the full names."""
    agents = ["web-6d4cf56db6-x2x9z/v1", "web-7b9c5d8f4d-k4k5k/v1", None]
    log = write_log(
        tmp_path / "audit.log",
        [
            request(name, second, f"system:node:n{second}", [], userAgent=agent)
            for second, (name, agent) in enumerate(zip("abc", agents, strict=True))
        ],
    )
    report = replay_json(capsys, log, "--engine", engine, "--by", "userPattern,userAgentPattern")
    groups = [(group["userPattern"], group["userAgentPattern"], group["requests"]) for group in report["by"]["groups"]]
    assert groups == [("system:node:*", "web-*/v1", 2), ("system:node:*", "", 1)]
    for conditions, expected in (
        (["userAgentPattern=web-[*]/v1"], ""),
        (["userAgentPattern=web*"], "ab"),
        (["userAgentPattern!=web*"], "c"),
        (["userPattern=system:node:*", "userAgent=web-7*"], "b"),
    ):
        options = [word for condition in conditions for word in ("--where", condition)]
        lines = replay_each(capsys, log, "--engine", engine, *options)
        assert "".join(sorted(line["auditID"] for line in lines)) == expected
