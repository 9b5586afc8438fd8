"""The benchmark runs to its end on small inputs. How long anything takes is not looked at here."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


@pytest.fixture(autouse=True)
def _scripts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "scripts"))


@pytest.fixture
def cases() -> ModuleType:
    return importlib.import_module("benchmarking.cases")


@pytest.fixture
def found(root: Path, tmp_path: Path) -> object:
    """This apflint, and nothing in the place of the tools that it is compared with."""
    apflint, nothing = tmp_path / "apflint", tmp_path / "nothing"
    apflint.write_text(f'#!/bin/sh\nPYTHONPATH="{root}" exec "{sys.executable}" -m apflint "$@"\n')
    nothing.write_text("#!/bin/sh\n")
    for path in (apflint, nothing):
        path.chmod(0o755)
    tools = importlib.import_module("benchmarking.environments").Tools
    return tools(sys.executable, str(apflint), sys.executable, str(nothing), str(nothing))


@pytest.mark.parametrize("name", ["version", "small", "large", "thousand", "repository", "requests", "crowd", "growth"])
def test_a_case_gives_its_rows(
    cases: ModuleType, found: object, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert name in cases.CASES
    monkeypatch.setattr(cases, "GROWING", [one._replace(smallest=one.smallest // 25) for one in cases.GROWING[::4]])
    folder = tmp_path / "case"
    folder.mkdir()
    rows = list(cases.CASES[name](cases.Setting(found, folder, 1, 100 if name != "growth" else 1)))
    assert rows
    assert all(row.case and row.measured and row.by_processor and row.target for row in rows)


def test_the_table_is_ready_to_paste(
    found: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = importlib.import_module("benchmark")
    monkeypatch.setattr(benchmark, "tools", lambda _folder: found)
    monkeypatch.setattr(benchmark, "versions", lambda _found: "peers")
    monkeypatch.setattr(sys, "argv", ["benchmark.py", "--runs", "1", "version"])
    assert benchmark.main() in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.count("|") for line in lines[:3]] == [7, 7, 7]
    assert lines[2].startswith("| `apflint --version` | ")
    assert lines[-1].startswith("Medians of 1 run")


@pytest.mark.parametrize("arguments", [["nothing"], ["--runs", "0"]])
def test_a_case_that_is_none_is_refused(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    benchmark = importlib.import_module("benchmark")
    monkeypatch.setattr(sys, "argv", ["benchmark.py", *arguments])
    with pytest.raises(SystemExit) as stopped:
        benchmark.main()
    assert stopped.value.code == 2


def test_a_tool_that_fails_stops_the_benchmark(tmp_path: Path) -> None:
    processes = importlib.import_module("benchmarking.processes")
    with pytest.raises(SystemExit, match="ended with 7"):
        processes.in_turn({"a": [sys.executable, "-c", "raise SystemExit(7)"]}, tmp_path, 1)
