"""Build the playground: a static directory with the page, Pyodide (Python for browsers), apflint and its dependencies.

python scripts/build_playground.py --out playground

Pyodide comes from its npm package, pinned in scripts/playground/package-lock.json. Python packages are pinned in
scripts/playground/requirements.txt. apflint is the unmodified wheel of this checkout. Needs npm.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

ROOT = Path(__file__).resolve().parent.parent
SOURCES = ROOT / "docs" / "playground"
PINS = ROOT / "scripts" / "playground"
PYODIDE_FILES = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "pyodide-lock.json", "python_stdlib.zip")
"""Files of the npm package that a browser loads. All others are for Node.js and developers."""
EXTENSION_SUFFIX = "-wasm32-emscripten.so"
"""End of the names of compiled modules that Pyodide can import."""
LINUX = "manylinux2014_x86_64"
"""Platform of the PyYAML wheel, whose compiled module is left out. All other wheels are for any platform."""
LEFT_OUT = ("*.data/*", "pysat/allies/*", "pysat/examples/*", "*/tests/*", "*/benchmarks/*")
"""Files of wheels that no command of the playground imports."""
RPDS = "from pyrsistent_as_rpds.pure import HashTrieMap, HashTrieSet, List\n"
"""Text of the module `rpds`, which `referencing` imports. The documentation of pyrsistent-as-rpds-py describes it."""
LOAD = SOURCES / "load.yaml"
"""Load that all examples share, in the format of `apflint simulate`."""
EXAMPLES = (
    (
        "Accepted by the API server, but wrong",
        "fixtures/stories/accepted-but-wrong",
        "list pods -A --as system:serviceaccount:ci:runner",
        None,
    ),
    ("Rejected by the API server", "fixtures/stories/small-cluster/manifests", "list pods -n team-a --as alice", None),
    (
        "CI with its own priority level",
        "fixtures/stories/move-ci/after",
        "create jobs.batch -n ci --as system:serviceaccount:ci:runner",
        "fixtures/stories/move-ci/before",
    ),
)
"""Title, directory of manifests, request, and directory of old manifests or None, of each item in the menu of examples."""


def build(out: Path) -> None:
    """Write the playground to a directory. Files with the same names are replaced."""
    out.mkdir(parents=True, exist_ok=True)
    for source in SOURCES.iterdir():
        shutil.copy(source, out / source.name)
    (out / "examples.json").write_text(json.dumps(list(read_examples()), indent=1) + "\n", "utf-8")
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        copy_pyodide(scratch, out / "pyodide")
        target = read_target(out / "pyodide" / "pyodide-lock.json")
        write_packages(download_wheels(scratch / "wheels", target), out / "packages.zip")


def read_examples() -> Iterator[dict[str, str]]:
    """Yield the examples of the menu."""
    load = LOAD.read_text("utf-8")
    for title, directory, request, old in EXAMPLES:
        texts = {
            "manifests": read_manifests(directory),
            "old": "" if old is None else read_manifests(old),
            "load": load,
        }
        yield {"title": title, "request": request, **texts}


def read_manifests(directory: str) -> str:
    """Return the manifests of a directory in one text. Chart templates are left out."""
    texts = (path.read_text("utf-8") for path in sorted((ROOT / directory).glob("*.yaml")))
    return "---\n".join(text for text in texts if "{{" not in text)


def copy_pyodide(scratch: Path, out: Path) -> None:
    """Install the pinned Pyodide in a scratch directory, and copy the files that a browser needs."""
    for name in ("package.json", "package-lock.json"):
        shutil.copy(PINS / name, scratch / name)
    npm = shutil.which("npm")  # on Windows, npm is a script, which must be run by its path
    if npm is None:
        sys.exit("npm is not installed: it downloads Pyodide")
    run(npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", cwd=scratch)
    package = scratch / "node_modules" / "pyodide"
    out.mkdir(exist_ok=True)
    for name in PYODIDE_FILES:
        shutil.copy(package / name, out / name)


def read_target(lock_file: Path) -> list[str]:
    """Return the options of `pip download` for the Python and the platform in a lock file of Pyodide (PEP 783)."""
    info = json.loads(lock_file.read_text("utf-8"))["info"]
    python = ".".join(info["python"].split(".")[:2])
    platforms = (f"pyemscripten_{info['abi_version']}_{info['arch']}", LINUX)
    return [
        *(f"--python-version={python}", "--implementation=cp", f"--abi=cp{python.replace('.', '')}", "--abi=none"),
        *(f"--platform={platform}" for platform in platforms),
    ]


def download_wheels(directory: Path, target: list[str]) -> list[Path]:
    """Build the wheel of apflint, download the pinned wheels of its dependencies, and return the paths of all wheels."""
    pip = (sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check")
    pins = ("--require-hashes", "--requirement", str(PINS / "requirements.txt"))
    run(*pip, "download", "--no-deps", "--only-binary", ":all:", *target, *pins, "--dest", str(directory), cwd=ROOT)
    run(*pip, "wheel", "--no-deps", "--wheel-dir", str(directory), str(ROOT), cwd=ROOT)
    return sorted(directory.glob("*.whl"))


def write_packages(wheels: Iterable[Path], out: Path) -> None:
    """Write the files of all wheels to one archive, which the browser unpacks into `site-packages`.

    Times and order are fixed, so that equal wheels give equal archives. Raises zipfile.BadZipFile if a wheel is damaged.
    """
    files = {"rpds.py": RPDS.encode()}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if is_needed(name)]
            if duplicates := files.keys() & names:
                sys.exit(f"{wheel.name}: another package has the same files: {', '.join(sorted(duplicates))}")
            files |= {name: archive.read(name) for name in names}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def is_needed(name: str) -> bool:
    """Return whether the playground needs a file of a wheel. Compiled modules for other platforms are not needed."""
    if name.endswith("/") or any(fnmatch(name, pattern) for pattern in LEFT_OUT):
        return False
    return not name.endswith((".so", ".pyd")) or name.endswith(EXTENSION_SUFFIX)


def run(*command: str, cwd: Path) -> None:
    """Run a command. Exit with its exit code if it fails."""
    code = subprocess.run(command, cwd=cwd, check=False).returncode
    if code:
        sys.exit(f"failed with exit code {code}: {' '.join(command[:4])} ...")


def main() -> None:
    """Build the playground in the directory that the command line names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument(
        "--out", type=Path, required=True, metavar="DIR", help="Directory to write, such as playground."
    )
    build(parser.parse_args().out)


if __name__ == "__main__":
    main()
