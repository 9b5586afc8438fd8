"""The benchmark runs to its end on small inputs. How long anything takes is not looked at here."""

from __future__ import annotations

import importlib
import random
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
    assert lines[-1].startswith("1 runs (fewer of long processes) on ")


def taken(chance: random.Random, noise: float, *parts: tuple[float, float]) -> list[float]:
    """The least of 5 runs of each of three sizes: 0.2 s whatever the size, and parts: seconds at the largest, power."""
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
def test_a_square_is_told_from_noise(parts: list[tuple[float, float]], steep: bool, noise: float) -> None:
    growth = importlib.import_module("benchmarking.growth")
    chance = random.Random(7)
    told = [growth.exponent(taken(chance, noise, *parts)) > growth.STEEP for _ in range(200)]
    assert sum(told) >= 190 if steep else sum(told) <= 4


def test_the_power_of_exact_times() -> None:
    growth = importlib.import_module("benchmarking.growth")
    for power in (0.5, 1, 1.5, 2, 3):
        assert growth.exponent([0.3 + size**power for size in (1, 4, 16)]) == pytest.approx(power)
    assert growth.exponent([1.0, 0.9, 0.8]) == 0  # no time at all
    assert growth.exponent([1.0, 0.9, 1.8]) > growth.STEEP  # and one that jumps is to be looked at


def test_growth_goes_by_the_least_time_of_each_size(
    cases: ModuleType, found: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    growth, processes = (importlib.import_module(f"benchmarking.{name}") for name in ("growth", "processes"))
    times = iter([9.0, 9.0, 9.0, 1.2, 1.6, 4.0, 1.0, 2.0, 8.0, 5.0, 1.3, 9.0])  # the first three are not measured
    monkeypatch.setattr(processes, "_once", lambda *_: processes.Cost(0.0, next(times), 1))
    one = growth.Growing("x", 10, lambda _folder, _size: ["--version"])
    monkeypatch.setattr(cases, "GROWING", [one])
    (row,) = cases.growth(cases.Setting(found, tmp_path, 3))
    assert (row.case, row.by_processor, row.met) == ("x: 10, 40, 160", "n^1.58", False)


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
