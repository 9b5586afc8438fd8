"""`apflint propose`: the complete output in each format, the written files, and the rejected inputs."""

from __future__ import annotations

import gzip
import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from support.builders import ALL, flow_schema, group, priority_level
from support.incidents import INCIDENTS

from apflint.builtin import build_manifests
from apflint.cli.app import run
from apflint.releases import parse_release

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

COMMAND = ["propose", "--isolate", "group:analytics", "--seats", "50", "-f", "apf", "--kubernetes", "1.36"]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory with the subdirectory `apf`, which contains a priority level and a FlowSchema."""
    (tmp_path / "apf").mkdir()
    for name, value in (
        ("level", priority_level("builds", 10)),
        ("schema", flow_schema("builds", "builds", 2000, subjects=[group("builds")], resources=[ALL])),
    ):
        (tmp_path / "apf" / f"{name}.json").write_text(json.dumps(value), "utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def read(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> str:
    assert run([*arguments]) == status, capsys.readouterr().err
    return capsys.readouterr().out


def read_json(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> Any:
    return json.loads(read(capsys, *arguments, "--format", "json", status=status))


@pytest.mark.parametrize("output_format", ["text", "json", "markdown", "html"])
def test_whole_output(output_format: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion) -> None:
    assert read(capsys, *COMMAND, "--format", output_format) == snapshot


@pytest.mark.parametrize("output_format", ["text", "markdown", "html"])
def test_refusal(output_format: str, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["propose", "--isolate", "group:system:masters", "--seats", "5", "--format", output_format]
    printed = read(capsys, *command, status=1)
    assert "is exempt: its requests never wait" in printed
    read(capsys, *command, "--exit-zero")


def test_written_files_do_what_the_proposal_says(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = read_json(capsys, *COMMAND, "-o", "out/new")
    names = [f"out/new/analytics{end}.yaml" for end in ("", "-test", "-alerts")]
    assert found["files"]["written"] == names
    assert found["files"]["alerts"] == names[2]
    assert (project / names[0]).read_text("utf-8") == found["files"]["manifests"]["text"]
    # The alerts are those of the configuration with the proposal.
    alerts = read(capsys, "alerts", "apf", names[0], "--kubernetes", "1.36")
    assert yaml.safe_load((project / names[2]).read_text("utf-8")) == yaml.safe_load(alerts)
    # The printed command lines confirm the proposal, if they are run unchanged.
    for line in found["commands"]["verify"]:
        program, *arguments = shlex.split(line)
        if program == "apflint":
            status = 1 if arguments[0] == "diff" else 0
            printed = read(capsys, *arguments, status=status)
            assert "1 group of requests moves" in printed if status else "2 passed" in printed
            assert "1.37" not in printed
    # `check` reports the findings that the proposal lists, and `limits` shows the same seats as the proposal.
    report = read_json(capsys, "check", "apf", "out/new/analytics.yaml", "--kubernetes", "1.36")
    assert {finding["rule"] for finding in report["findings"] if "new" in finding["file"]} == {"APF603"}
    limits = read_json(capsys, "limits", "apf", "out/new/analytics.yaml", "--kubernetes", "1.36")
    assert {level["name"]: level["nominal"] for level in limits["levels"]} == {
        level["name"]: level["after"]["nominal"] for level in found["levels"]
    }
    # A run that reads the new file has no proposal. A run that does not read the new file refuses to replace it.
    again = read_json(capsys, *COMMAND, "-f", "out/new/analytics.yaml", status=1)
    assert "already has its own priority level" in again["reason"]
    assert run([*COMMAND, "-o", "out/new"]) == 2
    assert "out/new/analytics.yaml: the file exists" in capsys.readouterr().err


def test_file_in_the_directory_of_the_configuration(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = read_json(capsys, *COMMAND, "--write", "apf/analytics.yaml")
    assert found["files"]["written"] == ["apf/analytics.yaml"]
    assert found["files"]["alerts"] is None
    suite = yaml.safe_load(found["files"]["policyTest"]["text"])
    assert suite["manifests"] == ["apf"]
    (project / found["files"]["policyTest"]["name"]).write_text(found["files"]["policyTest"]["text"], "utf-8")
    assert "2 passed" in read(capsys, "test", found["files"]["policyTest"]["name"])
    assert "already has" in read_json(capsys, *COMMAND, status=1)["reason"]
    (project / "apf/analytics.yaml").unlink()
    (project / "apf/analytics.yaml").symlink_to("elsewhere.yaml")
    assert run([*COMMAND, "--write", "apf/analytics.yaml"]) == 2
    assert not (project / "apf/elsewhere.yaml").exists()
    assert "the file exists, and is not replaced" in capsys.readouterr().err


def test_existing_level_is_not_called_new(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "apf" / "level.json").write_text(json.dumps(priority_level("builds", 1)), "utf-8")
    command = ["propose", "--isolate", "group:builds", "--seats", "50", "-f", "apf", "--kubernetes", "1.36"]
    found = read_json(capsys, *command)
    (finding,) = (finding for finding in found["findings"] if finding["rule"] == "APF603")
    assert finding["message"].startswith("priority level takes ")
    assert "new" not in (finding["message"] + finding["why"]).split()
    assert [item["kind"] for item in found["objects"]] == ["FlowSchema"]


def test_other_shares_of_a_level(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["propose", "--isolate", "group:builds", "--seats", "50", "-f", "apf", "--kubernetes", "1.36"]
    found = read_json(capsys, *command, "-o", "out")
    # The existing FlowSchema matches only requests for resources, so a FlowSchema for all other requests is added.
    assert [item["kind"] for item in found["objects"]] == ["FlowSchema"]
    (field,) = found["fields"]
    assert (field["priorityLevel"], field["field"], field["before"]) == ("builds", "nominalConcurrencyShares", 10)
    assert (field["file"], field["line"]) == ("apf/level.json", 1)
    assert "kubectl apply -f apf/level.json" in found["commands"]["apply"]
    assert f"apf/level.json:1: nominalConcurrencyShares 10 -> {field['after']}" in read(capsys, *command)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--config", "other.toml"),
        ("--isolated",),
        ("--render",),
        ("--no-defaults",),
        ("--server-concurrency", "1000"),
        ("--kubernetes", "1.35"),
        ("--config", "other.toml", "--render", "--server-concurrency", "900"),
    ],
)
@pytest.mark.parametrize("client", ["group:builds", "group:analytics"])
def test_printed_commands_repeat_the_options(
    options: tuple[str, ...], client: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each printed command of apflint has the options of this run, and shows the seats of the proposal."""
    (project / "other.toml").write_text("server-concurrency = 800\n", "utf-8")
    (project / "apflint.toml").write_text('server-concurrency = 700\nkubernetes = "1.33"\n', "utf-8")
    if (
        "--no-defaults" in options
    ):  # the manifests then have the objects for system components, as in an export of a cluster
        objects = {"apiVersion": "v1", "kind": "List", "items": build_manifests(parse_release("1.33"), "v1")}
        (project / "apf" / "built-in.json").write_text(json.dumps(objects), "utf-8")
    command = ["propose", "--isolate", client, "--seats", "50", "-f", "apf", *options, "-o", "out"]
    found = read_json(capsys, *command)
    lines = [line for line in found["commands"]["verify"] if line.startswith("apflint ")]
    assert {line.split()[1] for line in lines} >= {"test", "diff" if client == "group:analytics" else "limits"}
    expected = {level["name"]: (level["after"] or {}).get("nominal") for level in found["levels"]}
    for line in lines:
        _, name, *words = shlex.split(line)
        dropped = {"--no-defaults", "--kubernetes", "--server-concurrency"} if name == "test" else set()
        for option in options:
            if option.startswith("--") and option not in dropped:
                assert option in words
        if name == "test":
            assert run([name, *words]) == bool(found["fields"])  # the test fails until the user edits the manifests
        if name == "diff" and not found["fields"]:  # other shares are a change of the existing manifests
            levels = {level["name"]: level for level in read_json(capsys, name, *words, status=1)["levels"]}
            assert {change: levels[change]["new"]["nominal"] for change in levels} == {
                change: expected[change] for change in levels
            }
        if name == "limits":
            answer = read_json(capsys, name, *words)
            assert {level["name"]: level["after"]["nominal"] for level in answer["changes"]} == expected
        capsys.readouterr()


