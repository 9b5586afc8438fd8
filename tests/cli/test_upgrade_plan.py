"""`apflint migrate --plan`: its steps, its commands, and the equality of its figures with those of `apflint diff`."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import ALL, flow_schema, group, priority_level

from apflint.cli.app import run
from apflint.load import load_text
from apflint.load.source_text import Source
from apflint.releases import RELEASES, parse_release

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from apflint.releases import Release

SERVING = [release for release in RELEASES if release.served]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_manifests(version: str) -> None:
    """Write a FlowSchema, and a priority level with the default number of shares, each on lines of its own."""
    level = priority_level("reports", 0)
    limited = level["spec"]["limited"]
    if version in ("v1alpha1", "v1beta1", "v1beta2"):
        limited["assuredConcurrencyShares"] = limited.pop("nominalConcurrencyShares")
    elif version == "v1":
        limited["nominalConcurrencyShares"] = 30
    schema = flow_schema("reports", "reports", 8000, subjects=[group("reports")], resources=[ALL])
    Path("apf").mkdir()
    for name, value in (("level", level), ("schema", schema)):
        value["apiVersion"] = f"flowcontrol.apiserver.k8s.io/{version}"
        Path(f"apf/{name}.json").write_text(json.dumps(value, indent=2), "utf-8")


def read(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    status = run([*arguments])
    printed = capsys.readouterr()
    assert status in (0, 1), printed.err
    return printed.out


def read_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    return json.loads(read(capsys, *arguments, "--format", "json"))


def pick(level: dict[str, Any] | None) -> dict[str, Any]:
    """Return the seats and queues of a level in the output of `diff`."""
    names = ("shares", "nominal", "min", "max", "attainable", "queues", "handSize", "queueLengthLimit")
    return {name: (level or {}).get(name) for name in names}


def list_versions() -> set[str]:
    texts = (Source(path.name, path.read_text("utf-8")) for path in Path("apf").iterdir())
    return {document.version for text in texts for document in load_text(text).documents}


@pytest.mark.parametrize("start", SERVING[::3], ids=lambda release: release.name)
def test_commands_of_the_plan_lead_through_all_releases(start: Release, capsys: pytest.CaptureFixture[str]) -> None:
    """Before each step, the manifests have a version that both releases serve. Each step has the figures of `diff`."""
    write_manifests(start.served[-1])
    plan = read_json(capsys, "migrate", "--plan", "--range", f"{start.name}..{RELEASES[-1].name}", "apf")
    assert [step["from"] for step in plan["steps"]] == [
        release.name for release in RELEASES if release.minor >= start.minor
    ][:-1]
    shares = None
    for step in plan["steps"]:
        old, new = parse_release(step["from"]), parse_release(step["to"])
        # A step changes files only when it is necessary: if the new release does not serve the version of a file.
        assert bool(step["before"]) == (not list_versions() <= set(new.served))
        lines = [path.read_text("utf-8").splitlines() for path in (Path(change["file"]) for change in step["before"])]
        for change, text in zip(step["before"], lines, strict=True):
            assert not change["refused"]
            (place,) = (item["line"] for item in change["changes"] if item["kind"] == "migrated")
            assert "apiVersion" in text[place - 1]
            assert change["version"] in parse_release(change["since"]).served
        for line in step["commands"]:
            if line.startswith("apflint migrate"):
                assert run(shlex.split(line)[1:]) == 0
        capsys.readouterr()
        assert list_versions() <= {*old.served} & {*new.served}
        # Both sides of `diff` have the manifests that this step requires.
        compared = read_json(capsys, "diff", f"defaults:{old.name}", f"defaults:{new.name}", "-f", "apf")
        levels = {item["name"]: item for item in compared["levels"]}
        changed = {name for name, level in levels.items() if pick(level["old"]) != pick(level["new"])}
        assert {level["name"] for level in step["levels"]} == changed
        for level in step["levels"]:
            for key, side in (("before", "old"), ("after", "new")):
                assert (level[key] or {}).get("nominal") == (levels[level["name"]][side] or {}).get("nominal")
        assert len(step["objects"]) == len(compared["objects"])
        assert bool(step["moves"]) == bool(compared["changes"])
        limits = read_json(capsys, "limits", "apf", "--kubernetes", new.name)["levels"]
        found = next(level["shares"] for level in limits if level["name"] == "reports")
        assert found == (shares := shares or found)  # no step changes the shares of the manifests


@pytest.mark.parametrize("output_format", ["text", "markdown", "json"])
def test_whole_output(output_format: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    write_manifests("v1beta2")
    before = {path: path.read_bytes() for path in Path("apf").iterdir()}
    command = [
        "migrate",
        "--plan",
        "--range",
        "1.25..1.34",
        "--server-concurrency",
        "1000",
        "apf",
        "--format",
        output_format,
    ]
    assert run(command) == 1
    assert capsys.readouterr().out == snapshot
    assert run([*command, "--exit-zero"]) == 0
    assert {path: path.read_bytes() for path in Path("apf").iterdir()} == before


def test_manifests_that_apflint_refuses_to_migrate(capsys: pytest.CaptureFixture[str]) -> None:
    write_manifests("v1beta2")
    level = json.loads(Path("apf/level.json").read_text("utf-8"))
    level["spec"]["limited"]["lendablePercents"] = 5
    Path("apf/level.json").write_text(json.dumps(level, indent=2), "utf-8")
    plan = read_json(capsys, "migrate", "--plan", "--range", "1.27..1.33", "apf")
    refused = [change["file"] for step in plan["steps"] for change in step["before"] if change["refused"]]
    assert refused == ["apf/level.json"]  # reported once, and not again before each further step
    assert "edit it manually: " in read(capsys, "migrate", "--plan", "--range", "1.27..1.33", "apf")


def test_manifests_of_a_later_release(capsys: pytest.CaptureFixture[str]) -> None:
    write_manifests("v1")
    plan = read_json(capsys, "migrate", "--plan", "--range", "1.27..1.30", "apf")
    assert [len(step["notServedYet"]) for step in plan["steps"]] == [2, 2, 0]
    assert "1.28 does not serve v1 (1.29 and later)" in read(
        capsys, "migrate", "--plan", "--range", "1.28..1.30", "apf"
    )
    assert run(["migrate", "--plan", "--range", "1.29..1.37", "apf"]) == 0  # nothing to change


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--plan",), "--plan requires --range with the release of today and a later one"),
        (("--plan", "--range", "1.30..1.30"), "--plan requires --range"),
        (("--plan", "--range", "1.30..1.31", "--diff"), "--plan and --diff cannot be combined"),
        (("--plan", "--range", "1.30..1.31", "--to", "v1"), "--plan and --to cannot be combined"),
        (("--format", "json"), "--format and --server-concurrency require --plan"),
    ],
)
def test_mistakes(options: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    write_manifests("v1")
    assert run(["migrate", *options, "apf"]) == 2
    assert message in capsys.readouterr().err
