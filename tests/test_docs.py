"""The pages of docs/: their commands run, their snippets are valid, and their links have targets."""

from __future__ import annotations

import json
import re
import tomllib
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import yaml
from support.shell import LEVEL, ROOT, SCHEMA, bash, prepare

from apflint.cli.app import run
from apflint.settings.model import KEYS, Settings
from apflint.settings.resolution import resolve_settings

if TYPE_CHECKING:
    from pathlib import Path

PAGES = (
    "argo-cd-and-flux",
    "command-line",
    "configuration",
    "editors",
    "github-actions",
    "gitlab",
    "helm-and-kustomize",
    "migrate",
    "pre-commit",
)
# These need a server, a start-up file, or an editor; `sh` blocks are commands that only their readers can run.
NOT_RUN = {"bash", "fish", "lisp", "lua", "sh", "zsh"}
HOSTED = "https://raw.githubusercontent.com/apflint/apflint/v0.1.0/"


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    language: str
    text: str


def page(name: str) -> str:
    return (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")


def blocks(name: str, *languages: str) -> list[Block]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page(name), re.MULTILINE | re.DOTALL)
    return [Block(name, language, text) for language, text in found if not languages or language in languages]


def every(*languages: str) -> list[Any]:
    return [
        pytest.param(block, id=f"{name}-{number}")
        for name in PAGES
        for number, block in enumerate(blocks(name, *languages))
    ]


