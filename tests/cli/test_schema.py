"""`apflint schema`: the JSON output of each command is valid under the schema that the command prints."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from jsonschema import Draft202012Validator

from apflint.cli.app import COMMANDS, app, run
from apflint.cli.commands.schema import Name
from apflint.output.json_text import SCHEMA

ROOT = Path(__file__).resolve().parents[2]
LIVE = ROOT / "fixtures" / "live"
STORY = ROOT / "fixtures" / "stories" / "accepted-but-wrong"
LOAD = str(ROOT / "fixtures" / "simulate" / "load.yaml")
REQUEST = ["list", "pods", "-A", "--as", "system:serviceaccount:ci:runner"]
UID = "125c5eed-b6b0-4f1d-a392-14523ea511ba"
BUSY = ROOT / "fixtures" / "propose" / "single-flow"
SERVERS = ROOT / "fixtures" / "simulate" / "incidents"
AUDIT_LOG = str(ROOT / "fixtures" / "replay" / "live" / "audit.log.gz")
OUTPUTS = {
    "config-output": [["config"], ["config", "--isolated"], ["config", "--suggest-clusters"]],
    "diff-output": [
        ["diff", "defaults:1.20", "defaults:1.36"],
        ["diff", "defaults:1.36", "defaults:1.36", "-f", str(STORY)],
    ],
    "doctor-output": [
        ["doctor", "--metrics", str(LIVE / "2-slow-a.metrics.txt.gz"), "--dump", str(LIVE / "2-slow-a.requests.txt")],
        ["doctor", "--metrics", str(LIVE / "0-idle.metrics.txt.gz"), "--metrics", str(LIVE / "4-mixed.metrics.txt.gz")],
        ["doctor", "--dump", str(LIVE / "6-level-deleted.priority_levels.txt")],
    ],
    "migrate-output": [["migrate", "--plan", "--range", "1.25..1.37", str(STORY)]],
    "explain-output": [
        ["explain", *REQUEST, "-f", str(STORY)],
        ["explain", "get", "/healthz", "--as", "system:anonymous", "--kubernetes", "1.20"],
        ["explain", "watch", "pods", "--as", "root", "--as-group", "system:masters"],
        ["explain", "list", "configmaps", "--as", "alice", "--dump", str(LIVE / "4-mixed.queues.txt.gz")],
        ["explain", *REQUEST, "--kubernetes", "1.33", "--metrics", str(LIVE / "4-mixed.metrics.txt.gz")],
        [
            "explain",
            "get",
            "pods",
            "-n",
            "a",
            "--as",
            "root",
            "--as-group",
            "system:masters",
            "--dump",
            str(LIVE / "4-mixed.queues.txt.gz"),
        ],
        ["explain", "--flow-schema-uid", UID, "-f", str(LIVE / "objects.json")],
    ],
    "limits-output": [
        ["limits", str(STORY)],
        ["limits", "--kubernetes", "1.20", str(STORY)],
        ["limits", "--want", "workload-low=300", "--want", "system=1", str(STORY)],
    ],
    "propose-output": [
        ["propose", "--isolate", "group:analytics", "--seats", "50", "-f", str(STORY)],
        ["propose", "--isolate", "group:system:masters", "--seats", "50"],
        ["propose", str(BUSY / "audit.log.gz"), "-f", str(BUSY / "manifests"), "--server-concurrency", "30"],
        ["propose", AUDIT_LOG],
    ],
    "why-output": [
        ["why", "--as", "alice", "list", "pods", "-f", str(STORY)],
        ["why", "--as", "system:serviceaccount:ci:runner", AUDIT_LOG],
        ["why", "--as", "alice", str(LIVE / "4-mixed.metrics.txt.gz"), str(LIVE / "4-mixed.requests.txt")],
    ],
    "replay-output": [
        ["replay", AUDIT_LOG, "--by", "user,group"],
        ["replay", AUDIT_LOG, "--where", "user=nobody", "--since", "2026-11-22", "--until", "2h"],
        ["replay", AUDIT_LOG, "--kubernetes", "1.21", "--compare", "defaults:1.36"],
        ["replay", AUDIT_LOG, "--baseline", "60s"],
        [
            "replay",
            *(str(SERVERS / f"{name}.log.gz") for name in ("list-heavy", "leases-captured")),
            *("-f", str(SERVERS / "list-heavy.objects.json")),
            *("-f", f"2026-11-23T16:54:00Z={SERVERS / 'leases-captured.objects.json'}"),
        ],
        ["replay", AUDIT_LOG, "--where", "status=429", "--where", "user=carol", "--each"],
        ["replay", AUDIT_LOG, "--where", "user=", "--since", "79s", "--until", "60s", "--each"],
    ],
    "rule-output": [["rule"], ["rule", "APF305"]],
    "simulate-output": [
        ["simulate", LOAD, "-f", str(STORY)],
        [
            "simulate",
            LOAD,
            "--compare",
            "defaults:1.36",
            "-f",
            str(STORY),
            "--set",
            "global-default.queueLengthLimit=5",
        ],
        ["simulate", LOAD, "-f", str(STORY), "--search", "argo"],
    ],
    "shards-output": [
        ["shards", "--queues", "64", "--hand-size", "6"],
        ["shards", "--recommend", "0.01"],
        ["shards", "--flow-schema", "service-accounts", "--distinguisher", "alice"],
    ],
}


def print_json(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> Any:
    """Return the JSON that a command prints."""
    assert run(arguments) in (0, 1), capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def validator(name: str, capsys: pytest.CaptureFixture[str]) -> Draft202012Validator:
    schema = print_json(["schema", name], capsys)
    assert schema["$ref"] == f"#/$defs/{name}"
    assert name in schema["$defs"]
    check_schema(json.dumps({key: value for key, value in schema.items() if key != "$ref"}))
    return Draft202012Validator(schema)


@cache  # the schemas of all outputs consist of the same definitions, and checking these takes half a second
def check_schema(text: str) -> None:
    Draft202012Validator.check_schema(json.loads(text))


@pytest.mark.parametrize("name", OUTPUTS)
def test_output_is_valid_and_less_is_not(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # In the root directory, every command without `-f` would read all manifests of the repository. Only `config` does.
    monkeypatch.chdir(ROOT if name == "config-output" else LIVE)
    check = validator(name, capsys)
    for arguments in OUTPUTS[name]:
        value = print_json([*arguments, "--format", "json"], capsys)
        check.validate(value)
        assert next(iter(value)) == "schema"
        assert value["schema"] == (2 if name == "doctor-output" else SCHEMA)
        required = next(key for key in value if key not in ("outcomes", "considered", "skipped"))
        assert not check.is_valid({key: other for key, other in value.items() if key != required})
        assert not check.is_valid({**value, "unknown": None})


@pytest.mark.parametrize("level", ["batch", "missing"])
def test_output_of_policy_tests_is_valid(level: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "apf-test.yaml"
    tests = [
        {"name": "a", "request": "list pods", "as": "alice", "reaches": {"priorityLevel": level}},
        {"unreachable": "catch-all"},
    ]
    suite.write_text(json.dumps({"manifests": [], "tests": tests}), "utf-8")
    check = validator("test-output", capsys)
    check.validate(print_json(["test", "--format", "json", str(suite)], capsys))


def test_output_about_an_invalid_suite_is_valid(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = tmp_path / "apf-test.yaml"
    suite.write_text("tests: 1\n", "utf-8")
    check = validator("test-output", capsys)
    assert run(["test", "--format", "json", str(suite)]) == 2
    value = json.loads(capsys.readouterr().out)
    check.validate(value)
    assert value["files"][0]["errors"]


@pytest.mark.parametrize("option", ["--requests", "--event"])
def test_each_line_has_the_version_of_the_format(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "verb": "list",
        "requestURI": "/api/v1/pods",
        "user": {"username": "alice"},
    }
    request = {"user": "alice", "verb": "list", "resource": "pods"}
    file = tmp_path / "lines.jsonl"
    file.write_text(f"{json.dumps(event if option == '--event' else request)}\n{{}}\n", "utf-8")
    check = validator("explain-output", capsys)
    assert run(["explain", option, str(file), "--verbose", "--format", "json"]) == 2
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["schema"] for line in lines] == [SCHEMA, SCHEMA]
    for line in lines:
        check.validate(line)


def test_every_command_with_json_has_a_schema_and_a_test() -> None:
    program: Any = typer.main.get_command(app)
    context = typer.Context(program)
    formats = {
        f"{name}-output"
        for name in COMMANDS
        for option in program.get_command(context, name).params
        if option.name == "output_format"
        and "json" in (getattr(option.type, "choices", None) or re.findall(r"\w+", option.help))
    }
    # `OUTPUTS` does not contain `check`, whose schema is `report`, nor `defaults`, which prints Kubernetes objects.
    assert formats - {"check-output", "defaults-output"} == {*OUTPUTS, "test-output"}


def test_comments_of_schemas_name_files_that_exist() -> None:
    schemas = {path.name: path.read_text("utf-8") for path in (ROOT / "schemas").glob("*.json")}
    named = {name: re.findall(r"[\w/]+\.(?:py|toml)\b", json.loads(text)["$comment"]) for name, text in schemas.items()}
    assert [name for name, files in named.items() if not files] == []
    assert [(name, file) for name, files in named.items() for file in files if not (ROOT / file).is_file()] == []


def test_every_output_has_a_test() -> None:
    names = {name for name in get_args(Name) if name.endswith("-output")}
    assert names == {*OUTPUTS, "test-output"}
