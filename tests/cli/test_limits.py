"""`apflint limits` and `apflint shards`: JSON, properties that always hold, and wrong usage."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from apflint.cli.app import run
from apflint.releases import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.releases import Release


@pytest.fixture(autouse=True)
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def answer(capsys: pytest.CaptureFixture[str], *command: str) -> Any:
    assert run([*command, "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    return json.loads(printed.out)


def test_json_of_limits(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "limits", "--kubernetes", "1.36")
    assert list(found) == ["schema", "configuration", "serverConcurrency", "kubernetes", "levels"]
    assert found["configuration"] == "built-in objects of 1.36; no objects in the current directory"
    assert (found["serverConcurrency"], found["kubernetes"]) == (600, "1.36")
    # The limits (nominal, lower, upper) were recorded on kube-apiserver 1.36.2.
    assert {level["name"]: (level["nominal"], level["min"], level["max"]) for level in found["levels"]} == {
        "catch-all": (13, 13, 613),
        "exempt": (0, 0, 600),
        "global-default": (49, 24, 649),
        "leader-election": (25, 25, 625),
        "node-high": (98, 73, 698),
        "system": (74, 50, 674),
        "workload-high": (98, 49, 698),
        "workload-low": (245, 24, 845),
    }
    promised = [
        "name",
        "type",
        "shares",
        "nominal",
        "min",
        "max",
        "queues",
        "handSize",
        "queueLengthLimit",
        "maxQueued",
        "flowSchemas",
    ]
    assert all(set(promised) <= set(level) for level in found["levels"])


@pytest.mark.parametrize("release", RELEASES, ids=str)
@pytest.mark.parametrize("total", [1, 7, 600, 99_991])
def test_laws_of_limits(release: Release, total: int, capsys: pytest.CaptureFixture[str]) -> None:
    levels = answer(capsys, "limits", "--kubernetes", release.name, "--server-concurrency", str(total))["levels"]
    limited = [level for level in levels if level["type"] == "Limited"]
    assert total <= sum(level["nominal"] for level in levels) < total + len(levels)
    for level in limited:
        assert level["min"] <= level["nominal"] <= level["max"]
        assert level["min"] <= level["attainable"] <= level["max"]
        if not release.has_borrowing:
            assert level["nominal"] == level["min"] == level["max"] == level["attainable"]


def test_server_concurrency_is_a_number_or_a_sum(capsys: pytest.CaptureFixture[str]) -> None:
    for flags, total in (
        ([], 600),
        (["--server-concurrency", "1600+400"], 2000),
        (["--server-concurrency", "400+0"], 400),
        (["--server-concurrency", "10"], 10),
    ):
        assert answer(capsys, "limits", *flags)["serverConcurrency"] == total


def test_diff_shows_the_seats_that_an_upgrade_changes(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "diff", "defaults:1.20", "defaults:1.36", "--exit-zero")
    assert (found["old"]["kubernetes"], found["new"]["kubernetes"]) == ("1.20", "1.36")
    gains = {level["name"]: (level["change"], level["gain"]) for level in found["levels"]}
    assert gains["node-high"] == ("added", 98)
    assert gains["workload-low"] == ("changed", -48)
    assert gains["exempt"][1] == 0


def test_dump_of_built_in_objects_has_the_same_limits(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["defaults", "--kubernetes", "1.36", "--format", "json"]) == 0
    (tmp_path / "dump.json").write_text(capsys.readouterr().out)
    from_file = answer(capsys, "limits", "dump.json", "--no-defaults", "--kubernetes", "1.36")
    built_in = answer(capsys, "limits", "defaults:1.36")
    assert from_file.pop("configuration") == "dump.json (19 objects), without the other built-in objects of 1.36"
    assert built_in.pop("configuration") == "built-in objects of 1.36"
    assert from_file == built_in


def test_json_of_shards(capsys: pytest.CaptureFixture[str]) -> None:
    flow = ["--flow-schema", "global-default", "--distinguisher", "alice", "--queues", "128", "--hand-size", "6"]
    found = answer(capsys, "shards", *flow)
    assert (found["hash"], found["hand"]) == ("17644606172554983095", [55, 62, 126, 125, 105, 1])
    (row,) = answer(capsys, "shards", "--hand-size", "8", "--queues", "64", "--elephants", "1,4")["rows"]
    assert (row["handSize"], row["queues"], row["entropyBits"]) == (8, 64, 48)
    # These probabilities are from the table in the Kubernetes documentation.
    assert row["squish"] == pytest.approx({"1": 2.25929199850899e-10, "4": 0.0004886697053040446}, rel=1e-12)
    recommended = answer(capsys, "shards", "--recommend", "0.001", "--elephants", "4")
    assert recommended["rows"]
    assert all(row["squish"]["4"] <= 0.001 and row["problem"] is None for row in recommended["rows"])


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("limits nowhere", "nowhere: No such file"),
        ("limits --server-concurrency 0", "is not an integer from 1 to"),
        ("limits --server-concurrency 0+0", "is not an integer from 1 to"),
        ("limits --server-concurrency 400+-200", "is not an integer from 1 to"),
        ("limits --server-concurrency 1+2+3", "is not an integer from 1 to"),
        ("diff nowhere defaults:1.36", "nowhere: No such file"),
        ("diff defaults:9 defaults:1.36", '"9" is not a Kubernetes release'),
        ("shards --hand-size 8", "give both --queues and --hand-size"),
        ("shards --hand-size 80 --queues 64", "from 1 to the number of queues (64), not 80"),
        ("shards --elephants 1,x", '--elephants "1,x": expected integers'),
        ("shards --queues 0 --hand-size 3", "the number of queues must be from 1 to 10000000, not 0"),
        ("shards --recommend some", '"some" is not a number, such as 0.5 or 50%'),
        ("shards --elephants 0", '--elephants "0": expected integers'),
        ("shards --recommend 0.1 --elephants 1,2", "requires a single number of --elephants"),
        ("shards --recommend 2", "greater than 0 and at most 1"),
        ("shards --recommend nan", "greater than 0 and at most 1"),
        ("shards --flow-schema a", "give both --queues and --hand-size"),
        ("shards --flow-schema a --queues 128 --hand-size 12", "needs 84 bits"),
    ],
)
def test_wrong_usage_is_reported_on_one_line(command: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(command.split()) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("apflint: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_wanted_seats(capsys: pytest.CaptureFixture[str], empty: Path) -> None:
    (empty / "level.yaml").write_text(
        "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: a}\nspec:\n"
        "  type: Limited\n  limited:\n    nominalConcurrencyShares: 5\n    limitResponse: {type: Reject}\n",
        "utf-8",
    )
    command = ["limits", "level.yaml", "--kubernetes", "1.36", "--want", "a=50", "--want", "system=70"]
    found = answer(capsys, *command)
    assert [(level["name"], level["sharesBefore"], level["shares"]) for level in found["wanted"]] == [
        ("a", 5, 22),
        ("system", 30, 31),
    ]
    assert found["wanted"][0]["file"] == "level.yaml"
    after = {level["name"]: level["after"]["nominal"] for level in found["changes"]}
    assert (after["a"], after["system"]) == (50, 70)
    assert run(command) == 0
    printed = capsys.readouterr().out
    assert "level.yaml:7: nominalConcurrencyShares 5 -> " in printed
    assert '"system" is built in' in printed
    # The answer contains the same limits as a run with the changed manifest.
    text = (empty / "level.yaml").read_text("utf-8")
    (empty / "level.yaml").write_text(text.replace("Shares: 5", f"Shares: {found['wanted'][0]['shares']}"), "utf-8")
    again = answer(capsys, "limits", "level.yaml", "--kubernetes", "1.36", "--want", "system=70")
    assert again["wanted"][0]["shares"] == found["wanted"][1]["shares"]
    assert again["changes"][0]["before"]["nominal"] >= 50


def test_wanted_seats_that_a_level_has(capsys: pytest.CaptureFixture[str]) -> None:
    found = answer(capsys, "limits", "defaults:1.36", "--want", "workload-low=100")
    assert found["wanted"][0] | {"field": "", "file": ""} == {
        "name": "workload-low",
        "seats": 100,
        "shares": 100,
        "sharesBefore": 100,
        "smallestShares": 29,
        "field": "",
        "file": "",
    }
    assert all(level["before"] == level["after"] for level in found["changes"])
    assert run(["limits", "defaults:1.36", "--want", "workload-low=100"]) == 0
    assert "already has at least 100 seats" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("want", "message"),
    [
        ("workload-lo=1", 'no priority level "workload-lo". Did you mean "workload-low"?'),
        ("exempt=1", "need no seats"),
        ("catch-all=20", 'the shares of the mandatory priority level "catch-all" cannot be changed'),
        (
            "system=601",
            'no number of shares up to 2,147,483,647 is enough for 601 seats of "system". An API server has 600 seats',
        ),
        ("system", "is not LEVEL=SEATS"),
        ("system=-1", "is not LEVEL=SEATS"),
    ],
)
def test_seats_that_no_shares_give(want: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["limits", "defaults:1.36", "--want", want]) == 2
    assert message in capsys.readouterr().err


def test_level_wanted_twice(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["limits", "defaults:1.36", "--want", "system=1", "--want", "system=2"]) == 2
    assert "named twice" in capsys.readouterr().err


@pytest.mark.parametrize("command", [["limits"], ["graph"], ["explain", "list", "pods", "--as", "x", "-f"]])
@pytest.mark.parametrize(("release", "is_served"), [("1.28", True), ("1.37", False)])
def test_note_about_an_api_version_that_the_release_does_not_serve(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
    release: str,
    *,
    is_served: bool,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "apf.yaml").write_text(UNSERVED, encoding="utf-8")
    assert run([*command, "apf.yaml", "--kubernetes", release]) == 0
    note = (
        'apflint: PriorityLevelConfiguration "monitoring" in apf.yaml has apiVersion flowcontrol.apiserver.k8s.io/v1beta2, which'
        " only Kubernetes 1.23 to 1.28 serve: an API server of 1.37 rejects it. Use v1: apflint migrate --to v1\n"
    )
    assert (note in capsys.readouterr().err) is not is_served


UNSERVED = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1beta2
kind: PriorityLevelConfiguration
metadata: {name: monitoring}
spec: {type: Limited, limited: {assuredConcurrencyShares: 10, limitResponse: {type: Reject}}}
"""


def test_color_of_the_change_of_a_level(capsys: pytest.CaptureFixture[str]) -> None:
    """A level whose nominal seats stay the same, but whose attainable seats change, is neither green nor red."""
    options = ("--want", "workload-low=17", "--server-concurrency", "30")
    assert run(["limits", "defaults:1.36", *options, "--color", "always"]) == 0
    row = r"^\x1b\[1m[a-z-]+\x1b\[0m +(?:\x1b\[(\d+)m)?([+-]?\d+)(?:\x1b\[0m)? "
    found = {
        (gain[0] if gain != "0" else "", color)
        for color, gain in re.findall(row, capsys.readouterr().out, re.MULTILINE)
    }
    assert found == {("+", "32"), ("-", "31"), ("", "")}
