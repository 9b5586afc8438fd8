"""Settings of a project: which settings file is used, its keys, precedence over other sources, and mistakes."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING, Any, get_args

import jsonschema
import pytest
from conftest import UNMEASURED
from support.builders import FLAWED_FLOW_SCHEMA

from apflint.cli.app import run
from apflint.cli.options import Threshold
from apflint.output.findings import FORMATS
from apflint.settings.discovery import find_settings_file
from apflint.settings.model import KEYS
from apflint.settings.resolution import resolve_settings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A git repository with one manifest, which has a warning (APF104) and an error (APF203)."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "a.yaml").write_text(FLAWED_FLOW_SCHEMA, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(directory: Path, text: str, name: str = "apflint.toml") -> None:
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_text(text, encoding="utf-8")


def list_findings(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[str, str]]:
    run(["check", "--format", "json", *arguments])
    answer = json.loads(capsys.readouterr().out)
    return [(finding["rule"], finding["severity"]) for finding in answer["findings"]]


BOTH = [("APF104", "warning"), ("APF203", "error")]


def test_defaults_without_a_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert list_findings(capsys) == BOTH
    assert find_settings_file(str(project)) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('select = ["APF2"]', [("APF203", "error")]),
        ('ignore = ["unknown-distinguisher"]', [("APF104", "warning")]),
        (
            '[severity]\nAPF203 = "info"\nnamespace-on-cluster-scoped = "error"',
            [("APF104", "error"), ("APF203", "info")],
        ),
        ('[severity]\nAPF203 = "warning"\nAPF2 = "off"', [("APF104", "warning"), ("APF203", "warning")]),
        ('[severity]\nAPF203 = "off"', [("APF104", "warning")]),
        ('[per-file-ignores]\n"a.*" = ["APF1"]', [("APF203", "error")]),
        ('[per-file-ignores]\n"b.*" = ["APF1"]', BOTH),
        ('exclude = ["a.yaml"]', []),
        ('kubernetes = "1.36"\ncomplete = true\nserver-concurrency = 300\nfail-on = "never"', BOTH),
    ],
)
def test_keys_change_findings(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, expected: list[tuple[str, str]]
) -> None:
    write(project, text)
    assert list_findings(capsys) == expected
    assert list_findings(capsys, "--isolated") == BOTH


def test_keys_of_output(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, 'fail-on = "never"\nformat = "json"\nkubernetes = "1.30"')
    assert run(["check"]) == 0
    assert json.loads(capsys.readouterr().out)["kubernetes"] == "1.30"
    assert run(["check", "--fail-on", "error", "--kubernetes", "1.31"]) == 1
    assert json.loads(capsys.readouterr().out)["kubernetes"] == "1.31"


def test_context_is_relative_to_the_settings_file(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    level = (
        "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: own}\nspec:\n"
    )
    level += "  type: Limited\n  limited: {nominalConcurrencyShares: 5, limitResponse: {type: Reject}}\n"
    write(project / "levels", level, "level.yaml")
    write(project / "flows", FLAWED_FLOW_SCHEMA.replace("workload-low", "own"), "flow.yaml")
    monkeypatch.chdir(project / "flows")
    assert ("APF401", "error") in list_findings(capsys, "--isolated")
    write(project, 'context = ["levels"]')
    assert "APF401" not in {rule for rule, _ in list_findings(capsys)}


def test_severity_enables_a_rule(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, FLAWED_FLOW_SCHEMA.replace("{type: ByFoo}", "{type: ByFoo} # apflint: ignore[APF203]"), "a.yaml")
    assert list_findings(capsys) == [("APF104", "warning")]
    write(project, '[severity]\nAPF903 = "warning"')
    assert list_findings(capsys) == [("APF104", "warning"), ("APF903", "warning")]


def test_command_line_takes_precedence(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, 'select = ["APF1"]\nignore = ["APF203"]\nextend-select = ["APF5"]\n[severity]\nAPF2 = "off"')
    assert list_findings(capsys) == [("APF104", "warning")]
    assert list_findings(capsys, "--select", "APF203") == [("APF203", "error")]
    assert list_findings(capsys, "--ignore", "APF104") == []


def test_closest_file_up_to_the_repository_is_used(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(project, "complete = true")
    inner = project / "x" / "y"
    inner.mkdir(parents=True)
    assert find_settings_file(str(inner)) == "../../apflint.toml"
    write(project / "x", "[tool.apflint]\ncomplete = false", "pyproject.toml")
    assert find_settings_file(str(inner)) == "../pyproject.toml"
    write(project / "x", "complete = true", ".apflint.toml")
    assert find_settings_file(str(inner)) == "../.apflint.toml"
    write(inner, "[tool.other]\nname = 'apflint'", "pyproject.toml")
    assert find_settings_file(str(inner)) == "../.apflint.toml"
    (inner / ".git").mkdir()
    assert find_settings_file(str(inner)) is None
    monkeypatch.chdir(inner)
    assert resolve_settings().path is None
    assert resolve_settings(config="../pyproject.toml").complete is False


def test_patterns_are_relative_to_the_settings_file(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project / "deep" / "down", FLAWED_FLOW_SCHEMA, "b.yaml")
    monkeypatch.chdir(project / "deep")
    assert list_findings(capsys) == BOTH
    write(project, 'exclude = ["deep/down/*"]')
    assert list_findings(capsys) == []
    write(project, 'exclude = ["down/*"]')
    assert list_findings(capsys) == BOTH
    write(project, '[per-file-ignores]\n"deep/*" = ["APF104"]')
    assert list_findings(capsys) == BOTH[1:]
    write(project, 'exclude = ["./deep/down"]')
    assert list_findings(capsys) == []


@pytest.mark.parametrize(
    ("pattern", "covered"),
    [
        ("b.yaml", True),
        ("deep/down/b.yaml", True),
        ("./deep/down/b.yaml", True),
        ("deep", True),
        ("deep/", True),
        ("./deep", True),
        ("deep/**", True),
        ("deep/*.yaml", True),
        ("**/b.yaml", True),
        ("**/down", True),
        ("**/down/**", True),
        ("**/deep", True),
        ("down", True),
        ("*", True),
        ("eep", False),
        ("deep/b.yaml", False),
        ("down/b.yaml", False),
        ("/deep", False),
        ("/", False),
        ("", False),
    ],
)
def test_per_file_ignores_match_like_exclude(
    project: Path, capsys: pytest.CaptureFixture[str], pattern: str, covered: bool
) -> None:
    (project / "a.yaml").unlink()
    write(project / "deep" / "down", FLAWED_FLOW_SCHEMA, "b.yaml")
    write(project, f'[per-file-ignores]\n"{pattern}" = ["APF"]')
    assert list_findings(capsys) == ([] if covered else BOTH)
    if pattern:  # `exclude` does not accept an empty pattern
        write(project, f'exclude = ["{pattern}"]')
        assert list_findings(capsys) == ([] if covered else BOTH)


@pytest.mark.parametrize(
    ("pattern", "covered"),
    [("../a.yaml", True), ("../*.yaml", True), ("a.yaml", True), ("ci/a.yaml", False), ("../ci/a.yaml", False)],
)
def test_patterns_of_a_config_file_elsewhere(
    project: Path, capsys: pytest.CaptureFixture[str], pattern: str, covered: bool
) -> None:
    write(project / "ci", f'exclude = ["{pattern}"]')
    assert list_findings(capsys, "--config", "ci/apflint.toml") == ([] if covered else BOTH)
    write(project / "ci", f'[per-file-ignores]\n"{pattern}" = ["APF"]')
    assert list_findings(capsys, "--config", "ci/apflint.toml") == ([] if covered else BOTH)


def test_patterns_of_a_linked_settings_file(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project / "common", 'exclude = ["deep/*"]', "settings")
    write(project / "deep", FLAWED_FLOW_SCHEMA, "b.yaml")
    (project / "a.yaml").unlink()
    (project / "apflint.toml").symlink_to("common/settings")
    assert list_findings(capsys) == []
    monkeypatch.chdir(project / "deep")
    assert list_findings(capsys) == []


@pytest.mark.parametrize("pattern", ["deep/down", "deep", "**/down", "down", "deep/down/"])
@pytest.mark.parametrize(
    "arguments", [(), (".",), ("./",), ("--force-exclude", "b.yaml"), ("--force-exclude", "../down")]
)
def test_excluded_directory_is_excluded_from_within(
    project: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    pattern: str,
    arguments: tuple[str, ...],
) -> None:
    write(project / "deep" / "down", FLAWED_FLOW_SCHEMA, "b.yaml")
    monkeypatch.chdir(project / "deep" / "down")
    assert list_findings(capsys, *arguments) == BOTH
    write(project, f'exclude = ["{pattern}"]')
    assert list_findings(capsys, *arguments) == []
    assert list_findings(capsys, "b.yaml") == BOTH  # a file on the command line is checked even if it is excluded


def test_config_shows_patterns_as_written(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write(project, 'exclude = ["deep/down/*", "other/x"]')
    (project / "deep").mkdir()
    monkeypatch.chdir(project / "deep")
    assert run(["config"]) == 0
    assert tomllib.loads(capsys.readouterr().out)["exclude"] == ["deep/down/*", "other/x"]


def test_byte_order_mark_in_settings_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, '\ufeffignore = ["APF1"]')
    assert list_findings(capsys) == BOTH[1:]


@pytest.mark.parametrize("text", ["tool = 3", "[tool]\napflint = 3", "[tool.other]", ""])
def test_pyproject_without_table(project: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    write(project, text, "pyproject.toml")
    assert run(["check", "--config", "pyproject.toml"]) == 2
    assert capsys.readouterr().err == "apflint: pyproject.toml: the table [tool.apflint] is missing.\n"


def test_schemas_of_settings_and_tests_are_printed(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("config", "test"):
        assert run(["schema", name]) == 0
        assert capsys.readouterr().out == (root / "schemas" / f"apflint-{name}.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ignor = []", ["apflint.toml", "ignor:", '"ignore"']),
        ('fail_on = "error"', ["fail_on", '"fail-on"']),
        ('fail-on = "errors"', ["fail-on", '"error"']),
        ("kubernetes = 1.30", ["kubernetes", "quotes"]),
        ('kubernetes = "1.99"', ["kubernetes", "1.99"]),
        ('select = "APF1"', ["select", "list"]),
        ('ignore = ["APF999"]', ["ignore", "APF999"]),
        ('complete = "yes"', ["complete", "true or false"]),
        ("server-concurrency = 0", ["server-concurrency", "1 or more"]),
        ('[severity]\nAPF203 = "warn"', ["severity.APF203", '"warning"']),
        ('severity = "off"', ["severity", "table"]),
        ('[severity]\nAPF999 = "off"', ["severity.APF999"]),
        ('[per-file-ignores]\n"a" = ["nope"]', ['per-file-ignores."a"', "nope"]),
        ('format = "xml"', ["format", "sarif"]),
        ("select = [", ["invalid TOML"]),
    ],
)
def test_mistakes_name_file_and_key(
    project: Path, capsys: pytest.CaptureFixture[str], text: str, parts: list[str]
) -> None:
    write(project, text)
    for command in (["check"], ["config"]):
        assert run(command) == 2
        error = capsys.readouterr().err
        assert error.startswith("apflint: apflint.toml: ")
        assert all(part in error for part in parts), error
    assert run(["check", "--isolated"]) == 1


def test_settings_apply_to_limits_and_explain(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    level = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: PriorityLevelConfiguration\nmetadata: {name: old}\n"
    (project / "old.yaml").write_text(level + "spec: {type: Limited, limited: {limitResponse: {type: Reject}}}\n")

    def limits(*arguments: str) -> tuple[str, int, bool]:
        assert run(["limits", "--format", "json", *arguments]) == 0
        answer = json.loads(capsys.readouterr().out)
        return answer["kubernetes"], answer["serverConcurrency"], "old" in [level["name"] for level in answer["levels"]]

    newest = limits()[0]
    write(project, 'kubernetes = "1.27"\nserver-concurrency = 1000\nexclude = ["old.yaml"]')
    assert limits() == ("1.27", 1000, False)
    assert limits("--kubernetes", newest, "--server-concurrency", "100+200") == (newest, 300, False)
    assert limits("old.yaml") == ("1.27", 1000, True)
    assert limits("--isolated") == (newest, 600, True)
    write(project, "kubernetes = 1.27")
    assert run(["explain", "list", "pods", "--as", "x"]) == 2
    assert "apflint.toml" in capsys.readouterr().err


@pytest.mark.parametrize(
    "line", ["explain list pods --as x", "limits", "diff defaults:1.30 . --exit-zero", "graph", "migrate --diff ."]
)
def test_isolated_reads_no_settings(project: Path, capsys: pytest.CaptureFixture[str], line: str) -> None:
    write(project, "kubernetes = 1.27")  # invalid: a number instead of a string
    assert run(line.split()) == 2
    assert "apflint.toml" in capsys.readouterr().err
    assert run([*line.split(), "--isolated"]) == 0


def test_missing_settings_file(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", "--config", "nowhere.toml"]) == 2
    assert "nowhere.toml" in capsys.readouterr().err
    write(project, "", "pyproject.toml")
    assert run(["check", "--config", "pyproject.toml"]) == 2
    assert "[tool.apflint]" in capsys.readouterr().err
    assert run(["check", "--config", "pyproject.toml", "--isolated"]) == 2


def test_config_shows_origins(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(project, 'ignore = ["APF104"]\n[severity]\nAPF203 = "info"')
    assert run(["config"]) == 0
    text = capsys.readouterr().out
    assert 'ignore = ["APF104"]  # apflint.toml' in text
    assert 'fail-on = "error"  # default' in text
    assert tomllib.loads(text)["severity"] == {"APF203": "info"}
    assert tomllib.loads(text).keys() == KEYS.keys()
    assert run(["config", "--format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["settings"]["ignore"] == {"value": ["APF104"], "origin": "apflint.toml"}


def test_output_of_config_is_a_settings_file(project: Path, capsys: pytest.CaptureFixture[str], root: Path) -> None:
    assert run(["config"]) == 0
    text = capsys.readouterr().out
    jsonschema.validate(tomllib.loads(text), _schema(root))
    write(project, text)
    assert list_findings(capsys) == BOTH


def test_schema_has_keys_and_choices(root: Path) -> None:
    properties = _schema(root)["properties"]
    assert properties.keys() == KEYS.keys()
    assert properties["format"]["enum"] == list(FORMATS)
    assert properties["fail-on"]["enum"] == list(get_args(Threshold))


def test_run_without_settings_file_does_not_import_readers(project: Path) -> None:
    code = (
        "import sys; from apflint.cli.app import run; run(['check', 'a.yaml']);"
        "print([m for m in ('tomllib', 'apflint.settings.file', 'apflint.suppressions.matching') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=project, env=UNMEASURED, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def _schema(root: Path) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((root / "schemas/apflint-config.json").read_text("utf-8"))
    return schema
