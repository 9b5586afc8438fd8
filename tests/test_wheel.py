"""The wheel: built, installed as users do, and run from a directory outside of the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest

from apflint import __version__

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    not os.environ.get("APFLINT_TEST_WHEEL"),
    reason="installs from the package index; set APFLINT_TEST_WHEEL=1 to run it, as .ci/run does",
)

GOOD = """\
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
BAD = GOOD.replace("queues: 64, handSize: 6", "queues: 4, handSize: 6")


def run(*command: str | Path, cwd: Path, status: int = 0, text: str | None = None) -> str:
    """Run a command that must exit with `status`, and return its standard output."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=environment, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == status, f"{command}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", directory, root, cwd=directory)
    (built,) = directory.glob("apflint-*.whl")
    return built


def test_wheel_holds_what_the_checkout_has(root: Path, wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    package = {str(path.relative_to(root)) for path in (root / "apflint").rglob("*") if path.is_file()}
    shipped = {
        f"apflint/_shipped/{path.relative_to(root)}"
        for directory in ("rules", "schemas")
        for path in (root / directory).rglob("*")
        if path.is_file()
    }
    wanted = {name for name in package | shipped if "__pycache__" not in name and "/." not in name}
    assert {name for name in packed if ".dist-info/" not in name} == wanted
    assert any(name.endswith("/licenses/LICENSE") for name in packed)
    assert "apflint/py.typed" in packed


def test_installed_wheel_runs_anywhere(root: Path, wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "venv"
    run(sys.executable, "-m", "venv", home, cwd=tmp_path)
    programs = home / "bin"
    run(programs / "python", "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    apflint = programs / "apflint"

    for program, *rest in (["apflint"], ["kubectl-apflint"], ["python", "-m", "apflint"]):
        assert __version__ in run(programs / program, *rest, "--version", cwd=tmp_path)

    manifests = tmp_path / "manifests"
    manifests.mkdir()
    (manifests / "good.yaml").write_text(GOOD, encoding="utf-8")
    (manifests / "bad.yaml").write_text(BAD, encoding="utf-8")
    run(apflint, "check", "good.yaml", cwd=manifests)
    run(apflint, "check", "-", cwd=manifests, text=GOOD)
    run(apflint, "check", "nowhere.yaml", cwd=manifests, status=2)
    report = json.loads(run(apflint, "check", "--format", "json", ".", cwd=manifests, status=1))
    rejected = {(finding["file"], finding["rule"]) for finding in report["findings"] if finding["apiserver"]}
    assert ("bad.yaml", "APF305") in rejected
    assert {file for file, _ in rejected} == {"bad.yaml"}

    # The wheel contains files that are next to the package in the checkout.
    assert "hand" in run(apflint, "rule", "APF305", cwd=manifests)
    assert "properties" in json.loads(run(apflint, "schema", "FlowSchema", "--api-version", "v1", cwd=manifests))

    # Without the extra, the Python engine reads logs. Features that need other packages report how to install them.
    log = root / "fixtures" / "replay" / "live" / "audit.log.gz"
    (tmp_path / "audit.log.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    assert json.loads(run(apflint, "replay", log, "--format", "json", cwd=tmp_path))["engine"] == "python"
    for arguments, message in (
        (f"{log} --engine duckdb", "DuckDB is not installed. Install it with: pip install 'apflint[replay]'"),
        ("audit.log.zst", "to read .zst files, install apflint[replay]"),
    ):
        assert message in run("sh", "-c", f"{apflint} replay {arguments} 2>&1", cwd=tmp_path, status=2)
