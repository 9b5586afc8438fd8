"""Build the files of a release in dist/.

python scripts/build_release.py                       with all Pythons that pyproject.toml supports
python scripts/build_release.py --python python3.11   single files for this Python only, repeatable

The files are the wheel, the source distribution, the bill of materials, the manifest for krew, and
for each platform an archive with a single file that contains apflint and its dependencies. The
script needs the packages of requirements/release.txt. The timestamps in the files are the time of
the commit. The script builds twice, and fails if the bytes differ, so that anybody can rebuild a
tag and compare the result with the published files. To get equal bytes, a rebuild of the single
files also needs the same releases of Python. For the bill of materials, the script installs the
wheel with the locked dependencies, runs apflint, and describes this environment in CycloneDX
format.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

from single_file.krew import render_manifest
from single_file.pack import Environment, write_single_file

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
EXAMPLE = "fixtures/stories/accepted-but-wrong"
"""Manifests whose check needs all compiled modules: the YAML parser and the solver of proofs."""


class Platform(NamedTuple):
    """A platform with single-file builds."""

    os: str
    """Name of the operating system in Go, which krew uses."""
    architecture: str
    """Name of the architecture in Go."""
    machine: str
    """Name of the machine as `uname -m` prints it."""
    suffix: str
    """End of the names of compiled modules."""
    tags: tuple[str, ...]
    """Platform tags of the wheels that run on the platform."""


PLATFORMS = (
    *(
        Platform(
            *("linux", architecture, machine, f"-{machine}-linux-gnu.so"),
            tuple(f"{tag}_{machine}" for tag in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")),
        )
        for architecture, machine in (("amd64", "x86_64"), ("arm64", "aarch64"))
    ),
    Platform("darwin", "arm64", "arm64", "-darwin.so", ("macosx_11_0_arm64",)),
    Platform(
        *("darwin", "amd64", "x86_64", "-darwin.so"),
        tuple(f"macosx_{version}_x86_64" for version in ("10_9", "10_12", "10_13", "10_15", "11_0")),
    ),
)


def run(*command: str | Path, **variables: str) -> str:
    """Run a command in the checkout, with additional environment `variables`. Return its standard output.

    Raises CalledProcessError if the command fails.
    """
    return subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        env=os.environ | variables,
        check=True,
        stdout=subprocess.PIPE,
        encoding="utf-8",
    ).stdout


def build_distributions(directory: Path) -> dict[str, bytes]:
    """Build the source distribution, and the wheel from it. Returns the bytes of each file."""
    commit_time = run("git", "log", "-1", "--format=%ct").strip()
    build = (sys.executable, "-m", "build", "--no-isolation", "--outdir", directory)
    run(*build, SOURCE_DATE_EPOCH=commit_time)
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def describe_environment(wheel: Path, directory: Path) -> str:
    """Install the wheel with the locked dependencies, and run apflint. Return the environment's bill of materials."""
    venv.create(directory, with_pip=True)
    programs = directory / ("Scripts" if os.name == "nt" else "bin")
    python = programs / "python"
    run(python, "-m", "pip", "install", "--quiet", "--require-hashes", "--requirement", "requirements/runtime.txt")
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    run(python, "-m", "pip", "check")
    version = run(programs / "apflint", "--version").split()[-1]
    if f"-{version}-" not in wheel.name:
        message = f"{wheel.name} installs version {version}"
        raise ValueError(message)
    # The bill of materials must list only apflint and its dependencies.
    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")
    describe = (sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject=pyproject.toml")
    return run(*describe, "--output-reproducible", "--output-format=JSON", python)


def list_supported_pythons() -> list[str]:
    """Return the Pythons that the classifiers in pyproject.toml name, such as `python3.11`."""
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["classifiers"]
    return [
        f"python{name}" for _, _, name in (text.rpartition(" :: ") for text in classifiers) if name.startswith("3.")
    ]


def install_for_platform(python: str, target: Platform, wheel: Path, directory: Path) -> Environment:
    """Install the wheel and the locked dependencies for a Python on a platform, which may differ from the current platform."""
    version = run(python, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    tag = version.replace(".", "")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", directory, "--no-deps")
    kind = ("--only-binary=:all:", f"--python-version={version}", "--implementation=cp", f"--abi=cp{tag}", "--abi=none")
    tags = [f"--platform={name}" for name in target.tags]
    run(*pip, *kind, *tags, "--require-hashes", "--requirement", "requirements/runtime.txt")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(directory)
    return Environment(Path(python), directory, f".cpython-{tag}{target.suffix}")


def build_single_file(target: Platform, environments: list[Environment], scratch: Path) -> bytes:
    """Return an archive with the single-file build for a platform, and the license."""
    write_single_file(scratch, target.machine, environments)
    if (sys.platform, platform.machine()) == (target.os, target.machine):
        for environment in environments:
            if environment.suffix == sysconfig.get_config_var("EXT_SUFFIX"):
                run(sys.executable, scratch, "check", "--isolated", "--fail-on", "never", EXAMPLE)
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for path, name, mode in ((scratch, "apflint", 0o755), (ROOT / "LICENSE", "LICENSE", 0o644)):
            member = tarfile.TarInfo(name)
            member.size, member.mode = path.stat().st_size, mode
            with path.open("rb") as file:
                archive.addfile(member, file)
    return gzip.compress(content.getvalue(), mtime=0)


def build_single_files(wheel: Path, pythons: list[str], scratch: Path) -> dict[str, bytes]:
    """Build the archives for all platforms, and the manifest for krew. Returns the bytes of each file."""
    version = wheel.name.split("-")[1]
    files, archives = {}, {}
    for target in PLATFORMS:
        name = f"apflint-{version}-{target.os}-{target.architecture}.tar.gz"
        environments = [
            install_for_platform(python, target, wheel, scratch / name / python.replace("/", "_")) for python in pythons
        ]
        files[name] = build_single_file(target, environments, scratch / "apflint")
        if files[name] != build_single_file(target, environments, scratch / "apflint"):
            message = f"two builds of {name} differ"
            raise ValueError(message)
        archives[target.os, target.architecture] = name, hashlib.sha256(files[name]).hexdigest()
        shutil.rmtree(scratch / name)
    versions = " or ".join(environment.suffix.split("-")[1].replace("3", "3.", 1) for environment in environments)
    files["apflint.yaml"] = render_manifest(version, f"Python {versions}", archives).encode()
    return files


def main() -> int:
    """Build the release. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Build the files of a release in dist/.")
    parser.add_argument(
        "--python", action="append", help="a Python that single files support; default: all of pyproject.toml"
    )
    pythons = parser.parse_args().python or list_supported_pythons()
    if missing := [python for python in pythons if shutil.which(python) is None]:
        parser.error(f"single files need these Pythons, or --python: {', '.join(missing)} not found")
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        first = build_distributions(DIST)
        if first != build_distributions(Path(temporary, "again")):
            print("two builds of the same commit differ", file=sys.stderr)
            return 1
        run(sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir())
        (wheel,) = DIST.glob("*.whl")
        materials = describe_environment(wheel, Path(temporary, "venv"))
        single_files = build_single_files(wheel, pythons, Path(temporary))
    name = "-".join(wheel.name.split("-")[:2])
    (DIST / f"{name}.cdx.json").write_text(materials, "utf-8")
    for file, content in single_files.items():
        (DIST / file).write_bytes(content)
    print("\n".join(str(path.relative_to(ROOT)) for path in sorted(DIST.iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
