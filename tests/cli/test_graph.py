"""Output of `apflint graph` in each format, and its errors."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from graph.pictures import flow_schema, many

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("form", ["text", "mermaid", "dot", "svg", "html"])
def test_formats(form: str, root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    story = str(root / "fixtures" / "stories" / "small-cluster")
    assert run(["graph", story, "--format", form, "--server-concurrency", "1000"]) == 0
    text = capsys.readouterr().out
    assert "widget-operator-leases" in text
    assert "observability" in text


def test_built_in_objects_and_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["graph", "defaults:1.20"]) == 0
    assert "global-default" in capsys.readouterr().out
    assert run(["graph", "defaults:1.20", "--server-concurrency", "0"]) == 2
    assert "is not an integer from 1" in capsys.readouterr().err
    assert run(["graph", "--format", "png"]) == 2


def test_several_paths_and_note_on_large_mermaid_diagrams(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(2):
        (tmp_path / f"{number}.json").write_text(json.dumps(flow_schema(f"s{number}", "exempt")))
    assert run(["graph", str(tmp_path / "0.json"), str(tmp_path / "1.json")]) == 0
    few = capsys.readouterr()
    assert "s0" in few.out
    assert "s1" in few.out
    assert few.err == ""
    (tmp_path / "2.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*many(501)]}))
    assert run(["graph", str(tmp_path)]) == 0
    large = capsys.readouterr()
    assert "s1" in large.out
    assert large.err.startswith("apflint: GitHub and others do not draw a Mermaid diagram of this size.")


@pytest.mark.parametrize(
    ("is_terminal", "starts"), [(True, "API Priority and Fairness, Kubernetes 1.36"), (False, "flowchart LR")]
)
def test_terminal_gets_text(
    is_terminal: bool, starts: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: is_terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    assert run(["graph", "defaults:1.36"]) == 0
    assert capsys.readouterr().out.startswith(starts)
    assert run(["graph", "defaults:1.36", "--format", "mermaid"]) == 0
    assert capsys.readouterr().out.startswith("flowchart LR")


def test_color_of_text(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    arguments = ["graph", "defaults:1.36", "--format", "text", "--color"]
    assert run([*arguments, "always"]) == 0
    colored = capsys.readouterr().out
    assert run([*arguments, "never"]) == 0
    plain = capsys.readouterr().out
    assert "\x1b[1mFLOWSCHEMA" in colored
    assert "\x1b" not in plain