def rows(name: str, heading: str) -> dict[str, str]:
    """Return the rows of the table with this first heading: first cell -> other cells."""
    table = re.search(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", page(name), re.MULTILINE)
    assert table is not None
    cells = [line.strip("|").split("|") for line in table[1].splitlines()]
    return {first.strip().strip("`"): "|".join(rest).strip() for first, *rest in cells}


@pytest.mark.parametrize("name", PAGES)
def test_console_blocks_run(name: str, tmp_path: Path) -> None:
    """Run the commands in order, as a reader does. The text below a command is its output."""
    variables = prepare(tmp_path)
    for block in blocks(name, "console"):
        for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
            line, _, shown = part.partition("\n")
            done = bash(line, tmp_path, variables)
            assert done.returncode in ((2,) if shown else (0, 1)), f"{line}\n{done.stdout}\n{done.stderr}"
            assert not shown or done.stdout + done.stderr == shown


def test_helm_findings_name_the_template_and_the_line_in_its_output(tmp_path: Path) -> None:
    """Lines are counted below `# Source:`, through all documents of the template, as the page states."""
    bad = SCHEMA.replace("870", "99999")
    rendered = f"---\n# Source: c/templates/ok.yaml\n{SCHEMA}---\n# Source: c/templates/two.yaml\n{LEVEL}---\n# Source: c/templates/two.yaml\n{bad}"
    variables = prepare(tmp_path)
    (tmp_path / "work" / "chart.txt").write_text(rendered, encoding="utf-8")
    line = "helm template CHART | apflint check --format concise --select APF201 -"
    done = bash(line, tmp_path, variables)
    at = len(LEVEL.splitlines()) + 1 + 1 + bad.splitlines().index("  matchingPrecedence: 99999")
    assert done.returncode == 1
    assert done.stdout.startswith(f"c/templates/two.yaml:{at}:")


@pytest.mark.parametrize("name", PAGES)
def test_every_block_has_a_language_that_is_tested(name: str) -> None:
    assert {block.language for block in blocks(name)} <= {"console", "json", "toml", "yaml"} | NOT_RUN


@pytest.mark.parametrize("block", every("yaml"))
def test_yaml_is_valid_and_manifests_have_no_findings(block: Block, tmp_path: Path) -> None:
    value = yaml.safe_load(block.text)
    assert isinstance(value, dict)
    if "flowcontrol" in block.text:
        file = tmp_path / "example.yaml"
        file.write_text(block.text, encoding="utf-8")
        assert run(["check", "--isolated", "--fail-on", "warning", str(file)]) == 0


@pytest.mark.parametrize("block", every("json", "toml"))
def test_settings_are_valid(block: Block, tmp_path: Path) -> None:
    if block.language == "json":
        assert json.loads(block.text)
        return
    file = tmp_path / "apflint.toml"
    file.write_text(block.text, encoding="utf-8")
    resolve_settings(config=str(file))


def test_configuration_page_has_all_keys_and_their_defaults() -> None:
    table = rows("configuration", "key")
    assert list(table) == list(KEYS)
    for key, cells in table.items():
        default, left_out = getattr(Settings(), KEYS[key]), cells.rpartition("|")[2].strip().strip("`")
        if isinstance(default, str | int):
            assert left_out == (json.dumps(default) if isinstance(default, bool) else str(default))
        elif key not in ("select", "severity", "kubernetes"):
            assert left_out == "none"
    (block,) = blocks("configuration", "toml")
    assert set(tomllib.loads(block.text)) < set(KEYS)


def test_configuration_page_shows_suppressions_that_are_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = blocks("configuration", "yaml")
    file = tmp_path / "example.yaml"
    file.write_text(block.text, encoding="utf-8")
    check = ["check", "--isolated", "--format", "json", "--extend-select", "APF903", str(file)]

    def found(*arguments: str) -> list[str]:
        assert run([*check, *arguments]) == 0
        return sorted(one["rule"] for one in json.loads(capsys.readouterr().out)["findings"])

    assert found() == []
    assert found("--no-ignores") == ["APF104", "APF106", "APF505", "APF510"]
    assert set(rows("configuration", "rule")) == {"APF901", "APF902", "APF903"}


@pytest.mark.parametrize("name", [*PAGES, "../README"])
def test_links_have_targets(name: str) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", page(name)):
        assert (ROOT / "docs" / f"{name}.md").parent.joinpath(target).exists(), target


def test_readme_links_every_page() -> None:
    readme = page("../README")
    assert [name for name in PAGES if f"](docs/{name}.md)" not in readme] == []


def test_github_page_has_the_inputs_and_outputs_of_the_action() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert set(rows("github-actions", "input")) == set(action["inputs"])
    assert set(rows("github-actions", "output")) == set(action["outputs"])
    used = [
        step
        for block in blocks("github-actions", "yaml")
        for step in _steps(yaml.safe_load(block.text))
        if step.get("uses", "").startswith("apflint/apflint@")
    ]
    assert len(used) >= 2
    for step in used:
        assert set(step["with"]) <= set(action["inputs"])


def _steps(value: dict[str, Any]) -> list[dict[str, Any]]:
    return [*value.get("steps", []), *(step for job in value.get("jobs", {}).values() for step in job["steps"])]


def test_gitlab_page_sets_what_the_job_has() -> None:
    file = "docs/examples/apflint.gitlab-ci.yml"
    job = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["apflint"]
    including, container = (yaml.safe_load(block.text) for block in blocks("gitlab", "yaml"))
    assert including["include"] == [{"remote": HOSTED + file}]
    assert set(including["apflint"]["variables"]) <= set(job["variables"])
    assert set(container["apflint"]) <= set(job)
    assert set(rows("gitlab", "report")) == set(job["artifacts"]["reports"])


def test_pre_commit_page_has_the_hooks() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    table = rows("pre-commit", "hook")
    assert list(table) == [hook["id"] for hook in hooks]
    for hook in hooks:
        line = " ".join([hook["entry"], *hook.get("args", ()), *(["FILE..."] if hook["pass_filenames"] else [])])
        assert f"`{line}`" in table[hook["id"]]
    for block in blocks("pre-commit", "yaml"):
        named = {hook["id"] for repository in yaml.safe_load(block.text)["repos"] for hook in repository["hooks"]}
        assert named <= set(table)


def test_command_line_page_names_the_exit_codes_and_the_variables(root: Path) -> None:
    assert list(rows("command-line", "code")) == ["0", "1", "2", "130"]
    source = "".join(path.read_text(encoding="utf-8") for path in (root / "apflint").rglob("*.py"))
    for names in rows("command-line", "variable"):
        for name in re.findall(r"\w+", names):
            assert f'"{name}"' in source, name
