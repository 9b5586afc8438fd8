"""Baselines: known findings are hidden; new ones and stale entries are reported."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from support.builders import FLAWED_FLOW_SCHEMA

from apflint import baseline
from apflint.cli.app import run
from apflint.engine import Options, check
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.finding import Report

WRONG_COUNT = '{"schema": 1, "findings": [{"rule": "", "object": "", "field": "", "value": "", "count": "x"}]}'


def report(text: str, name: str = "a.yaml") -> Report:
    return check([(name, text.encode())], Options())


def after(text: str, old: str = FLAWED_FLOW_SCHEMA, name: str = "a.yaml") -> tuple[list[str], list[str]]:
    """Check `text` with the baseline of `old`. Return (rules of the reported findings, rules of the stale entries)."""
    known = baseline.parse_baseline(baseline.render_baseline(report(old), Counter()), "known.json")
    answer = baseline.hide_known_findings(report(text, name), known, {"APF104", "APF203"})
    return [finding.rule for finding in answer.report.findings], [entry.rule for entry in answer.stale]


@pytest.mark.parametrize(
    ("text", "reported", "stale"),
    [
        (FLAWED_FLOW_SCHEMA, [], []),
        ("# new\n\n" + FLAWED_FLOW_SCHEMA, [], []),
        (FLAWED_FLOW_SCHEMA.replace("ByFoo", '"ByFoo"'), [], []),
        (FLAWED_FLOW_SCHEMA.replace("ByFoo", "ByBar"), ["APF203"], ["APF203"]),
        (FLAWED_FLOW_SCHEMA.replace("ByFoo", "ByUser"), [], ["APF203"]),
        (FLAWED_FLOW_SCHEMA.replace("nightly", "daily"), ["APF104", "APF203"], ["APF104", "APF203"]),
        (FLAWED_FLOW_SCHEMA.replace("870", "20000"), ["APF201"], []),
    ],
)
def test_findings_are_identified_by_content(text: str, reported: list[str], stale: list[str]) -> None:
    assert after(text) == (reported, stale)


def test_moved_file_has_the_same_entries() -> None:
    assert after(FLAWED_FLOW_SCHEMA, name="elsewhere/b.yaml") == ([], [])


def test_hidden_findings_are_counted() -> None:
    known = baseline.parse_baseline(baseline.render_baseline(report(FLAWED_FLOW_SCHEMA), Counter()), "known.json")
    assert baseline.hide_known_findings(report(FLAWED_FLOW_SCHEMA), known, ()).report.baselined == 2


def test_entry_hides_as_many_findings_as_it_counts() -> None:
    subjects = "[{kind: Somebody}]"
    single = FLAWED_FLOW_SCHEMA.replace("[{kind: Group, group: {name: night-watch}}]", subjects)
    known = baseline.parse_baseline(baseline.render_baseline(report(single), Counter()), "known.json")
    twice = baseline.hide_known_findings(report(single + "---\n" + single), known, ()).report.findings
    assert [finding.rule for finding in twice].count("APF203") == 1


def test_rules_that_did_not_run_have_no_stale_entries() -> None:
    known = baseline.parse_baseline(baseline.render_baseline(report(FLAWED_FLOW_SCHEMA), Counter()), "known.json")
    clean = report(FLAWED_FLOW_SCHEMA.replace("ByFoo", "ByUser"))
    assert baseline.hide_known_findings(clean, known, {"APF104"}).stale == ()


def test_baseline_has_a_line_for_each_entry() -> None:
    text = baseline.render_baseline(report(FLAWED_FLOW_SCHEMA), Counter())
    assert len(text.splitlines()) == 4
    assert text == baseline.render_baseline(report("# moved\n" + FLAWED_FLOW_SCHEMA, "b.yaml"), Counter())
    assert json.loads(text)["findings"][1] == {
        "rule": "APF203",
        "object": "FlowSchema/nightly",
        "field": "spec.distinguisherMethod.type",
        "value": "ByFoo",
        "count": 1,
    }
    assert baseline.render_baseline(report(""), Counter()) == '{"schema": 1, "findings": []}\n'


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": 2}', '{"schema": 1, "findings": [{}]}', WRONG_COUNT, "[" * 100_000]
)
def test_invalid_baseline(text: str) -> None:
    with pytest.raises(UserError, match=r"known\.json"):
        baseline.parse_baseline(text, "known.json")


def test_command_line_writes_and_uses_a_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    manifest = tmp_path / "a.yaml"
    manifest.write_text(FLAWED_FLOW_SCHEMA, encoding="utf-8")
    check_all = ["check", "--baseline", "known.json"]
    assert run(check_all) == 2  # the baseline does not exist
    assert (
        "known.json: no such baseline. To create the baseline, run apflint with `--baseline known.json"
        in capsys.readouterr().err
    )
    assert run(["check", "--write-baseline"]) == 2
    assert "--baseline FILE" in capsys.readouterr().err
    assert run([*check_all, "--write-baseline", "--report", "json=x"]) == 2
    assert "--write-baseline and --report cannot be combined" in capsys.readouterr().err
    assert run([*check_all, "--write-baseline"]) == 0
    assert "2 findings written to known.json" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.yaml", "known.json"]
    assert run([*check_all, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["baselined"] == 2

    manifest.write_text(FLAWED_FLOW_SCHEMA.replace("ByFoo", "ByUser"), encoding="utf-8")
    assert run(check_all) == 0
    output = capsys.readouterr()
    assert "1 entry of the baseline was not found" in output.err
    assert "APF203 FlowSchema/nightly spec.distinguisherMethod.type" in output.err
    assert "APF203" not in output.out
    manifest.write_text(FLAWED_FLOW_SCHEMA.replace("ByFoo", "ByBar"), encoding="utf-8")
    assert run(check_all) == 1


def test_baseline_is_not_an_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(FLAWED_FLOW_SCHEMA, encoding="utf-8")
    (tmp_path / "deep").mkdir()
    for name in ("known.json", "deep/known.json"):
        assert run(["check", "--baseline", name, "--write-baseline"]) == 0
    capsys.readouterr()
    assert run(["check", "--baseline", f"{tmp_path}/deep/../known.json", "--format", "json"]) == 0
    skipped = json.loads(capsys.readouterr().out)["summary"]["skipped"]
    assert [skip["file"] for skip in skipped] == ["deep/known.json"]


def test_unwritable_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.yaml").write_text(FLAWED_FLOW_SCHEMA, encoding="utf-8")
    assert run(["check", "--baseline", "no/such.json", "--write-baseline"]) == 2
    assert capsys.readouterr().err == (
        'apflint: Cannot write the baseline "no/such.json": No such file or directory.\n'
    )


def test_many_stale_entries_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    manifest = tmp_path / "a.yaml"
    manifest.write_text(
        "---\n".join(FLAWED_FLOW_SCHEMA.replace("nightly", f"n{number}") for number in range(7)), "utf-8"
    )
    assert run(["check", "--baseline", "known.json", "--write-baseline"]) == 0
    manifest.write_text("", "utf-8")
    capsys.readouterr()
    assert run(["check", "--baseline", "known.json"]) == 0
    error = capsys.readouterr().err
    (count,) = re.findall(r": (\d+) entries of the baseline were not found", error)
    assert int(count) >= 14
    assert f" and {int(count) - 5} more. If this run checked all files, these findings no longer exist" in error


def test_baseline_of_another_schema() -> None:
    with pytest.raises(
        UserError, match=r"^b\.json: this baseline has schema 2, but this version of apflint reads schema 1\.$"
    ):
        baseline.parse_baseline('{"schema": 2, "findings": []}', "b.json")


def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **texts: str) -> None:
    """Change to an empty directory, and write manifests to it."""
    monkeypatch.chdir(tmp_path)
    for name, text in texts.items():
        (tmp_path / f"{name}.yaml").write_text(text, encoding="utf-8")


def rules_of(path: Path) -> list[str]:
    return [entry["rule"] for entry in json.loads(path.read_text("utf-8"))["findings"]]


def test_no_baseline_is_written_if_a_file_is_unreadable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here(tmp_path, monkeypatch, a=FLAWED_FLOW_SCHEMA)
    write = ["check", "--baseline", "known.json", "--write-baseline", "a.yaml"]
    assert run(write) == 0
    (tmp_path / "a.yaml").unlink()
    before = (tmp_path / "known.json").read_text("utf-8")
    capsys.readouterr()
    assert run(write) == 2
    error = capsys.readouterr().err
    assert error.startswith("apflint: a.yaml: ")
    assert error.endswith("apflint: known.json is not written, because some inputs are unreadable\n")
    assert (tmp_path / "known.json").read_text("utf-8") == before


def test_entries_of_rules_that_did_not_run_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here(tmp_path, monkeypatch, a=FLAWED_FLOW_SCHEMA)
    write = ["check", "--baseline", "known.json", "--write-baseline"]
    assert run(write) == 0
    (tmp_path / "a.yaml").write_text(
        FLAWED_FLOW_SCHEMA.replace("ByFoo", "ByBar").replace("  namespace: nights\n", ""), "utf-8"
    )
    capsys.readouterr()
    assert run([*write, "--select", "APF203"]) == 0
    assert rules_of(tmp_path / "known.json") == ["APF104", "APF203"]
    assert "ByBar" in (tmp_path / "known.json").read_text("utf-8")
    error = capsys.readouterr().err
    assert error == "apflint: 1 finding written to known.json; kept 1 entry about files and rules outside this run\n"
    assert run(write) == 0
    assert rules_of(tmp_path / "known.json") == ["APF203"]


def test_entries_of_objects_that_were_not_read_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    daily = FLAWED_FLOW_SCHEMA.replace("nightly", "daily")
    here(
        tmp_path,
        monkeypatch,
        a=FLAWED_FLOW_SCHEMA,
        b=daily,
        c="apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchem\n",
    )
    on = ["check", "--baseline", "known.json"]
    assert run([*on, "--write-baseline"]) == 0
    known = rules_of(tmp_path / "known.json")
    capsys.readouterr()
    assert run([*on, "a.yaml"]) == 0
    assert "of the baseline" not in capsys.readouterr().err
    (tmp_path / "a.yaml").write_text(FLAWED_FLOW_SCHEMA.replace("ByFoo", "ByUser"), "utf-8")
    (tmp_path / "c.yaml").write_text("", "utf-8")
    assert run([*on, "a.yaml"]) == 0
    assert "1 entry of the baseline was not found in this run: APF203 FlowSchema/nightly" in capsys.readouterr().err
    assert run([*on, "b.yaml", "c.yaml"]) == 0
    assert re.search(r"1 entry .* not found in this run: APF005 c\.yaml", capsys.readouterr().err)
    assert run([*on, "--write-baseline", "a.yaml"]) == 0
    known.remove("APF203")
    assert rules_of(tmp_path / "known.json") == known


def test_run_on_the_directory_of_the_baseline_updates_all_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here(tmp_path, monkeypatch, a=FLAWED_FLOW_SCHEMA)
    (tmp_path / "ci").mkdir()
    (tmp_path / "deploy").mkdir()
    on = ["check", "--baseline", "ci/known.json"]
    assert run([*on, "--write-baseline"]) == 0
    (tmp_path / "a.yaml").unlink()
    capsys.readouterr()
    assert run([*on, "deploy"]) == 0
    assert "of the baseline" not in capsys.readouterr().err
    assert run([*on, str(tmp_path)]) == 0
    assert "2 entries of the baseline were not found" in capsys.readouterr().err


@pytest.mark.parametrize("text", [FLAWED_FLOW_SCHEMA, '{"schema": 2, "findings": []}', "[]"])
def test_other_file_is_not_replaced_by_a_baseline(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here(tmp_path, monkeypatch, a=FLAWED_FLOW_SCHEMA, m=text)
    assert run(["check", "--baseline", "m.yaml", "--write-baseline", "."]) == 2
    assert capsys.readouterr().err == (
        "apflint: m.yaml: the file is not a baseline, so --write-baseline leaves the file unchanged. Name another file.\n"
    )
    assert (tmp_path / "m.yaml").read_text("utf-8") == text
    (tmp_path / "m.yaml").write_text("\n", "utf-8")
    assert run(["check", "--baseline", "m.yaml", "--write-baseline", "."]) == 0
