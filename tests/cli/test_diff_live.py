"""`apflint diff live manifests/`: a real kubectl reads a server that answers with recorded objects."""

from __future__ import annotations

import copy
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from support import builders
from support.api_server import GROUP, recorded_answers, serve, status

from apflint.cli.app import run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not installed; Debian has it in the package kubernetes-client"
)
LEVELS, SCHEMAS = (f"/apis/{GROUP}/v1/{resource}" for resource in ("prioritylevelconfigurations", "flowschemas"))
LIMITED = ("spec", "limited")
QUEUING = {"queues": 2, "handSize": 1, "queueLengthLimit": 4}


def owned(manager: str, *path: str, operation: str = "Update") -> dict[str, Any]:
    """Return an entry of managedFields for one field."""
    fields: dict[str, Any] = {}
    for step in reversed(path):
        fields = {f"f:{step}": fields}
    return {"manager": manager, "operation": operation, "fieldsType": "FieldsV1", "fieldsV1": fields}


@pytest.fixture
def answers() -> dict[str, tuple[int, Any]]:
    return copy.deepcopy(recorded_answers())


@pytest.fixture
def cluster(tmp_path: Path, answers: dict[str, tuple[int, Any]], monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Serve `answers`, which a test may change, and yield the path of the kubeconfig."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "manifests").mkdir()
    with serve(answers, tmp_path) as kubeconfig:
        yield kubeconfig


def find_item(answers: dict[str, tuple[int, Any]], path: str, name: str) -> dict[str, Any]:
    items: list[dict[str, Any]] = answers[path][1]["items"]
    return next(item for item in items if item["metadata"]["name"] == name)


def write(tmp_path: Path, *values: dict[str, Any]) -> None:
    text = yaml.safe_dump_all(values, sort_keys=False)
    (tmp_path / "manifests/apf.yaml").write_text(text, encoding="utf-8")


def compare(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    assert run(["diff", *arguments, "--format", "json"]) in (0, 1)
    captured = capsys.readouterr()
    assert captured.err == ""
    found = json.loads(captured.out)
    assert run(["schema", "diff-output"]) == 0
    Draft202012Validator(json.loads(capsys.readouterr().out)).validate(found)
    return found


def test_objects_that_only_the_cluster_has_stay(
    cluster: str, answers: dict[str, tuple[int, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = builders.flow_schema(
        "new", "workload-low", 600, subjects=[builders.group("dev")], resources=[{**builders.ALL}]
    )
    write(tmp_path, new)
    found = compare(capsys, "live", "manifests", "--kubeconfig", cluster)
    assert [(row["change"], row["name"]) for row in found["objects"]] == [("added", "new")]
    assert {found[side]["kubernetes"] for side in ("old", "new")} == {"1.36"}
    names = {row["name"] for row in found["drift"]["onlyInCluster"]}
    own = {
        item["metadata"]["name"]
        for path in (LEVELS, SCHEMAS)
        for item in answers[path][1]["items"]
        if not item["metadata"].get("annotations")
    }
    assert names == own >= {"batch", "ci-jobs"}
    assert found["drift"]["keptFields"] == found["drift"]["managers"] == []
    back = compare(capsys, "manifests", "live", "--kubeconfig", cluster)
    assert [(row["change"], row["name"]) for row in back["objects"]] == [("removed", "new")]
    assert back["drift"] == found["drift"]


def test_applied_manifests_have_no_drift(
    cluster: str, answers: dict[str, tuple[int, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    values = []
    for path, kind in ((LEVELS, "PriorityLevelConfiguration"), (SCHEMAS, "FlowSchema")):
        for item in answers[path][1]["items"]:
            named = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": item["metadata"]["name"]}}
            values.append({**named, "spec": item["spec"]})
    write(tmp_path, *values)
    assert run(["diff", "live", "manifests", "--kubeconfig", cluster]) == 0
    out = capsys.readouterr().out
    assert "No request changes its FlowSchema" in out
    assert "Only in the cluster" not in out
    assert "FlowSchema catch-all: api-priority-and-fairness-config-producer-v1" in out


@pytest.mark.parametrize(
    ("managers", "kept", "others"),
    [
        ([owned("kubectl-edit", *LIMITED, "lendablePercent")], ["kubectl-edit"], ["kubectl-edit"]),
        ([owned("kubectl-client-side-apply", *LIMITED, "lendablePercent")], None, []),
        ([owned("argo", *LIMITED, "lendablePercent", operation="Apply")], None, []),
        ([owned("argo", *LIMITED, "lendablePercent", operation="Apply"), owned("scaler", *LIMITED)], None, ["scaler"]),
        ([owned("kubectl-client-side-apply", *LIMITED, "shares"), owned("scaler", *LIMITED)], ["scaler"], ["scaler"]),
        ([{**owned("kubectl-edit", *LIMITED, "lendablePercent"), "subresource": "status"}], [], []),
        ("garbage", [], []),
        ([{"manager": 7}, 8, {"manager": "x", "fieldsV1": "y"}], [], []),
    ],
)
def test_fields_of_other_managers_stay(
    managers: Any,
    kept: list[str] | None,
    others: list[str],
    cluster: str,
    answers: dict[str, tuple[int, Any]],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """If a manifest does not set a field, `kubectl apply` removes the field only if an earlier apply has set it."""
    live = find_item(answers, LEVELS, "batch")
    live["spec"]["limited"] |= {"lendablePercent": 40, "borrowingLimitPercent": None}
    live["metadata"]["managedFields"] = managers
    limited = {key: live["spec"]["limited"][key] for key in ("nominalConcurrencyShares", "limitResponse")}
    write(tmp_path, builders.priority_level("batch") | {"spec": {"type": "Limited", "limited": limited}})
    found = compare(capsys, "live", "manifests", "--kubeconfig", cluster)
    drift = found["drift"]
    assert [(row["name"], row["managers"]) for row in drift["managers"]] == ([("batch", others)] if others else [])
    if kept is None:
        assert drift["keptFields"] == []
        assert [row["details"] for row in found["objects"]] == [["lendablePercent 40 -> 0"]]
        assert found["changed"]
    else:
        (field,) = drift["keptFields"]
        assert (field["field"], field["value"]) == ("spec.limited.lendablePercent", "40")
        assert field["managers"] == kept
        assert found["objects"] == []
        assert not found["changed"]


def test_lists_of_the_manifest_replace_those_of_the_cluster(
    cluster: str, answers: dict[str, tuple[int, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live = find_item(answers, SCHEMAS, "ci-jobs")
    changed = copy.deepcopy(live["spec"])
    changed["rules"][0]["subjects"] = [builders.group("others")]
    del changed["matchingPrecedence"]
    del changed["distinguisherMethod"]
    metadata = {"name": "ci-jobs"}
    write(tmp_path, {"apiVersion": f"{GROUP}/v1", "kind": "FlowSchema", "metadata": metadata, "spec": changed})
    found = compare(capsys, "live", "manifests", "--kubeconfig", cluster)
    assert [row["details"] for row in found["objects"]] == [["rules: 1 changed"]]
    assert {row["field"] for row in found["drift"]["keptFields"]} == {
        "spec.matchingPrecedence",
        "spec.distinguisherMethod.type",
    }


def test_text_and_markdown_list_the_drift(
    cluster: str, answers: dict[str, tuple[int, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live = find_item(answers, LEVELS, "batch")
    live["spec"]["limited"]["lendablePercent"] = 40
    live["metadata"]["managedFields"] = [owned("kubectl-edit", *LIMITED, "lendablePercent")]
    write(tmp_path, builders.priority_level("batch", 20, QUEUING))
    assert run(["diff", "live", "manifests", "--kubeconfig", cluster]) == 1
    out = capsys.readouterr().out
    assert "Only in the cluster (kubectl apply does not delete them)\n  FlowSchema anon-api\n" in out
    assert "  PriorityLevelConfiguration batch: spec.limited.lendablePercent 40 (set by kubectl-edit)\n" in out
    assert "Objects with fields of other managers\n  PriorityLevelConfiguration batch: kubectl-edit\n" in out
    assert run(["diff", "live", "manifests", "--kubeconfig", cluster, "--format", "markdown"]) == 1
    out = capsys.readouterr().out
    assert (
        "<summary>Only in the cluster (kubectl apply does not delete them): 17</summary>\n\n- `FlowSchema anon-api`"
        in out
    )


def test_names_of_managers_cannot_control_the_terminal(
    cluster: str, answers: dict[str, tuple[int, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live = find_item(answers, LEVELS, "batch")
    live["metadata"]["managedFields"] = [owned("\x1b[31m\nevil", *LIMITED)]
    write(tmp_path, builders.priority_level("batch", 20, QUEUING))
    run(["diff", "live", "manifests", "--kubeconfig", cluster])
    out = capsys.readouterr().out
    assert "evil" in out
    assert "\x1b" not in out
    assert "\nevil" not in out


def test_live_and_a_cluster_of_the_settings(cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both sides have the seats of the cluster in the settings, and the release of the running cluster."""
    write(tmp_path, builders.priority_level("batch", 20, QUEUING))
    table = '[[cluster]]\nname = "prod"\nkubernetes = "1.30"\nserver-concurrency = 900\npaths = ["manifests"]\n'
    (tmp_path / "apflint.toml").write_text(table, encoding="utf-8")
    for sides in (("live", "cluster:prod"), ("cluster:prod", "live"), ("live", ".")):
        found = compare(capsys, *sides, "--kubeconfig", cluster)
        assert {(found[side]["kubernetes"], found[side]["serverConcurrency"]) for side in ("old", "new")} == {
            ("1.36", 900)
        }
        assert found["drift"]["onlyInCluster"]


def test_live_and_built_in_objects(cluster: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = compare(capsys, "live", "defaults:1.36", "--kubeconfig", cluster)
    assert found["drift"] is None
    assert {row["change"] for row in found["objects"]} == {"removed"}
    assert compare(capsys, "live", "live", "--kubeconfig", cluster)["changed"] is False


def test_cluster_is_read_once(
    cluster: str, answers: dict[str, tuple[int, Any]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, builders.priority_level("batch", 20, QUEUING))
    calls: list[str] = []

    class Counted(dict[str, tuple[int, Any]]):
        def get(self, key: str, default: Any = None) -> Any:
            calls.append(key)
            return answers.get(key, default)

    with serve(Counted(), tmp_path) as kubeconfig:
        compare(capsys, "live", "manifests", "--kubeconfig", kubeconfig)
    assert cluster
    assert calls.count(LEVELS) == calls.count(SCHEMAS) == 1


def test_kept_field_that_the_server_rejects_is_named(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The manifest sets the type Reject, but the queues stay, because another manager has set them. So the result is invalid."""
    write(tmp_path, builders.priority_level("batch", 20, None))
    assert run(["diff", "live", "manifests", "--kubeconfig", cluster]) == 0
    captured = capsys.readouterr()
    assert captured.err.count("\n") == 1
    assert captured.err.startswith('apflint: PriorityLevelConfiguration "batch" (manifests/apf.yaml:')
    assert (
        "applying the manifest fails, and the cluster keeps its object. The API server rejects the manifest: spec.limited"
        in captured.err
    )
    queuing = "spec.limited.limitResponse.queuing"
    fields = f"{queuing}.handSize, {queuing}.queueLengthLimit and {queuing}.queues"
    assert captured.err.endswith(f"The object keeps fields that the manifest does not set: {fields}\n")
    assert "apflint diff live" not in captured.err
    assert "PriorityLevelConfiguration batch" not in captured.out


@pytest.mark.parametrize("existing", [True, False])
@pytest.mark.parametrize(
    ("precedence", "version", "reason"),
    [
        (10_001, "v1", "spec.matchingPrecedence: "),
        (900, "v1beta2", 'it does not serve "flowcontrol.apiserver.k8s.io/v1beta2"'),
    ],
)
def test_rejected_manifest_changes_nothing(
    existing: bool,
    precedence: int,
    version: str,
    reason: str,
    cluster: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = "ci-jobs" if existing else "new"
    write(tmp_path, builders.flow_schema(name, "batch", precedence, version=version))
    assert run(["diff", "live", "manifests", "--kubeconfig", cluster, "--format", "json"]) == 0
    captured = capsys.readouterr()
    found = json.loads(captured.out)
    assert found["objects"] == []
    assert name not in {row["name"] for row in found["drift"]["onlyInCluster"]}
    assert captured.err.count("\n") == 1
    outcome = "the cluster keeps its object" if existing else "the cluster does not get the object"
    assert f"applying the manifest fails, and {outcome}. The API server rejects the manifest: {reason}" in captured.err
    assert run(["limits", "--live", "--kubeconfig", cluster, "-f", "manifests", "--format", "json"]) == 0
    assert "applying the manifest fails" in capsys.readouterr().err
    assert run(["explain", "--live", "--kubeconfig", cluster, "get", "/", "--as", "x", "-f", "manifests"]) == 0
    assert "applying the manifest fails" in capsys.readouterr().err


def test_notes_about_rejected_manifests_are_limited(
    cluster: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, *(builders.flow_schema(f"new-{number}", precedence=-1) for number in range(5)))
    assert run(["diff", "live", "manifests", "--kubeconfig", cluster]) == 0
    err = capsys.readouterr().err
    assert err.count("\n") == 4
    assert err.endswith("Applying 2 other manifests fails, too; see `apflint check`\n")


@pytest.mark.parametrize(
    ("version", "git_version", "manager", "kept"),
    [
        ("v1beta3", "v1.30.1", None, 7),
        ("v1beta3", "v1.30.1", None, 0),
        ("v1beta3", "v1.30.1", "f:nominalConcurrencyShares", None),
        ("v1beta2", "v1.28.1", None, 7),
        ("v1beta2", "v1.28.1", "f:nominalConcurrencyShares", None),
        ("v1beta2", "v1.28.1", "f:assuredConcurrencyShares", None),
    ],
)
def test_objects_are_merged_in_the_version_of_the_manifest(
    version: str,
    git_version: str,
    manager: str | None,
    kept: int | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Shares that the manifest does not set are kept if no manager has applied them, whichever API version was read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "manifests").mkdir()
    read = "v1" if version == "v1beta3" else "v1beta3"
    served = copy.deepcopy(recorded_answers(read, git_version))
    served[f"/apis/{GROUP}"][1]["versions"] = [{"version": read}, {"version": version}]
    levels = f"/apis/{GROUP}/{read}/prioritylevelconfigurations"
    live = find_item(served, levels, "batch")
    live["spec"]["limited"]["nominalConcurrencyShares"] = kept if kept is not None else 7
    live["metadata"]["managedFields"] = []
    if manager is not None:
        fields: dict[str, Any] = {"f:spec": {"f:limited": {manager: {}}}}
        live["metadata"]["managedFields"] = [{"manager": "argo", "operation": "Apply", "fieldsV1": fields}]
    manifest = builders.priority_level("batch", version=version)
    write(tmp_path, manifest | {"spec": {"type": "Limited", "limited": {"lendablePercent": 10}}})
    with serve(served, tmp_path) as kubeconfig:
        found = compare(capsys, "live", "manifests", "--kubeconfig", kubeconfig)
    (row,) = found["objects"]
    assert row["change"] == "changed"
    details = ["lendablePercent 0 -> 10"]
    if kept is None:
        details.insert(0, "shares 7 -> 30")
    else:
        field = f"spec.limited.{'nominal' if version == 'v1beta3' else 'assured'}ConcurrencyShares"
        assert (field, str(kept)) in {(entry["field"], entry["value"]) for entry in found["drift"]["keptFields"]}
    assert sorted(row["details"]) == sorted(details)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("manifests", "defaults:1.36"), "--kubeconfig and --kube-context require live as OLD or NEW"),
        (("live", "manifests", "--no-defaults"), "live and --no-defaults cannot be combined"),
        (("live", "manifests", "--kube-context", "other"), 'context "other" does not exist'),
        (("live", "missing"), "missing: No such file or directory."),
    ],
)
def test_each_mistake_is_a_sentence(
    arguments: tuple[str, ...], message: str, cluster: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["diff", *arguments, "--kubeconfig", cluster]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_missing_permission_names_the_rule(
    cluster: str, answers: dict[str, tuple[int, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    answers[SCHEMAS] = status(403, "Forbidden", "flowschemas is forbidden")
    assert run(["diff", "live", "manifests", "--kubeconfig", cluster]) == 2
    assert "resources: [flowschemas, prioritylevelconfigurations], verbs: [list]" in capsys.readouterr().err
