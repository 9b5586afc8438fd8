"""The GitHub action, the GitLab job and the container. The tests run the shell commands in the files that define them."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from support.shell import LEVEL, ROOT, SCHEMA, WITHOUT_EFFECT, environment, prepare

from apflint import __version__

if TYPE_CHECKING:
    from pathlib import Path

BAD = LEVEL.replace("queues: 64, handSize: 6", "queues: 4, handSize: 6")
HOSTILE = (
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned; #",
    "a && touch pwned",
    '"; touch pwned; "',
    "'; touch pwned; '",
    "--fix",
    "-",
    "*",
    "${{ github.token }}",
    "x=$HOME",
    "::stop-commands::pause",
)
installs = pytest.mark.skipif(
    not os.environ.get("APFLINT_TEST_WHEEL"),
    reason="installs from the package index; set APFLINT_TEST_WHEEL=1 to run it, as .ci/run does",
)


@pytest.fixture(scope="module")
def action() -> dict[str, Any]:
    value: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return value


class Runner:
    """A simulated GitHub job, with the environment that steps of a composite action use."""

    def __init__(self, action: dict[str, Any], directory: Path) -> None:
        self.action = action
        self.variables = prepare(directory)
        self.work = directory / "work"
        self.temp = directory / "runner temp"
        self.output = directory / "output"
        self.summary = directory / "summary"
        self.temp.mkdir()

    def installed(self) -> Runner:
        """Return a runner with apflint installed at the place where the first step of the action installs it."""
        program = self.temp / "apflint-venv" / "bin" / "apflint"
        program.parent.mkdir(parents=True)
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m apflint "$@"\n', encoding="utf-8")
        program.chmod(0o755)
        return self

    def run(self, step: str, **inputs: str) -> subprocess.CompletedProcess[str]:
        """Run a shell step. Inputs that are not passed have their defaults."""
        (found,) = (one for one in self.action["runs"]["steps"] if one.get("name") == step)
        values = {name: str(one.get("default", "")) for name, one in self.action["inputs"].items()}
        values |= {name.replace("_", "-"): value for name, value in inputs.items()}
        contexts = {f"inputs.{name}": value for name, value in values.items()}
        contexts["github.action_path"] = str(ROOT)
        contexts["steps.python.outputs.python-path"] = sys.executable
        environment = {
            name: re.sub(r"\$\{\{ (.*?) \}\}", lambda match: contexts[match[1]], text) if "${{" in text else text
            for name, text in found["env"].items()
        }
        github = {
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "GITHUB_ACTIONS": "true",
        }
        # The command line of GitHub's runner for `shell: bash`.
        return subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", found["run"]],
            cwd=self.work,
            env=self.variables | github | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    def outputs(self) -> dict[str, str]:
        lines = self.output.read_text(encoding="utf-8").splitlines()
        return dict(line.split("=", 1) for line in lines)

    def results(self) -> list[dict[str, Any]]:
        log = json.loads((self.temp / "apflint.sarif").read_text(encoding="utf-8"))
        results: list[dict[str, Any]] = log["runs"][0]["results"]
        return results


@pytest.fixture
def runner(action: dict[str, Any], tmp_path: Path) -> Runner:
    return Runner(action, tmp_path).installed()


def test_action_is_composite_and_inputs_are_never_part_of_a_script(action: dict[str, Any]) -> None:
    assert action["runs"]["using"] == "composite"
    for step in action["runs"]["steps"]:
        if "run" in step:
            assert step["shell"] == "bash"
            assert "${{" not in step["run"]
        else:
            assert re.fullmatch(r"[\w-]+(/[\w-]+)+@[0-9a-f]{40}", step["uses"])
    used = set(re.findall(r"inputs\.([\w-]+)", yaml.safe_dump(action["runs"])))
    assert used == set(action["inputs"])
    assert all(
        action_input["description"] and isinstance(action_input["default"], str)
        for action_input in action["inputs"].values()
    )


def test_action_uploads_after_findings_too(action: dict[str, Any]) -> None:
    upload = action["runs"]["steps"][-1]
    assert upload["uses"].startswith("github/codeql-action/upload-sarif@")
    # Without a status function, GitHub adds success(), so the step would be skipped after findings.
    assert "!cancelled()" in upload["if"]
    assert not any("continue-on-error" in step for step in action["runs"]["steps"])


def test_action_is_green_where_nothing_is_found(runner: Runner) -> None:
    done = runner.run("Check", paths="manifests")
    assert (done.returncode, runner.outputs()) == (
        0,
        {"exit-status": "0", "sarif": str(runner.temp / "apflint.sarif")},
    )
    assert [result for result in runner.results() if result["level"] == "error"] == []


def test_action_fails_for_findings_and_leaves_the_sarif(runner: Runner) -> None:
    (runner.work / "bad.yaml").write_text(BAD, encoding="utf-8")
    done = runner.run("Check", paths="bad.yaml")
    assert done.returncode == 1
    assert "::error " in done.stdout
    assert "file=bad.yaml" in done.stdout
    assert runner.outputs()["exit-status"] == "1"
    assert "APF305" in {result["ruleId"] for result in runner.results()}
    assert "APF305" in runner.summary.read_text(encoding="utf-8")


@pytest.mark.parametrize("rule", sorted(WITHOUT_EFFECT))
def test_action_fails_for_objects_without_effect(rule: str, runner: Runner) -> None:
    (runner.work / "level.yaml").write_text(LEVEL, encoding="utf-8")
    (runner.work / "a.yaml").write_text(WITHOUT_EFFECT[rule], encoding="utf-8")
    done = runner.run("Check", paths="level.yaml\na.yaml")
    assert done.returncode == 1
    assert f"::error title={rule} " in done.stdout


def test_action_passes_with_warnings_unless_they_fail(runner: Runner) -> None:
    (runner.work / "a.yaml").write_text(f"{LEVEL}---\n{SCHEMA}", encoding="utf-8")
    done = runner.run("Check", paths="a.yaml")
    assert done.returncode == 0
    assert "::warning title=APF505 " in done.stdout
    assert runner.run("Check", paths="a.yaml", fail_on="warning").returncode == 1


def test_inputs_of_the_action_are_options(runner: Runner) -> None:
    (runner.work / "two words").mkdir()
    (runner.work / "two words" / "bad.yaml").write_text(BAD, encoding="utf-8")
    assert runner.run("Check", paths="manifests\ntwo words").returncode == 1
    assert runner.run("Check", paths="manifests").returncode == 0
    assert runner.run("Check", paths="two words", fail_on="never").returncode == 0
    assert runner.run("Check", paths="two words", args="--ignore\nAPF305\n\n--select=APF3").returncode == 0
    assert runner.run("Check", paths="manifests", kubernetes="1.19").returncode == 1  # 1.19 does not serve v1
    (runner.work / "strict.toml").write_text('select = ["APF3"]\nignore = ["APF305"]\n', encoding="utf-8")
    assert runner.run("Check", paths="two words", config="strict.toml").returncode == 0


def test_wrong_usage_of_the_action_fails_with_2_and_has_no_sarif(runner: Runner) -> None:
    assert runner.run("Check", kubernetes="1.999").returncode == 2
    assert runner.outputs() == {"exit-status": "2"}


def test_an_old_sarif_is_not_uploaded_again(runner: Runner) -> None:
    (runner.temp / "apflint.sarif").write_text("{}", encoding="utf-8")
    assert runner.run("Check", config="nowhere.toml").returncode == 2
    assert "sarif" not in runner.outputs()


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_inputs_of_the_action_are_data(text: str, runner: Runner) -> None:
    before = sorted(runner.work.rglob("*"))
    for name in ("paths", "kubernetes", "config", "fail_on"):
        done = runner.run("Check", **{name: text})
        # The path "-" is valid: it means standard input, which is empty here. All other values are invalid.
        assert done.returncode == (0 if (name, text) == ("paths", "-") else 2), (name, done.stdout, done.stderr)
        assert not re.search(r"^::(?!error|warning|notice|debug)", done.stdout + done.stderr, re.MULTILINE)
    assert sorted(runner.work.rglob("*")) == before


def record_installation(action: dict[str, Any], directory: Path, version: str) -> tuple[int, list[list[str]]]:
    """Run the installation step with a fake Python that only records its arguments. Return (exit code, arguments of each call)."""
    runner = Runner(action, directory)
    log = directory / "log"
    python = runner.temp / "apflint-venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    script = f'for word; do printf "%s\\n" "$word"; done >> {shlex.quote(str(log))}; echo >> {shlex.quote(str(log))}'
    python.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    python.chmod(0o755)
    (found,) = (step for step in action["runs"]["steps"] if step.get("name") == "Install apflint")
    assert found["env"]["APFLINT_PYTHON"] == "${{ steps.python.outputs.python-path }}"
    variables = dict.fromkeys(found["env"], "") | {"APFLINT_VERSION": version, "APFLINT_PYTHON": str(python)}
    done = subprocess.run(
        ["bash", "--noprofile", "--norc", "-c", found["run"]],
        cwd=runner.work,
        env=runner.variables | variables | {"APFLINT_ACTION": str(ROOT), "RUNNER_TEMP": str(runner.temp)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "pwned" not in done.stdout
    calls = log.read_text(encoding="utf-8").split("\n\n")[:-1] if log.exists() else []
    return done.returncode, [call.split("\n") for call in calls]


@pytest.mark.parametrize("text", [*HOSTILE, "1.0 --index-url=https://x.example", "@ https://x.example/a.whl", "/tmp"])
def test_hostile_versions_install_nothing(text: str, action: dict[str, Any], tmp_path: Path) -> None:
    code, calls = record_installation(action, tmp_path, text)
    if code == 0:  # pip receives the version as a single word, and rejects it if it is invalid
        assert calls[-1][-1] == f"apflint=={text}"
    else:
        assert (code, calls) == (2, [])
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(
    ("version", "itself"),
    [
        ("", ["--no-deps", "--no-build-isolation", str(ROOT)]),
        ("0.1.0", ["apflint==0.1.0"]),
        (">=0.1,<0.2", ["apflint>=0.1,<0.2"]),
    ],
)
def test_action_installs_dependencies_by_hash(
    version: str, itself: list[str], action: dict[str, Any], tmp_path: Path
) -> None:
    code, (venv, dependencies, package) = record_installation(action, tmp_path, version)
    assert (code, venv[:2]) == (0, ["-m", "venv"])
    pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    assert dependencies == [*pip, "--require-hashes", "--requirement", f"{ROOT}/requirements/action.txt"]
    assert package == [*pip, *itself]


@installs
def test_action_installs_itself(action: dict[str, Any], tmp_path: Path) -> None:
    runner = Runner(action, tmp_path)
    installed = runner.run("Install apflint")
    assert installed.returncode == 0, installed.stderr
    (runner.work / "bad.yaml").write_text(BAD, encoding="utf-8")
    assert runner.run("Check", paths="bad.yaml").returncode == 1
    assert runner.results()


def test_gitlab_job_writes_the_reports_it_names(tmp_path: Path) -> None:
    job = yaml.safe_load((ROOT / "docs/examples/apflint.gitlab-ci.yml").read_text(encoding="utf-8"))["apflint"]
    variables = prepare(tmp_path) | job["variables"] | {"CI_PROJECT_DIR": str(tmp_path / "work")}
    (tmp_path / "work" / "bad.yaml").write_text(BAD, encoding="utf-8")
    for paths, arguments, status in (
        (".", "", 1),
        ("manifests new.yaml", "--ignore APF402", 0),
        ("bad.yaml", "--kubernetes 1.36 --fail-on never", 0),
    ):
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", "\n".join(job["script"])],
            cwd=tmp_path / "work",
            env=variables | {"APFLINT_PATHS": paths, "APFLINT_ARGS": arguments},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == status, done.stderr
        reports = job["artifacts"]["reports"]
        quality = json.loads((tmp_path / "work" / reports["codequality"]).read_text(encoding="utf-8"))
        assert any("APF305" in issue["check_name"] for issue in quality) == ("bad.yaml" in paths or paths == ".")
        assert ET.parse(tmp_path / "work" / reports["junit"]).getroot().tag == "testsuites"
    assert job["artifacts"]["when"] == "always"


def test_gitlab_job_is_pinned() -> None:
    job = yaml.safe_load((ROOT / "docs/examples/apflint.gitlab-ci.yml").read_text(encoding="utf-8"))["apflint"]
    bases = {rest.removesuffix(" AS build") for word, rest in instructions() if word == "FROM"}
    assert {job["image"]} == bases
    _, hashed, itself, _ = job["before_script"]
    assert hashed.endswith('--require-hashes --requirement "$APFLINT_REQUIREMENTS"')
    assert itself.endswith('--no-deps "apflint==$APFLINT_VERSION"')
    # This is the version that the doc pages show.
    assert job["variables"]["APFLINT_VERSION"] == __version__.partition(".dev")[0]
    name = job["variables"]["APFLINT_REQUIREMENTS"].rpartition("/v$APFLINT_VERSION/")[2]
    assert (ROOT / name).is_file()


def instructions() -> list[tuple[str, str]]:
    text = (ROOT / "Containerfile").read_text(encoding="utf-8")
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("#")).replace("\\\n", " ")
    return [(word, rest) for word, _, rest in (line.partition(" ") for line in lines.splitlines() if line.strip())]


def copied() -> list[str]:
    """Return the files of the checkout that are copied into the container."""
    return [
        source
        for word, rest in instructions()
        if word == "COPY" and not rest.startswith("--from")
        for source in shlex.split(rest)[:-1]
    ]


def test_container_is_small_and_not_root() -> None:
    steps = instructions()
    stages = [number for number, (word, _) in enumerate(steps) if word == "FROM"]
    assert len(stages) == 2
    bases = {rest.removesuffix(" AS build") for word, rest in steps if word == "FROM"}
    assert [bool(re.fullmatch(r"python:3\.13-slim@sha256:[0-9a-f]{64}", base)) for base in bases] == [True]
    final = steps[stages[-1] :]
    assert [rest for word, rest in final if word == "COPY"] == ["--from=build /opt/apflint /opt/apflint"]
    assert not [rest for word, rest in final if word in {"RUN", "ADD"}]
    users = [rest for word, rest in final if word == "USER"]
    assert users == ["65532:65532"]
    assert [json.loads(rest) for word, rest in final if word == "ENTRYPOINT"] == [["apflint"]]


def test_container_copies_what_there_is() -> None:
    assert all((ROOT / source).exists() for source in copied())


@installs
def test_container_build_needs_no_more_than_it_copies(tmp_path: Path) -> None:
    source, home = tmp_path / "source", tmp_path / "opt" / "apflint"
    source.mkdir()
    for name in copied():
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, source / name)
    build = "\n".join(rest for word, rest in instructions() if word == "RUN")
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "python").symlink_to(sys.executable)
    script = re.sub(r"/(?=opt/|wheel\b)", f"{tmp_path}/", build).replace("python -m venv", f"{sys.executable} -m venv")
    subprocess.run(["bash", "-ec", script], cwd=source, env=environment(), check=True, capture_output=True, text=True)
    (tmp_path / "bad.yaml").write_text(BAD, encoding="utf-8")
    done = subprocess.run([home / "bin" / "apflint", "check", "bad.yaml"], cwd=tmp_path, check=False, env=environment())
    assert done.returncode == 1
    assert not (home / "bin" / "pip").exists()
