"""A directory for running command lines of the documentation: apflint, stand-ins for other tools, and small files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

LEVEL = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata:
  name: batch
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 10
    limitResponse:
      type: Queue
      queuing: {queues: 64, handSize: 6, queueLengthLimit: 50}
"""
SCHEMA = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata:
  name: batch
spec:
  priorityLevelConfiguration: {name: batch}
  matchingPrecedence: 870
  distinguisherMethod: {type: ByUser}
  rules:
    - subjects: [{kind: ServiceAccount, serviceAccount: {namespace: batch, name: runner}}]
      resourceRules:
        - {verbs: [get, list], apiGroups: [""], resources: [pods], namespaces: ["*"]}
"""
LIVE = SCHEMA.replace("spec:", "  uid: 6f9a4d3e-0c5b-4b7e-9a51-3f2d8a1c7e60\nspec:", 1)
OLD_LEVEL = LEVEL.replace("io/v1", "io/v1beta2").replace("nominal", "assured")
SUITE = """\
manifests: [{manifests}]
tests:
  - name: the runner is batch
    request: list pods -n batch
    as: system:serviceaccount:batch:runner
    reaches: {{priorityLevel: batch}}
"""
EVENT = (
    '{"kind":"Event","apiVersion":"audit.k8s.io/v1","verb":"list","requestURI":"/api/v1/namespaces/batch/pods",'
    '"user":{"username":"alice","groups":["system:authenticated"]},'
    '"objectRef":{"resource":"pods","namespace":"batch","apiVersion":"v1"}}\n'
)
REQUEST = '{"user":"alice","groups":["system:authenticated"],"verb":"list","resource":"pods","namespace":"batch"}\n'

FILES = {
    "manifests/level.yaml": LEVEL,
    "manifests/schema.yaml": SCHEMA,
    "main/level.yaml": LEVEL,
    "branch/level.yaml": LEVEL.replace("Shares: 10", "Shares: 20"),
    "old.yaml": OLD_LEVEL,
    "new.yaml": LEVEL,
    "live.yaml": LIVE + "---\n" + LEVEL,
    "event.json": EVENT,
    "requests.jsonl": REQUEST,
    "apf-test.yaml": SUITE.format(manifests="manifests"),
    "policy/apf-test.yaml": SUITE.format(manifests="../manifests"),
    "ci/apflint.toml": 'kubernetes = "1.36"\n',
    "chart.txt": f"---\n# Source: chart/templates/schema.yaml\n{SCHEMA}---\n# Source: chart/templates/level.yaml\n{LEVEL}",
}
STAND_INS = {
    # helm and kustomize print a stream of manifests. Comments of Helm name the templates.
    "helm": 'cat "$APFLINT_EXAMPLE/chart.txt"',
    "kustomize": 'cat "$APFLINT_EXAMPLE/live.yaml"',
    # `kubectl get --raw` answers for a running cluster.
    "kubectl": f"""case "$*" in
        "get --raw "*) exec "{sys.executable}" "{Path(__file__).with_name("recorded_kubectl.py")}" "$@" ;;
        *) cat "$APFLINT_EXAMPLE/live.yaml" ;;
    esac""",
    "dot": "cat",
    "apflint": f'exec "{sys.executable}" -m apflint "$@"',
}


def prepare(directory: Path) -> dict[str, str]:
    """Write the files and programs, and return the environment for command lines."""
    for name, text in FILES.items():
        file = directory / "work" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    # Some pages show a story of this repository. Directories that are searched do not follow the link.
    (directory / "work" / "fixtures").symlink_to(ROOT / "fixtures")
    programs = directory / "bin"
    programs.mkdir()
    for name, text in STAND_INS.items():
        programs.joinpath(name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        programs.joinpath(name).chmod(0o755)
    return environment() | {
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "APFLINT_EXAMPLE": str(directory / "work"),
        "PYTHONPATH": str(ROOT),
    }


def environment() -> dict[str, str]:
    """Return the environment without variables that change the output or the Python."""
    removed = ("PYTHON", "VIRTUAL_ENV", "GITHUB_", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "_APFLINT", "GIT_")
    return {key: value for key, value in os.environ.items() if not key.startswith(removed)}


def bash(line: str, directory: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a command line in the prepared directory. A pipe fails if any part of it fails."""
    return subprocess.run(
        ["bash", "--norc", "-o", "pipefail", "-c", line],
        cwd=directory / "work",
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
