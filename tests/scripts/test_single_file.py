"""The parts of the single-file build and its manifest for krew. `tests/test_wheel.py` builds a file and runs it."""

from __future__ import annotations

import ast
import importlib.machinery
import os
import re
import sys
from pathlib import Path
from typing import Any

import build_release
import pytest
import yaml
from single_file import krew, start
from single_file.pack import strip_symbols

MACHINE = os.uname().machine
OTHER_SUFFIX = ".cpython-399-x86_64-linux-gnu.so"
CHECKSUM = "0123456789abcdef" * 4
ARCHIVES = {
    (target.os, target.architecture): (f"apflint-0.2.0-{target.os}-{target.architecture}.tar.gz", CHECKSUM)
    for target in build_release.PLATFORMS
}


def test_old_pythons_can_parse_the_entry_point() -> None:
    ast.parse(Path(start.__file__).read_text("utf-8"), feature_version=(3, 6))


@pytest.mark.parametrize(
    ("machine", "suffix"), [(MACHINE, OTHER_SUFFIX), ("riscv64", importlib.machinery.EXTENSION_SUFFIXES[0])]
)
def test_other_platforms_and_pythons_learn_what_the_file_needs(
    machine: str, suffix: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(SystemExit) as ended:
        start.start(None, machine, {suffix: (0, 0)})
    assert ended.value.code == 2
    version = "3.99" if suffix == OTHER_SUFFIX else f"3.{sys.version_info.minor}"
    message = capsys.readouterr().err
    assert message.startswith(f"apflint: this file needs CPython {version} on ")
    assert f"({machine}). " in message
    assert sys.executable in message


def test_another_python_of_the_path_runs_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file for one Python also runs if `python3` is another version. Programs in the PATH that do not work are skipped."""
    program = tmp_path / "python3.98"
    for path, code in ((program, 0), (tmp_path / "python3.99", 127)):
        path.write_text(f"#!/bin/sh\nexit {code}\n")
        path.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["/bin/kubectl-apflint", "check"])

    class ReplacedError(Exception):
        """Raised instead of replacing the process."""

    def replace(*arguments: Any) -> None:
        raise ReplacedError(arguments)

    monkeypatch.setattr(os, "execv", replace)
    with pytest.raises(ReplacedError) as replaced:
        start.start(None, MACHINE, dict.fromkeys((OTHER_SUFFIX.replace("399", "398"), OTHER_SUFFIX), (0, 0)))
    assert replaced.value.args[0] == (str(program), [str(program), "/bin/kubectl-apflint", "check"])


def test_libraries_of_macos_keep_all_bytes() -> None:
    library = b"\xcf\xfa\xed\xfe" + bytes(100)
    assert strip_symbols(library) == library


# --- krew: the conditions of krew's internal/index/validation/validate.go


@pytest.fixture(params=["0.2.0", "0.3.0.dev0"])
def manifest(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(krew.render_manifest(request.param, "Python 3.11 or 3.12", ARCHIVES))
    return found


def test_krew_accepts_the_manifest(manifest: dict[str, Any]) -> None:
    assert manifest["apiVersion"] == "krew.googlecontainertools.github.com/v1alpha2"
    assert manifest["kind"] == "Plugin"
    assert manifest["metadata"] == {"name": "apflint"}
    spec = manifest["spec"]
    assert re.fullmatch(r"v\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?", spec["version"])
    assert spec["shortDescription"]
    assert "\n" not in spec["shortDescription"]
    assert len(spec["shortDescription"]) <= 50
    for platform in spec["platforms"]:
        assert platform.keys() == {"selector", "uri", "sha256", "bin"}
        assert platform["selector"]["matchLabels"].keys() == {"os", "arch"}
        assert re.fullmatch(r"[a-f0-9]{64}", platform["sha256"])
        assert platform["bin"] == "apflint"


def test_manifest_names_the_archive_of_each_platform(manifest: dict[str, Any]) -> None:
    found = {
        tuple(platform["selector"]["matchLabels"].values()): platform["uri"].rpartition("/")[2]
        for platform in manifest["spec"]["platforms"]
    }
    assert found == {platform: name for platform, (name, _) in ARCHIVES.items()}


@pytest.fixture(scope="module")
def jobs(root: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((root / ".github/workflows/release.yml").read_text("utf-8"))["jobs"]
    return found


def test_workflow_builds_for_all_supported_pythons(jobs: dict[str, Any]) -> None:
    pythons = build_release.list_supported_pythons()
    assert f"python3.{sys.version_info.minor}" in pythons
    for job in ("build", "single-file"):
        (installed,) = (
            step["with"]["python-version"].split()
            for step in jobs[job]["steps"]
            if "python-version" in step.get("with", {})
        )
        assert sorted(f"python{version}" for version in installed) == sorted(pythons)


def test_workflow_tries_the_file_of_each_platform(jobs: dict[str, Any]) -> None:
    tried = {entry["platform"] for entry in jobs["single-file"]["strategy"]["matrix"]["include"]}
    assert tried == {f"{target.os}-{target.architecture}" for target in build_release.PLATFORMS}
    assert "single-file" in jobs["publish"]["needs"]
