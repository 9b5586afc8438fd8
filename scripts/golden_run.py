"""Record the output of every command for many inputs, and compare two recordings. Refactoring must not change any byte.

    python scripts/golden_run.py record DIR [--apflint CHECKOUT] [--corpus CHECKOUT] [--only WORD]
    python scripts/golden_run.py compare BEFORE AFTER

`record` writes a file for each case: command line, exit status, standard output, standard error, and changed files.
`--apflint` is the checkout whose code runs, and `--corpus` the checkout with fixtures and rule pages. The default is
this checkout. `compare` prints a diff of each case that differs, and exits with 1 if any case differs.

A case runs `main()` in a fork of a process that has imported the modules of apflint. A new interpreter would import
them for each case, which takes ten times as long. One case of each command runs in a new interpreter, too.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import gc
import hashlib
import importlib
import os
import pkgutil
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from golden.cases import list_cases
from golden.corpus import write_corpus

if TYPE_CHECKING:
    from golden.cases import Case

ROOT = Path(__file__).resolve().parent.parent
MAX_SECONDS = 60
MAX_DIFF_LINES = 40
"""Maximum number of lines that `compare` prints for a case."""
PLACEHOLDER = b"<directory>"
NOT_IMPORTED = ("__main__", "duckdb_engine", "spark_engine")
"""Modules that are not imported, because they run code or start threads at import. Threads do not survive a fork."""


def main() -> int:
    """Record or compare, as the command line says. Return the exit code."""
    parser = argparse.ArgumentParser(description="Records what every command prints, and compares two recordings.")
    actions = parser.add_subparsers(dest="action", required=True)
    record_parser = actions.add_parser("record", help="run all cases")
    record_parser.add_argument("directory", type=Path, metavar="DIR", help="directory for the files, new or empty")
    record_parser.add_argument("--apflint", type=Path, default=ROOT, metavar="CHECKOUT", help="whose code runs")
    record_parser.add_argument("--corpus", type=Path, default=ROOT, metavar="CHECKOUT", help="whose fixtures are read")
    record_parser.add_argument("--only", default="", metavar="WORD", help="only cases whose name contains this")
    compare_parser = actions.add_parser("compare", help="print the cases that differ")
    compare_parser.add_argument("before", type=Path)
    compare_parser.add_argument("after", type=Path)
    options = parser.parse_args()
    if options.action == "compare":
        return compare(options.before, options.after)
    options.directory.mkdir(parents=True, exist_ok=True)
    if any(options.directory.iterdir()):
        parser.error(f"{options.directory} is not empty")
    apflint = options.apflint.resolve()
    if not (apflint / "apflint/__main__.py").is_file():
        parser.error(f"--apflint: {apflint} is not a checkout of apflint")
    if os.environ.get("PYTHONPATH") != str(apflint) or os.environ.get("PYTHONHASHSEED") != "0":
        restart(apflint)
    with tempfile.TemporaryDirectory(prefix="golden-") as temporary:
        record(options.directory.resolve(), Path(temporary).resolve(), apflint, options.corpus.resolve(), options.only)
    return 0


def restart(apflint: Path) -> NoReturn:
    """Run this script again with the code of another checkout, in an environment without variables of the user."""
    environment = {
        "PATH": os.environ["PATH"],  # for the preparation only: cases set their own PATH
        "PYTHONPATH": str(apflint),
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "80",
        "NO_COLOR": "1",
    }
    os.execve(sys.executable, [sys.executable, *sys.argv], environment)


def record(directory: Path, temporary: Path, apflint: Path, corpus: Path, only: str) -> None:
    """Write the files of all cases whose name contains `only`."""
    write_corpus(temporary, corpus)
    os.environ |= {"HOME": str(temporary / "home"), "PATH": f"{temporary / 'bin'}:/usr/bin:/bin"}
    import_modules(apflint)
    counts: Counter[str] = Counter()
    for case in list_cases(temporary / "work"):
        name = name_case(case)
        if only not in name:
            continue
        file = directory / name
        if file.exists():
            raise ValueError(f"two cases are equal: {case}")
        file.parent.mkdir(exist_ok=True)
        text = run_case(case, temporary)
        for path in (temporary, apflint, corpus):
            text = text.replace(os.fsencode(path), PLACEHOLDER)
        file.write_bytes(text)
        counts[case.command] += 1
    print(", ".join(f"{command} {count}" for command, count in sorted(counts.items())))
    seconds = sum(sum(resource.getrusage(who)[:2]) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(f"{counts.total()} cases of {apflint} in {directory}, {seconds:.0f} s of CPU time")


def import_modules(apflint: Path) -> None:
    """Import all modules of apflint from the checkout, and thereby the modules of all dependencies.

    Modules that cannot be imported are skipped.
    """
    package = importlib.import_module("apflint")
    assert Path(str(package.__file__)).parent.parent == apflint, package.__file__
    for module in pkgutil.walk_packages(package.__path__, "apflint.", onerror=lambda _: None):
        if not module.name.endswith(NOT_IMPORTED):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)
    gc.collect()
    gc.freeze()


def name_case(case: Case) -> str:
    """Return the file name for a case: its command, the start of its command line, and a hash of the case."""
    words = re.sub(r"[^\w.=-]+", "_", " ".join(case.arguments))[:90]
    digest = hashlib.sha256(repr(case).encode()).hexdigest()[:8]
    return f"{case.command}/{words}-{digest}.txt"


def run_case(case: Case, temporary: Path) -> bytes:
    """Run a case, and return the text of its file."""
    work = directory = temporary / "work" / case.directory
    if case.writes:
        directory = temporary / "work" / "copy"
        shutil.copytree(work, directory)
    standard = [temporary / name for name in ("stdin", "stdout", "stderr")]
    for path, data in zip(standard, (case.stdin, b"", b""), strict=True):
        path.write_bytes(data)
    status = (run_process if case.new_process else run_fork)(case, directory, standard)
    sections = [f"$ cd {case.directory} && apflint {' '.join(case.arguments)}\nexit status {status}\n".encode()]
    sections += [b"--- %s\n%s\n" % (path.name.encode(), path.read_bytes()) for path in standard]
    if case.writes:
        sections += list_changes(work, directory)
        shutil.rmtree(directory)
    return b"".join(sections)


def list_changes(before: Path, after: Path) -> list[bytes]:
    """Return the contents of the files that are new or changed in `after`."""
    changes = []
    for path in sorted(path for path in after.rglob("*") if path.is_file()):
        original = before / path.relative_to(after)
        if not original.is_file() or original.read_bytes() != path.read_bytes():
            changes.append(b"--- %s\n%s\n" % (os.fsencode(path.relative_to(after)), path.read_bytes()))
    return changes


def run_process(case: Case, directory: Path, standard: list[Path]) -> int:
    """Run a case in a new interpreter, and return its exit status."""
    with standard[0].open("rb") as stdin, standard[1].open("wb") as stdout, standard[2].open("wb") as stderr:
        command = [sys.executable, "-m", "apflint", *case.arguments]
        done = subprocess.run(
            command, cwd=directory, timeout=MAX_SECONDS, check=False, stdin=stdin, stdout=stdout, stderr=stderr
        )
        return done.returncode


def run_fork(case: Case, directory: Path, standard: list[Path]) -> int:
    """Run a case in a fork of this process, and return its exit status.

    `standard` are the files for standard input, standard output and standard error.
    """
    sys.stdout.flush()
    if (process := os.fork()) == 0:
        try:
            become_apflint(case, directory, standard)
        finally:
            os._exit(70)
    _, status = os.waitpid(process, 0)
    return os.waitstatus_to_exitcode(status)


def become_apflint(case: Case, directory: Path, standard: list[Path]) -> None:
    """Run `main()` with the arguments and standard streams of a new process. Does not return."""
    signal.alarm(MAX_SECONDS)
    os.chdir(directory)
    for number, path in enumerate(standard):
        os.dup2(os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_APPEND), number)
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
    sys.argv = ["apflint", *case.arguments]
    try:
        importlib.import_module("apflint.cli.main").main()
    except Exception:  # noqa: BLE001  # as Python does at the end of a process
        sys.excepthook(*sys.exc_info())
        os._exit(1)
    except SystemExit as end:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code if isinstance(end.code, int) else int(end.code is not None))


def compare(before: Path, after: Path) -> int:
    """Print the cases that differ, and how many cases of each command differ. Return 1 if any case differs, or else 0."""
    texts = [{str(path.relative_to(top)): path for path in top.glob("*/*.txt")} for top in (before, after)]
    different: Counter[str] = Counter()
    names = sorted(texts[0].keys() | texts[1].keys())
    for name in names:
        old, new = (files[name].read_bytes() if name in files else b"" for files in texts)
        if old != new:
            different[name.partition("/")[0]] += 1
            lines = [data.decode("utf-8", "backslashreplace").splitlines() for data in (old, new)]
            diff = list(difflib.unified_diff(lines[0], lines[1], str(before / name), str(after / name), lineterm=""))
            print("\n".join(diff[:MAX_DIFF_LINES]))
            if len(diff) > MAX_DIFF_LINES:
                print(f"... {len(diff) - MAX_DIFF_LINES} more lines")
    print(f"{different.total()} of {len(names)} cases differ" if names else "There are no cases.")
    for command, count in different.most_common():
        print(f"  {command}: {count} of {sum(name.startswith(f'{command}/') for name in names)}")
    return int(bool(different) or not names)


if __name__ == "__main__":
    sys.exit(main())
