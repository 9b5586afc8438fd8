"""Reading a running cluster, with the installed kubectl if there is one, and with stand-ins for kubectl that fail."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support.api_server import GROUP, OBJECTS, recorded_answers, serve, status

from apflint.effective_configuration import Assumptions, Effective
from apflint.engine import load_inputs
from apflint.releases import NEWEST, parse_release
from apflint.sources import kubectl
from apflint.sources.kubectl import KubectlOptions, read_live_configuration
from apflint.user_error import UserError
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from pathlib import Path

needs_kubectl = pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not installed; Debian has it in the package kubernetes-client"
)
FLOW_SCHEMAS = f"/apis/{GROUP}/v1/flowschemas"


@needs_kubectl
def test_objects_and_release_of_the_server_are_read(tmp_path: Path) -> None:
    with serve(recorded_answers(), tmp_path) as kubeconfig:
        live = read_live_configuration(KubectlOptions(kubeconfig))
    assert live.kubernetes.name == "1.36"
    configuration = Effective(build_workspace(load_inputs(live.files), live.kubernetes), Assumptions()).configuration
    schemas = {schema.name for schema in (*configuration.order, *configuration.dangling)}
    assert schemas == {item["metadata"]["name"] for item in OBJECTS if item["kind"] == "FlowSchema"}
    levels = {item["metadata"]["name"] for item in OBJECTS if item["kind"] == "PriorityLevelConfiguration"}
    assert set(configuration.levels) == levels


@needs_kubectl
@pytest.mark.parametrize(("version", "git_version"), [("v1beta3", "v1.28.3+k3s1"), ("v1beta1", "v1.21.1-gke.100")])
def test_newest_served_version_is_read(version: str, git_version: str, tmp_path: Path) -> None:
    with serve(recorded_answers(version, git_version), tmp_path) as kubeconfig:
        live = read_live_configuration(KubectlOptions(kubeconfig, "recorded"))
    assert live.kubernetes == parse_release(git_version)
    assert f"apiVersion: {GROUP}/{version}" in live.files[0][1].decode()


@needs_kubectl
def test_list_of_no_items_is_empty(tmp_path: Path) -> None:
    empty = {FLOW_SCHEMAS: (200, {"kind": "FlowSchemaList", "items": None})}
    with serve(recorded_answers() | empty, tmp_path) as kubeconfig:
        live = read_live_configuration(KubectlOptions(kubeconfig))
    assert live.files
    assert {kind for kind, _ in live.managers} == {"PriorityLevelConfiguration"}


def test_all_pages_of_a_list_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = {
        **{path: body for path, (_, body) in recorded_answers().items()},
        FLOW_SCHEMAS: {
            "kind": "FlowSchemaList",
            "items": [{"metadata": {"name": "a"}}],
            "metadata": {"continue": "x&y"},
        },
        f"{FLOW_SCHEMAS}?continue=x%26y": {
            "kind": "FlowSchemaList",
            "items": [{"metadata": {"name": "b"}}],
            "metadata": {},
        },
    }
    monkeypatch.setattr(kubectl, "read_raw", lambda _options, path: json.dumps(answers[path]))
    names = [name for name, _ in read_live_configuration(KubectlOptions()).files if "flowschemas" in name]
    assert names == ["live:flowschemas/a", "live:flowschemas/b"]


def test_list_without_a_last_page_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    endless = {"kind": "FlowSchemaList", "items": [], "metadata": {"continue": "x"}}
    answers = {path: body for path, (_, body) in recorded_answers().items()}

    def read(_options: KubectlOptions, path: str) -> str:
        return json.dumps(endless if path.startswith(FLOW_SCHEMAS) else answers[path])

    monkeypatch.setattr(kubectl, "read_raw", read)
    with pytest.raises(UserError, match="more than 100 pages"):
        read_live_configuration(KubectlOptions())


FORBIDDEN = status(
    403, "Forbidden", f'flowschemas.{GROUP} is forbidden: User "alice" cannot list resource "flowschemas"'
)
DEEP = b'{"kind": "FlowSchemaList", "items": [{"metadata": {"name": "a"}, "spec": %s1%s}]}' % (b"[" * 900, b"]" * 900)


@needs_kubectl
@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({FLOW_SCHEMAS: FORBIDDEN}, f"apiGroups: [{GROUP}], resources: [flowschemas, prioritylevelconfigurations], verbs: [list]"),
        ({"/version": status(403, "Forbidden", "no")}, "nonResourceURLs: [/version], verbs: [get]"),
        ({f"/apis/{GROUP}": status(404, "NotFound", "no")}, f"does not serve the API group {GROUP}"),
        ({f"/apis/{GROUP}": (200, {"versions": [{"version": "v2"}]})}, f"serves v2 of {GROUP}, but apflint knows v1,"),
        ({f"/apis/{GROUP}": (200, {"versions": []})}, "serves no version"),
        ({f"/apis/{GROUP}": (200, {"versions": "v1"})}, "printed something other than a response of an API server"),
        (
            {"/version": (200, {"gitVersion": "v1.99.0"})},
            f'The nearest release is "{NEWEST.name}". The API server reports this version. Use --kubernetes to choose a release.',
        ),
        ({"/version": (200, {"gitVersion": 7})}, "printed something other"),
        ({"/version": (200, b"<html>")}, "printed something other"),
        ({"/version": (200, b"[" * 100_000)}, "printed something other"),
        ({"/version": (200, [])}, "printed something other"),
        ({FLOW_SCHEMAS: (200, {"kind": "PodList", "items": []})}, "printed something other"),
        ({FLOW_SCHEMAS: (200, {"kind": "FlowSchemaList", "items": ["a"]})}, "printed something other"),
        ({FLOW_SCHEMAS: (200, {"kind": "FlowSchemaList", "items": [{"metadata": {"name": 5}}]})}, "printed something other"),
        ({FLOW_SCHEMAS: (200, DEEP)}, "printed something other"),
        ({FLOW_SCHEMAS: status(401, "Unauthorized", "Unauthorized")}, "You must be logged in"),
        ({FLOW_SCHEMAS: status(500, "InternalError", "etcd is down")}, "etcd is down"),
    ],
)  # fmt: skip
def test_each_failure_is_a_sentence(changed: dict[str, tuple[int, Any]], expected: str, tmp_path: Path) -> None:
    with serve(recorded_answers() | changed, tmp_path) as kubeconfig, pytest.raises(UserError) as raised:
        read_live_configuration(KubectlOptions(kubeconfig))
    assert expected in str(raised.value)
    assert "\n" not in str(raised.value)


@needs_kubectl
def test_unknown_context_and_closed_port_are_errors(tmp_path: Path) -> None:
    with (
        serve(recorded_answers(), tmp_path) as kubeconfig,
        pytest.raises(UserError, match='context "other" does not exist'),
    ):
        read_live_configuration(KubectlOptions(kubeconfig, "other"))
    with pytest.raises(UserError, match="refused"):
        read_live_configuration(KubectlOptions(kubeconfig))


def _replace_kubectl(directory: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = directory / "kubectl"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:/usr/bin:/bin")


def test_missing_kubectl_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="kubectl is not installed, or not in the PATH"):
        read_live_configuration(KubectlOptions())


def test_kubectl_that_waits_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """kubectl has started a plugin that keeps standard output open, so the plugin must be killed, too."""
    _replace_kubectl(tmp_path, "sleep 60 & sleep 60", monkeypatch)
    monkeypatch.setattr("apflint.sources.kubectl.MAX_KUBECTL_SECONDS", 1)
    with pytest.raises(UserError, match="kubectl did not finish within 1 seconds"):
        read_live_configuration(KubectlOptions())


def test_kubectl_that_prints_without_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _replace_kubectl(tmp_path, "yes", monkeypatch)
    monkeypatch.setattr("apflint.sources.programs.MAX_FILE_BYTES", 100_000)
    with pytest.raises(UserError, match="kubectl printed more than"):
        read_live_configuration(KubectlOptions())


def test_long_message_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _replace_kubectl(tmp_path, "yes error | head -c 1000000 >&2; exit 1", monkeypatch)
    with pytest.raises(UserError) as raised:
        read_live_configuration(KubectlOptions())
    assert 400 < len(str(raised.value)) < 500


@needs_kubectl
def test_yaml_of_objects_is_that_of_kubectl(tmp_path: Path) -> None:
    """Line numbers of findings are those of the output of `kubectl get -o yaml`."""
    with serve(recorded_answers(), tmp_path) as kubeconfig:
        files = dict(read_live_configuration(KubectlOptions(kubeconfig)).files)
    labels = {"a": "1e3", "b": "no", "c": "2026-01-01", "d": "0o7", "e": "", "f": "~", "g": "*", "h": "1.5"}
    item = next(item for item in OBJECTS if item["kind"] == "FlowSchema" and item["status"])
    item = {**item, "metadata": {**item["metadata"], "labels": labels, "annotations": {"i": "two\nlines\n", "j": "é"}}}
    path = tmp_path / "object.json"
    path.write_text(json.dumps(item), encoding="utf-8")
    line = ["kubectl", "annotate", "--local", "-f", str(path), "-o", "yaml", "absent-"]
    printed = subprocess.run(line, capture_output=True, check=True).stdout
    answers = recorded_answers()
    body = answers[FLOW_SCHEMAS][1] | {"items": [item]}
    with serve(answers | {FLOW_SCHEMAS: (200, body)}, tmp_path) as kubeconfig:
        changed = dict(read_live_configuration(KubectlOptions(kubeconfig)).files)
    name = f"live:flowschemas/{item['metadata']['name']}"
    assert changed[name].decode() == printed.decode()
    assert b"managedFields" not in files[name]


@needs_kubectl
def test_objects_may_have_names_like_files_and_strange_strings(tmp_path: Path) -> None:
    answers = recorded_answers()
    body = answers[FLOW_SCHEMAS][1]
    spec = body["items"][0]["spec"]
    items = [
        {"metadata": {"name": f"a{suffix}", "labels": {"x": "\ud800", "\ud800": "x"}}, "spec": spec}
        for suffix in (".md", ".json", ".tf")
    ]
    with serve(answers | {FLOW_SCHEMAS: (200, body | {"items": items})}, tmp_path) as kubeconfig:
        live = read_live_configuration(KubectlOptions(kubeconfig))
    schemas = build_workspace(load_inputs(live.files), live.kubernetes).flow_schemas
    assert [schema.name for schema in schemas] == ["a.md", "a.json", "a.tf"]


PLUGIN_CONFIG = """\
apiVersion: v1
kind: Config
current-context: a
contexts: [{name: a, context: {cluster: a, user: a}}]
clusters: [{name: a, cluster: {server: "https://127.0.0.1:1"}}]
users:
  - name: a
    user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: no-such-plugin, interactiveMode: Never}}
"""


@needs_kubectl
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[", "error loading config file"),
        ("kind: Config\napiVersion: v1\ncurrent-context: gone\n", "context was not found for specified context: gone"),
        (PLUGIN_CONFIG, "no-such-plugin not found"),
    ],
)
def test_broken_kubeconfig_is_a_sentence(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "kubeconfig.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(UserError) as raised:
        read_live_configuration(KubectlOptions(str(tmp_path / "kubeconfig.yaml")))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)
