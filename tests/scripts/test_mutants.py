"""`scripts/mutants.py`: a mutant is killed if and only if a test fails."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("mutmut", reason="scripts/mutants.py needs mutmut, which is in the dependency group dev")
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="scripts/mutants.py forks")

MODULE = """\
def make_constant(number: int):
    return lambda: number + 0


ONE = make_constant(1)


def double(number: int) -> int:
    return number + number


def describe(number: int) -> str:
    return "small" if number < 10 else "large"
"""


class Defect(NamedTuple):
    """A change that breaks the script, so that all mutants survive or all mutants are killed."""

    file: str
    old: str
    new: str
    error: str


DEFECTS = {
    "functions are hidden": Defect("runner.py", "gc.unfreeze()", "pass", "no test executes a function of these files"),
    "code is kept": Defect("exchange.py", "function.__code__ = new", "pass", "raises of double is survived"),
    "failures are ignored": Defect("runner.py", "if report.failed:", "if False:", "raises of double is survived"),
    "every test fails": Defect("runner.py", "status = 0", "status = 1", "equivalent of double is killed"),
}


def run_mutants(
    root: Path, directory: Path, test: str, defect: Defect | None = None
) -> tuple[subprocess.CompletedProcess[str], list[dict[str, str]]]:
    """Run a copy of `scripts/mutants.py` on the module `MODULE`, with `test` as the only test.

    `defect` is a change that breaks the copy, or None. Return the finished process, and the record that
    the script wrote for each mutant.
    """
    package, tests = directory / "apflint", directory / "tests"
    for path in (package, tests):
        path.mkdir()
    shutil.copytree(root / "scripts/mutating", directory / "scripts/mutating")
    shutil.copy(root / "scripts/mutants.py", directory / "scripts")
    if defect:
        part = directory / "scripts/mutating" / defect.file
        text = part.read_text()
        assert text.count(defect.old) == 1
        part.write_text(text.replace(defect.old, defect.new))
    (package / "__init__.py").write_text("")
    (package / "numbers.py").write_text(MODULE)
    (tests / "conftest.py").write_text((root / "tests/conftest.py").read_text())
    (tests / "test_numbers.py").write_text(
        f"from apflint.numbers import ONE, describe, double\n\n\ndef test():\n{test}"
    )
    completed = subprocess.run(
        [sys.executable, "scripts/mutants.py", "apflint/numbers.py", "--out", "out.jsonl"],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    out = directory / "out.jsonl"
    return completed, [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []


def test_a_mutant_dies_by_the_test_that_sees_it_and_survives_otherwise(root: Path, tmp_path: Path) -> None:
    completed, records = run_mutants(root, tmp_path, "    assert double(3) == 6\n    describe(3)\n")
    assert completed.returncode == 0, completed.stdout + completed.stderr
    verdicts = {(record["function"], record["verdict"]) for record in records}
    assert ("double", "killed") in verdicts
    assert ("double", "survived") not in verdicts
    assert ("describe", "survived") in verdicts
    assert ("describe", "killed") not in verdicts


def test_function_that_ran_at_import_is_no_control(root: Path, tmp_path: Path) -> None:
    """The only line of the function is also the line of a lambda, so the import already executes this line."""
    completed, records = run_mutants(root, tmp_path, "    assert ONE() == 1\n    assert double(3) == 6\n")
    assert completed.returncode == 0, completed.stdout + completed.stderr
    assert {record["function"] for record in records} >= {"make_constant", "double"}


def test_tests_that_execute_no_function_are_an_error(root: Path, tmp_path: Path) -> None:
    completed, records = run_mutants(root, tmp_path, "    assert double and describe\n")
    assert completed.returncode != 0
    assert "no test executes a function of these files" in completed.stderr + completed.stdout
    assert records == []


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_of_the_script_is_an_error(root: Path, tmp_path: Path, name: str) -> None:
    defect = DEFECTS[name]
    completed, records = run_mutants(root, tmp_path, "    assert double(3) == 6\n    describe(3)\n", defect)
    assert completed.returncode != 0
    assert defect.error in completed.stderr + completed.stdout
    assert records == []
