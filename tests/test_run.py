"""Runs of apflint, from the source arguments to the exit status."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.shell import LEVEL

import apflint
from apflint import run
from apflint.cli.exit_codes import ExitCode
from apflint.run import Answer
from apflint.sources.input_types import create_request

if TYPE_CHECKING:
    from apflint.sources.input_types import Inputs

PACKAGE = Path(apflint.__file__).parent
MAX_LINES = 60


@pytest.fixture(autouse=True)
def manifests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change to a directory with a manifest and a symbolic link whose target does not exist."""
    (tmp_path / "a.yaml").write_text(LEVEL, encoding="utf-8")
    (tmp_path / "gone.yaml").symlink_to("nowhere")
    monkeypatch.chdir(tmp_path)


def test_each_part_of_an_answer_has_its_stream(capsys: pytest.CaptureFixture[str]) -> None:
    answer = Answer("text\n", ("a note",), summary="summary\n", status=ExitCode.FINDINGS)
    assert run.run(create_request(("a.yaml",))._replace(purpose="check"), lambda _: answer) == ExitCode.FINDINGS
    assert capsys.readouterr() == ("text\n", "apflint: a note\nsummary\n")


def test_unreadable_input_is_an_error_and_the_run_continues(capsys: pytest.CaptureFixture[str]) -> None:
    def list_files(inputs: Inputs) -> Answer:
        return Answer(f"{' '.join(inputs.reported)}\n")

    assert run.run(create_request()._replace(purpose="check"), list_files) == ExitCode.ERROR
    error = "apflint: gone.yaml: Symbolic link to something that does not exist.\n"
    assert capsys.readouterr() == ("a.yaml\n", error)


def test_error_of_the_answer_is_the_exit_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.show(Answer("text\n", errors=("not written",))) == ExitCode.ERROR
    assert capsys.readouterr() == ("text\n", "apflint: not written\n")


def test_analysis_prints_the_notes_of_its_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert run.analyze(create_request(), lambda known: Answer(f"{known.description}\n")) == ExitCode.OK
    printed = capsys.readouterr()
    assert printed.out == "the current directory (1 object) and built-in objects of 1.37\n"
    assert (
        printed.err == "apflint: gone.yaml: Symbolic link to something that does not exist. apflint ignores the file\n"
    )
    assert run.read(create_request()).notes == (printed.err.removeprefix("apflint: ").rstrip("\n"),)


def test_a_newcomer_reads_one_short_function() -> None:
    functions = [
        node for node in ast.parse((PACKAGE / "run.py").read_text("utf-8")).body if isinstance(node, ast.FunctionDef)
    ]
    assert functions[0].name == "run"
    assert all((function.end_lineno or 0) - function.lineno < MAX_LINES for function in functions)


def test_manifests_are_read_through_one_function() -> None:
    """Only `read_inputs` reads manifests to check or analyze.

    Other modules may use its helper functions only for other files.
    """
    doors = {
        "read_files": "sources.files",
        "read_revision": "sources.git",
        "build_kustomization": "sources.build_commands",
    }
    importers = {name: set[str]() for name in doors}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom):
                imported = {alias.name for alias in node.names}
                for name in imported & doors.keys():
                    if node.module == f"apflint.{doors[name]}":
                        importers[name].add(path.relative_to(PACKAGE).with_suffix("").as_posix())
    assert importers == {
        # `cluster_hints` and `rest_of_project` read all files of the project, not only those of the source arguments.
        "read_files": {
            f"sources/{name}" for name in ("files_by_cluster", "inputs", "cluster_hints", "rest_of_project")
        },
        "read_revision": {"sources/inputs", "sources/built_clusters"},
        "build_kustomization": {"sources/built_clusters"},
    }
