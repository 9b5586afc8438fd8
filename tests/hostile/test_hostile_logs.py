"""Text of manifests in the log of a CI system: no printed line is a command, and JSON output keeps the exact text."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from conftest import UNMEASURED
from limited import HEAD

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

EVIL = "##vso[task.setvariable variable=x]y ##[add-mask]z ##VSO[a]b ##teamcity[c] ::add-mask::w"
COMMAND = re.compile(r"^\s*::|##(\[|vso\[|teamcity\[)", re.IGNORECASE | re.MULTILINE)
CI = [
    {"CI": "true"},
    {"GITHUB_ACTIONS": "true"},
    {"TF_BUILD": "True"},
    {"GITLAB_CI": "true"},
    {"TEAMCITY_VERSION": "1"},
]

SCHEMA = (
    HEAD.replace("name: x\n", f"name: '{EVIL}'\n").replace("exempt", "workload-low")
    + f"""  matchingPrecedence: 1000
  distinguisherMethod: {{type: ByUser}}
  rules:
  - subjects: [{{kind: User, user: {{name: '{EVIL}'}}}}]
    nonResourceRules: [{{verbs: [get], nonResourceURLs: ['/{EVIL}']}}]
"""
)
LEVEL = f"""apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {{name: '{EVIL}'}}
spec: {{type: Limited, limited: {{nominalConcurrencyShares: 5, limitResponse: {{type: Reject}}}}}}
"""
SUITE = f"manifests: [a.yaml]\ntests:\n- name: '{EVIL}'\n  request: get /x\n  as: '{EVIL}'\n  reaches: {{flowSchema: exempt}}\n"
OLD = """# nothing
::add-mask::one\r  ::error::two
---
apiVersion: flowcontrol.apiserver.k8s.io/v1beta3
# ##vso[task.complete]three\tx
kind: FlowSchema
metadata: {name: x}
spec:
  priorityLevelConfiguration: {name: workload-low}
  matchingPrecedence: 1000
"""


def run(directory: Path, *arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "apflint", *arguments],
        cwd=directory,
        stderr=subprocess.PIPE,
        check=False,
        timeout=60,
        **more,
    )


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    (tmp_path / "a.yaml").write_text(SCHEMA)
    (tmp_path / "b.yaml").write_text(LEVEL)
    (tmp_path / "suite.yaml").write_text(SUITE)
    request = {"user": EVIL, "groups": [EVIL], "verb": "get", "path": f"/{EVIL}"}
    (tmp_path / "requests.jsonl").write_text(f"{json.dumps(request)}\n{json.dumps({EVIL: EVIL})}\n")
    (tmp_path / "settings.toml").write_text(f"exclude = ['{EVIL}']\n[per-file-ignores]\n'{EVIL}' = ['APF101']\n")
    return tmp_path


JSON = [
    "check a.yaml b.yaml --format json",
    "check a.yaml b.yaml --format sarif",
    "check a.yaml b.yaml --format gitlab",
    "explain get /EVIL --as EVIL --as-group EVIL -f a.yaml -f b.yaml --format json",
    "explain --requests requests.jsonl -f a.yaml -v",
    "limits a.yaml b.yaml --format json",
    "diff a.yaml a.yaml --format json",
    "shards --flow-schema EVIL --distinguisher EVIL --queues 8 --hand-size 2 --format json",
    "config --config settings.toml --format json",
    "test suite.yaml --format json",
    "rule APF101 --format json",
    "defaults --format json",
]


@pytest.mark.parametrize("line", JSON)
def test_no_json_has_a_command_in_it(line: str, directory: Path) -> None:
    arguments = [EVIL if word == "EVIL" else word.replace("/EVIL", f"/{EVIL}") for word in line.split()]
    done = run(directory, *arguments, stdout=subprocess.PIPE, env=UNMEASURED)
    assert done.returncode in (0, 1, 2)
    text = done.stdout.decode("ascii")
    assert text
    assert not COMMAND.search(text)
    assert not COMMAND.search(done.stderr.decode())
    values = [json.loads(part) for part in (text.splitlines() if "--requests" in line else [text])]
    named = any("a.yaml" in word or "EVIL" in word or ".toml" in word for word in line.split()) and "check" not in line
    # The JSON escapes the commands. Decoding the JSON returns the exact text.
    assert not named or "##vso[task.setvariable variable=x]y ##[add-mask]z" in str(values)


def test_settings_as_text_have_no_command_in_them(directory: Path) -> None:
    done = run(directory, "config", "--config", "settings.toml", stdout=subprocess.PIPE, env=UNMEASURED)
    assert not COMMAND.search(done.stdout.decode())


def write_old(directory: Path, end: str) -> None:
    (directory / "old.yaml").write_bytes(OLD.replace("\n", end).encode())


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("variables", CI, ids=lambda variables: next(iter(variables)))
@pytest.mark.parametrize(
    "arguments", [["migrate", "--diff", "old.yaml"], ["migrate", "--diff", "--to", "v1", "old.yaml"]]
)
def test_a_diff_in_the_log_of_a_ci_system_has_no_commands(
    arguments: list[str], variables: dict[str, str], end: str, tmp_path: Path
) -> None:
    write_old(tmp_path, end)
    environment = UNMEASURED | variables
    log = run(tmp_path, *arguments, stdout=subprocess.PIPE, env=environment).stdout.decode()
    assert "\n-apiVersion" in log
    assert not COMMAND.search(log.replace("\r", "\n"))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("variables", [{}, *CI[:2]], ids=["no CI", "CI", "GITHUB_ACTIONS"])
def test_a_diff_in_a_file_is_exact(variables: dict[str, str], end: str, tmp_path: Path) -> None:
    write_old(tmp_path, end)
    patch = tmp_path / "fix.patch"
    with patch.open("wb") as file:
        run(tmp_path, "migrate", "--diff", "old.yaml", stdout=file, env=UNMEASURED | variables)
    before = (tmp_path / "old.yaml").read_bytes()
    subprocess.run(["git", "apply", os.fspath(patch)], cwd=tmp_path, check=True, capture_output=True, env=UNMEASURED)
    after = (tmp_path / "old.yaml").read_bytes()
    assert after != before
    assert after.count(b"add-mask") == before.count(b"add-mask")


def test_a_diff_in_a_pipe_is_exact_without_a_ci_system(tmp_path: Path) -> None:
    write_old(tmp_path, "\n")
    done = run(tmp_path, "migrate", "--diff", "old.yaml", stdout=subprocess.PIPE, env=UNMEASURED)
    subprocess.run(["git", "apply"], cwd=tmp_path, check=True, capture_output=True, env=UNMEASURED, input=done.stdout)
    assert b"flowcontrol.apiserver.k8s.io/v1\n" in (tmp_path / "old.yaml").read_bytes()
