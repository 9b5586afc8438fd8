"""SARIF and JUnit reports, validated with published schemas. The tests download the schemas, because this repository
must not contain copies.

Microsoft's multitool for SARIF contains its schema. The source of pytest contains the XSD of Jenkins' xunit plugin."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
import xmlschema
from hypothesis import given, settings
from support.hostile_manifests import FILES

from apflint.engine import Options, check
from apflint.output.console import Style
from apflint.output.findings import render
from output.findings.test_read_back import LAWS, in_process

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.finding import Report

pytestmark = pytest.mark.skipif(
    not os.environ.get("APFLINT_TEST_WHEEL"),
    reason="fetches schemas from the package indexes; set APFLINT_TEST_WHEEL=1 to run it, as .ci/run does",
)

GROUP = "flowcontrol.apiserver.k8s.io"
CLEAN = f"""\
apiVersion: {GROUP}/v1
kind: FlowSchema
metadata: {{name: a}}
spec:
  matchingPrecedence: 500
  priorityLevelConfiguration: {{name: workload-low}}
  distinguisherMethod: {{type: ByUser}}
  rules:
  - subjects: [{{kind: User, user: {{name: alice}}}}]
    resourceRules: [{{verbs: [get], apiGroups: [''], resources: [pods], namespaces: [x]}}]
"""
HOSTILE = "]]> ::error::x%0A | <script>alert(1)</script> &amp; \\x00\\x1b[31m\\uFFFE\\U0001F600 é"


@pytest.fixture(scope="module")
def reports(root: Path) -> dict[str, Report]:
    """Return reports of clean, suppressed, hostile and empty input, and of objects that real servers rejected."""
    recorded = (root / "fixtures" / "conformance" / "1.36-v1.jsonl").read_text(encoding="utf-8").splitlines()
    manifests = [json.loads(line)["manifest"] for line in recorded]
    everything = [
        (f"sub directory/{number}.yaml", manifest.encode("utf-8", "surrogatepass"))
        for number, manifest in enumerate(manifests)
        if isinstance(manifest, str)
    ]
    suppressed = CLEAN.replace("verbs: [get]", "verbs: [get, get]").replace(
        "  - subjects", "  # apflint: ignore[APF106] reported twice\n  - subjects"
    )
    hostile = CLEAN.replace("verbs: [get]", f'verbs: ["{HOSTILE}"]').replace("name: a}", f'name: "{HOSTILE}"}}')
    inputs = {
        "findings": everything,
        "clean": [("a.yaml", CLEAN.encode())],
        "suppressed": [("a.yaml", suppressed.encode())],
        "hostile": [(f"<a> & ]]>|{chr(27)}.yaml", hostile.encode())],
        "nothing": [],
    }
    found = {name: check(content, Options()) for name, content in inputs.items()}
    assert len(found["findings"].findings) > 200
    assert not found["clean"].findings
    assert (found["suppressed"].findings, found["suppressed"].suppressed) == ((), 1)
    assert len(found["hostile"].findings) > 1
    return found


def fetch(command: list[str], directory: Path) -> None:
    done = subprocess.run(command, cwd=directory, check=False, capture_output=True, text=True, timeout=300)
    if done.returncode:
        pytest.skip(f"the schema could not be fetched: {done.stderr.strip()[-200:]}")


@pytest.fixture(scope="module")
def sarif_schema(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed, and the SARIF schema is part of an npm package")
    directory = tmp_path_factory.mktemp("sarif")
    fetch([npm, "pack", "--silent", "@microsoft/sarif-multitool-linux@5.7.0"], directory)
    (packed,) = directory.glob("*.tgz")
    with tarfile.open(packed) as archive:
        file = archive.extractfile("package/sarif-2.1.0.json")
        assert file is not None
        schema: dict[str, Any] = json.load(file)
    return schema


@pytest.fixture(scope="module")
def junit_schema(tmp_path_factory: pytest.TempPathFactory) -> xmlschema.XMLSchema:
    directory = tmp_path_factory.mktemp("junit")
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary=:all:", "pytest==9.0.0"]
    fetch(command, directory)
    (packed,) = directory.glob("*.tar.gz")
    with tarfile.open(packed) as archive:
        file = archive.extractfile("pytest-9.0.0/testing/example_scripts/junit-10.xsd")
        assert file is not None
        return xmlschema.XMLSchema(file.read().decode())


def test_sarif_is_valid(reports: dict[str, Report], sarif_schema: dict[str, Any]) -> None:
    kind = jsonschema.validators.validator_for(sarif_schema)
    validator = kind(sarif_schema, format_checker=jsonschema.FormatChecker())
    for name, report in reports.items():
        log = json.loads(render(report, "sarif", Style()))
        assert not [error.message for error in validator.iter_errors(log)], name
        assert len(log["runs"][0]["results"]) == len(report.findings)
    del log["runs"][0]["tool"]
    assert not validator.is_valid(log)


def test_junit_is_valid(reports: dict[str, Report], junit_schema: xmlschema.XMLSchema) -> None:
    for name, report in reports.items():
        text = render(report, "junit", Style())
        assert not [str(error) for error in junit_schema.iter_errors(text)], name
    assert not junit_schema.is_valid(text.replace("testsuites", "suites"))


@given(FILES)
@settings(LAWS, max_examples=40)
def test_reports_of_hostile_manifests_are_valid(
    junit_schema: xmlschema.XMLSchema, sarif_schema: dict[str, Any], files: dict[str, bytes]
) -> None:
    reports = in_process(files)
    assert not [str(error) for error in junit_schema.iter_errors(reports["junit"])]
    jsonschema.validators.validator_for(sarif_schema)(sarif_schema).validate(json.loads(reports["sarif"]))
