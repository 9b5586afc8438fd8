"""Compile the files in requirements/, which pin every package with its hashes, for all platforms and Python releases.

    python scripts/lock_requirements.py              add packages that pyproject.toml requires, keep all other versions
    python scripts/lock_requirements.py --upgrade    select the newest versions
    python scripts/lock_requirements.py --check      fail if a file does not fit pyproject.toml

All three commands need the package index. `--check` keeps the locked versions, so new releases do not make it fail.
"""

from __future__ import annotations

import argparse
import difflib
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = {
    "runtime": ["pyproject.toml"],
    "dev": [
        "pyproject.toml",
        "--extra=lint",
        "--extra=test",
        "--group=dev",
        "--group=docs",
        "--constraints=requirements/runtime.txt",
    ],
    "release": ["--group=release"],
    "action": ["pyproject.toml", "--group=build", "--constraints=requirements/runtime.txt"],
}
"""Options of `uv pip compile` for each file in requirements/. The keys are file names without extension.

`dev` and `action` contain the versions in `runtime`. `action` also contains the build tools that install apflint from
the checkout of the action.
"""


def drop_hashes(text: str) -> list[str]:
    """Return the lines of a requirements file without hashes.

    Hashes are not compared, because a project may upload more wheels for a release later.
    """
    return [line.removesuffix(" \\") for line in text.splitlines() if not line.startswith("    --hash=")]


def compile_requirements(name: str, output: Path, *, upgrade: bool = False) -> None:
    """Write the file for `name` to `output`. Versions that `output` already has are kept unless `upgrade` is set."""
    command = [sys.executable, "-m", "uv", "pip", "compile", *FILES[name], "--quiet", "--universal"]
    command += ["--python-version=3.11", "--generate-hashes", "--no-emit-index-url", f"--output-file={output}"]
    command += ["--custom-compile-command=python scripts/lock_requirements.py"]
    subprocess.run([*command, *(["--upgrade"] if upgrade else [])], cwd=ROOT, check=True)


def check_requirements(name: str) -> bool:
    """Compile a file again with the versions that the file pins, and print the difference.

    Return whether both are equal.
    """
    committed = ROOT / "requirements" / f"{name}.txt"
    with tempfile.TemporaryDirectory() as directory:
        compiled = Path(shutil.copy(committed, directory))
        compile_requirements(name, compiled)
        before, after = (drop_hashes(path.read_text("utf-8")) for path in (committed, compiled))
    sys.stdout.writelines(
        f"{line}\n" for line in difflib.unified_diff(before, after, str(committed), "compiled", n=0, lineterm="")
    )
    return before == after


def main() -> int:
    """Write or check all files. Returns the exit code."""
    parser = argparse.ArgumentParser(description="Compile the files in requirements/.")
    parser.add_argument("--check", action="store_true", help="fail if a file does not fit pyproject.toml")
    parser.add_argument("--upgrade", action="store_true", help="take the newest versions")
    arguments = parser.parse_args()
    if arguments.check:
        fitting = [check_requirements(name) for name in FILES]
        return int(not all(fitting))
    for name in FILES:
        compile_requirements(name, ROOT / "requirements" / f"{name}.txt", upgrade=arguments.upgrade)
    return 0


if __name__ == "__main__":
    sys.exit(main())
