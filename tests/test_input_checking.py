"""`check` and `fix` in a project whose settings define several clusters."""

from __future__ import annotations

import io
import json
import os
import sys
import tracemalloc
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from support.shell import LEVEL, SCHEMA

from apflint.cli.app import run
from apflint.engine import Options
from apflint.input_checking import check_inputs
from apflint.sources import file_reading
from apflint.sources.input_types import create_request
from apflint.sources.inputs import read_inputs

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.sources.discovery import FoundFile
    from apflint.sources.file_reading import UnreadableInput

SETTINGS = """
[[cluster]]
name = "prod"
kubernetes = "1.36"
paths = ["base", "clusters/prod"]

[[cluster]]
name = "staging"
kubernetes = "1.33"
paths = ["base", "clusters/staging"]
"""
TOO_FEW_QUEUES = LEVEL.replace("queues: 64", "queues: 4")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a git repository with two clusters. They share a priority level, and both define a FlowSchema of the same name."""
    write(tmp_path, "apflint.toml", SETTINGS)
    write(tmp_path, ".git/HEAD", "")
    write(tmp_path, "base/level.yaml", LEVEL)
    for cluster in ("prod", "staging"):
        write(tmp_path, f"clusters/{cluster}/flow.yaml", SCHEMA)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(directory: Path, name: str, text: str) -> None:
    (directory / name).parent.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text, encoding="utf-8")


def check(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    run(["check", "--format", "json", *arguments])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def list_findings(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[str, str, list[str] | None]]:
    """Return (rule, file, clusters) of each finding, except findings of APF505 and APF603.

    The test manifests `LEVEL` and `SCHEMA` always cause findings of these two rules.
    """
    findings = check(capsys, "--ignore", "APF505,APF603", *arguments)["findings"]
    return [(finding["rule"], finding["file"], finding.get("clusters")) for finding in findings]


def test_objects_of_different_clusters_never_meet(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ("APF402", "clusters/staging/flow.yaml", None) in list_findings(capsys, "--isolated")
    assert list_findings(capsys) == []
    write(project, "clusters/prod/again.yaml", SCHEMA)
    assert list_findings(capsys) == [("APF402", "clusters/prod/flow.yaml", ["prod"])]


def test_help_names_the_paths_of_the_cluster(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """For a file of a cluster, the help suggests to add the missing file to the `paths` of the cluster.

    The help does not suggest `--context` there, because `--context` would add the missing file to all
    clusters. It suggests `--context` for a file that belongs to no cluster.
    """
    write(project, "apflint.toml", SETTINGS.replace('"base", ', ""))
    helps = {finding["rule"]: finding["help"] for finding in check(capsys, "clusters/prod", "base")["findings"]}
    assert (
        helps["APF401"] == 'if another file defines "batch", add that file to the paths of the cluster in the settings'
    )
    assert helps["APF403"].endswith("add that file with --context")  # the level belongs to no cluster
    write(project, "apflint.toml", SETTINGS)
    (project / "clusters/prod/flow.yaml").write_text(SCHEMA.replace("name: batch}", "name: exempt}"), encoding="utf-8")
    helps = {finding["rule"]: finding["help"] for finding in check(capsys, "--cluster", "prod")["findings"]}
    assert helps["APF403"].endswith("add that file to the paths of the cluster in the settings")


def test_finding_of_several_clusters_is_reported_once(
    project: Path, capsys: pytest.CaptureFixture[str], root: Path
) -> None:
    write(project, "base/level.yaml", TOO_FEW_QUEUES)
    answer = check(capsys)
    assert [
        (finding["rule"], finding["clusters"]) for finding in answer["findings"] if finding["rule"] == "APF305"
    ] == [("APF305", ["prod", "staging"])]
    assert (answer["summary"]["errors"], answer["summary"]["files"], answer["summary"]["objects"]) == (1, 3, 3)
    assert answer["kubernetes"] == "1.33 and 1.36"
    assert answer["clusters"] == [{"name": "prod", "kubernetes": "1.36"}, {"name": "staging", "kubernetes": "1.33"}]
    jsonschema.validate(answer, json.loads((root / "schemas/apflint-report.json").read_text("utf-8")))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("text", "  = note: In 2 clusters: prod and staging.\n"),
        ("concise", ": handSize 6 is greater than queues 4 [prod and staging]\n"),
        ("sarif", '"clusters": [\n       "prod",\n       "staging"\n      ]'),
        ("sarif", "of another flow). In 2 clusters: prod and staging."),
        ("github", "of another flow). In 2 clusters: prod and staging."),
        ("gitlab", "of another flow). In 2 clusters: prod and staging."),
        ("junit", "note: In 2 clusters: prod and staging."),
        ("markdown", "of another flow). In 2 clusters: prod and staging. |"),
    ],
)
def test_formats_name_the_clusters(project: Path, capsys: pytest.CaptureFixture[str], name: str, expected: str) -> None:
    write(project, "base/level.yaml", TOO_FEW_QUEUES)
    assert run(["check", "--format", name, "base"]) == 1
    assert expected in capsys.readouterr().out


def test_text_names_few_of_many_clusters(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "base/level.yaml", TOO_FEW_QUEUES)
    write(
        project, "apflint.toml", "".join(f'[[cluster]]\nname = "c{index}"\npaths = ["base"]\n' for index in range(20))
    )
    assert run(["check", "--select", "APF305"]) == 1
    printed = capsys.readouterr()
    assert "= note: In 20 clusters: c0, c1, c2, c3, c4, c5, c6, c7, c8 and 11 more.\n" in printed.out
    assert "Found 1 error in 3 objects of 3 files, for Kubernetes 1.37 in 20 clusters." in printed.err


def test_files_of_no_cluster_are_one_configuration(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "other/flow.yaml", SCHEMA)
    assert list_findings(capsys) == [("APF401", "other/flow.yaml", None)]
    write(project, "more/level.yaml", LEVEL)
    assert list_findings(capsys) == []
    write(project, "apflint.toml", f'context = ["more"]\n{SETTINGS}')
    assert list_findings(capsys) == []


def test_release_that_does_not_serve_a_shared_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "apflint.toml", SETTINGS.replace("1.33", "1.28"))
    assert list_findings(capsys, "base") == [("APF701", "base/level.yaml", ["staging"])]
    assert list_findings(capsys, "base", "--kubernetes", "1.36") == []


def test_cluster_selects(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for cluster in ("prod", "staging"):
        write(project, f"clusters/{cluster}/level.yaml", TOO_FEW_QUEUES.replace("name: batch", "name: bad"))
    rules = ("--select", "APF305")
    assert list_findings(capsys, *rules, "--cluster", "prod") == [("APF305", "clusters/prod/level.yaml", ["prod"])]
    assert len(list_findings(capsys, *rules, "--cluster", "prod", "--cluster", "staging")) == 2
    answer = check(capsys, "--cluster", "prod", "clusters")
    skipped = {"file": "clusters/staging/flow.yaml", "reason": "outside the selected clusters", "count": 1}
    assert skipped in answer["summary"]["skipped"]
    assert answer["summary"]["files"] == 2


def test_cluster_selects_from_another_directory(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, "base/level.yaml", TOO_FEW_QUEUES)
    monkeypatch.chdir(project / "clusters" / "prod")
    assert list_findings(capsys) == []
    assert list_findings(capsys, "--cluster", "staging") == [("APF305", "../../base/level.yaml", ["staging"])]


@pytest.mark.parametrize("command", ["check", "fix"])
@pytest.mark.usefixtures("project")
def test_unknown_cluster(capsys: pytest.CaptureFixture[str], command: str) -> None:
    assert run([command, "--cluster", "prd"]) == 2
    message = 'apflint: unknown cluster "prd". Did you mean "prod"? apflint.toml defines prod and staging.\n'
    assert capsys.readouterr().err == message
    assert run([command, "--cluster", "prod", "--isolated"]) == 2
    assert "there is no settings file" in capsys.readouterr().err


def test_missing_path_of_a_cluster(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "clusters/prod/flow.yaml").unlink()
    (project / "clusters/prod").rmdir()
    for arguments in ((), ("base",), ("--cluster", "prod"), ("clusters",)):
        assert run(["check", *arguments]) == 2
        assert capsys.readouterr().err == 'apflint: cluster "prod": clusters/prod: No such file or directory.\n'
    assert run(["check", "--cluster", "staging"]) == 0
    assert run(["check", "clusters/staging"]) == 0


def test_cluster_without_files(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "empty").mkdir()
    write(project, "apflint.toml", f'{SETTINGS}\n[[cluster]]\nname = "new"\npaths = ["empty"]')
    message = 'apflint: cluster "new": there is no file named *.yaml, *.yml or *.json in empty.\n'
    for arguments in ((), ("--cluster", "new")):
        assert run(["check", *arguments]) == 2
        assert capsys.readouterr().err == message
    assert run(["check", "--cluster", "prod"]) == 0
    assert run(["check", "clusters/prod", "base/level.yaml"]) == 0


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root can read every file")
def test_unreadable_file_of_a_cluster(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "base/level.yaml").chmod(0)
    assert run(["check", "clusters/prod"]) == 2
    assert "base/level.yaml: Permission denied." in capsys.readouterr().err


def test_path_restricts_what_is_reported(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "clusters/prod/level.yaml", TOO_FEW_QUEUES.replace("name: batch", "name: bad"))
    assert list_findings(capsys, "base") == []  # both clusters use the priority level
    answer = check(capsys, "base", "clusters/staging")
    assert (answer["summary"]["files"], answer["summary"]["objects"]) == (2, 2)
    write(project, "clusters/staging/flow.yaml", "")
    assert list_findings(capsys, "base") == [("APF403", "base/level.yaml", ["staging"])]


@pytest.mark.usefixtures("project")
def test_each_file_is_read_once(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []

    def count(file: FoundFile) -> bytes | UnreadableInput:
        read.append(file.name)
        return file_reading.read_file(file)

    monkeypatch.setattr("apflint.sources.files.read_file", count)
    check(capsys)
    assert sorted(read) == ["base/level.yaml", "clusters/prod/flow.yaml", "clusters/staging/flow.yaml"]
    read.clear()
    check(capsys, "--force-exclude", "base/level.yaml")
    assert sorted(read) == ["base/level.yaml", "clusters/prod/flow.yaml", "clusters/staging/flow.yaml"]


def test_a_large_file_is_in_memory_once(tmp_path: Path) -> None:
    """Only one copy of the text stays in memory, and the bytes are freed."""
    path = tmp_path / "large.yaml"
    path.write_text(f"{SCHEMA}# {'x' * 8_000_000}\n", encoding="utf-8")
    request = create_request((str(path),), isolated=True)._replace(purpose="check")
    tracemalloc.start()
    try:
        inputs = read_inputs(request)
        report = check_inputs(inputs, Options)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert report.objects == 1
    assert inputs.files[str(path)].data == path.read_bytes()
    assert size < 1.5 * path.stat().st_size


def test_context_of_a_cluster(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "base/level.yaml", TOO_FEW_QUEUES)
    settings = SETTINGS.replace('paths = ["base", "clusters/prod"]', 'paths = ["clusters/prod"]\ncontext = ["base"]')
    write(project, "apflint.toml", settings)
    assert list_findings(capsys) == [("APF305", "base/level.yaml", ["staging"])]
    write(project, "apflint.toml", settings.replace('["base", "clusters/staging"]', '["clusters/staging"]'))
    assert list_findings(capsys) == [("APF401", "clusters/staging/flow.yaml", ["staging"])]
    skipped = {"file": "base/level.yaml", "reason": "context", "count": 1}
    assert check(capsys)["summary"]["skipped"] == [skipped]
    assert list_findings(capsys, "--context", "base") == []


def test_suppression_is_unused_only_if_no_cluster_needs_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "apflint.toml", SETTINGS.replace("1.33", "1.28"))
    write(project, "clusters/staging/flow.yaml", "")
    ignore = "  # apflint: ignore[APF701, APF601] reason\n"
    write(project, "base/level.yaml", LEVEL.replace("\n", ignore, 1))
    rules = ("--select", "APF9,APF701,APF601", "base")
    unused = [("APF901", "base/level.yaml", ["prod", "staging"])]
    assert list_findings(capsys, *rules) == unused
    assert [finding["message"] for finding in check(capsys, *rules)["findings"]] == [
        'unused suppression: "APF601" is not found here'
    ]
    assert list_findings(capsys, *rules, "--cluster", "prod") == []  # the other cluster, staging, uses the level
    write(project, "apflint.toml", SETTINGS)
    assert list_findings(capsys, *rules) == unused * 2


def test_baseline_hides_a_finding_in_every_cluster(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "base/level.yaml", TOO_FEW_QUEUES)
    baseline = ("--baseline", "known.json", "--select", "APF305")
    write(project, "clusters/prod/level.yaml", TOO_FEW_QUEUES.replace("name: batch", "name: bad"))
    assert run(["check", *baseline, "--write-baseline"]) == 0
    assert "2 findings written" in capsys.readouterr().err
    assert run(["check", *baseline]) == 0
    assert "2 in the baseline." in capsys.readouterr().err
    assert run(["check", *baseline, "--cluster", "staging", "."]) == 0
    printed = capsys.readouterr().err
    assert "1 in the baseline." in printed
    assert "not found in this run" not in printed
    assert run(["check", *baseline, "--write-baseline", "--cluster", "prod"]) == 2
    assert "--write-baseline and --cluster cannot be combined" in capsys.readouterr().err


@pytest.mark.usefixtures("project")
def test_live_is_a_cluster_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--live", "--cluster", "prod"]) == 2
    assert "--live and --cluster cannot be combined" in capsys.readouterr().err


def test_settings_of_findings(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "base/level.yaml", TOO_FEW_QUEUES)
    write(project, "apflint.toml", f'{SETTINGS}\n[per-file-ignores]\n"base" = ["APF305"]')
    assert list_findings(capsys, "--select", "APF3") == []
    write(project, "apflint.toml", f'{SETTINGS}\n[severity]\nAPF305 = "info"')
    assert run(["check", "--select", "APF3", "--fail-on", "warning"]) == 0


@pytest.mark.usefixtures("project")
def test_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def check_input(text: str, *arguments: str) -> list[tuple[str, str, list[str] | None]]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        return list_findings(capsys, "-", *arguments)

    schema = SCHEMA.replace("name: batch\nspec", "name: more\nspec").replace("870", "871").replace("runner", "other")
    assert check_input(schema) == [("APF401", "<stdin>", None)]
    assert check_input(schema, "--cluster", "prod") == []
    missing = schema.replace("priorityLevelConfiguration: {name: batch}", "priorityLevelConfiguration: {name: none}")
    assert check_input(missing, "--cluster", "prod") == [("APF401", "<stdin>", ["prod"])]
    # Standard input is checked in place of the file that --stdin-filename names.
    name = ("--stdin-filename", "base/level.yaml")
    assert check_input(TOO_FEW_QUEUES, *name) == [("APF305", "base/level.yaml", ["prod", "staging"])]
    assert check_input(LEVEL, *name) == []


@pytest.mark.usefixtures("project")
def test_command_line_takes_precedence(capsys: pytest.CaptureFixture[str]) -> None:
    answer = check(capsys, "--kubernetes", "1.30")
    assert {cluster["kubernetes"] for cluster in answer["clusters"]} == {"1.30"}
    assert answer["kubernetes"] == "1.30"


def test_fix_edits_shared_files_once(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "base/level.yaml", LEVEL.replace("queueLengthLimit", "queueLengthLimt"))
    assert run(["check", "--fix", "--select", "APF101"]) == 0
    assert (project / "base/level.yaml").read_text("utf-8") == LEVEL
    assert "fixed 1 finding in 1 file" in capsys.readouterr().err


def test_hook_checks_a_file_of_a_base_in_every_cluster(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "base/level.yaml", TOO_FEW_QUEUES)
    assert run(["check", "--force-exclude", "--", "base/level.yaml"]) == 1
    assert "In 2 clusters: prod and staging." in capsys.readouterr().out
    write(project, "base/level.yaml", LEVEL)
    assert run(["check", "--force-exclude", "--", "base/level.yaml", "clusters/prod/flow.yaml"]) == 0
    # A file that belongs to no cluster is checked together with all other such files, and without files of clusters.
    write(project, "other/flow.yaml", SCHEMA)
    assert run(["check", "--force-exclude", "--fail-on", "warning", "--ignore", "APF505", "other/flow.yaml"]) == 1
    assert "APF401" in capsys.readouterr().out
    write(project, "other/level.yaml", LEVEL)
    assert run(["check", "--force-exclude", "--fail-on", "warning", "--ignore", "APF505", "other/flow.yaml"]) == 0


@pytest.mark.parametrize("command", [("fix",), ("check", "--fix", "--fail-on", "warning")])
def test_fix_must_not_break_a_cluster_that_is_not_selected(
    project: Path, capsys: pytest.CaptureFixture[str], command: tuple[str, ...]
) -> None:
    """A fix for prod would break staging, where the priority level of the shared FlowSchema still has the old name."""
    for cluster in ("prod", "staging"):
        (project / f"clusters/{cluster}/flow.yaml").unlink()
    write(project, "base/level.yaml", shared := SCHEMA.replace("{name: batch}", "{name: batchs}"))
    write(project, "clusters/prod/level.yaml", LEVEL)
    write(project, "clusters/staging/level.yaml", LEVEL.replace("name: batch", "name: batchs"))
    arguments = (*command, "--unsafe-fixes", "--select", "APF401", "--cluster", "prod")
    assert run([*arguments]) == 1
    assert (
        'it would cause APF401 in line 6 in cluster staging: unknown priority level "batch"\n'
        in capsys.readouterr().err
    )
    assert (project / "base/level.yaml").read_text("utf-8") == shared
    write(project, "clusters/staging/more.yaml", LEVEL)
    assert run([*arguments]) == 0
    assert (project / "base/level.yaml").read_text("utf-8") == SCHEMA


def test_fix_of_a_cluster_leaves_findings_of_other_clusters(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    misspelled = LEVEL.replace("queueLengthLimit", "queueLengthLimt")
    write(project, "base/level.yaml", misspelled)
    write(project, "clusters/staging/more.yaml", misspelled.replace("name: batch", "name: more"))
    assert run(["fix", "--select", "APF101", "--cluster", "prod"]) == 0
    assert "fixed 1 finding in 1 file\n" in capsys.readouterr().err
    assert (project / "base/level.yaml").read_text("utf-8") == LEVEL
    assert "queueLengthLimt" in (project / "clusters/staging/more.yaml").read_text("utf-8")


def test_fix_reports_a_problem_of_a_cluster_with_shared_files(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(project, "apflint.toml", SETTINGS.replace("clusters/staging", "missing"))
    assert run(["fix", "--cluster", "prod"]) == 2
    assert capsys.readouterr().err == 'apflint: cluster "staging": missing: No such file or directory.\n'


@pytest.mark.parametrize(
    "command", [["check"], ["check", "--cluster", "a"], ["fix", "--cluster", "a"], ["limits", "--cluster", "a"]]
)
def test_cluster_whose_paths_are_excluded(
    project: Path, capsys: pytest.CaptureFixture[str], command: list[str]
) -> None:
    write(project, "apflint.toml", 'exclude = ["base"]\n[[cluster]]\nname = "a"\npaths = ["base"]')
    assert run(command) == 2
    assert capsys.readouterr().err == 'apflint: cluster "a": `exclude` matches all paths of the cluster.\n'


def test_exclude_applies_to_paths_of_clusters_everywhere(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "apflint.toml", f'exclude = ["base"]\n{SETTINGS}')
    missing = [("APF401", f"clusters/{name}/flow.yaml", [name]) for name in ("prod", "staging")]
    assert list_findings(capsys) == missing
    assert list_findings(capsys, "--cluster", "prod") == missing[:1]
    assert run(["limits", "--cluster", "prod", "--format", "json"]) == 0
    assert "batch" not in {level["name"] for level in json.loads(capsys.readouterr().out)["levels"]}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", ["check", "fix"])
def test_standard_input_belongs_to_one_cluster(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SCHEMA.encode())))
    assert run([command, "-", "--cluster", "prod", "--cluster", "staging"]) == 2
    message = "apflint: standard input can belong to only one cluster: use the option --cluster at most once\n"
    assert capsys.readouterr().err == message


@pytest.mark.parametrize("text", [SCHEMA, "kind: Pod"])
def test_named_file_outside_the_selected_cluster(project: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    write(project, "other/o.yaml", text)
    assert run(["check", "--cluster", "prod", "other/o.yaml"]) == 0
    assert capsys.readouterr().err == (
        "Nothing to check: all files found are outside the selected clusters.\n"
        "Not checked: 1 file outside the selected clusters: other/o.yaml\n"
    )


@pytest.mark.parametrize(
    "settings", ['context = ["base"]', '[[cluster]]\nname = "a"\npaths = ["a"]\ncontext = ["base"]']
)
def test_named_file_is_context(project: Path, capsys: pytest.CaptureFixture[str], settings: str) -> None:
    write(project, "apflint.toml", settings)
    write(project, "a/flow.yaml", SCHEMA)
    assert run(["check", "base/level.yaml"]) == 0
    assert "Nothing to check: all files found are context.\n" in capsys.readouterr().err


def test_releases_of_checked_objects(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, "apflint.toml", f'{SETTINGS}\n[[cluster]]\nname = "old"\nkubernetes = "1.30"\npaths = ["base"]')
    write(project, "other/pod.yaml", "kind: Pod")
    assert check(capsys)["kubernetes"] == "1.30, 1.33 and 1.36"
    write(project, "other/level.yaml", LEVEL)
    assert check(capsys)["kubernetes"] == "1.30, 1.33, 1.36 and 1.37"


def test_rendered_text_has_no_fix(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Findings in rendered text have no fix, because there is no file to edit."""
    misspelled = LEVEL.replace("queueLengthLimit", "queueLengthLimt")
    write(project, "rendered.txt", misspelled)
    write(project, "more.yaml", misspelled.replace("name: batch", "name: more"))
    write(project, "apflint.toml", '[[cluster]]\nname = "prod"\nrender = ["cat", "rendered.txt"]')
    findings = check(capsys, "--render", "--select", "APF101")["findings"]
    assert [(finding["file"], finding["fix"] is None) for finding in findings] == [
        ("more.yaml", False),
        ("prod (rendered)", True),
    ]
