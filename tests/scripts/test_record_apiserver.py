"""The recorder writes the same bytes as in `fixtures/`, if the server answers as the recorded servers did."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

import record_apiserver  # noqa: E402
from recording import limits, verdicts  # noqa: E402
from recording.client import ServerError  # noqa: E402
from recording.servers import OwnServers  # noqa: E402
from support.stand_in import FIXTURES, Recorded, Reply, StandIns, serve  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVED = json.loads((FIXTURES / "oracle/releases/served.json").read_text(encoding="utf-8"))
NEWEST = list(SERVED)[-1]


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INTERVAL_SECONDS", 0)


def differences(directory: Path) -> Iterator[str]:
    """Yield the recorded files that differ from the committed files."""
    for file in sorted(directory.rglob("*.json*")):
        name = file.relative_to(directory)
        if file.read_bytes() != (FIXTURES / name).read_bytes():
            yield str(name)


def files(directory: Path) -> set[str]:
    return {str(file.relative_to(directory)) for file in directory.rglob("*.json*")}


@pytest.mark.slow
def test_recordings_of_all_releases_are_the_fixtures(tmp_path: Path) -> None:
    target = tmp_path / "fixtures"
    # Only some of the built-in objects were recorded. The other rows are from the source code of Kubernetes.
    rows = [json.loads(line) for line in (FIXTURES / record_apiserver.BUILTIN_OBJECTS).read_text("utf-8").splitlines()]
    from_sources = [
        row | {"in": [label for label in row["in"] if label.partition("-")[0] not in SERVED]} for row in rows
    ]
    (target / "oracle/releases").mkdir(parents=True)
    text = "".join(json.dumps(row) + "\n" for row in from_sources if row["in"])
    (target / record_apiserver.BUILTIN_OBJECTS).write_text(text, encoding="utf-8")
    for kube in SERVED:
        what = {"versions", "objects", "verdicts"} | ({"openapi"} if kube != "1.21" else set())
        what |= {"requests", "limits"} if kube == NEWEST else set()
        record_apiserver.record(StandIns(kube, tmp_path), what, target, FIXTURES / "conformance")
    assert list(differences(target)) == []
    kinds = ("conformance/", "openapi/", "oracle/releases/")
    wanted = {name for name in files(FIXTURES) if name.startswith(kinds) and "openapi/1.21" not in name}
    assert files(target) == wanted | {record_apiserver.REQUEST_INFOS, record_apiserver.LIMITS}


def test_running_server_is_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    audit_log = tmp_path / "audit.log"
    target = tmp_path / "fixtures"
    with serve(Recorded(NEWEST, 600, audit_log, removed=False)) as url:
        arguments = ["requests", "limits", "--server", url, "--change-this-cluster", "--audit-log", str(audit_log)]
        assert record_apiserver.main([*arguments, "--fixtures", str(target)]) == 0
    assert list(differences(target)) == []
    # A running server has only one number of seats. Cases with another number keep their recorded limits.
    cases = limits.read_cases(FIXTURES / record_apiserver.LIMITS)
    count = sum(case["total"] == 600 for case in cases)
    assert f"{count} of {len(cases)} cases have a number of seats" in capsys.readouterr().err


def test_requests_need_an_audit_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(Recorded(NEWEST, 600, tmp_path / "audit.log", removed=False)) as url:
        arguments = ["requests", "--server", url, "--change-this-cluster", "--fixtures", str(tmp_path)]
        assert record_apiserver.main(arguments) == 1
    assert "set --audit-log" in capsys.readouterr().err


class Changed(Recorded):
    """A server whose behavior differs from the recorded behavior."""

    def list_objects(self, version: str, kind: str) -> Reply:
        self.objects[version, kind]["catch-all"] = {"type": "Other"}
        return super().list_objects(version, kind)

    def judge(self, version: str, kind: str, name: str | None, query: str | None, body: bytes) -> Reply:
        reply = super().judge(version, kind, name, query, body)
        return reply if reply.status != 422 else Reply(201, {})


def test_limits_of_another_server_become_other_fixtures() -> None:
    (case, *_) = (case for case in limits.read_cases(FIXTURES / record_apiserver.LIMITS) if case["total"] == 600)
    (line,) = limits.record(StandIns(NEWEST, Path()), [case | {"limits": {}}])
    assert json.loads(line) == case
    with pytest.raises(ServerError, match="no stable limits of catch-all, exempt"):
        list(limits.record(StandIns(NEWEST, Path()), [case | {"levels": {}}]))


def test_other_behavior_becomes_other_fixtures(tmp_path: Path) -> None:
    with serve(Changed(NEWEST, 600, tmp_path / "audit.log", removed=True)) as url:
        arguments = ["objects", "verdicts", "--server", url, "--change-this-cluster", "--fixtures", str(tmp_path)]
        cases = FIXTURES / f"conformance/{NEWEST}-v1.jsonl"
        assert record_apiserver.main([*arguments, "--cases", str(cases)]) == 0
    again = [json.loads(line) for line in (tmp_path / f"conformance/{NEWEST}-v1.jsonl").read_text("utf-8").splitlines()]
    before = [json.loads(line) for line in cases.read_text(encoding="utf-8").splitlines()]
    assert [new != old for new, old in zip(again, before, strict=True)] == [old["code"] == 422 for old in before]
    objects = (tmp_path / record_apiserver.BUILTIN_OBJECTS).read_text(encoding="utf-8")
    assert objects.count('{"type": "Other"}') == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--server", "http://127.0.0.1:1"], "confirm with --change-this-cluster"),
        ([], "set either --server, or --kube-apiserver and --etcd"),
        (["--etcd", "etcd"], "set either --server, or --kube-apiserver and --etcd"),
        (["--server", "x", "--kube-apiserver", "x", "--etcd", "x"], "set either --server"),
        (["dumps", "--server", "http://127.0.0.1:1"], "cannot record dumps: use versions, objects,"),
    ],
)
def test_options_that_contradict(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        record_apiserver.main(arguments)
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("message", "named"),
    [
        (
            "json: cannot unmarshal number 5.5 into Go struct field FlowSchemaSpec.spec.matchingPrecedence of type int32",
            [{"kind": "wrongType", "got": "number", "field": "spec.matchingPrecedence", "want": "int32"}],
        ),
        (
            "json: cannot unmarshal string into Go value of type v1.FlowSchema",
            [{"kind": "wrongType", "got": "string", "field": None, "want": "v1.FlowSchema"}],
        ),
        (
            'yaml: unmarshal errors:\n  line 7: key true already set in map\n  line 9: key "b" already set in map, unknown field "c"',
            [
                {"kind": "unknownField", "field": "c"},
                {"kind": "duplicateKey", "field": "true"},
                {"kind": "duplicateKey", "field": "b"},
            ],
        ),
        ("the object provided is unrecognized (must be of type FlowSchema): yaml: line 3: ...", [{"kind": "syntax"}]),
        ("json: unsupported value: +Inf", [{"kind": "syntax"}]),
        ('parsing time "x" as "2006-01-02T15:04:05Z07:00"', [{"kind": "other"}]),
    ],
)
def test_messages_of_servers(message: str, named: list[dict[str, str]]) -> None:
    assert verdicts.read_decode_error(message) == named


@pytest.mark.skipif(not shutil.which("openssl"), reason="openssl, which makes the key of a server, is not installed")
def test_servers_that_do_not_start(tmp_path: Path) -> None:
    programs = {"etcd": "exec sleep 60", "kube-apiserver": 'echo "$@"; echo no etcd >&2; exit 3'}
    for name, script in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n", encoding="ascii")
        (tmp_path / name).chmod(0o755)
    servers = OwnServers(tmp_path / "kube-apiserver", tmp_path / "etcd")
    with pytest.raises(ServerError, match="no etcd") as error, servers.start(total=10):
        pass
    assert "--max-requests-inflight=7 --max-mutating-requests-inflight=3" in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--server", "http://127.0.0.1:1", "--change-this-cluster"], "GET /version: "),
        (["--kube-apiserver", "/nowhere/kube-apiserver", "--etcd", "/nowhere/etcd"], "/nowhere/etcd"),
    ],
)
def test_servers_that_are_not_there(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert record_apiserver.main(arguments) == 1
    printed = capsys.readouterr().err
    assert printed.startswith("record_apiserver: ")
    assert message in printed
