"""`apflint diff`: output, exit codes, differences that count as changes, and properties for random configurations."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import builders
from support.configurations import BUILT_IN, DIGESTS, FLOW_SCHEMAS, RELEASE, objects

from apflint.cli.app import run
from apflint.diff import requests as changes
from apflint.diff.requests import ConfigurationDifference, Side, compare_configurations
from apflint.evaluate.classify import classify
from apflint.evaluate.configuration import build_configuration
from apflint.evaluate.limits import compute_limits
from apflint.evaluate.requestinfo import is_seen_by_apf
from apflint.output import diff as output
from apflint.output import markdown
from apflint.output import text as text_output
from apflint.output.configuration_line import Sides
from apflint.output.console import Style
from apflint.output.markdown import format_code
from apflint.releases import GROUP

if TYPE_CHECKING:
    from pathlib import Path

    from syrupy.assertion import SnapshotAssertion

    from apflint.evaluate.match import RequestDigest

STORY = "fixtures/stories/move-ci"
BOTH = Sides("old", "new")


def text_of(difference: ConfigurationDifference, sides: Sides, style: Style) -> str:
    return text_output.render(output.report_difference(difference, sides), style)


QUEUING = {"queues": 64, "handSize": 6, "queueLengthLimit": 50}


def level(name: str, shares: int = 30, queuing: dict[str, int] | None = QUEUING) -> dict[str, Any]:
    return builders.priority_level(name, shares, queuing)


def schema(
    name: str, target: str, group_name: str = "dev", method: str | None = "ByUser", at: int = 900
) -> dict[str, Any]:
    return builders.flow_schema(
        name, target, at, subjects=[builders.group(group_name)], resources=[{**builders.ALL}], by=method
    )


def stored(value: dict[str, Any]) -> dict[str, Any]:
    """Return a dict with only the kind, name and spec of a manifest. Return any other value unchanged.

    The helper `objects` takes such dicts.
    """
    return (
        {"kind": value["kind"], "name": value["metadata"]["name"], "spec": value["spec"]}
        if "metadata" in value
        else value
    )


def side(*values: dict[str, Any], defaults: bool = True, seats: int = 600) -> Side:
    found = build_configuration(objects([*map(stored, values)]), BUILT_IN, defaults=defaults)
    return Side(found, compute_limits(tuple(found.levels.values()), found.order, seats, RELEASE))


def list_changes(found: ConfigurationDifference) -> set[tuple[str, str, str]]:
    """Return the type of each change, and its old and new FlowSchema."""
    return {
        (group.type, change.old.flow_schema.name, change.new.flow_schema.name)
        for group in found.groups
        for change in group.changes
    }


def run_diff(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    status = run(["diff", *arguments])
    captured = capsys.readouterr()
    return status, captured.out, captured.err


@pytest.fixture
def story(root: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.chdir(root / STORY)
    return "before", "after"


@pytest.mark.parametrize("output", ["text", "markdown"])
def test_output_of_a_story(
    story: tuple[str, str], output: str, capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    status, out, err = run_diff(capsys, *story, "--kubernetes", "1.36", "--format", output)
    assert (status, err) == (1, "")
    assert out == snapshot


@pytest.mark.parametrize("releases", [("1.33", "1.36"), ("1.18", "1.36"), ("1.25", "1.26"), ("1.23", "1.24")])
def test_output_of_an_upgrade(
    releases: tuple[str, str], capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion
) -> None:
    old, new = releases
    status, out, err = run_diff(capsys, f"defaults:{old}", f"defaults:{new}")
    assert (status, err) == (1, "")
    assert out == snapshot


V1BETA2 = "apiVersion flowcontrol.apiserver.k8s.io/v1beta2"
CHOOSE = "Choose the release of your cluster, such as --kubernetes 1.28."
NONE_FOR_BOTH = (
    f'No Kubernetes release serves both {V1BETA2} of FlowSchema "dev" in old.yaml (1.23 to 1.28) and'
    ' apiVersion flowcontrol.apiserver.k8s.io/v1 of FlowSchema "dev" in new.yaml (1.29 and later): no API'
    " server accepts all of them. This comparison interprets both sides in the same way"
)


def unserved_object(file: str, version: str, releases: str, release: str) -> str:
    """Return the beginning of the sentence about the object in a file."""
    return (
        f'FlowSchema "dev" in {file} has apiVersion flowcontrol.apiserver.k8s.io/{version}, which only'
        f" Kubernetes {releases} serve: an API server of {release} rejects it."
    )


@pytest.mark.parametrize(
    ("versions", "settings", "arguments", "assumed", "unserved"),
    [
        (("v1", "v1"), "", ["old.yaml", "new.yaml"], True, []),
        (("v1", "v1"), 'kubernetes = "1.36"', ["old.yaml", "new.yaml"], False, []),
        (("v1", "v1"), "", ["old.yaml", "new.yaml", "--kubernetes", "1.36"], False, []),
        (("v1", "v1"), "", ["defaults:1.36", "defaults:1.37", "-f", "old.yaml"], False, []),
        (("v1", "v1"), "", ["defaults:1.36", "new.yaml"], True, []),
        (
            ("v1", "v1"),
            '[[cluster]]\nname = "a"\npaths = ["new.yaml"]\nkubernetes = "1.36"',
            ["cluster:a", "cluster:a"],
            False,
            [],
        ),
        (("v1", "v1"), '[[cluster]]\nname = "a"\npaths = ["new.yaml"]', ["cluster:a", "cluster:a"], True, []),
        (("v1beta2", "v1"), "", ["old.yaml", "new.yaml"], True, [f"{NONE_FOR_BOTH} as Kubernetes 1.37."]),
        (
            ("v1beta2", "v1"),
            "",
            ["old.yaml", "new.yaml", "--kubernetes", "1.25"],
            False,
            [f"{NONE_FOR_BOTH} as Kubernetes 1.25."],
        ),
        (
            ("v1beta2", "v1beta2"),
            "",
            ["old.yaml", "new.yaml"],
            True,
            [
                (
                    f'FlowSchema "dev" and 1 more object in old.yaml and new.yaml have {V1BETA2}, which only Kubernetes 1.23 to'
                    f" 1.28 serve: an API server of 1.37 rejects them. {CHOOSE}"
                )
            ],
        ),
        (
            ("v1beta2", "v1beta3"),
            "",
            ["old.yaml", "new.yaml"],
            True,
            [
                f"{unserved_object('old.yaml', 'v1beta2', '1.23 to 1.28', '1.37')} {CHOOSE}",
                f"{unserved_object('new.yaml', 'v1beta3', '1.26 to 1.31', '1.37')} {CHOOSE}",
            ],
        ),
        (("v1beta2", "v1beta3"), "", ["old.yaml", "new.yaml", "--kubernetes", "1.27"], False, []),
        (
            ("v1beta2", "v1"),
            "",
            ["defaults:1.25", "defaults:1.29", "-f", "old.yaml"],
            False,
            [f"{unserved_object('old.yaml', 'v1beta2', '1.23 to 1.28', '1.29')} Use v1: apflint migrate --to v1."],
        ),
        (
            ("v1beta2", "v1"),
            "",
            ["old.yaml", "defaults:1.29", "-f", "old.yaml"],
            True,
            [
                f"{unserved_object('old.yaml', 'v1beta2', '1.23 to 1.28', '1.37')} {CHOOSE}",
                f"{unserved_object('old.yaml', 'v1beta2', '1.23 to 1.28', '1.29')} Use v1: apflint migrate --to v1.",
            ],
        ),
        (
            ("v1", "v1"),
            "",
            ["old.yaml", "new.yaml", "--kubernetes", "1.28"],
            False,
            [
                (
                    'FlowSchema "dev" and 1 more object in old.yaml and new.yaml have apiVersion'
                    " flowcontrol.apiserver.k8s.io/v1, which only Kubernetes 1.29 and later serve: an API server of 1.28 rejects"
                    " them. Use v1beta3."
                )
            ],
        ),
        # No message is expected, because a server of 1.19 serves v1alpha1 if --runtime-config enables it.
        (("v1alpha1", "v1alpha1"), "", ["old.yaml", "new.yaml", "--kubernetes", "1.19"], False, []),
    ],
)
def test_names_an_assumed_release_and_unserved_versions(
    versions: tuple[str, str],
    settings: str,
    arguments: list[str],
    assumed: bool,
    unserved: list[str],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "apflint.toml").write_text(settings)
    for name, version in zip(("old.yaml", "new.yaml"), versions, strict=True):
        write(tmp_path / name, [{**schema("dev", "catch-all"), "apiVersion": f"{GROUP}/{version}"}])
    _, out, _ = run_diff(capsys, *arguments)
    assert ("(assumed: choose it with --kubernetes)" in out) == assumed
    assert [line for line in out.splitlines() if "apiVersion" in line] == unserved
    found = json.loads(run_diff(capsys, *arguments, "--format", "json")[1])
    assert (found["kubernetesAssumed"], found["unserved"]) == (assumed, unserved)


def test_json_fields(story: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run_diff(capsys, *story, "--kubernetes", "1.36", "--format", "json", "--server-concurrency", "100")
    found = json.loads(out)
    assert status == 1
    first_fields = ["schema", "configuration", "changed", "complete", "old", "new"]
    first_fields += ["kubernetesAssumed", "unserved"]
    assert list(found) == [*first_fields, "changes", "levels", "objects", "drift"]
    built_in = "and built-in objects of 1.36"
    assert found["configuration"] == f"before (4 objects) {built_in} -> after (5 objects) {built_in}"
    assert found["old"] == {"name": "before", "kubernetes": "1.36", "serverConcurrency": 100}
    assert (found["schema"], found["changed"], found["complete"]) == (1, True, True)
    first = found["changes"][0]
    assert (first["change"], first["from"]["priorityLevel"], first["to"]["priorityLevel"]) == (
        "priorityLevel",
        "reporting",
        "ci",
    )
    assert [outcome["outcome"] for outcome in first["to"]["outcomes"]] == ["dispatched", "rejected"]
    (request,) = first["requests"]
    assert request["from"]["flowSchema"] == request["to"]["flowSchema"] == "ci-runner"
    assert (request["from"]["file"], request["from"]["line"]) == ("before/ci.yaml", 5)
    assert [witness["from"]["matchedBy"]["resourceRule"] for witness in request["witnesses"]] == [0, 1]
    gains = {row["name"]: row["gain"] for row in found["levels"]}
    assert gains["ci"] == 4
    assert sum(gains.values()) == 0
    assert [(row["change"], row["name"]) for row in found["objects"]] == [
        ("added", "ci"),
        ("changed", "reporting"),
        ("removed", "dashboards"),
        ("added", "dashboards-and-boards"),
        ("changed", "ci-runner"),
        ("changed", "reports"),
    ]


def test_explain_confirms_each_witness(story: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, text, _ = run_diff(capsys, *story)
    _, out, _ = run_diff(capsys, *story, "--format", "json")
    commands = re.findall(r"^ +apflint (explain .*)$", text, re.MULTILINE)
    asked = 0
    for group in json.loads(out)["changes"]:
        for request in group["requests"]:
            for witness in request["witnesses"]:
                for path, end in zip(story, ("from", "to"), strict=True):
                    assert run(["explain", *witness["words"], "-f", path, "--format", "json"]) == 0
                    answer = json.loads(capsys.readouterr().out)
                    assert answer["flowSchema"] == request[end]["flowSchema"]
                    assert answer["priorityLevel"] == group[end]["priorityLevel"]
                    assert answer["matchedBy"] == witness[end]["matchedBy"]
                asked += 1
                if group["change"] != "limits":
                    assert ["explain", *witness["words"]] in map(shlex.split, commands)
    assert asked > len(commands) > 5


def test_exit_zero_option(story: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = run_diff(capsys, *story, "--exit-zero")
    assert (status, out) == (0, run_diff(capsys, *story)[1])


@pytest.mark.parametrize("output", ["text", "markdown", "json"])
def test_identical_configurations_have_no_changes(
    story: tuple[str, str], output: str, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run_diff(capsys, story[0], story[0], "--format", output)
    assert (status, err) == (0, "")
    assert json.loads(out)["changes"] == [] if output == "json" else "No request changes its FlowSchema" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-", "-"], "standard input cannot be both OLD and NEW"),
        (["before", "after", "-f", "-"], "standard input cannot be both OLD and NEW"),
        (["before", "nowhere"], "nowhere"),
        (["defaults:1.33", "defaults:9.99"], "9.99"),
        (["before"], "NEW"),
    ],
)
def test_wrong_usage(
    story: tuple[str, str], arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert story
    status, out, err = run_diff(capsys, *arguments)
    assert (status, out) == (2, "")
    assert message in err
    assert "internal error" not in err


@pytest.mark.parametrize("is_old", [True, False])
def test_side_without_objects_is_an_error(is_old: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = (str(tmp_path), "defaults:1.36") if is_old else ("defaults:1.36", str(tmp_path))
    status, out, err = run_diff(capsys, *sides, "--kubernetes", "1.36")
    assert (status, out) == (2, "")
    assert err == f"apflint: {tmp_path}: no FlowSchema and no PriorityLevelConfiguration found\n"


def test_manifests_on_both_sides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An upgrade moves no request if a FlowSchema of `-f`, which both sides have, captures all affected requests."""
    own = schema("everyone", "workload-low", group_name="system:authenticated", at=50)
    (tmp_path / "own.json").write_text(json.dumps(own), encoding="utf-8")
    upgrade = ("defaults:1.33", "defaults:1.36", "--format", "json")
    assert json.loads(run_diff(capsys, *upgrade)[1])["changes"]
    status, out, err = run_diff(capsys, *upgrade, "-f", str(tmp_path))
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert found["changes"] == []
    assert found["old"]["name"] == f"defaults:1.33 + {tmp_path}"
    assert [row["name"] for row in found["objects"]] == ["endpoint-controller", "workload-leader-election"]


