"""`apflint replay --compare`: the sides, the report, and the exit codes."""

from __future__ import annotations

import copy
import gzip
import json
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support.api_server import recorded_answers, serve
from support.audit_logs import FIXTURES, event, write_log
from support.reading import read_effective

from apflint.cli.app import run
from apflint.output.configuration_line import Sides
from apflint.output.console import Style
from apflint.output.replay.comparison import report_comparison
from apflint.output.text import render
from apflint.releases import parse_release
from apflint.replay.running import ReplayOptions
from apflint.replay.running import compare as compare_configurations
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

LIVE = FIXTURES / "live"
LOG = str(LIVE / "audit.log.gz")
RECORDED = ("--server-concurrency", "20+10", "--kubernetes", "1.36", "--isolated")


def compare(capsys: pytest.CaptureFixture[str], *arguments: object, code: int) -> Any:
    assert run(["replay", *map(str, arguments), "--format", "json"]) == code
    return json.loads(capsys.readouterr().out)


def test_report(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(LIVE)
    command = ["replay", "audit.log.gz", "-f", "objects-begin.json", "--compare", "objects-end.json", *RECORDED]
    assert run(command) == 1
    assert capsys.readouterr().out == snapshot
    assert run([*command, "--exit-zero"]) == 0
    capsys.readouterr()
    assert run([*command, "--where", "user=alice"]) == 0  # no request of alice moves
    assert "None of 41 requests moves." in capsys.readouterr().out


def test_changes_without_moves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(LIVE)
    text = (LIVE / "objects-begin.json").read_text(encoding="utf-8")
    objects = json.loads(text)
    batch = next(item for item in objects["items"] if item["metadata"]["name"] == "batch")
    batch["spec"]["limited"]["limitResponse"]["queuing"]["queueLengthLimit"] += 1
    (tmp_path / "other.json").write_text(json.dumps(objects), encoding="utf-8")
    command = ["replay", "audit.log.gz", "-f", "objects-begin.json", "--compare", str(tmp_path / "other.json")]
    assert run([*command, *RECORDED]) == 1
    expected = "None of 379 requests moves; 1 priority level has other limits.\n"
    assert capsys.readouterr().out.startswith(expected)
    # From 1.34 on, the seats of a list depend on the size of the objects, and not on their number.
    command = ["replay", "audit.log.gz", "--kubernetes", "1.33", "--compare", "defaults:1.34", "--isolated"]
    assert (
        run([*command, "--objects", "configmaps=2000:100", "--where", "resource=configmaps", "--where", "verb=list"])
        == 1
    )
    out = capsys.readouterr().out
    assert re.match(r"None of \d+ requests moves; \d priority levels? (has|have) other seats in use\.\n", out)


def test_single_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = write_log(tmp_path / "audit.log", [event(verb="watch", requestURI="/api/v1/namespaces/team-a/pods?watch=1")])
    command = ["replay", str(log), "--isolated", "--kubernetes"]
    assert run([*command, "1.21", "--compare", "defaults:1.22"]) == 1
    assert capsys.readouterr().out.startswith("1 of 1 request (100%) moves: 1 classified on one side only.\n")
    assert run([*command, "1.36", "--compare", "defaults:1.36"]) == 0
    assert capsys.readouterr().out.startswith("None of 1 request moves.\n")


def test_lines_fit_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(LIVE)
    names = ("objects-begin.json", "objects-end.json")
    old, new = (read_effective([name], parse_release("1.36"), 30, isolated=True) for name in names)
    comparison = compare_configurations(find_audit_logs([LOG]), old, new, ReplayOptions("python"))
    title = "batch (ci-jobs ByNamespace) -> global-default (global-default ByUser)"
    for width in (60, 80, 200):
        lines = render(report_comparison(comparison, Sides(*names)), Style(width)).splitlines()
        assert max(map(len, lines)) <= width
        at = next(number for number, line in enumerate(lines) if line.startswith("batch (ci-jobs"))
        count = next(number for number, line in enumerate(lines) if line.startswith("  count"))
        assert " ".join(" ".join(lines[at:count]).split()) == f"{title} (another priority level)"


def test_markdown(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    monkeypatch.chdir(LIVE)
    command = ["replay", "audit.log.gz", "-f", "objects-begin.json", "--compare", "objects-end.json", *RECORDED]
    assert run([*command, "--format", "markdown"]) == 1
    assert capsys.readouterr().out == snapshot


def test_json(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(LIVE)
    found = compare(
        capsys,
        "audit.log.gz",
        "-f",
        "objects-begin.json",
        "--compare",
        "objects-end.json",
        *RECORDED,
        "--top",
        1,
        code=1,
    )
    (move,) = found["moves"]
    assert found["moved"] == move["requests"] == 50
    assert found["changed"] is True
    assert move["type"] == "priorityLevel"
    assert move["old"] == {"flowSchema": "ci-jobs", "priorityLevel": "batch", "distinguisherMethod": "ByNamespace"}
    assert move["userCount"] == 3
    assert len(move["topUsers"]) == 1
    assert found["sides"] == {"old": "objects-begin.json", "new": "objects-end.json"}
    levels = [{level["name"]: level for level in found[side]["levels"]} for side in ("old", "new")]
    assert "batch" in levels[0].keys() - levels[1].keys()
    first = next(
        value
        for value in map(json.loads, gzip.decompress((LIVE / "audit.log.gz").read_bytes()).splitlines())
        if value["auditID"] == move["first"]["auditID"] and value["stage"] == "ResponseComplete"
    )
    assert move["first"]["time"] == first["requestReceivedTimestamp"]
    assert move["first"]["user"] == first["user"]["username"]
    assert (move["first"]["verb"], move["first"]["resource"]) == (first["verb"], first["objectRef"]["resource"])


def test_a_configuration_equals_itself(capsys: pytest.CaptureFixture[str]) -> None:
    manifests = LIVE / "objects-begin.json"
    found = compare(capsys, LOG, "-f", manifests, "--compare", manifests, *RECORDED, code=0)
    assert found["moves"] == []
    assert found["changed"] is False
    assert found["old"] == found["new"]


def test_upgrade_keeps_the_manifests(capsys: pytest.CaptureFixture[str]) -> None:
    manifests = LIVE / "objects-begin.json"
    counts = ("--objects", "configmaps=200:100")
    arguments = (LOG, "-f", manifests, "--server-concurrency", 600, "--isolated", *counts, "--kubernetes", "1.33")
    found = compare(capsys, *arguments, "--compare", "defaults:1.36", code=1)
    assert (found["old"]["kubernetes"], found["new"]["kubernetes"]) == ("1.33", "1.36")
    assert found["sides"]["new"] == f"defaults:1.36 + {manifests}"
    (move,) = found["moves"]  # only 1.33 has the old FlowSchema of this move
    assert move["old"]["flowSchema"] == "workload-leader-election"
    seats = [sum(level["seatSeconds"] for level in found[side]["levels"]) for side in ("old", "new")]
    assert seats[0] > seats[1]  # a list of 200 objects (20 kB) takes 2 or 4 seats until 1.33, then 1 seat


def test_defaults_of_releases(capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(capsys, LOG, "-f", "defaults:1.36", "--compare", "defaults:1.28", "--isolated", code=1)
    assert found["sides"] == {"old": "defaults:1.36", "new": "defaults:1.28"}
    assert found["configuration"] == "built-in objects of 1.36 -> built-in objects of 1.28"
    assert [found[side]["configuration"] for side in ("old", "new")] == found["configuration"].split(" -> ")
    assert [found[side]["kubernetes"] for side in ("old", "new")] == ["1.36", "1.28"]
    assert [move["new"]["flowSchema"] for move in found["moves"]] == ["workload-leader-election"]


def test_git_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "apf").mkdir()
    (tmp_path / "apf" / "objects.json").write_bytes((LIVE / "objects-begin.json").read_bytes())
    git = ("git", "-c", "user.name=a", "-c", "user.email=a@example.com")
    for command in (("init", "-q"), ("add", "."), ("commit", "-q", "-m", "begin")):
        subprocess.run([*git, *command], check=True, cwd=tmp_path)
    (tmp_path / "apf" / "objects.json").write_bytes((LIVE / "objects-end.json").read_bytes())
    found = compare(capsys, LOG, "-f", "apf", "--compare", "git:HEAD:apf", *RECORDED, code=1)
    assert [move["new"]["priorityLevel"] for move in found["moves"]] == ["batch"]
    assert found["sides"]["new"] == "git:HEAD:apf"


def test_cluster_of_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("begin", "end"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "objects.json").write_bytes((LIVE / f"objects-{name}.json").read_bytes())
    settings = "".join(f'[[cluster]]\nname = "{name}"\npaths = ["{name}"]\n' for name in ("begin", "end"))
    (tmp_path / "apflint.toml").write_text(settings, encoding="utf-8")
    found = compare(capsys, LOG, "--cluster", "begin", "--compare", "cluster:end", "--kubernetes", "1.36", code=1)
    assert found["moved"] == 50
    assert (found["sides"]["old"], found["sides"]["new"]) == ("cluster:begin", "cluster:end")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--compare", "missing.yaml"], "missing.yaml"),
        (["--compare", "defaults:9.9"], "1.37"),
        (["--compare", "cluster:nowhere"], "nowhere"),
        (["--compare", "git:nowhere"], "nowhere"),
        (["--compare", "defaults:1.36", "--each"], "cannot be combined"),
        (["--compare", "defaults:1.36", "--by", "user"], "cannot be combined"),
        (["--compare", "-", "-f", "-"], "standard input cannot be both the manifests and the other side"),
        (["--compare", "defaults:1.36", "-f", "-"], "standard input cannot be both the manifests and the other side"),
        (["--compare", "defaults:1.36", "--kubeconfig", "x"], "--kubeconfig requires --live"),
        (["--compare", "live", "--no-defaults"], "cannot be combined"),
    ],
)
def test_wrong_sides(
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["replay", LOG, *arguments]) == 2
    captured = capsys.readouterr()
    assert reason in captured.err
    assert captured.out == ""


def test_damaged_log_is_an_error_even_if_requests_move(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = gzip.compress(gzip.decompress((LIVE / "audit.log.gz").read_bytes()))
    (tmp_path / "cut.gz").write_bytes(data[: len(data) * 3 // 4])
    arguments = ("-f", LIVE / "objects-begin.json", "--compare", LIVE / "objects-end.json", *RECORDED)
    assert compare(capsys, tmp_path / "cut.gz", *arguments, code=2)["moved"] > 0


def test_names_are_printed_safely(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    user = {"username": "a\x1b[31m\nb", "groups": ["system:authenticated"]}
    log = write_log(tmp_path / "audit.log", [event(user=user, auditID="x\x1b[2J")])
    (tmp_path / "own.json").write_text(
        json.dumps(
            {
                "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
                "kind": "FlowSchema",
                "metadata": {"name": "mine"},
                "spec": {
                    "priorityLevelConfiguration": {"name": "workload-low"},
                    "matchingPrecedence": 5,
                    "rules": [
                        {
                            "subjects": [{"kind": "Group", "group": {"name": "system:authenticated"}}],
                            "resourceRules": [
                                {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "namespaces": ["*"]}
                            ],
                        }
                    ],
                },
            }
        ),
        encoding="utf-8",
    )
    assert run(["replay", str(log), "--compare", str(tmp_path / "own.json")]) == 1
    out = capsys.readouterr().out
    assert "mine" in out
    assert "\x1b" not in out


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_running_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    manifests = LIVE / "objects-end.json"
    with serve(copy.deepcopy(recorded_answers()), tmp_path) as kubeconfig:
        cluster = ("--kubeconfig", kubeconfig)
        found = compare(capsys, LOG, "-f", manifests, "--compare", "live", *cluster, "--server-concurrency", 30, code=1)
        assert found["sides"] == {"old": str(manifests), "new": "live"}
        assert [found[side]["serverConcurrency"] for side in ("old", "new")] == [30, 30]
        # Only the live objects have `batch`.
        assert {move["new"]["priorityLevel"] for move in found["moves"]} == {"batch"}
        applied = compare(capsys, LOG, "--live", *cluster, "--compare", manifests, code=0)
        assert applied["sides"] == {"old": "live", "new": str(manifests)}
        assert applied["moves"] == []  # `kubectl apply` would not delete `batch`, so no request moves
        assert run(["replay", LOG, "--live", *cluster, "--compare", "defaults:1.36"]) == 2
    assert "a running cluster has its own built-in objects" in capsys.readouterr().err
