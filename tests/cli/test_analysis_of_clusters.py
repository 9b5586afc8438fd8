"""`--cluster` in commands that analyze a configuration, and `cluster:NAME` as a side of `apflint diff`."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
import yaml
from jsonschema import Draft202012Validator
from support import builders
from support.shell import ROOT

from apflint.cli.app import run

if TYPE_CHECKING:
    from pathlib import Path

SETTINGS = """\
server-concurrency = 700
kubernetes = "1.30"

[[cluster]]
name = "prod"
kubernetes = "1.36"
server-concurrency = 1200
paths = ["base", "clusters/prod"]
context = ["vendor/levels.yaml"]

[[cluster]]
name = "staging"
paths = ["base", "clusters/staging"]
"""
AUDIT_LOG = ROOT / "fixtures" / "replay" / "envelopes" / "raw.jsonl"
REQUEST = ("list", "pods", "-n", "ci", "--as", "runner")


def schema(name: str, level: str, precedence: int) -> dict[str, Any]:
    return builders.flow_schema(
        name, level, precedence, subjects=[builders.user("runner")], resources=[{**builders.ALL}]
    )


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a project whose settings define two clusters, which share a base and a priority level from a vendor."""
    files = {
        "base/apf.yaml": schema("runner", "workload-low", 900),
        "clusters/prod/apf.yaml": schema("fast", "vendor", 800),
        "clusters/staging/apf.yaml": schema("slow", "catch-all", 800),
        "vendor/levels.yaml": builders.priority_level("vendor", 50),
    }
    for name, value in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(yaml.safe_dump(value), encoding="utf-8")
    (tmp_path / "apflint.toml").write_text(SETTINGS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run([*arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def print_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    status, out, err = run_command(capsys, *arguments, "--format", "json")
    assert (status in (0, 1), err) == (True, "")
    return json.loads(out)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("cluster", "schema_name", "level", "release", "seats"),
    [("prod", "fast", "vendor", "1.36", 1200), ("staging", "slow", "catch-all", "1.30", 700)],
)
def test_cluster_has_its_manifests_release_and_seats(
    cluster: str, schema_name: str, level: str, release: str, seats: int, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = print_json(capsys, "explain", *REQUEST, "--cluster", cluster)
    assert (answer["flowSchema"], answer["priorityLevel"]) == (schema_name, level)
    assert (answer["basedOn"]["kubernetes"], answer["limits"]["serverConcurrency"]) == (release, seats)
    limits = print_json(capsys, "limits", "--cluster", cluster)
    assert (limits["kubernetes"], limits["serverConcurrency"]) == (release, seats)
    assert ("vendor" in {row["name"] for row in limits["levels"]}) == (cluster == "prod")
    replayed = print_json(capsys, "replay", str(AUDIT_LOG), "--cluster", cluster)
    assert (replayed["kubernetes"], replayed["serverConcurrency"]) == (release, seats)
    status, out, err = run_command(capsys, "graph", "--cluster", cluster)
    assert (status, err) == (0, "")
    assert f"{schema_name}<br/>" in out
    assert run_command(capsys, "graph", f"cluster:{cluster}") == (status, out, err)


@pytest.mark.usefixtures("project")
def test_options_of_the_command_line_take_precedence(capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--kubernetes", "1.33", "--server-concurrency", "100+20")
    limits = print_json(capsys, "limits", "--cluster", "prod", *options)
    assert (limits["kubernetes"], limits["serverConcurrency"]) == ("1.33", 120)
    found = print_json(capsys, "diff", "cluster:staging", "cluster:prod", *options)
    assert {(found[side]["kubernetes"], found[side]["serverConcurrency"]) for side in ("old", "new")} == {("1.33", 120)}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    "arguments", [("limits",), ("graph",), ("explain", "--requests", "-"), ("explain", "--event", "-"),
                  ("explain", "--flow-schema-uid", "x"), ("diff", "git:main", "."), ("diff", ".", "cluster:prod"),
                  ("replay", str(AUDIT_LOG))]
)  # fmt: skip
def test_several_clusters_need_a_selection(arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    message = "apflint: the settings define the clusters prod and staging: select one with --cluster NAME\n"
    assert run_command(capsys, *arguments) == (2, "", message)


@pytest.mark.usefixtures("project")
def test_named_paths_are_a_configuration_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    limits = print_json(capsys, "limits", ".")
    assert (limits["kubernetes"], limits["serverConcurrency"]) == ("1.30", 700)
    answer = print_json(capsys, "explain", *REQUEST, "-f", "base")
    assert answer["flowSchema"] == "runner"
    added = print_json(capsys, "limits", "--cluster", "staging", "vendor")
    assert "vendor" in {row["name"] for row in added["levels"]}


def test_only_cluster_is_selected(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = SETTINGS[: SETTINGS.rindex("[[cluster]]")]
    (project / "apflint.toml").write_text(settings, encoding="utf-8")
    assert print_json(capsys, "limits")["serverConcurrency"] == 1200
    assert print_json(capsys, "replay", str(AUDIT_LOG))["serverConcurrency"] == 1200
    assert print_json(capsys, "replay", str(AUDIT_LOG), "-f", "base")["serverConcurrency"] == 700
    assert print_json(capsys, "explain", *REQUEST)["flowSchema"] == "fast"
    assert print_json(capsys, "diff", ".", "cluster:prod")["changed"] is False


@pytest.mark.usefixtures("project")
def test_explain_answers_for_each_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = run_command(capsys, "explain", *REQUEST)
    assert (status, err) == (0, "")
    assert (
        out
        == """\
Request  list pods in namespace "ci" as "runner"

CLUSTER  FLOWSCHEMA  PRIORITY LEVEL  NOMINAL  ATTAINABLE
prod     fast        vendor              204         775
staging  slow        catch-all            15         416
NOMINAL and ATTAINABLE are seats of one API server. For match reasons, add --cluster NAME.
"""
    )
    printed = print_json(capsys, "explain", *REQUEST)
    answers = printed["clusters"]
    assert [answer["cluster"] for answer in answers] == ["prod", "staging"]
    assert run(["schema", "explain-output"]) == 0
    Draft202012Validator(json.loads(capsys.readouterr().out)).validate(printed)
    for answer in answers:
        name = answer.pop("cluster")
        assert answer == print_json(capsys, "explain", *REQUEST, "--cluster", name)
    url = run_command(capsys, "explain", "--path", "/api/v1/namespaces/ci/pods", "--as", "runner")
    assert url == (0, out, "")


@pytest.mark.usefixtures("project")
def test_explain_shows_exempt_and_unclassified_requests(capsys: pytest.CaptureFixture[str]) -> None:
    out = run_command(capsys, "explain", "get", "pods", "x", "--as", "admin", "--as-group", "system:masters")[1]
    assert out.count("exempt      exempt          no limit") == 2
    out = run_command(capsys, "explain", "create", "pods/exec", "x", "-n", "a", "--as", "runner")[1]
    assert "prod     -" in out
    assert "prod: " in out


def test_notes_about_shared_files_are_printed_once(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "base/apf.yaml").write_text(yaml.safe_dump(schema("runner", "workload-low", 99_999)), encoding="utf-8")
    status, out, err = run_command(capsys, "explain", *REQUEST)
    assert (status, err.count("base/apf.yaml")) == (0, 1)
    assert "staging" in out


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("limits", "--cluster", "prd"), 'unknown cluster "prd". Did you mean "prod"? apflint.toml defines prod and staging.'),
        (("graph", "cluster:prd"), 'unknown cluster "prd"'),
        (("diff", "cluster:prod", "cluster:"), "cluster: needs a name, as in cluster:prod"),
        (("limits", "--cluster", "prod", "--isolated"), 'unknown cluster "prod": there is no settings file'),
        (("graph", "--cluster", "prod", "cluster:staging"), "cluster:staging and cluster:prod are 2 clusters: name one"),
        (("graph", "--cluster", "prod", "git:main:base"), "the settings already name the paths of the cluster, so name only the revision: git:main"),
        (("diff", "--cluster", "prod", "base", "clusters"), '--cluster requires that OLD or NEW is "." or git:REVISION'),
    ],
)  # fmt: skip
def test_each_mistake_is_a_sentence(
    arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run_command(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in err


def test_missing_and_empty_paths_of_a_cluster(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(project / "clusters/staging")
    status, _, err = run_command(capsys, "limits", "--cluster", "staging")
    assert (status, err) == (2, 'apflint: cluster "staging": clusters/staging: No such file or directory.\n')
    shutil.rmtree(project / "base")
    (project / "base").mkdir()
    (project / "clusters/staging").mkdir()
    status, out, err = run_command(capsys, "limits", "--cluster", "staging")
    assert (status, out) == (2, "")
    assert err == "apflint: cluster:staging: no FlowSchema and no PriorityLevelConfiguration found\n"


@pytest.mark.usefixtures("project")
def test_diff_of_two_clusters(capsys: pytest.CaptureFixture[str]) -> None:
    found = print_json(capsys, "diff", "cluster:staging", "cluster:prod")
    assert found["old"] == {"name": "cluster:staging", "serverConcurrency": 700, "kubernetes": "1.30"}
    assert found["new"] == {"name": "cluster:prod", "serverConcurrency": 1200, "kubernetes": "1.36"}
    steps = {
        (request["from"]["flowSchema"], request["to"]["flowSchema"])
        for group in found["changes"]
        for request in group["requests"]
    }
    assert ("slow", "fast") in steps
    assert print_json(capsys, "diff", "cluster:prod", "cluster:prod")["changed"] is False
    upgrade = print_json(capsys, "diff", "defaults:1.36", "cluster:prod")
    assert upgrade["old"]["serverConcurrency"] == 700
    objects = {(row["change"], row["name"]) for row in upgrade["objects"]}
    assert objects == {("added", "vendor"), ("added", "fast"), ("added", "runner")}
    both = print_json(capsys, "diff", "cluster:staging", "cluster:prod", "-f", "vendor")
    assert both["old"]["name"] == "cluster:staging + vendor"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_diff_of_a_cluster_in_two_revisions(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit = ("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "x")
    for arguments in (("init", "-q", "-b", "main"), ("add", "."), commit):
        subprocess.run(["git", *arguments], check=True)
    changed = schema("fast", "workload-high", 800)
    (project / "clusters/prod/apf.yaml").write_text(yaml.safe_dump(changed), encoding="utf-8")
    found = print_json(capsys, "diff", "--cluster", "prod", "git:main", ".")
    assert [(row["change"], row["name"]) for row in found["objects"]] == [("changed", "fast")]
    assert (found["old"]["name"], found["new"]["name"]) == ("git:main (cluster prod)", ". (cluster prod)")
    assert {found[side]["serverConcurrency"] for side in ("old", "new")} == {1200}
    assert found["changes"][0]["requests"][0]["from"]["file"] == "git:main:clusters/prod/apf.yaml"
    assert print_json(capsys, "diff", "--cluster", "staging", "git:main", ".")["changed"] is False
    assert print_json(capsys, "diff", "git:main:clusters/staging", "clusters/staging")["changed"] is False
    assert run_command(capsys, "graph", "--cluster", "prod", "git:main")[0] == 0


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_cluster_that_the_revision_does_not_have_yet(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commit = ("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "x")
    for arguments in (("init", "-q", "-b", "main"), ("add", "base"), commit):
        subprocess.run(["git", *arguments], check=True)
    (project / "vendor/other.yaml").write_text("", encoding="utf-8")
    status, out, err = run_command(capsys, "diff", "--cluster", "staging", "git:main", ".")
    assert status == 1
    assert err.splitlines() == [
        'apflint: git:main: "main" has no file or directory "clusters/staging"',
        "apflint: git:main: apflint.toml is different or missing in this revision, so apflint uses the current apflint.toml",
    ]
    assert "slow (added)" in out


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_other_settings_of_the_revision_are_noted(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = ("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "x")
    for arguments in (("init", "-q", "-b", "main"), ("add", "."), commit):
        subprocess.run(["git", *arguments], check=True)
    command = ("diff", "--cluster", "staging", "git:main", ".")
    text = (project / "apflint.toml").read_text(encoding="utf-8")
    (project / "apflint.toml").write_text(f"# a comment\n{text}", encoding="utf-8", newline="\r\n")
    assert run_command(capsys, *command)[2] == ""
    (project / "apflint.toml").write_text(f'{text}\n[[cluster]]\nname = "c"\npaths = ["base"]\n', encoding="utf-8")
    note = "apflint: git:main: apflint.toml is different or missing in this revision, so apflint uses the current apflint.toml\n"
    assert run_command(capsys, *command)[2] == note
    assert run_command(capsys, "diff", "git:main:base", "base")[2] == ""
    monkeypatch.chdir(project / "clusters")
    assert run_command(capsys, *command)[2] == note.replace("apflint.toml", "../apflint.toml")
    pyproject = '[project]\nversion = "{}"\n[[tool.apflint.cluster]]\nname = "staging"\npaths = ["base"]\n'
    (project / "apflint.toml").unlink()
    (project / "pyproject.toml").write_text(pyproject.format(1), encoding="utf-8")
    for arguments in (("add", ".."), commit):
        subprocess.run(["git", *arguments], check=True)
    (project / "pyproject.toml").write_text(pyproject.format(2), encoding="utf-8")
    assert run_command(capsys, *command)[2] == ""
    (project / "pyproject.toml").write_text(pyproject.format(2).replace("base", "vendor"), encoding="utf-8")
    assert "../pyproject.toml is different or missing in this revision" in run_command(capsys, *command)[2]


TESTS = [
    {"name": "fast", "request": "list pods -n ci", "as": "runner", "reaches": {"whenFull": ["queued", "rejected"]}},
    {"name": "many seats", "request": "list pods -n ci", "as": "runner", "reaches": {"minSeats": 100}},
]


def write_suite(project: Path, **fields: Any) -> str:
    (project / "suite.yaml").write_text(yaml.safe_dump({**fields, "tests": TESTS}, sort_keys=False), encoding="utf-8")
    return "suite.yaml"


def test_suite_is_run_in_each_cluster_that_it_names(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = write_suite(project, clusters=["prod", "staging"])
    status, out, err = run_command(capsys, "test", suite)
    assert status == 1
    line = "Configuration: cluster:{} ({} objects) and built-in objects of {}\n"
    assert (
        f"suite.yaml: 2 passed (prod, Kubernetes 1.36)\n{line.format('prod', 3, '1.36')}"
        "pass: fast [prod]\npass: many seats [prod]\n"
    ) in out
    assert (
        f"suite.yaml: 1 passed, 1 failed (staging, Kubernetes 1.30)\n{line.format('staging', 2, '1.30')}"
        "pass: fast [staging]\nFAIL: many seats [staging]\n"
    ) in out
    assert "apflint explain list pods -n ci --as runner --cluster staging --kubernetes 1.30" in out
    assert err == "4 expectations in 1 file and 2 clusters: 3 passed, 1 failed.\n"
    found = print_json(capsys, "test", suite)
    assert [(file["file"], file["cluster"], file["kubernetes"]) for file in found["files"]] == [
        ("suite.yaml", "prod", "1.36"),
        ("suite.yaml", "staging", "1.30"),
    ]
    assert found["summary"] == {"files": 1, "tests": 4, "passed": 3, "failed": 1, "errors": 0}
    assert run(["schema", "test-output"]) == 0
    Draft202012Validator(json.loads(capsys.readouterr().out)).validate(found)
    _, out, _ = run_command(capsys, "test", suite, "--format", "junit")
    (junit,) = ET.fromstring(out)
    assert [case.get("name") for case in junit] == [
        *("fast [prod]", "many seats [prod]", "fast [staging]", "many seats [staging]")
    ]


def test_selected_cluster_of_a_suite(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = write_suite(project, clusters="prod")
    status, out, err = run_command(capsys, "test", suite, "--cluster", "prod")
    assert (status, out.count("[prod]"), err) == (0, 2, "2 expectations in 1 file and 1 cluster: 2 passed, 0 failed.\n")
    status, out, err = run_command(capsys, "test", suite, "--cluster", "staging")
    assert (status, out) == (2, "")
    assert 'suite.yaml: not run, because the suite does not name the cluster "staging"\n' in err
    assert "apflint: no suite was run, because no suite names the cluster of --cluster\n" in err
    suite = write_suite(project, manifests="vendor")
    assert "[prod]" in run_command(capsys, "test", suite, "--cluster", "prod")[1]
    assert "pass: fast\n" in run_command(capsys, "test", suite)[1]
    assert run_command(capsys, "test", suite, "--cluster", "prd") == (
        2,
        "",
        'apflint: unknown cluster "prd". Did you mean "prod"? apflint.toml defines prod and staging.\n',
    )


def test_suite_without_manifests_has_the_only_cluster(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    suite = write_suite(project)
    status, _, err = run_command(capsys, "test", suite)
    assert status == 2
    assert "the settings define the clusters prod and staging: name them with `clusters: [NAME]`" in err
    (project / "apflint.toml").write_text(SETTINGS[: SETTINGS.rindex("[[cluster]]")], encoding="utf-8")
    status, out, _ = run_command(capsys, "test", suite)
    assert (status, out.count("[prod]")) == (0, 2)
    (project / "apflint.toml").unlink()
    assert "no manifests given: name them with `manifests: [PATH]`" in run_command(capsys, "test", suite)[2]


@pytest.mark.parametrize(
    ("fields", "place", "message"),
    [
        ({"clusters": ["prod", "stagging"]}, 3, 'unknown cluster "stagging". Did you mean "staging"? The settings define prod and staging'),
        ({"clusters": "x"}, 1, 'unknown cluster "x". The settings define prod and staging'),
        ({"clusters": ["prod"], "manifests": ["base"]}, 1, "a suite must not have both `clusters` and `manifests`, because each cluster has its own manifests: remove one of the two keys"),
        ({"clusters": []}, 1, "the list is empty"),
        ({"clusters": [7]}, 2, "quote it"),
        ({"clusters": ["prod", "prod"]}, 3, 'the cluster "prod" is already in the list: remove the second entry'),
    ],
)  # fmt: skip
def test_mistakes_about_clusters_have_positions(
    project: Path, fields: dict[str, Any], place: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    suite = write_suite(project, **fields)
    status, out, err = run_command(capsys, "test", suite)
    assert (status, out) == (2, "")
    assert message in err
    assert f" --> suite.yaml:{place}:" in err
    schema = json.loads((ROOT / "schemas/apflint-test.json").read_text(encoding="utf-8"))
    is_name = message.startswith("unknown cluster")
    assert Draft202012Validator(schema).is_valid({**fields, "tests": [{"reachable": "a"}]}) == is_name


def test_cluster_that_cannot_be_read_is_a_mistake_of_the_suite(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(project / "clusters/staging")
    status, out, err = run_command(capsys, "test", write_suite(project, clusters=["prod", "staging"]))
    assert status == 2
    assert "pass: fast [prod]" in out
    assert "clusters/staging: No such file or directory." in err


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("command", ["check", "explain list pods --as alice", "graph", "limits", "test suite.yaml"])
@pytest.mark.parametrize(("option", "name"), [("-k vendor", "--kustomize"), ("--live", "--live")])
def test_cluster_of_the_settings_is_no_other_cluster(
    command: str, option: str, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = run_command(capsys, *command.split(), *option.split(), "--cluster", "prod")
    reason = f"{name} and --cluster cannot be combined"
    if command == "check" and option == "-k vendor":
        reason = "cluster:prod and kustomize:vendor cannot be combined: each names a cluster"
    assert answer == (2, "", f"apflint: {reason}\n")
