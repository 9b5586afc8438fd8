"""The benchmark runs to its end on small inputs. Times are not tested."""

from __future__ import annotations

import importlib
import random
import sys
from typing import TYPE_CHECKING

import pytest
from support.audit_logs import needs_duckdb

from apflint.engine import check

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _scripts(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(root / "scripts"))


@pytest.fixture
def cases() -> ModuleType:
    return importlib.import_module("benchmarking.cases")


@pytest.fixture
def tools(root: Path, tmp_path: Path) -> object:
    """Return the apflint of the checkout, and empty scripts in place of the tools with which the benchmark compares it."""
    apflint, nothing = tmp_path / "apflint", tmp_path / "nothing"
    apflint.write_text(f'#!/bin/sh\nPYTHONPATH="{root}" exec "{sys.executable}" -m apflint "$@"\n')
    nothing.write_text("#!/bin/sh\n")
    for path in (apflint, nothing):
        path.chmod(0o755)
    kind = importlib.import_module("benchmarking.environments").Tools
    return kind(sys.executable, str(apflint), str(nothing), str(nothing), str(nothing))


@pytest.mark.parametrize(
    "name",
    [
        *(
            "version",
            "small",
            "large",
            "thousand",
            "repository",
            "requests",
            "metrics",
            "crowd",
            "clusters",
            "simulation",
            "growth",
        ),
        pytest.param("replay", marks=needs_duckdb),
    ],
)
def test_case_returns_its_rows(
    cases: ModuleType, tools: object, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert name in cases.CASES
    monkeypatch.setattr(
        cases, "GROWING", [growing._replace(smallest=growing.smallest // 25) for growing in cases.GROWING[::4]]
    )
    directory = tmp_path / "case"
    directory.mkdir()
    rows = list(cases.CASES[name](cases.Setting(tools, directory, 1, 100 if name != "growth" else 1)))
    assert rows
    assert all(row.case and row.measured and row.cpu_time and row.target for row in rows)


@pytest.mark.parametrize("count", [1, 1000])
def test_flow_schemas_of_teams_have_no_finding(tmp_path: Path, count: int) -> None:
    inputs = importlib.import_module("benchmarking.inputs")
    inputs.write_one_file(tmp_path / "teams.yaml", count)
    assert check([("teams.yaml", (tmp_path / "teams.yaml").read_bytes())]).findings == ()


def test_table_is_markdown(tools: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    benchmark = importlib.import_module("benchmark")
    monkeypatch.setattr(benchmark, "install_tools", lambda _directory: tools)
    monkeypatch.setattr(benchmark, "list_versions", lambda _tools: {"yamllint": "1.38.0"})
    monkeypatch.setattr(sys, "argv", ["benchmark.py", "--runs", "1", "version"])
    assert benchmark.main() in (0, 1)
    lines = capsys.readouterr().out.splitlines()
    assert [line.count("|") for line in lines[:3]] == [7, 7, 7]
    assert lines[2].startswith("| `apflint --version` | ")
    assert lines[-1].startswith("1 runs (fewer of long processes) on ")


def simulate_times(chance: random.Random, noise: float, *parts: tuple[float, float]) -> list[float]:
    """Return simulated times in seconds of a program for inputs of the sizes 1, 4 and 16.

    Each time is the minimum of 5 runs, and random noise makes each run longer. Without noise, a run
    takes 0.2 s and the time of each part in `parts`. A part is (seconds for an input of size 16,
    exponent with which the time grows with the size).
    """
    return [
        min(
            (0.2 + sum(seconds * (size / 16) ** power for seconds, power in parts)) * (1 + abs(chance.gauss(0, noise)))
            for _ in range(5)
        )
        for size in (1, 4, 16)
    ]


@pytest.mark.parametrize("noise", [0.0, 0.05, 0.2])
@pytest.mark.parametrize(
    ("parts", "steep"),
    [
        pytest.param([(1.6, 1.0)], False, id="as the input"),
        pytest.param([(1.6, 1.1)], False, id="as n log n"),
        pytest.param([(1.6, 2.0)], True, id="with its square"),
        pytest.param([(0.5, 1.0), (1.5, 2.0)], True, id="most of the last size with its square"),
        pytest.param([(1.6, 1.6)], True, id="between the two"),
    ],
)
def test_quadratic_growth_is_distinguished_from_noise(
    parts: list[tuple[float, float]], steep: bool, noise: float
) -> None:
    growth = importlib.import_module("benchmarking.growth")
    chance = random.Random(7)
    reported = [growth.fit_exponent(simulate_times(chance, noise, *parts)) > growth.MAX_EXPONENT for _ in range(200)]
    assert sum(reported) >= 190 if steep else sum(reported) <= 4


def test_exponent_of_exact_times() -> None:
    growth = importlib.import_module("benchmarking.growth")
    for power in (0.5, 1, 1.5, 2, 3):
        assert growth.fit_exponent([0.3 + size**power for size in (1, 4, 16)]) == pytest.approx(power)
    assert growth.fit_exponent([1.0, 0.9, 0.8]) == 0  # the time does not grow with the input
    assert growth.fit_exponent([1.0, 0.9, 1.8]) > growth.MAX_EXPONENT  # a sudden increase is reported


def test_growth_uses_the_minimum_time_of_each_size(
    cases: ModuleType, tools: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growth, processes = (importlib.import_module(f"benchmarking.{name}") for name in ("growth", "processes"))
    times = iter([9.0, 9.0, 9.0, 1.2, 1.6, 4.0, 1.0, 2.0, 8.0, 5.0, 1.3, 9.0])  # the first three are warm-up runs
    monkeypatch.setattr(processes, "_measure", lambda *_: processes.Cost(0.0, next(times), 1))
    growing = growth.Growing("x", 10, lambda _folder, _size: ["--version"])
    monkeypatch.setattr(cases, "GROWING", [growing])
    (row,) = cases.growth(cases.Setting(tools, tmp_path, 3))
    assert (row.case, row.cpu_time, row.met) == ("x: 10, 40, 160", "n^1.58", False)


@pytest.mark.parametrize("arguments", [["nothing"], ["--runs", "0"]])
def test_unknown_case_is_a_usage_error(monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    benchmark = importlib.import_module("benchmark")
    monkeypatch.setattr(sys, "argv", ["benchmark.py", *arguments])
    with pytest.raises(SystemExit) as stopped:
        benchmark.main()
    assert stopped.value.code == 2


def test_tool_that_fails_stops_the_benchmark(tmp_path: Path) -> None:
    processes = importlib.import_module("benchmarking.processes")
    with pytest.raises(SystemExit, match="ended with 7"):
        processes.measure_in_turn({"a": [sys.executable, "-c", "raise SystemExit(7)"]}, tmp_path, 1)
