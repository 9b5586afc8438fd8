"""The fuzzer reports failures and can repeat the inputs that cause them. The bugs that the fuzzer found stay fixed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

pytestmark = pytest.mark.slow

GROUP = "flowcontrol.apiserver.k8s.io"
FOUND = {
    "a field that is too old for its version, of another type": (
        ("check", "--isolated", "--kubernetes", "1.36", "a.yaml"),
        f"apiVersion: {GROUP}/v1beta1\nkind: PriorityLevelConfiguration\nmetadata: {{name: exempt}}\nspec: {{type: Exempt, exempt: x}}\n",
    ),
    "a field that came when the version was gone, of another type": (
        ("fix", "--isolated", "--diff", "a.yaml"),
        (
            f"apiVersion: {GROUP}/v1alpha1\nkind: PriorityLevelConfiguration\nmetadata: {{name: a}}\n"
            "spec: {type: Limited, limited: {borrowingLimitPercent: (, limitResponse: {type: Reject}}}\n"
        ),
    ),
    "a field that only the other kind has, of another type": (
        ("check", "--isolated", "a.yaml"),
        f"apiVersion: {GROUP}/v1\nkind: PriorityLevelConfiguration\nmetadata: {{name: a}}\nspec: {{rules: [x]}}\n",
    ),
    "an unknown field that the version to migrate to knows, of another type": (
        ("migrate", "--to", "v1beta2", "a.yaml"),
        f"apiVersion: {GROUP}/v1beta1\nkind: PriorityLevelConfiguration\nmetadata: {{name: exempt}}\nspec: {{type: Exempt, exempt: x}}\n",
    ),
}
"""Inputs that once caused failures: command lines, each with the content of its file."""


@pytest.fixture
def fuzz(root: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(root / "scripts"))
    import fuzz

    return fuzz


@pytest.mark.parametrize(("arguments", "text"), FOUND.values(), ids=FOUND)
def test_bugs_that_were_found_stay_fixed(
    fuzz: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    input_ = fuzz.Input({"a.yaml": text.encode()}, b"", arguments)
    assert fuzz.find_problem(input_, *fuzz.run(input_)) is None


def test_seed_and_number_determine_an_input(fuzz: ModuleType) -> None:
    first = [fuzz.Maker(3).make(number) for number in range(50)]
    assert first == [fuzz.Maker(3).make(number) for number in range(50)]
    assert first != [fuzz.Maker(4).make(number) for number in range(50)]
    assert {input_.arguments[0] for input_ in first} >= {"check", "fix", "migrate"}


def test_problems_are_reported(fuzz: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from apflint.cli import main

    monkeypatch.chdir(tmp_path)
    input_ = fuzz.Input({}, b"", ("check", "--isolated", "--format", "json"), "json")

    def broken(_: list[str]) -> int:
        raise RuntimeError("broken")

    for run, wrong in (
        (broken, "RuntimeError: broken"),
        (lambda _: 3, "exit status 3"),
        (lambda _: 2, "exit status 2 without a message"),
        (lambda _: sys.stdout.write("{") - 1, "invalid json"),
        (lambda _: sys.stdout.write("\x1b") - 1, "a raw control character"),
        (lambda _: sys.stderr.write("internal error") * 0, "internal error"),
    ):
        monkeypatch.setattr(main, "run", run)
        assert wrong in fuzz.find_problem(input_, *fuzz.run(input_))


def test_process_that_hangs_or_dies_is_reported(fuzz: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzz, "TIMEOUT_SECONDS", 3.0)
    hanging = "import time; print('[\"at\", 0]', flush=True); time.sleep(60)"
    monkeypatch.setattr(fuzz, "worker_command", lambda _seed, _start: [sys.executable, "-c", hanging])
    count, failures = fuzz.fuzz(6.0, 1)
    assert count == 1
    assert failures
    assert {failure.number for failure in failures} == {0}