def test_directory_without_objects_on_both_sides_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, out, err = run_diff(capsys, "defaults:1.36", "defaults:1.36", "-f", str(tmp_path))
    assert (status, out) == (2, "")
    assert err == f"apflint: {tmp_path}: no FlowSchema and no PriorityLevelConfiguration found\n"


def test_without_the_built_in_objects(story: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run_diff(capsys, *story, "--no-defaults", "--format", "json")
    assert {row["name"] for row in json.loads(out)["levels"]} == {"exempt", "catch-all", "reporting", "ci"}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_revision_equals_the_directory_at_that_time(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(root / STORY / "before", tmp_path / "before")
    shutil.copytree(root / STORY / "before", tmp_path / "work/manifests")
    monkeypatch.chdir(tmp_path / "work")
    commit = ("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "x")
    for arguments in (("init", "-q", "-b", "main"), ("add", "."), commit):
        subprocess.run(["git", *arguments], check=True)
    shutil.rmtree("manifests")
    shutil.copytree(root / STORY / "after", "manifests")
    status, expected, _ = run_diff(capsys, "../before", "manifests")
    assert status == 1
    built_in = "and built-in objects of 1.37"
    for old, new, shown in (
        ("git:main", ".", "the current directory"),
        ("git:main:manifests", "manifests", "manifests"),
        ("git:HEAD", "../work/manifests", "../work/manifests"),
    ):
        status, out, err = run_diff(capsys, old, new)
        assert (status, err) == (1, "")
        line = f"Configuration: {old} (4 objects) {built_in} -> {shown} (5 objects) {built_in}"
        expected_line = f"Configuration: ../before (4 objects) {built_in} -> manifests (5 objects) {built_in}"
        assert out.replace(line, expected_line).replace(f"{old} -> {new}", "../before -> manifests") == expected
    assert json.loads(run_diff(capsys, "git:main", ".", "--format", "json")[1])["changes"][0]["requests"][0]["from"][
        "file"
    ] == "git:main:manifests/ci.yaml"  # fmt: skip
    assert run_diff(capsys, "git:main", "git:main")[:1] == (0,)
    assert run_diff(capsys, "git:main:manifests/none.yaml", ".")[2].startswith("apflint: git:main:manifests/none.yaml:")
    monkeypatch.chdir(tmp_path / "before")
    assert run_diff(capsys, "git:main", ".")[0] == 2
    (tmp_path / "work/empty").mkdir()
    monkeypatch.chdir(tmp_path / "work/empty")
    (tmp_path / "work/empty/x.yaml").write_text("a: 1\n", encoding="utf-8")
    subprocess.run(["git", "add", "."], check=True)
    subprocess.run(["git", *commit], check=True)
    assert "git:main: no FlowSchema and no PriorityLevelConfiguration found" in run_diff(capsys, "git:main", ".")[2]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_clean_tree_with_links_has_no_changes(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(root / STORY / "before", tmp_path / "base")
    (tmp_path / "clusters").mkdir()
    for file in (tmp_path / "base").iterdir():
        (tmp_path / "clusters" / file.name).symlink_to(f"../base/{file.name}")
    monkeypatch.chdir(tmp_path)
    commit = ("-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-qm", "x")
    for arguments in (("init", "-q", "-b", "main"), ("add", "."), commit):
        subprocess.run(["git", *arguments], check=True)
    status, out, err = run_diff(capsys, "git:main:clusters", "clusters", "--format", "json")
    assert (status, err) == (0, "")
    assert json.loads(out)["objects"] == []
    assert run_diff(capsys, "defaults:1.36", "git:main:clusters")[0] == 1


def test_object_change_without_effect_is_listed() -> None:
    found = compare_configurations(side(schema("a", "workload-low", at=900)), side(schema("a", "workload-low", at=901)))
    assert [row.details for row in found.objects] == [("matchingPrecedence 900 -> 901",)]
    assert not found.changed
    assert "but without effect" in text_of(found, BOTH, Style())


def test_change_of_seats_only() -> None:
    found = compare_configurations(side(level("x", 30), schema("a", "x")), side(level("x", 60), schema("a", "x")))
    assert found.changed
    assert {what for what, _, _ in list_changes(found)} == {"limits"}
    assert ("limits", "a", "a") in list_changes(found)
    assert '"limits", "a"' not in text_of(found, BOTH, Style())  # the table of levels shows the new limits instead


@pytest.mark.parametrize(("old", "new", "is_warned"), [(64, 63, True), (64, 64, False), (63, 64, False)])
def test_fewer_queues_are_a_warning(old: int, new: int, is_warned: bool) -> None:
    before, after = (side(level("x", 30, {**QUEUING, "queues": queues}), schema("a", "x")) for queues in (old, new))
    found = compare_configurations(before, after)
    warning = f"fewer queues can crash an API server that is busy with the level: x ({old} -> {new})"
    assert (warning in text_of(found, BOTH, Style(width=500))) == is_warned
    assert (f"`x` ({old} → {new}). See APF608." in markdown.render(output.report_difference(found, BOTH))) == is_warned


def test_json_marks_levels_with_fewer_queues(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for queues in (64, 63):
        manifest = level("x", 30, {**QUEUING, "queues": queues})
        (tmp_path / f"{queues}.json").write_text(json.dumps(manifest), "utf-8")
    for old, new, names in ((64, 63, ["x"]), (63, 64, [])):
        _, out, _ = run_diff(capsys, str(tmp_path / f"{old}.json"), str(tmp_path / f"{new}.json"), "--format", "json")
        assert [level["name"] for level in json.loads(out)["levels"] if level["queuesLowered"]] == names


def test_server_concurrency_changes_the_limits_of_levels() -> None:
    found = compare_configurations(side(), side(seats=1200))
    assert {change.new.priority_level.name for change in found.changes_of_type("limits")} == set(
        side().configuration.levels
    ) - {
        "exempt",  # requests at this level never wait
        "catch-all",  # no request reaches this level
    }


def test_level_that_no_longer_queues_has_its_own_section() -> None:
    found = compare_configurations(side(level("x"), schema("a", "x")), side(level("x", 30, None), schema("a", "x")))
    text = text_of(found, BOTH, Style())
    assert "x  (same FlowSchema, other queues)" in text
    assert "requests without a free seat get 429 immediately" in text
    assert text.count("(same FlowSchema, other queues)") == 1


def test_other_distinguisher_is_a_flow_change() -> None:
    found = compare_configurations(
        side(schema("a", "workload-low")), side(schema("a", "workload-low", method="ByNamespace"))
    )
    assert list_changes(found) == {("flow", "a", "a")}
    assert "one per user -> one per namespace" in text_of(found, BOTH, Style())


def test_distinguisher_does_not_matter_without_queues() -> None:
    reject = level("x", 30, None)
    found = compare_configurations(side(reject, schema("a", "x")), side(reject, schema("a", "x", method=None)))
    assert found.objects
    assert not found.changed


@pytest.mark.parametrize(("queues", "is_change"), [(1, False), (2, True)])
def test_distinguisher_matters_with_two_or_more_queues(queues: int, is_change: bool) -> None:
    queuing = {"queues": queues, "handSize": 1, "queueLengthLimit": 5}
    x = level("x", 30, queuing)
    found = compare_configurations(side(x, schema("a", "x")), side(x, schema("a", "x", method=None)))
    assert list_changes(found) == ({("flow", "a", "a")} if is_change else set())
    more = level("x", 60, queuing)
    found = compare_configurations(side(x, schema("a", "x")), side(more, schema("a", "x", method=None)))
    assert ("flow" if is_change else "limits", "a", "a") in list_changes(found)


def test_dangling_flow_schema_and_invalid_level() -> None:
    found = compare_configurations(
        side(level("x"), level("y"), schema("a", "x"), schema("b", "y", "ops")),
        side(builders.priority_level("x", limitResponse={"type": "Queue"}), schema("a", "x"), schema("b", "y", "ops")),
    )
    message = {(row.name, row.change): row.details[-1] for row in found.objects}
    assert message["a", "changed"] == 'now without effect: its priority level "x" counts as absent'
    assert message["b", "changed"] == 'now without effect: its priority level "y" does not exist'
    assert message["x", "changed"].startswith("now without effect: it ")
    assert ("y", "removed") in message
    assert {("priorityLevel", "a", "global-default"), ("priorityLevel", "b", "global-default")} <= list_changes(found)


def test_each_responsible_rule_has_a_witness() -> None:
    many = schema("a", "workload-low")
    rules = many["spec"]["rules"][0]
    rules["resourceRules"] = [
        {"verbs": ["get"], "apiGroups": [""], "resources": [name], "namespaces": ["*"]} for name in ("pods", "secrets")
    ]
    rules["nonResourceRules"] = [{"verbs": ["get"], "nonResourceURLs": ["/version"]}]
    (change,) = [
        change
        for change in compare_configurations(side(many), side()).changes_of_type("priorityLevel")
        if change.new.flow_schema.name == "global-default"
    ]
    infos = [example.witness.digest.request_info for example in change.examples]
    assert {info.resource or info.path for info in infos} == {"pods", "secrets", "/version"}


def two_rules(name: str, target: str, resources: tuple[str, ...]) -> dict[str, Any]:
    found = schema(name, target)
    found["spec"]["rules"][0]["resourceRules"] = [
        {"verbs": ["list"], "apiGroups": [""], "resources": [resource], "namespaces": ["*"]} for resource in resources
    ]
    return found


def test_order_of_rules_does_not_matter() -> None:
    before, after = (
        side(two_rules("a", "workload-low", order))
        for order in (("pods", "secrets"), ("secrets", "pods", "configmaps"))
    )
    assert list_changes(compare_configurations(before, after)) == {("priorityLevel", "global-default", "a")}
    swapped = compare_configurations(before, side(two_rules("a", "workload-low", ("secrets", "pods"))))
    assert swapped.objects
    assert not swapped.changed


def test_remaining_requests_are_found_if_the_first_one_moves() -> None:
    own = two_rules("own", "x", ("pods", "secrets"))
    earlier = two_rules("earlier", "workload-low", ("pods",))
    earlier["spec"]["matchingPrecedence"] = 100
    found = compare_configurations(side(level("x", 30), own), side(level("x", 60), own, earlier))
    assert {("priorityLevel", "own", "earlier"), ("limits", "own", "own")} <= list_changes(found)


def test_remaining_requests_are_found_if_one_verb_is_left() -> None:
    def reading(name: str, target: str, at: int, *verbs: str) -> dict[str, Any]:
        manifest = schema(name, target, at=at)
        manifest["spec"]["rules"][0]["resourceRules"][0]["verbs"] = [*verbs]
        return manifest

    before, after = level("x", 30), level("x", 60)
    a = reading("a", "x", 900, "get", "create", "list")
    found = compare_configurations(side(before, a), side(after, a, reading("first", "workload-low", 50, "get", "list")))
    limits = (change for group in found.groups if group.type == "limits" for change in group.changes)
    (change,) = (row for row in limits if row.old.flow_schema.name == "a")
    assert [example.witness.digest.request_info.verb for example in change.examples] == ["create"]


def test_requests_are_quoted_for_a_shell() -> None:
    found = compare_configurations(side(), side(schema("a", "workload-low", "dev $(ops)'s")))
    text = text_of(found, BOTH, Style())
    commands = [shlex.split(line) for line in text.splitlines() if "apflint explain list pods" in line]
    assert commands
    assert all("dev $(ops)'s" in run_diff for run_diff in commands)


def many(count: int, target: str) -> list[dict[str, Any]]:
    return [schema(f"s{number:03}", target, f"g{number:03}") for number in range(count)]


def write(path: Path, items: list[dict[str, Any]]) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}), encoding="utf-8")
    return str(path)


def test_hidden_changes_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = [write(tmp_path / f"{target}.json", many(14, target)) for target in ("workload-low", "workload-high")]
    found = json.loads(run_diff(capsys, *paths, "--format", "json")[1])
    (group,) = [
        group
        for group in found["changes"]
        if (group["from"]["priorityLevel"], group["to"]["priorityLevel"]) == ("workload-low", "workload-high")
    ]
    assert {request["from"]["flowSchema"] for request in group["requests"]} == {f"s{number:03}" for number in range(14)}
    rest = len(group["requests"]) - output.MAX_CHANGES
    assert rest >= 4
    assert f"  and {rest} more: see --format json\n" in run_diff(capsys, *paths)[1]
    assert f"\nAnd {rest} more.\n" in run_diff(capsys, *paths, "--format", "markdown")[1]


def test_incomplete_search_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(changes, "MAX_MOVES", 3)
    paths = [write(tmp_path / f"{target}.json", many(5, target)) for target in ("workload-low", "workload-high")]
    status, out, _ = run_diff(capsys, *paths)
    assert status == 1
    assert "More requests may move: the search ended early." in out
    found = json.loads(run_diff(capsys, *paths, "--format", "json")[1])
    assert found["complete"] is False
    moves = [request for group in found["changes"] if group["change"] != "limits" for request in group["requests"]]
    assert sum(len(move["witnesses"]) for move in moves) == 3


def test_search_that_needs_too_many_proofs_is_incomplete(monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = (
        side(
            schema("a", "workload-low", "dev", at=precedence), schema("b", "workload-low", "ops", at=1001 - precedence)
        )
        for precedence in (500, 501)
    )
    found = compare_configurations(old, new)
    assert ("flowSchema", "a", "b") in list_changes(found)
    assert found.complete
    monkeypatch.setattr(changes, "MAX_MOVE_PROOFS", 0)
    found = compare_configurations(old, new)
    assert ("flowSchema", "a", "b") not in list_changes(found)
    assert not found.complete
    assert found._replace(groups=(), levels=()).changed


HOSTILE_NAME = "a`|<b>\x1b[31m\n@team ]("


def test_markdown_escapes_markup_in_manifests() -> None:
    found = compare_configurations(side(level(HOSTILE_NAME), schema(HOSTILE_NAME, HOSTILE_NAME, HOSTILE_NAME)), side())
    text = markdown.render(output.report_difference(found, BOTH))
    outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text)
    assert "@team" in text
    assert "@team" not in outside
    assert "<b>" not in outside
    assert "\x1b" not in text
    rows = [line for line in text.splitlines() if line.startswith("|")]
    # In Markdown tables, `|` without a backslash ends a cell, even in a code span.
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} <= {4, 7}


@given(text=st.text())
def test_code_span_contains_no_closing_fence(text: str) -> None:
    span = format_code(text)
    assert span.isprintable()
    if span == '""':
        return
    fence = re.match("`+", span)
    assert fence is not None
    inner = span[len(fence[0]) : -len(fence[0])]
    assert len(fence[0]) not in {len(ticks) for ticks in re.findall("`+", inner)}
    assert "|" not in inner.replace("\\|", "")


def test_text_shows_no_control_characters() -> None:
    found = compare_configurations(side(level(HOSTILE_NAME), schema(HOSTILE_NAME, HOSTILE_NAME, HOSTILE_NAME)), side())
    text = text_of(found, Sides("a\x1b", "b"), Style(width=60))
    assert all(line.isprintable() for line in text.splitlines())


@given(values=FLOW_SCHEMAS)
@settings(max_examples=25)
def test_configuration_does_not_differ_from_itself(values: list[dict[str, Any]]) -> None:
    found = compare_configurations(side(*values), side(*values))
    assert not found.changed
    assert (found.groups, found.objects) == ((), ())


@pytest.mark.slow
@given(before=FLOW_SCHEMAS, after=FLOW_SCHEMAS, digests=st.lists(DIGESTS, max_size=10), shares=st.integers(0, 60))
@settings(max_examples=60)
def test_changes_are_correct_and_complete(
    before: list[dict[str, Any]], after: list[dict[str, Any]], digests: list[RequestDigest], shares: int
) -> None:
    old, new = side(level("own"), *before), side(level("own", shares), *after)
    found = compare_configurations(old, new, "any")
    for group in found.groups:
        for change in group.changes:
            for example in change.examples:
                here = classify(old.configuration, example.witness.digest)
                there = classify(new.configuration, example.witness.digest)
                assert (here, there) == (example.old, example.new)
                assert (here.flow_schema, there.flow_schema) == (change.old.flow_schema, change.new.flow_schema)
                assert (here.priority_level.name, there.priority_level.name) == (group.old.name, group.new.name)
                assert (group.type == "priorityLevel") == (group.old.name != group.new.name)
    names = {(source, target) for _, source, target in list_changes(found)}
    for digest in digests:
        if not is_seen_by_apf(digest.request_info):
            continue
        here, there = classify(old.configuration, digest), classify(new.configuration, digest)
        levels = [where.limits.level(end.priority_level.name) for where, end in ((old, here), (new, there))]
        same = (here.flow_schema.name, levels[0] and levels[0]._replace(flow_schemas=())) == (
            there.flow_schema.name,
            levels[1] and levels[1]._replace(flow_schemas=()),
        )
        if not same:
            assert (here.flow_schema.name, there.flow_schema.name) in names


@pytest.mark.slow
@given(before=FLOW_SCHEMAS, after=FLOW_SCHEMAS)
@settings(max_examples=25)
def test_reverse_diff_has_the_same_pairs(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> None:
    there = compare_configurations(side(*before), side(*after))
    back = compare_configurations(side(*after), side(*before))
    assert list_changes(back) == {(what, target, source) for what, source, target in list_changes(there)}


def test_other_flow_schema_of_the_same_level() -> None:
    found = compare_configurations(side(schema("a", "workload-low")), side(schema("b", "workload-low")))
    assert list_changes(found) == {("flowSchema", "a", "b")}
    text = text_of(found, BOTH, Style())
    assert text.startswith("1 group of requests moves to another FlowSchema of the same priority level.")


@pytest.mark.parametrize(
    ("response", "words"),
    [
        (
            {"queues": 1, "handSize": 1, "queueLengthLimit": 9},
            "wait up to 15 seconds (with the default timeout) in the one queue, then get 429",
        ),
        (
            {"queues": 8, "handSize": 1, "queueLengthLimit": 9},
            "wait up to 15 seconds (with the default timeout) in 1 of 8 queues, then get 429",
        ),
        (
            {"queues": 8, "handSize": 2, "queueLengthLimit": 9},
            "wait up to 15 seconds (with the default timeout) in 1 of 2 queues (of 8), then get 429",
        ),
    ],
)
def test_fate_of_requests_without_a_free_seat(response: dict[str, int], words: str) -> None:
    now = level("x", 30, response)
    found = compare_configurations(side(level("x"), schema("a", "exempt")), side(now, schema("a", "x")))
    text = " ".join(text_of(found, BOTH, Style()).split())
    assert "before exempt: every request is executed immediately after " in text
    assert words in text


def test_level_without_nominal_seats_is_reported() -> None:
    found = compare_configurations(side(schema("a", "workload-low")), side(level("x", 0), schema("a", "x")))
    message = "The level has no nominal seats: requests wait up to 10 seconds until the level can borrow seats."
    assert message in " ".join(text_of(found, BOTH, Style()).split())
    assert f"  \n  {message}" in markdown.render(output.report_difference(found, BOTH))


def test_every_bound_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "MAX_GROUPS", 2)
    monkeypatch.setattr(output, "MAX_EXAMPLES", 1)
    monkeypatch.setattr(output, "MAX_OBJECTS", 3)
    monkeypatch.setattr(output, "MAX_MARKDOWN_LEVELS", 2)
    names = ("workload-low", "workload-high", "leader-election", "node-high")
    before = [two_rules(f"s{name}", name, ("pods", "secrets")) for name in names]
    after = [
        two_rules(f"s{name}", other, ("pods", "secrets"))
        for name, other in zip(names, names[1:] + names[:1], strict=True)
    ]
    for at, value in enumerate([*before, *after]):
        value["spec"]["rules"][0]["subjects"][0]["group"]["name"] = f"g{at % 4}"
    found = compare_configurations(side(*before), side(*after, *(level(f"l{at}") for at in range(3))))
    moved = [group for group in found.groups if output.needs_own_section(group)]
    left = sum(len(group.changes) for group in moved[2:])
    assert left >= 2
    text = text_of(found, BOTH, Style())
    assert f"And {left} more groups of requests: see --format json." in text
    shown = moved[0].changes[0]
    assert f"    and {len(shown.examples) - 1} more like these: see --format json" in text
    assert f"  and {len(found.objects) - 3} more: see --format json" in text
    page = markdown.render(output.report_difference(found, BOTH))
    assert f"And {left} more groups of requests, not shown here." in page
    assert f"and {len(shown.examples) - 1} more like these" in page
    assert f"- and {len(found.objects) - 3} more" in page
    rows = len([row for row in found.levels if row.is_changed])
    assert f"\n{rows - 2} more: see `--format json`.\n" in page


def test_remaining_requests_depend_on_the_world() -> None:
    """If a new FlowSchema captures all authenticated requests, the old FlowSchema keeps no requests.

    With `world="any"`, the old FlowSchema keeps the requests of users without the group
    `system:authenticated`.
    """
    earlier = schema("earlier", "workload-low", "system:authenticated", at=100)
    sides = side(level("x", 30), schema("own", "x")), side(level("x", 60), schema("own", "x"), earlier)
    assert ("limits", "own", "own") not in list_changes(compare_configurations(*sides))
    assert ("limits", "own", "own") in list_changes(compare_configurations(*sides, world="any"))


def test_moved_requests_depend_on_the_world() -> None:
    earlier = schema("earlier", "workload-low", "system:authenticated", at=100)
    sides = side(earlier, schema("own", "workload-low")), side(earlier, schema("own", "workload-high"))
    assert not list_changes(compare_configurations(*sides))
    assert list_changes(compare_configurations(*sides, world="any")) == {("priorityLevel", "own", "own")}


def test_changes_are_sorted_by_lost_seats() -> None:
    """Requests that move away from `exempt` are first, because they had no limit."""
    levels = level("s", 1), level("m", 30), level("l", 300)
    before = side(*levels, schema("a", "exempt", "a"), schema("b", "l", "b"), schema("c", "s", "c"))
    after = side(*levels, schema("a", "m", "a"), schema("b", "m", "b"), schema("c", "exempt", "c"))
    found = compare_configurations(before, after)
    moves = [(group.old.name, group.new.name) for group in found.groups if group.type == "priorityLevel"]
    assert moves == [("exempt", "m"), ("l", "m"), ("s", "exempt")]


def test_flow_schemas_with_one_generated_name_are_distinguished(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """FlowSchemas with `generateName` have no name before the server creates them, but they are compared separately."""
    twin = schema("", "workload-low", "dev", at=3000) | {"metadata": {"generateName": "x-"}}
    write(tmp_path / "old.json", [twin, twin])
    write(tmp_path / "new.json", [twin, twin, schema("bob", "workload-high", "ops", at=2999)])
    assert run(["diff", str(tmp_path / "old.json"), str(tmp_path / "new.json"), "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert {change["from"]["priorityLevel"] for change in found["changes"]} == {"global-default", "workload-low"}
    assert {change["to"]["priorityLevel"] for change in found["changes"]} == {"workload-high"}


UPGRADED = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1beta2
kind: PriorityLevelConfiguration
metadata: {name: monitoring}
spec: {type: Limited, limited: {assuredConcurrencyShares: 10, limitResponse: {type: Reject}}}
"""


@pytest.mark.parametrize(("old", "new"), [("1.25", "1.33"), ("1.33", "1.25")])
def test_borrowing_is_explained_if_one_release_lacks_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    (tmp_path / "apf.yaml").write_text(UPGRADED, encoding="utf-8")
    run(["diff", f"defaults:{old}", f"defaults:{new}", "-f", str(tmp_path / "apf.yaml"), "--isolated"])
    printed = capsys.readouterr().out
    assert "Borrowing is new in Kubernetes 1.26: levels use idle seats that other levels lend" in printed
    assert '"monitoring" has 24 seats in 1.25, and up to 355 in 1.33' in printed
    assert '"workload-low" keeps only 24 of its 236 seats while other levels borrow the rest.' in printed


@pytest.mark.parametrize(("old", "new"), [("1.18", "1.25"), ("1.26", "1.37"), ("1.36", "1.36")])
def test_borrowing_is_not_explained_if_no_release_adds_it(
    capsys: pytest.CaptureFixture[str], old: str, new: str
) -> None:
    run(["diff", f"defaults:{old}", f"defaults:{new}", "--isolated"])
    assert "Borrowing" not in capsys.readouterr().out


@pytest.mark.parametrize(("old", "new"), [("1.18", "1.22"), ("1.20", "1.25"), ("1.26", "1.28"), ("1.31", "1.34")])
def test_upgrade_names_only_what_happens(capsys: pytest.CaptureFixture[str], old: str, new: str) -> None:
    run(["diff", f"defaults:{old}", f"defaults:{new}", "--isolated"])
    printed = capsys.readouterr().out
    server = printed.partition(f"A {new} server ")[2]
    assert ("deletes removed objects" in server) == ("  removed: " in printed)
    assert ("updates changed objects" in server) == ("  changed: " in printed)
    assert ("creates missing objects" in server) == ("  added: " in printed)
