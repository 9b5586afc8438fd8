"""Build the files of a release in dist/: the wheel, the source distribution and the bill of materials.

python scripts/build_release.py

Needs the packages of requirements/release.txt. Timestamps are those of the commit. The script builds twice, and fails
if the bytes differ, so that anybody can rebuild a tag and compare the result with the published files. It installs the
wheel with the locked dependencies, runs it, and describes this environment in CycloneDX format.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"


def run(*command: str | Path, **variables: str) -> str:
    """Run a command in the checkout and return its standard output. A failure ends the script."""
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
    """Install the wheel with the locked dependencies, run it, and return the bill of materials of the environment."""
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
    run(python, "-m", "pip", "uninstall", "--quiet", "--yes", "pip", "setuptools")  # not a part of apflint
    describe = (sys.executable, "-m", "cyclonedx_py", "environment", "--pyproject=pyproject.toml")
    return run(*describe, "--output-reproducible", "--output-format=JSON", python)


def main() -> int:
    """Build everything. Returns the exit code."""
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory() as temporary:
        first = build_distributions(DIST)
        if first != build_distributions(Path(temporary, "again")):
            print("two builds of the same commit differ", file=sys.stderr)
            return 1
        run(sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir())
        (wheel,) = DIST.glob("*.whl")
        materials = describe_environment(wheel, Path(temporary, "venv"))
    name = "-".join(wheel.name.split("-")[:2])
    (DIST / f"{name}.cdx.json").write_text(materials, "utf-8")
    print("\n".join(str(path.relative_to(ROOT)) for path in sorted(DIST.iterdir())))
    return 0


if __name__ == "__main__":
    sys.exit(main())
