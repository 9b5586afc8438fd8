"""APF105: exported objects, and lists of them as `kubectl get` prints them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.builders import findings, flow_schema, full_text, group

from apflint import builtin
from apflint.cli.app import run
from apflint.engine import Options, check
from apflint.releases import RELEASES, Release, parse_release

if TYPE_CHECKING:
    from apflint.finding import Finding

FIXTURES = Path(__file__).parents[2] / "fixtures"
RECORDED: dict[str, Any] = json.loads((FIXTURES / "dumps/1.36.json").read_text(encoding="utf-8"))
SERVED = {
    **{f"1.{minor}": "v1alpha1" for minor in (18, 19)},
    **{f"1.{minor}": "v1beta1" for minor in (20, 21, 22)},
    **{f"1.{minor}": "v1beta2" for minor in (23, 24, 25)},
    **{f"1.{minor}": "v1beta3" for minor in (26, 27, 28)},
}
"""The API version in which a release returns the objects, for releases that do not return v1."""


def filled_in(value: dict[str, Any], number: int = 0) -> dict[str, Any]:
    """Return an object as a server returns it. The fields that a server adds are copied from a recorded object."""
    recorded = RECORDED["items"][number % len(RECORDED["items"])]
    server = {key: field for key, field in recorded["metadata"].items() if key != "annotations"}
    metadata = {**server, **value["metadata"]}
    # Releases before 1.22 have no `subresource` in managedFields, so the field is removed.
    manager = {key: field for key, field in metadata["managedFields"][0].items() if key != "subresource"}
    return {**value, "metadata": {**metadata, "managedFields": [manager]}, "status": recorded["status"]}


def returned(*objects: dict[str, Any]) -> dict[str, Any]:
    """Return a list as `kubectl get -o json` prints it."""
    return {"apiVersion": "v1", "kind": "List", "items": [filled_in(value, at) for at, value in enumerate(objects)]}


def reported(value: dict[str, Any], kubernetes: str = "1.36", name: str = "dump.json") -> list[Finding]:
    return list(
        check([(name, json.dumps(value, indent=1).encode())], Options(kubernetes=parse_release(kubernetes))).findings
    )


def test_recorded_dump_of_an_untouched_server_has_no_findings() -> None:
    assert len(RECORDED["items"]) == 19
    assert not reported(RECORDED)


@pytest.mark.parametrize("target", RELEASES, ids=lambda release: release.name)
def test_dump_of_an_untouched_server_of_each_release_has_no_findings(target: Release) -> None:
    objects = builtin.build_manifests(target, SERVED.get(target.name, "v1"))
    assert not reported(returned(*map(dict, objects)), target.name)


@pytest.mark.parametrize("version", ["v1beta2", "v1beta3"])
def test_dump_in_a_deprecated_version_is_what_the_server_chose(version: str) -> None:
    objects = builtin.build_manifests(RELEASES[10], version)
    assert RELEASES[10].name == "1.28"
    assert not reported(returned(*map(dict, objects)), "1.28")


def test_untouched_dump_is_all_good_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["check", str(FIXTURES / "dumps/1.36.json"), "--kubernetes", "1.36"]) == 0
    assert capsys.readouterr().err.startswith("All good: 19 objects in 1 file")


def test_dump_with_own_objects_has_one_note() -> None:
    own = [flow_schema(f"own-{number}", precedence=2000 + number) for number in range(5)]
    dump = returned(*own)
    dump["items"] += RECORDED["items"]
    (finding,) = [report for report in reported(dump) if report.rule == "APF105"]
    assert finding.severity == "info"
    assert "has 24 objects with fields" in finding.message
    assert finding.object is not None
    assert finding.object.name == "own-0"
    piped = reported(dump, name="<stdin>")  # as in `kubectl get ... | apflint check -`
    assert "APF105" not in {report.rule for report in piped}
    assert piped


def test_lists_that_nobody_exported_have_a_finding_for_each_object() -> None:
    copies = [flow_schema(f"own-{number}") for number in range(3)]
    for copy in copies:
        copy["metadata"]["uid"] = "3c0ac2b5-1f83-4a04-8d5c-6f3f5b8c2a11"
    listed = {"apiVersion": "v1", "kind": "List", "items": copies}
    assert len([finding for finding in reported(listed) if finding.rule == "APF105"]) == 3


def test_exported_object_has_one_finding_with_all_of_its_fields() -> None:
    (finding,) = findings(filled_in(flow_schema("ci"), 12), only="APF105")
    assert finding.fix is not None
    assert {operation.path[-1] for operation in finding.fix.operations} == {
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "managedFields",
        "status",
    }


@pytest.mark.parametrize(
    ("field", "severity"),
    [("uid", "warning"), ("resourceVersion", "warning"), ("generation", "info"), ("selfLink", "info")],
)
def test_fields_that_make_requests_fail_are_warnings(field: str, severity: str) -> None:
    manifest = flow_schema("ci")
    manifest["metadata"][field] = 1 if field == "generation" else "12"
    (finding,) = findings(manifest, only="APF105")
    assert finding.severity == severity
    assert finding.field == f"metadata.{field}"


def test_fix_removes_the_fields_of_all_objects_of_a_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = [flow_schema(f"own-{number}", precedence=2000 + number) for number in range(4)]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(returned(*own), indent=2))
    assert run(["fix", str(path)]) == 0
    capsys.readouterr()
    # Generated manifests often contain an empty status, so it is not a finding.
    items = [
        {key: value for key, value in item.items() if key != "status"} for item in json.loads(path.read_text())["items"]
    ]
    assert items == own


def test_check_and_fix_reports_no_covered_findings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = [flow_schema(f"own-{number}", precedence=2000 + number) for number in range(4)]
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(returned(*own), indent=2))
    assert run(["check", "--diff", "--format", "json", str(path)]) == 1
    assert capsys.readouterr().out.count("managedFields") >= 4
    assert run(["check", "--format", "json", str(path)]) == 1
    assert capsys.readouterr().out.count('"APF105"') == 1


@pytest.mark.parametrize("kubernetes", ["1.18", "1.19"])
def test_version_that_a_server_serves_on_request_only_is_one_note(kubernetes: str) -> None:
    target = next(release for release in RELEASES if release.name == kubernetes)
    stored = {"apiVersion": "v1", "kind": "List", "items": builtin.build_manifests(target, "v1alpha1")}
    (finding,) = reported(stored, kubernetes)
    assert (finding.rule, finding.severity) == ("APF701", "info")
    assert finding.span.line == 6


def test_a_level_that_the_server_misses_is_not_assumed_to_exist() -> None:
    everything = [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "clusterScope": True, "namespaces": ["*"]}]
    first = flow_schema("first", "missing", 700, subjects=[group("dev")], resources=everything)
    second = flow_schema("second", "workload-high", 800, subjects=[group("dev")], resources=everything)
    exported = returned(first, second)
    exported["items"][0]["status"] = {"conditions": [{"type": "Dangling", "status": "True", "reason": "NotFound"}]}
    found = {finding.rule: finding for finding in reported(exported)}
    assert "APF501" not in found
    assert found["APF401"].message == 'priority level "missing" does not exist'
    assert "--context" not in str(found["APF401"].help)
    # A file with one object may be old, so the missing level may exist by now.
    in_files = {finding.rule: finding for finding in findings(*exported["items"])}
    assert 'No file defines the priority level "missing"' in full_text(in_files["APF501"])
    assert "--context" in str(in_files["APF401"].help)
