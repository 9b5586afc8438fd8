"""Goals files: the parser, its errors with line and column, and the JSON schema, which accepts the same files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import yaml
from jsonschema import Draft202012Validator
from support.recordings import ROOT

from apflint.cli.app import run
from apflint.propose.goals_file import parse_goals

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = Draft202012Validator(json.loads((ROOT / "schemas/apflint-goals.json").read_text("utf-8")))
LOG = ROOT / "fixtures/propose/single-flow/audit.log.gz"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{isolate: group:a, seats: 5}", (("group:a",), 5, (), (), None)),
        ("isolate: [group:a, 'User:b']\nseats: 1\n", (("group:a", "User:b"), 1, (), (), None)),
        ("protect: [group:tenants=1s, leader-election]\nmaySuffer: user:b\nmaxObjects: 0\n",
         ((), None, ("group:tenants=1s", "leader-election"), ("user:b",), 0)),
        ("{}", ((), None, (), (), None)),
    ],
)  # fmt: skip
def test_valid_files(text: str, expected: tuple[object, ...]) -> None:
    goals = parse_goals("goals.yaml", text.encode())
    assert goals.mistakes == ()
    assert goals[1:] == expected
    assert SCHEMA.is_valid(yaml.safe_load(text))


@pytest.mark.parametrize(
    ("text", "line", "column", "message"),
    [
        ("isolate: group:a\n", 1, 1, "`isolate` requires `seats`"),
        ("seats: 4\n", 1, 1, "`seats` requires `isolate`"),
        ("isolate: group:a\nseats: many\n", 2, 8, "expected an integer of at least 1, not a string"),
        ("isolate: group:a\nseats: 0\n", 2, 8, "expected an integer of at least 1, not the number 0"),
        ("maySuffer:\n- user:a\n- nobody\n", 3, 3, '"nobody" names no client'),
        ("may-suffer: [user:a]\n", 1, 1, 'unknown key "may-suffer". Did you mean maySuffer?'),
        ("protekt: [user:a]\n", 1, 1, 'unknown key "protekt". Did you mean "protect"?'),
        ("protect: []\n", 1, 10, "the list is empty"),
        ("protect: [1]\n", 1, 11, "YAML parses 1 as the number 1"),
        ("maxObjects: -1\n", 1, 13, "expected an integer of at least 1, not the number -1"),
        ("- protect\n", 1, 1, "a goals file is a mapping"),
    ],
)
def test_errors_have_line_and_column(text: str, line: int, column: int, message: str) -> None:
    (mistake, *_) = parse_goals("goals.yaml", text.encode()).mistakes
    assert (mistake.span.line, mistake.span.column) == (line, column)
    assert mistake.message.startswith(message)
    assert not SCHEMA.is_valid(yaml.safe_load(text))


def test_goals_of_a_tenant_are_those_of_the_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "goals.yaml").write_text("isolate: group:analytics\nseats: 20\n", "utf-8")
    assert run(["propose", "--goals", "goals.yaml", "--isolated"]) == 0
    found = capsys.readouterr().out
    assert run(["propose", "--isolate", "group:analytics", "--seats", "20", "--isolated"]) == 0
    assert found == capsys.readouterr().out
    assert run(["propose", "--goals", "goals.yaml", "--seats", "5"]) == 2
    assert "--goals and --seats cannot be combined" in capsys.readouterr().err


def test_priority_level_that_the_configuration_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "goals.yaml").write_text("protect:\n- leader-election\n- leader-elections=1s\n", "utf-8")
    assert run(["propose", str(LOG), "--goals", "goals.yaml", "-f", "defaults:1.36", "--color", "never"]) == 2
    error = capsys.readouterr().err
    assert 'error: "leader-elections" names no client' in error
    assert "goals.yaml:3:3" in error
    assert run(["propose", "--goals", "goals.yaml", "--isolated"]) == 2
    assert "goals.yaml: protect, maySuffer and maxObjects require audit logs" in capsys.readouterr().err
