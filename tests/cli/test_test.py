"""`apflint test`: exit codes, streams, formats, and the suite of fixtures/policy."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apflint.cli.app import run
from apflint.output.policy import render_junit
from apflint.policy.parser import parse_suite
from apflint.policy.running import FileResult, Run, Runner

if TYPE_CHECKING:
    from pathlib import Path

HOLDS = "- unreachable: {priorityLevel: catch-all}\n"
FAILS = "- name: <free> & \"easy\"\n  request: list pods --as 'al]]>ice'\n  reaches: exempt\n"


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def suite(directory: Path, tests: str, name: str = "suite.yaml", head: str = "manifests: []\n") -> str:
    (directory / name).parent.mkdir(exist_ok=True)
    (directory / name).write_text(f"{head}tests:\n{tests}", "utf-8")
    return name


class Ran:
    def __init__(self, status: int, out: str, err: str) -> None:
        self.status, self.out, self.err = status, out, err


@pytest.fixture
def apflint(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: str) -> Ran:
        status = run(list(arguments))
        return Ran(status, *capsys.readouterr())

    return call


@pytest.mark.parametrize("kind", ["reachable", "unreachable"])
def test_priority_level_is_named_as_in_reaches(kind: str, tmp_path: Path, apflint: Any) -> None:
    (tmp_path / "suite.yaml").write_text(
        f"manifests: []\ntests: [{{{kind}: catch-all}}, {{{kind}: [exempt, system]}}]\n", encoding="utf-8"
    )
    result = json.loads(apflint("test", str(tmp_path / "suite.yaml"), "--format", "json").out)
    passed = [test["passed"] for test in result["files"][0]["tests"]]
    assert passed == ([False, True] if kind == "reachable" else [True, False])


def test_example_suite_passes(root: Path, monkeypatch: pytest.MonkeyPatch, apflint: Any) -> None:
    monkeypatch.chdir(root / "fixtures/policy")
    ran = apflint("test", "apf-test.yaml", "--color", "never")
    assert (ran.status, ran.err) == (0, "12 expectations in 1 file: 12 passed, 0 failed.\n")
    head, configuration, *lines = ran.out.splitlines()
    assert head == "apf-test.yaml: 12 passed (Kubernetes 1.36)"
    assert configuration == "Configuration: manifests (3 objects) and built-in objects of 1.36"
    assert all(line.startswith("pass: ") for line in lines)
    assert apflint("test", "apf-test.yaml", "-q").out == ""


def test_example_suite_fails_for_other_manifests(root: Path, monkeypatch: pytest.MonkeyPatch, apflint: Any) -> None:
    """Compare with a recorded output. To update it, run the command in this test and review the difference."""
    monkeypatch.chdir(root / "fixtures/policy")
    ran = apflint("test", "apf-test.yaml", "-f", "careless", "--color", "never")
    assert ran.status == 1
    assert ran.out == (root / "fixtures/policy/careless/expected.txt").read_text("utf-8")


def test_shown_request_is_an_argument_of_explain(root: Path, monkeypatch: pytest.MonkeyPatch, apflint: Any) -> None:
    monkeypatch.chdir(root / "fixtures/policy")
    ran = apflint("test", "apf-test.yaml", "-f", "careless", "--format", "json")
    (file,) = json.loads(ran.out)["files"]
    asked = [test for test in file["tests"] if test["request"]]
    assert len(asked) >= 5
    for test in asked:
        program, *words = shlex.split(test["request"]["command"])
        assert program == "apflint"
        answer = json.loads(apflint(*words, "--format", "json").out)
        for key in ("flowSchema", "priorityLevel"):
            assert answer[key] == test["goesTo"][key]
        assert answer["flow"]["distinguisher"] == test["goesTo"]["distinguisher"]
        assert answer["limits"]["min"] == test["goesTo"]["minSeats"]


@pytest.mark.parametrize(("tests", "status"), [(HOLDS, 0), (FAILS, 1), (HOLDS + FAILS, 1), ("- {}\n", 2)])
@pytest.mark.parametrize("output", ["text", "json", "junit"])
def test_exit_code_is_the_same_in_every_format(
    directory: Path, apflint: Any, tests: str, status: int, output: str
) -> None:
    ran = apflint("test", suite(directory, tests), "--format", output)
    assert ran.status == status
    assert bool(ran.out) == (output != "text" or status != 2)


def test_mistake_in_a_file_does_not_stop_other_suites(directory: Path, apflint: Any) -> None:
    (directory / "sub").mkdir()
    broken, good = suite(directory, "- nevr: x\n", "broken.yaml"), suite(directory, FAILS, "good.yaml")
    ran = apflint("test", broken, "gone.yaml", "sub", good, "--color", "never")
    assert ran.status == 2
    assert ran.out.startswith("good.yaml: 1 failed")
    assert " --> broken.yaml:3:3\n  |\n3 | - nevr: x\n  |   ^^^^\n" in ran.err
    assert "error: gone.yaml: " in ran.err
    assert "error: sub: no YAML or JSON file in this directory has the key `tests`" in ran.err
    assert ran.err.endswith("1 expectation in 4 files: 0 passed, 1 failed. 3 files could not be tested.\n")


def test_directory_stands_for_the_suites_below(directory: Path, apflint: Any) -> None:
    for name in ("sub/a.yaml", "sub/b.json"):
        suite(directory, HOLDS, name)
    (directory / "sub/b.json").write_text('{"manifests": [], "tests": [{"unreachable": "catch-all"}]}', "utf-8")
    (directory / "sub/level.yaml").write_text("kind: PriorityLevelConfiguration\n# tests: none\n", "utf-8")
    ran = apflint("test", "sub", "--format", "json")
    assert [file["file"] for file in json.loads(ran.out)["files"]] == ["sub/a.yaml", "sub/b.json"]
    assert ran.err == ""


def test_summary_counts_no_expectations_if_no_file_could_be_tested(apflint: Any) -> None:
    assert apflint("test", "missing.yaml").err.endswith("\n1 file could not be tested.\n")


def test_manifests_are_relative_to_the_suite_and_replaced_by_f(directory: Path, apflint: Any) -> None:
    schema = {"priorityLevelConfiguration": {"name": "exempt"}, "matchingPrecedence": 5, "rules": [
        {"subjects": [{"kind": "User", "user": {"name": "al]]>ice"}}],
         "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True}]}]}  # fmt: skip
    values = {
        "apiVersion": "flowcontrol.apiserver.k8s.io/v1",
        "kind": "FlowSchema",
        "metadata": {"name": "own"},
        "spec": schema,
    }
    name = suite(directory, FAILS, "sub/suite.yaml", head="manifests: here.json\n")
    ran = apflint("test", name)
    assert ran.status == 2
    assert "sub/here.json" in ran.err
    assert "--> sub/suite.yaml:1:12" in ran.err
    (directory / "sub/here.json").write_text(json.dumps(values))
    assert apflint("test", name).status == 0
    ran = apflint("test", name, "-f", "defaults:1.36")
    assert ran.status == 1
    assert "Configuration: built-in objects of 1.36\n" in ran.out
    (directory / "empty.yaml").write_text("")
    for wrong, message in (
        ("empty.yaml", "no FlowSchema and no PriorityLevelConfiguration found"),
        ("gone.yaml", "No such file or directory."),
    ):
        ran = apflint("test", name, "-f", wrong)
        assert (ran.status, ran.out, ran.err) == (2, "", f"apflint: {wrong}: {message}\n")


def test_suite_without_manifests_is_a_mistake(directory: Path, apflint: Any) -> None:
    name = suite(directory, HOLDS, head="")
    ran = apflint("test", name)
    assert ran.status == 2
    assert "no manifests given" in ran.err
    assert apflint("test", name, "-f", "defaults:1.36").status == 0


def test_options_override_the_suite(directory: Path, apflint: Any) -> None:
    tests = "- request: list pods --as alice\n  reaches: {priorityLevel: global-default, minSeats: 20}\n"
    name = suite(directory, tests, head='manifests: []\nkubernetes: "1.28"\nserverConcurrency: 100\n')
    assert apflint("test", name).status == 1
    assert "(Kubernetes 1.28)" in apflint("test", name, "--server-concurrency", "600").out
    assert apflint("test", name, "--server-concurrency", "600").status == 0
    ran = apflint("test", name, "--kubernetes", "1.33", "--format", "json")
    (file,) = json.loads(ran.out)["files"]
    assert file["kubernetes"] == "1.33"
    assert file["configuration"] == "built-in objects of 1.33"
    command = shlex.split(file["tests"][0]["request"]["command"])
    assert command[-2:] == ["-f", "defaults:1.33"]  # the command must not read the manifests in the current directory
    assert "--kubernetes" not in command
    for wrong in (("--kubernetes", "1.99"), ("--server-concurrency", "0")):
        ran = apflint("test", name, *wrong)
        assert (ran.status, ran.out) == (2, "")


def test_json_fields(directory: Path, apflint: Any) -> None:
    report = json.loads(apflint("test", suite(directory, HOLDS + FAILS), "--format", "json").out)
    assert report["summary"] == {"files": 1, "tests": 2, "passed": 1, "failed": 1, "errors": 0}
    good, bad = report["files"][0]["tests"]
    assert (good["passed"], good["happened"], good["request"], good["line"]) == (True, None, None, 3)
    assert (bad["passed"], bad["kind"], bad["line"], bad["column"]) == (False, "request", 6, 12)
    assert bad["request"]["words"] == ["list", "pods", "--as", "al]]>ice"]
    assert bad["goesTo"]["priorityLevel"] == "global-default"
    broken = json.loads(apflint("test", suite(directory, "- {}\n"), "--format", "json").out)
    assert broken["files"][0]["errors"][0]["line"] == 3


def test_junit_can_be_parsed(directory: Path, apflint: Any) -> None:
    broken, good = suite(directory, "- {}\n", "broken.yaml"), suite(directory, HOLDS + FAILS, "good.yaml")
    top = ET.fromstring(apflint("test", broken, good, "--format", "junit").out)
    assert (top.tag, top.get("tests"), top.get("failures"), top.get("errors")) == ("testsuites", "3", "1", "1")
    first, second = top
    assert (first.get("name"), first.get("errors"), first.get("failures")) == ("broken.yaml", "1", "0")
    assert "is not an expectation" in str(first[0][0].get("message"))
    assert (second.get("name"), second.get("tests"), second.get("failures")) == ("good.yaml", "2", "1")
    passed, failed = second
    assert len(passed) == 0
    assert (failed.get("name"), failed.get("file"), failed.get("line")) == ('<free> & "easy"', "good.yaml", "6")
    (failure,) = failed
    assert failure.tag == "failure"
    assert failure.get("message") == 'the priority level is "global-default"'
    assert "apflint explain list pods --as 'al]]>ice'" in (failure.text or "")


@given(st.text(min_size=1, max_size=20), st.text(min_size=1, max_size=10))
def test_junit_is_well_formed_for_any_names(name: str, file: str) -> None:
    text = json.dumps({"tests": [{"name": name, "unreachable": {"flowSchema": f"x{name}"}}]})
    reading = parse_suite("suite.json", text.encode())
    assert reading.suite is not None
    from support.configurations import BUILT_IN, RELEASE, Objects

    from apflint.evaluate.configuration import build_configuration
    from apflint.evaluate.limits import compute_limits

    known = build_configuration(Objects(), BUILT_IN)
    limits = compute_limits(tuple(known.levels.values()), known.order, 600, RELEASE)
    runner = Runner(reading.suite, known, limits)
    result = Run((FileResult(file, reading.source, "1.36", results=tuple(runner.run())), FileResult(file, None, "")))
    rendered = render_junit(result)
    rendered.encode("utf-8")
    assert len(ET.fromstring(rendered)[0]) == 1
    assert rendered == render_junit(result)


def test_control_characters_are_escaped(directory: Path, apflint: Any) -> None:
    tests = '- name: "a\\e[31m\\nb"\n  request: "list pods --as \\"\\u202ex\\""\n  reaches: exempt\n'
    ran = apflint("test", suite(directory, tests), "--color", "never")
    assert ran.status == 1
    assert "\x1b" not in ran.out
    assert "\u202e" not in ran.out
    assert "a\\x1b[31m\\nb" in ran.out


def test_color_and_width_do_not_change_the_text(directory: Path, apflint: Any) -> None:

    name = suite(directory, HOLDS + FAILS)
    plain = apflint("test", name, "--color", "never").out
    assert re.sub("\x1b\\[[0-9;]*m", "", apflint("test", name, "--color", "always").out) == plain


def test_quiet_shows_only_failed_tests(directory: Path, apflint: Any) -> None:
    names = suite(directory, HOLDS, "good.yaml"), suite(directory, HOLDS + FAILS, "bad.yaml")
    ran = apflint("test", *names, "--quiet", "--color", "never")
    assert ran.status == 1
    assert "good.yaml" not in ran.out
    assert ran.out.startswith("bad.yaml: 1 passed, 1 failed")
    assert "pass: " not in ran.out
    assert ran.out.count("FAIL: ") == 1


def test_request_without_words_is_shown_as_json(directory: Path, apflint: Any) -> None:
    """The counterexample has a user without the groups that authentication adds, which no command line can express."""
    ran = apflint(
        "test",
        suite(directory, "- never: {reaches: catch-all}\n", head="world: any\nmanifests: []\n"),
        "--color",
        "never",
    )
    assert ran.status == 1
    (line,) = [line for line in ran.out.splitlines() if line.startswith("  = request: ")]
    record = json.loads(line.partition("request: ")[2])
    assert "system:authenticated" not in record.get("groups", [])
    (directory / "requests.jsonl").write_text(json.dumps(record))
    answer = json.loads(apflint("explain", "--requests", "requests.jsonl").out)
    assert answer["flowSchema"] == "catch-all"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-", "-f", "-"], "standard input cannot be both the suite and the manifests"),
        (["x.yaml", "--kubernetes", "1.99"], '"1.99" is too new'),
        (["x.yaml", "--server-concurrency", "0"], "is not an integer from 1 to"),
    ],
)
def test_wrong_usage(directory: Path, apflint: Any, options: list[str], message: str) -> None:
    suite(directory, HOLDS, "x.yaml")
    ran = apflint("test", *options)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err
    assert ran.err.count("\n") == 1
