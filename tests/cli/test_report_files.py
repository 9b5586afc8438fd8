"""`--report FORMAT=FILE`, and the job summary on GitHub."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from apflint.atomic_write import write_atomically
from apflint.cli.app import run
from apflint.cli.report_files import JOB_SUMMARY_VARIABLE
from apflint.output.sanitize import sanitize
from cli.test_check import BAD, GOOD, OTHER, WARNED, write

FORMATS = ("sarif", "github", "gitlab", "junit", "markdown")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv(JOB_SUMMARY_VARIABLE, raising=False)
    return tmp_path


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize(("text", "status"), [(BAD, 1), (GOOD, 0), (WARNED, 0), (OTHER, 0)])
def test_formats_on_the_command_line(
    directory: Path, capsys: pytest.CaptureFixture[str], name: str, text: str, status: int
) -> None:
    write(directory, one=text)
    assert run(["check", "--format", name, f"--report={name}=out", "one.yaml"]) == status
    assert capsys.readouterr().out == (directory / "out").read_text(encoding="utf-8")


def test_several_reports(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, one=BAD)
    assert run(["check", "one.yaml"]) == 1
    plain = capsys.readouterr()
    (directory / "b.json").write_text("old")
    (directory / "b.json").chmod(0o640)
    os.symlink("b.json", directory / "link.json")
    assert run(["check", "one.yaml", "--report", "sarif=a.sarif", "--report", "gitlab=link.json"]) == 1
    assert capsys.readouterr() == plain
    assert json.loads((directory / "a.sarif").read_text())["version"] == "2.1.0"
    assert json.loads((directory / "b.json").read_text())[0]["severity"] == "blocker"
    assert stat.S_IMODE((directory / "b.json").stat().st_mode) == 0o640
    assert (directory / "link.json").is_symlink()
    assert sorted(path.name for path in directory.iterdir()) == ["a.sarif", "b.json", "link.json", "one.yaml"]


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("sarif", '--report: no file name in "sarif"'),
        ("sarif=", '--report: no file name in "sarif="'),
        ("sarif=-", '--report: no file name in "sarif=-"'),
        ("sarf=x", '--report: unknown format "sarf"'),
        ("json=./x", '--report: "./x" is named twice'),
    ],
)
def test_wrong_usage(directory: Path, capsys: pytest.CaptureFixture[str], value: str, sentence: str) -> None:
    write(directory, one=GOOD)
    assert run(["check", "one.yaml", "--report", "text=x", "--report", value]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert sentence in printed.err
    assert not (directory / "x").exists()


@pytest.mark.parametrize("file", ["no/such/directory", ".", "one.yaml/x", "nul\0"])
def test_report_that_cannot_be_written(directory: Path, capsys: pytest.CaptureFixture[str], file: str) -> None:
    write(directory, one=GOOD)
    assert run(["check", "one.yaml", "--report", f"junit={file}", "--report", "json=good.json"]) == 2
    assert capsys.readouterr().err.startswith(f'apflint: cannot write the report to "{sanitize(file)}": ')
    assert (directory / "good.json").exists()


def test_failed_report_leaves_the_old_file(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (directory / "x").write_text("old")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"):
        write_atomically("x", b"new")
    assert [(path.name, path.read_text()) for path in directory.iterdir()] == [("x", "old")]


def test_two_reports_in_one_file_by_a_link_are_refused(directory: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(directory, one=BAD)
    os.symlink("b.json", directory / "link")
    assert run(["check", "one.yaml", "--report", "json=b.json", "--report", "sarif=link"]) == 2
    assert '"link" is named twice' in capsys.readouterr().err
    assert not (directory / "b.json").exists()


@pytest.mark.parametrize(
    ("report", "arguments"),
    [
        ("one.yaml", ["one.yaml"]),
        ("./one.yaml", ["."]),
        ("link", ["one.yaml"]),
        ("one.yaml", ["--fix", "one.yaml"]),
        ("one.yaml", ["two.yaml", "--context", "one.yaml"]),
        ("other.yaml", []),
        ("many.json", []),
        ("known.json", ["two.yaml", "--baseline", "known.json"]),
    ],
)
def test_report_must_not_replace_an_input(
    directory: Path, capsys: pytest.CaptureFixture[str], report: str, arguments: list[str]
) -> None:
    write(directory, one=BAD, two=GOOD, other="a: b\n")
    os.symlink("one.yaml", directory / "link")
    (directory / "many.json").write_text(
        json.dumps({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema"})
    )
    (directory / "known.json").write_text('{"schema": 1, "findings": []}')
    before = {path.name: path.read_text() for path in directory.iterdir()}
    assert run(["check", "--report", f"sarif={report}", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err == (
        f'apflint: --report: "{report}" is an input of this run, and the report would replace it. Name another file.\n'
    )
    assert {path.name: path.read_text() for path in directory.iterdir()} == before


@pytest.mark.parametrize("name", ["json", "sarif", "gitlab"])
def test_report_replaces_an_earlier_report_in_a_checked_directory(directory: Path, name: str) -> None:
    write(directory, one=BAD)
    for _ in range(2):
        assert run(["check", ".", "--report", f"{name}=out.json"]) == 1
        assert "APF201" in (directory / "out.json").read_text()


def test_report_to_a_device(directory: Path) -> None:
    write(directory, one=GOOD)
    assert run(["check", "one.yaml", "--report", f"json={os.devnull}"]) == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize("arguments", [["--format", "github"], ["--report", "github=out"]])
def test_job_summary(directory: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str]) -> None:
    write(directory, one=BAD)
    monkeypatch.setenv(JOB_SUMMARY_VARIABLE, str(directory / "summary"))
    (directory / "summary").write_text("before\n")
    run(["check", "one.yaml"])
    assert (directory / "summary").read_text() == "before\n"
    assert run(["check", "one.yaml", *arguments]) == 1
    text = (directory / "summary").read_text()
    assert text.startswith("before\n\n### apflint\n\n**1 error**: ")


def test_job_summary_is_separated_from_other_output(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(directory, one=BAD)
    monkeypatch.setenv(JOB_SUMMARY_VARIABLE, str(directory / "summary"))
    (directory / "summary").write_text("<details>no end of a line")
    assert run(["check", "one.yaml", "--format", "github"]) == 1
    assert (directory / "summary").read_text().startswith("<details>no end of a line\n\n### apflint\n")


@pytest.mark.parametrize("room", [0, 1, 120, 250, 280, 300, 400, 2000])
@pytest.mark.parametrize("text", [BAD, GOOD])
def test_job_summary_never_exceeds_the_maximum_size(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], room: int, text: str
) -> None:
    write(directory, one=text)
    monkeypatch.setenv(JOB_SUMMARY_VARIABLE, str(directory / "summary"))
    before = "x" * ((1 << 20) - room)
    (directory / "summary").write_text(before)
    assert run(["check", "one.yaml", "--format", "github"]) == (1 if text == BAD else 0)
    added = (directory / "summary").read_text().removeprefix(before)
    assert len(added) <= room
    is_noted = "no room left" in capsys.readouterr().err
    assert is_noted == (added == "")
    assert is_noted or room > 200
    assert not is_noted or room < 400


def test_job_summary_that_cannot_be_written(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(directory, one=GOOD)
    monkeypatch.setenv(JOB_SUMMARY_VARIABLE, str(directory))
    assert run(["check", "one.yaml", "--format", "github"]) == 2
    assert "cannot write the job summary to" in capsys.readouterr().err