@pytest.mark.parametrize(
    ("options", "servers"),
    [
        ((), None),
        (("--servers", "1"), 1),
        (("--servers", "3"), 3),
        (("--metrics", "a.txt"), 1),
        (("--metrics", "a.txt", "--metrics", "b.txt"), 2),
        (("--metrics", "a.txt", "--metrics", "b.txt", "--servers", "5"), 5),
    ],
)
def test_seats_of_all_servers(
    options: tuple[str, ...], servers: int | None, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The seats are per server. Their sum is shown if the number of servers is known, and greater than 1."""
    text = gzip.decompress((INCIDENTS / "list-heavy" / "2-during.metrics.txt.gz").read_bytes()).decode()
    (project / "a.txt").write_text(text, "utf-8")
    moved = re.sub(r"(?m)^(process_start_time_seconds) .+$", r"\1 1790000000", text)
    (project / "b.txt").write_text(moved, "utf-8")
    command = [
        "propose",
        "--isolate",
        "group:analytics",
        "--seats",
        "8",
        "-f",
        "apf",
        "--kubernetes",
        "1.36",
        *options,
    ]
    found = read_json(capsys, *command)
    nominal = next(level["after"]["nominal"] for level in found["levels"] if level["name"] == "analytics")
    total = None if servers is None else servers * nominal
    assert (found["servers"], found["seatsInAllServers"]) == (servers, total)
    # The metrics also have the seats of a server: 120 instead of the default of 600.
    seats = sum(level["after"]["nominal"] for level in found["levels"])
    assert (seats < 150) == ("--metrics" in options)
    printed = read(capsys, *command)
    assert f"{nominal} seats in each API server" in printed
    assert (f"({total} in all {servers} API servers)" in printed) == (servers is not None and servers > 1)


def test_new_cluster(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = read_json(
        capsys, "propose", "--isolate", "user:a b@example.com", "--seats", "5", "-f", "defaults:1.30", "-o", "."
    )
    assert found["files"]["written"] == [f"./a-b-example.com{end}.yaml" for end in ("", "-test", "-alerts")]
    assert "1 passed" not in read(capsys, "test", "a-b-example.com-test.yaml")
    assert not [name.name for name in project.iterdir() if name.name.startswith(".")]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--seats", "5"], "name audit logs, or clients and their seats"),
        (["--isolate", "group:a"], "name audit logs, or clients and their seats"),
        (["--isolate", "a", "--seats", "5"], '"a" names no client'),
        (["--isolate", "group:a", "--seats", "601"], "use 1 to 600, the seats of an API server"),
        (["--isolate", "group:a", "--seats", "0"], "use 1 to 600, the seats of an API server"),
        (["--isolate", "group:a", "--seats", "x"], "is not an integer"),
        (["--isolate", "group:a", "--seats", "5", "--write", "a", "-o", "b"], "cannot be combined"),
        (["--isolate", "group:a", "--seats", "5", "--servers", "0"], "a cluster has at least 1 API server"),
        (["--isolate", "group:a", "--seats", "5", "--objects", "pods=5"], "--objects requires audit logs"),
        (["audit.log", "--servers", "3"], "logs and --servers cannot be combined"),
        (["--isolate", "group:a", "--seats", "5", "--write", "apf/level.json/x"], "not written"),
    ],
)
def test_mistake(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["propose", *arguments, "-f", "apf"]) == 2
    assert message in capsys.readouterr().err


def test_names_are_text_in_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    name = 'user:<b>"x" ##[group] ``` | @a'
    command = ["propose", "--isolate", name, "--seats", "5", "-f", "apf"]
    for output_format in ("text", "json", "markdown", "html"):
        printed = read(capsys, *command, "--format", output_format)
        assert "##[" not in printed
        assert "<b>" not in printed or output_format != "html"
    found = read_json(capsys, *command)
    documents = [*yaml.safe_load_all(found["files"]["manifests"]["text"])]
    assert documents[1]["spec"]["rules"][0]["subjects"][0]["user"]["name"] == name.removeprefix("user:")
