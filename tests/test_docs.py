"""The pages of docs/: their commands run, their snippets are valid, and their links have targets."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from typing import TYPE_CHECKING, Any

import pytest
import typer
import yaml
from support.pages import (
    DOCS,
    NOT_RUN,
    PAGES,
    REPOSITORY_PAGES,
    SCRIPTS,
    START_UP_FILES,
    Block,
    list_commands,
    page_path,
    read_blocks,
    read_page,
    read_table,
    run_page,
    run_script,
)
from support.programs import USAGES
from support.shell import LEVEL, PROGRAMS, ROOT, SCHEMA, bash, environment, prepare, prepare_checkout

from apflint import __version__
from apflint.cli.app import COMMANDS, app, run
from apflint.cli.exit_codes import ExitCode
from apflint.rule_catalogue import list_ids
from apflint.settings.model import KEYS, Settings
from apflint.settings.resolution import resolve_settings

if TYPE_CHECKING:
    from pathlib import Path

HOSTED = f"https://raw.githubusercontent.com/apflint/apflint/v{__version__.partition('.dev')[0]}/"


SLOW_PAGES = ("contributing/index", "contributing/new-release", "contributing/playground", "exactness")
"""Pages whose commands take long: they run tests, or compare proofs."""


def parametrize_blocks(*languages: str) -> list[Any]:
    """Return parameters for the code blocks of all pages in these languages, except blocks that are input files of commands."""
    return [
        pytest.param(block, id=f"{name}-{number}")
        for name in PAGES
        for number, block in enumerate(read_blocks(name, *languages))
        if not block.title
    ]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name in SLOW_PAGES else [])
        for name in [*PAGES, *REPOSITORY_PAGES]
        if read_blocks(name, "console", *SCRIPTS)
    ],
)
def test_commands_print_what_the_page_shows(name: str, tmp_path: Path) -> None:
    run_page(name, tmp_path)


def test_output_that_differs_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run_page` detects samples that differ from the real output, on a generated page."""
    (tmp_path / "docs").mkdir()
    monkeypatch.setattr("support.pages.DOCS", tmp_path / "docs")
    page = '```text title="a.txt"\none\ntwo\nthree\n```\n\n```console\n$ cat a.txt\n{}```\n'
    for shown, right in (
        ("one\ntwo\nthree\n", True),
        ("one\n...\n", True),
        ("...\nthree\n", True),
        ("one\n...\ntwo\n", False),
        ("one\n", False),
        ("", True),
    ):
        (tmp_path / "docs" / "page.md").write_text(page.format(shown), encoding="utf-8")
        directory = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        directory.mkdir()
        if right:
            run_page("page", directory)
        else:
            with pytest.raises(AssertionError):
                run_page("page", directory)
    (tmp_path / "docs" / "page.md").write_text("```console\n$ exit 3\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        run_page("page", tmp_path)


@pytest.mark.parametrize(
    "block",
    [
        "apflint check missing.yaml",
        "apflint check --select",
        "kubectl get --row /metrics",
        "kubectl apply -f missing.yaml",
        "docker biuld -t apflint -f a.txt .",
        "kubectl proxy --prot 8001 &",
        'eval "$(apflint completion bsh)"',
        "false\ntrue",
        "apflint completion bash | grep missing",
        "python scripts/missing.py",
    ],
)
def test_script_that_fails_on_a_page_fails(block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If a page calls a fake program with a wrong option, the test fails, even if the shell ignores the exit code."""
    monkeypatch.setattr("support.pages.DOCS", tmp_path)
    (tmp_path / "page.md").write_text(f"```sh\n{block}\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError):
        run_page("page", tmp_path)


@pytest.mark.slow
def test_script_that_fails_in_a_checkout_fails(tmp_path: Path) -> None:
    variables = prepare_checkout(tmp_path)
    run_script("python scripts/benchmark.py --quick\ngit push origin main", tmp_path, variables)
    for line in (
        "python scripts/benchmark.py --fast",
        "python scripts/build_release.py --out dist",
        "python scripts/set_version.py",
        "python -m pytest tests/missing.py",
        "python -m pytest -k missing",
        "python -m http.server -d missing",
        "pip install -e '.[tests]'",
        "cd editors/vscode && npm run pack",
        "git push origin v0.0.0",
    ):
        with pytest.raises(AssertionError):
            run_script(line, tmp_path, variables)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_kubectl_has_the_options_of_its_stand_in() -> None:
    lines = [re.sub(r"\b[A-Z]+\b", "1", usage).split() for usage in USAGES if usage.startswith("kubectl ")]
    assert len(lines) >= 5
    for line in lines:
        done = subprocess.run([*line, "--help"], env=environment(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shell", START_UP_FILES)
def test_start_up_files_of_shells_run(shell: str, tmp_path: Path) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"needs {shell}")
    blocks = [block for name in PAGES for block in read_blocks(name, shell)]
    assert blocks
    variables = prepare(tmp_path)
    for block in blocks:
        command = [word.format(block.text) for word in START_UP_FILES[shell]]
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), block.text
    assert not (tmp_path / "failures").exists()


def test_shown_words_are_completed(tmp_path: Path) -> None:
    """For `<Tab>` on a page, the test calls the function that a shell calls for this key."""
    shown = [
        line
        for name in PAGES
        for block in read_blocks(name, "text")
        for line in block.text.splitlines()
        if line.endswith("<Tab>")
    ]
    assert shown
    variables = prepare(tmp_path)
    for line in shown:
        words = line.removesuffix("<Tab>")
        completing = {"_APFLINT_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        assert bash("apflint", tmp_path, variables | completing).stdout.strip(), line


@pytest.mark.parametrize("name", [*PAGES, *REPOSITORY_PAGES])
def test_every_command_is_in_a_block_that_is_run(name: str) -> None:
    """No command is in an indented block, or in a block of a language that is not tested."""
    text = read_page(name)
    commands = sum(len(list_commands(block)) for block in read_blocks(name, "console"))
    assert len(re.findall(r"^ *\$ ", text, re.MULTILINE)) == commands
    programs = "|".join(map(re.escape, {*PROGRAMS, "apflint", "cd", "curl", "echo", "export", "git", "sudo", "wget"}))
    command = re.compile(rf"^ *(?:{programs}) (?!.*<Tab>$).*", re.MULTILINE)
    for block in read_blocks(name, *NOT_RUN - {"python", "lua", "lisp"}):
        assert command.findall(block.text) == []
    outside = re.sub(r"^( *)(```|~~~).*?^\1\2$", "", text, flags=re.MULTILINE | re.DOTALL)
    indented = [found for found in command.findall(outside) if found.startswith("    ")]
    assert indented == []


INLINE = sorted(
    {
        " ".join(line.split())
        for name in [*PAGES, *REPOSITORY_PAGES, *(f"../rules/{rule}" for rule in list_ids())]
        for line in re.findall(r"(?<!`)`((?:uvx |kubectl )?apflint [a-z-][^`]*)`(?!`)", read_page(name))
    }
    - {"apflint count"}  # no real command: only an example on the page for contributors
)
"""Commands that occur in sentences. They may end with `...`, or have placeholders in capitals."""


@pytest.mark.parametrize("line", INLINE)
def test_commands_in_sentences_exist(line: str) -> None:
    words = shlex.split(line.partition("apflint ")[2])
    program: Any = typer.main.get_command(app)
    command = program if words[0].startswith("-") else program.get_command(typer.Context(program), words[0])
    assert command is not None
    # `get_params` would store the help option of this context in the command, so that later tests would not see -h.
    defined = {"-h", "--help"} | {option for parameter in command.params for option in parameter.opts}
    assert {word.partition("=")[0] for word in words if re.match("--?[a-z]", word)} <= defined


def test_metrics_of_the_guide_are_those_of_a_server() -> None:
    text = (ROOT / "fixtures/live/metrics.txt").read_text(encoding="utf-8")
    rows = read_table("guides/throttled-client", "metric `apiserver_flowcontrol_...`")
    assert len(rows) >= 5
    for cell in rows:
        for name, label in re.findall(r"`?\b([a-z_]+)(?:\{(.*?)\})?`", f"{cell}`"):
            if "_" in name:
                assert re.search(rf"^apiserver_flowcontrol_{name}\{{.*{label}", text, re.MULTILINE), name


def test_helm_findings_name_the_template_and_the_line_in_its_output(tmp_path: Path) -> None:
    """As the page states, lines are counted in the output of the template, through all of its documents."""
    bad = SCHEMA.replace("870", "99999")
    rendered = f"---\n# Source: c/templates/ok.yaml\n{SCHEMA}---\n# Source: c/templates/two.yaml\n{LEVEL}---\n# Source: c/templates/two.yaml\n{bad}"
    variables = prepare(tmp_path)
    (tmp_path / "work" / "chart.txt").write_text(rendered, encoding="utf-8")
    line = "helm template CHART | apflint check --format concise --select APF201 -"
    done = bash(line, tmp_path, variables)
    at = len(LEVEL.splitlines()) + 1 + 1 + bad.splitlines().index("  matchingPrecedence: 99999")
    assert done.returncode == 1
    assert done.stdout.startswith(f"c/templates/two.yaml:{at}:")


@pytest.mark.parametrize("name", [*PAGES, *REPOSITORY_PAGES])
def test_every_block_has_a_language_that_is_tested(name: str) -> None:
    languages = {block.language for block in read_blocks(name)}
    assert languages <= {"console", "json", "toml", "yaml", *SCRIPTS, *START_UP_FILES} | NOT_RUN
    assert 2 * len(read_blocks(name)) == len(re.findall(r"^ *```", read_page(name), re.MULTILINE))


@pytest.mark.parametrize("block", parametrize_blocks("yaml"))
def test_yaml_is_valid_and_manifests_have_no_findings(block: Block, tmp_path: Path) -> None:
    value = yaml.safe_load(block.text)
    assert isinstance(value, dict)
    if "flowcontrol" in block.text:
        file = tmp_path / "example.yaml"
        file.write_text(block.text, encoding="utf-8")
        assert run(["check", "--isolated", "--fail-on", "warning", str(file)]) == 0


@pytest.mark.parametrize("block", parametrize_blocks("json", "toml"))
def test_settings_are_valid(block: Block, tmp_path: Path) -> None:
    if block.language == "json":
        assert json.loads(block.text)
        return
    file = tmp_path / "apflint.toml"
    file.write_text(block.text, encoding="utf-8")
    resolve_settings(config=str(file))


def test_configuration_page_has_all_keys_and_their_defaults() -> None:
    table = read_table("reference/settings", "key")
    assert list(table) == list(KEYS)
    for key, cells in table.items():
        default, left_out = getattr(Settings(), KEYS[key]), cells.rpartition("|")[2].strip().strip("`")
        if isinstance(default, str | int):
            assert left_out == (json.dumps(default) if isinstance(default, bool) else str(default))
        elif key not in ("select", "severity", "kubernetes"):
            assert left_out == "none"
    for block in read_blocks("reference/settings", "toml"):
        assert set(tomllib.loads(block.text)) < set(KEYS)


def test_suppressions_page_shows_suppressions_that_are_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (block,) = read_blocks("reference/suppressions", "yaml")
    file = tmp_path / "example.yaml"
    file.write_text(block.text, encoding="utf-8")
    check = ["check", "--isolated", "--format", "json", "--extend-select", "APF903", str(file)]

    def list_rules(*arguments: str) -> list[str]:
        assert run([*check, *arguments]) == 0
        return sorted(load["rule"] for load in json.loads(capsys.readouterr().out)["findings"])

    assert list_rules() == []
    assert list_rules("--no-ignores") == ["APF104", "APF106", "APF505", "APF510"]
    assert set(read_table("reference/suppressions", "rule")) == {"APF901", "APF902", "APF903"}


@pytest.mark.parametrize("name", [*PAGES, "../README"])
def test_links_have_targets(name: str) -> None:
    for target in re.findall(r"\]\((?!https?://|#)([^)#]+)", read_page(name)):
        assert (page_path(name).parent / target).exists(), target


def test_every_page_is_linked() -> None:
    """Each page can be reached from the README."""
    reached, new = set(), {"../README"}
    while new:
        reached |= new
        new = {
            os.path.relpath(path.parent / target.removesuffix(".md"), page_path("index").parent)
            for path, text in ((page_path(name), read_page(name)) for name in new)
            for target in re.findall(r"\]\((?!https?://)([^)#]+\.md)", text)
        } & set(PAGES) - reached
    assert set(PAGES) <= reached


def test_github_page_has_the_inputs_and_outputs_of_the_action() -> None:
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert set(read_table("guides/github-actions", "input")) == set(action["inputs"])
    assert set(read_table("guides/github-actions", "output")) == set(action["outputs"])
    used = [
        step
        for block in read_blocks("guides/github-actions", "yaml")
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
    including, container = (yaml.safe_load(block.text) for block in read_blocks("guides/gitlab", "yaml"))
    assert including["include"] == [{"remote": HOSTED + file}]
    assert set(including["apflint"]["variables"]) <= set(job["variables"])
    assert set(container["apflint"]) <= set(job)
    assert set(read_table("guides/gitlab", "report")) == set(job["artifacts"]["reports"])


def test_pre_commit_page_has_the_hooks() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    table = read_table("guides/pre-commit", "hook")
    assert list(table) == [hook["id"] for hook in hooks]
    for hook in hooks:
        line = " ".join([hook["entry"], *hook.get("args", ()), *(["FILE..."] if hook["pass_filenames"] else [])])
        assert f"`{line}`" in table[hook["id"]]
    for block in read_blocks("guides/pre-commit", "yaml"):
        named = {hook["id"] for repository in yaml.safe_load(block.text)["repos"] for hook in repository["hooks"]}
        assert named <= set(table)


def test_each_command_has_a_page_in_the_common_form() -> None:
    pages = {path.stem for path in (DOCS / "commands").iterdir()}
    assert pages == {*COMMANDS, "index"}
    linked = re.findall(r"^\| \[`(\w+)`\]\((\w+)\.md\) ", read_page("commands/index"), re.MULTILINE)
    assert sorted(linked) == [(name, name) for name in COMMANDS]
    for name in COMMANDS:
        text = re.sub(r"(?s)```.*?```", "", read_page(f"commands/{name}"))
        headings = re.findall(r"^##? .*", text, re.MULTILINE)
        assert headings[:2] == [f"# apflint {name}", "## Example"]
        assert headings[-1] == "## See also"
        assert "## Options" in headings
        assert any(f"apflint {name}" in block.text for block in read_blocks(f"commands/{name}", "console"))


def test_exit_codes_page_has_the_exit_codes() -> None:
    assert list(map(int, read_table("reference/exit-codes", "code"))) == list(ExitCode)
    assert set(read_table("reference/exit-codes", "command")) < set(COMMANDS)
    for name in COMMANDS:
        if re.search(r"^\| code \|", read_page(f"commands/{name}"), re.MULTILINE):
            assert set(read_table(f"commands/{name}", "code")) < {str(int(code)) for code in ExitCode}


def test_environment_page_names_variables_of_the_code(root: Path) -> None:
    source = "".join(path.read_text(encoding="utf-8") for path in (root / "apflint").rglob("*.py"))
    named = [name for names in read_table("reference/environment", "variable") for name in re.findall(r"\w+", names)]
    for name in named:
        assert f'"{name}"' in source, name
    read = re.findall(r'environ\.get\(\s*"(\w+)"', source)
    assert len(read) >= 5
    assert set(read) <= set(named)


def test_commands_page_shows_the_files_of_the_examples() -> None:
    shown = {block.title: block.text for block in read_blocks("commands/index", "yaml")}
    assert shown == {"manifests/level.yaml": LEVEL, "manifests/schema.yaml": SCHEMA}
