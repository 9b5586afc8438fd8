"""Prepares a directory for commands of the documentation: apflint, stand-ins for other tools, and files or a checkout."""

from __future__ import annotations

import atexit
import compileall
import gzip
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

from support.programs import USAGES

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = {usage.split()[0] for usage in USAGES} | {"python", "python3"}
"""Programs that are always replaced by stand-ins, even if they are installed."""

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
WITHOUT_EFFECT = {
    "APF401": SCHEMA.replace("{name: batch}", "{name: missing}"),
    "APF404": LEVEL.replace("name: batch", "name: workload-low"),
    "APF501": SCHEMA.replace("870", "9500"),
    "APF504": SCHEMA.replace('apiGroups: [""]', 'apiGroups: ["apps/v1"]'),
    "APF506": SCHEMA.replace("pods", "nodes").replace("[get, list]", "[get]"),
}
"""A manifest without an effect for each rule that reports such manifests: a FlowSchema that is skipped, is unreachable
or matches nothing, or a change that the API server reverts. For comparison, `LEVEL` and `SCHEMA` have an effect, and
`SCHEMA` has a warning (APF505)."""
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
    # Metrics of a server whose level `slow` has full queues, now and 24 seconds earlier.
    "metrics-1.txt": gzip.decompress((ROOT / "fixtures/live/1-varied.metrics.txt.gz").read_bytes()).decode(),
    "metrics.txt": gzip.decompress((ROOT / "fixtures/live/2-slow-a.metrics.txt.gz").read_bytes()).decode(),
    "dump_requests.txt": (ROOT / "fixtures/live/2-slow-a.requests.txt").read_text(encoding="utf-8"),
    "chart.txt": f"---\n# Source: chart/templates/schema.yaml\n{SCHEMA}---\n# Source: chart/templates/level.yaml\n{LEVEL}",
}
GIT_SETTINGS = """\
[user]
    name = Maria
    email = maria@example.com
[init]
    defaultBranch = main
"""
PROGRAM = """\
#!/bin/bash
{command} "$@"
code=$?
[ $code -le 1 ] || echo "${{0##*/}} $*: exit code $code" >> "$APFLINT_EXAMPLE/../failures"
exit $code
"""
"""A stand-in in the PATH of a page. Failures are also written to a file, because shells ignore some failures."""


def prepare(directory: Path) -> dict[str, str]:
    """Write `FILES`, logs and programs to a directory, and return the environment for command lines."""
    for name, text in FILES.items():
        file = directory / "work" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    log = ROOT / "fixtures" / "replay" / "live" / "audit.log.gz"
    shutil.copy(log, directory / "work")
    (directory / "work" / "audit.log").write_bytes(gzip.decompress(log.read_bytes()))
    incidents = ROOT / "fixtures" / "simulate" / "incidents"
    (directory / "work" / "rollout.log").write_bytes(gzip.decompress((incidents / "rollout-spike.log.gz").read_bytes()))
    # Some pages use manifests in `fixtures/stories`. Searches of the directory do not follow this link.
    (directory / "work" / "fixtures").symlink_to(ROOT / "fixtures")
    return _prepare_programs(directory) | {"APFLINT_EXAMPLE": str(directory / "work"), "PYTHONPATH": str(ROOT)}


def prepare_checkout(directory: Path) -> dict[str, str]:
    """Copy this repository with its uncommitted changes to `work`, and return the environment for command lines.

    The copy has one commit, which is also in the branch `main` of its remote repository `origin`.
    """
    import pytest  # this module must also work without pytest

    if not (ROOT / ".git").exists():
        pytest.skip("needs a git repository")
    for name in ("work", "origin"):
        shutil.copytree(_commit_checkout() / name, directory / name, symlinks=True, dirs_exist_ok=True)
    variables = _prepare_programs(directory) | {
        "APFLINT_EXAMPLE": str(directory / "example"),
        "PYTHONPATH": str(directory / "work"),
    }
    (directory / "example").mkdir()
    shutil.copy(directory / "bin" / ".ci/run", directory / "work" / ".ci/run")  # the stand-in installs no packages
    return variables


@cache
def _commit_checkout() -> Path:
    """Return a directory with the checkout `work` and its remote repository `origin`. It is deleted when the process ends."""
    temporary = tempfile.TemporaryDirectory(prefix="apflint-checkout-")
    atexit.register(temporary.cleanup)
    directory = Path(temporary.name)
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            file = directory / "work" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, file)
    variables = environment() | {"HOME": str(directory / "home")}
    _write_git_settings(directory)
    # Without compression, `git add` takes less time. A single pack is faster to copy than a file for each object.
    script = """
        git init --quiet && git config core.compression 0 && git add --all && git commit --quiet --message Start
        git init --quiet --bare ../origin && git remote add origin ../origin && git push --quiet --set-upstream origin main
        git repack -adq
    """
    done = bash(f"set -e\n{script}", directory, variables)
    assert done.returncode == 0, done.stderr
    compileall.compile_dir(directory / "work" / "apflint", quiet=1)
    return directory


def _write_git_settings(directory: Path) -> None:
    (directory / "home").mkdir()
    (directory / "home" / ".gitconfig").write_text(GIT_SETTINGS, encoding="utf-8")


def _prepare_programs(directory: Path) -> dict[str, str]:
    """Write apflint, Python and the stand-ins to `bin`, and return an environment whose PATH starts with `bin`."""
    _write_git_settings(directory)
    python = shlex.quote(sys.executable)
    commands = {name: f"{python} {Path(__file__).with_name('programs.py')} {name}" for name in PROGRAMS}
    for name, command in (commands | {"apflint": f"{python} -m apflint"}).items():
        program = directory / "bin" / name
        program.parent.mkdir(parents=True, exist_ok=True)
        program.write_text(PROGRAM.format(command=command), encoding="utf-8")
        program.chmod(0o755)
    return environment() | {
        "PATH": f"{directory / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(directory / "home"),
    }


def environment() -> dict[str, str]:
    """Return the environment without variables that change the output or select another Python interpreter."""
    removed = ("PYTHON", "XDG_", "VIRTUAL_ENV", "GITHUB_", "COLUMNS", "NO_COLOR", "FORCE_COLOR", "_APFLINT", "GIT_")
    return {key: value for key, value in os.environ.items() if not key.startswith(removed)}


def bash(script: str, directory: Path, variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a script in the prepared directory. A pipe fails if any of its commands fails.

    The timeout only ends scripts that wait forever. It is long, because some scripts run tests on busy machines.
    """
    return subprocess.run(
        ["bash", "--norc", "-o", "pipefail", "-c", script],
        cwd=directory / "work",
        env=variables,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
