"""The wheel and the single-file build: both are installed as users do it, and run outside of the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from typing import TYPE_CHECKING

import pytest
from single_file.pack import Environment, write_single_file

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


@pytest.fixture(scope="module")
def programs(wheel: Path) -> Path:
    """Return the directory with the programs of a virtual environment in which the wheel is installed."""
    home = wheel.parent / "venv"
    run(sys.executable, "-m", "venv", home, cwd=wheel.parent)
    run(home / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, cwd=wheel.parent)
    return home / "bin"


def test_installed_wheel_runs_anywhere(root: Path, programs: Path, tmp_path: Path) -> None:
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

    # The wheel contains the rule pages and schemas, which are outside of the package in the checkout.
    assert "hand" in run(apflint, "rule", "APF305", cwd=manifests)
    assert "properties" in json.loads(run(apflint, "schema", "FlowSchema", "--api-version", "v1", cwd=manifests))

    # Without extras, the Python engine reads logs, and features that need other packages report how to install them.
    log = root / "fixtures" / "replay" / "live" / "audit.log.gz"
    (tmp_path / "audit.log.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(100))
    assert json.loads(run(apflint, "replay", log, "--format", "json", cwd=tmp_path))["engine"] == "python"
    for arguments, message in (
        (f"{log} --engine duckdb", "DuckDB is not installed. Install it with: pip install 'apflint[replay]'"),
        ("audit.log.zst", "to read .zst files, install apflint[replay]"),
    ):
        assert message in run("sh", "-c", f"{apflint} replay {arguments} 2>&1", cwd=tmp_path, status=2)


@pytest.fixture(scope="module")
def single_file(programs: Path) -> Path:
    """Return the path of a single-file build for this Python and platform, with the name that kubectl requires for plugins."""
    (packages,) = programs.parent.glob("lib/python*/site-packages")
    environment = Environment(programs / "python", packages, sysconfig.get_config_var("EXT_SUFFIX"))
    path = programs.parent / "kubectl-apflint"
    write_single_file(path, os.uname().machine, [environment])
    return path


WITHOUT_FILES_IN_MEMORY = """\
import os, runpy, sys
del os.memfd_create  # as on macOS
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.mark.parametrize(
    "arguments",
    [
        "check --isolated --fail-on never accepted-but-wrong",  # needs the YAML parser and the solver
        "check --isolated --fail-on never rejected",  # needs jsonschema and its data files
        "rule",
        "explain list pods --as alice -f accepted-but-wrong",
        "graph --format html accepted-but-wrong",
        "schema FlowSchema",
        "--help",
    ],
)
def test_single_file_answers_as_the_installed_program(
    arguments: str, root: Path, programs: Path, single_file: Path, tmp_path: Path
) -> None:
    os.symlink(root / "fixtures/stories/accepted-but-wrong", tmp_path / "accepted-but-wrong")
    os.symlink(root / "fixtures/stories/small-cluster/manifests", tmp_path / "rejected")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    variables = (
        "env",
        "-i",
        f"HOME={temporary}",
        f"TMPDIR={temporary}",
        "FORCE_COLOR=1",  # so that typer and rich print the help, and not a stored help page
    )
    python = programs / "python"
    expected = run(*variables, programs / "kubectl-apflint", *arguments.split(), cwd=tmp_path)
    # With `-S`, Python ignores the installed packages.
    assert run(*variables, python, "-S", single_file, *arguments.split(), cwd=tmp_path) == expected
    if "accepted" in arguments:
        in_files = (*variables, python, "-S", "-c", WITHOUT_FILES_IN_MEMORY, single_file)
        assert run(*in_files, *arguments.split(), cwd=tmp_path) == expected
    assert list(temporary.iterdir()) == []


def test_single_file_runs_as_a_program(single_file: Path, tmp_path: Path) -> None:
    assert run(single_file, "--version", cwd=tmp_path) == f"apflint {__version__}\n"
    relative = os.path.relpath(single_file, tmp_path)
    assert "matchingPrecedence" in run(sys.executable, "-S", relative, "defaults", cwd=tmp_path)
    # Standard input is closed, so that its descriptor is free.
    command = f"{sys.executable} -S {single_file} check - <&-"
    run("sh", "-c", command, cwd=tmp_path, status=2)
    assert run(sys.executable, "-S", single_file, "check", "-", cwd=tmp_path, text=GOOD).startswith("info[APF403]")


def test_single_file_has_all_modules(programs: Path, single_file: Path, tmp_path: Path) -> None:
    """The single file contains all modules. Because commands import modules on demand, few runs would need a missing module."""
    code = """
import sys
try:
    sys.argv = [sys.argv[1], "--version"]
    import runpy, os
    os._exit = sys.exit
    runpy.run_path(sys.argv[0], run_name="__main__")
except SystemExit:
    pass
from importlib import import_module
(importer,) = (finder for finder in sys.meta_path if hasattr(finder, "_index"))
optional = ("duckdb", "fsspec", "grafana_foundation_sdk", "pyspark", "requests", "zstandard")
for name in sorted(name for name in importer._index if name.partition(".")[0] in ("apflint", "pygls", "prompt_toolkit")):
    try:
        import_module(name)
    except (ImportError, AssertionError) as error:  # modules of prompt_toolkit for Windows assert the platform
        assert str(getattr(error, "name", "")).startswith(optional) or name.startswith(("prompt_toolkit.", "pygls.")), (name, error)
assert "apflint.lsp.server" in sys.modules and "pygls.lsp.server" in sys.modules
"""
    run(programs / "python", "-S", "-c", code, single_file, cwd=tmp_path)
