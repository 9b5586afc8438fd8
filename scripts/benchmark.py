"""Measure apflint and its peers as whole processes, print a table, and write the tables of the documentation.

    python scripts/benchmark.py [--runs N] [--quick] [--environments DIR] [--log SIZE] [--publish] [CASE]...
    python scripts/benchmark.py --check

The script generates inputs from a fixed seed, and creates two virtual environments: apflint from a wheel of this
checkout, and yamllint, check-jsonschema, simpy and PyYAML from the package index of pip. The script runs the compared
processes in turn. Exits with 1 if a target is missed. With `--publish`, writes docs/contributing/benchmark.json and the
tables of the pages, which then contain only the rows of this run. `--check` fails if the published run is older than the
last commit that changes apflint.
"""

from __future__ import annotations

import argparse
import datetime as dt
import json
import os
import platform
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarking.audit_log import parse_size
from benchmarking.cases import CASES, Setting
from benchmarking.environments import install_tools, list_versions
from benchmarking.record import RECORD, ROOT, STARTUP_PATHS, make_record, update_page

PAGES = ("docs/performance.md", "docs/contributing/benchmark.md")
_HEAD = """| case | wall clock (CPU time) | ratio or rate, wall clock | ratio, CPU time | target | |
|---|---|---|---|---|---|"""


def main() -> int:
    """Print the table. Return 1 if a target is missed."""
    parser = argparse.ArgumentParser(description="Measures whole processes of apflint and its peers.")
    parser.add_argument("cases", nargs="*", metavar="CASE", help=f"{', '.join(CASES)} (default: all)")
    parser.add_argument("--runs", type=int, default=25, metavar="N", help="runs of each short process (default 25)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the input, and few runs")
    parser.add_argument("--environments", type=Path, metavar="DIR", help="keep the environments, or use those there")
    parser.add_argument(
        "--log",
        type=parse_size,
        default=10**8,
        metavar="SIZE",
        help="of the audit log (default 100MB), and 10 times as much",
    )
    parser.add_argument("--publish", action="store_true", help="write the record and the tables of the documentation")
    parser.add_argument("--check", action="store_true", help="fail if the published run is of an older apflint")
    options = parser.parse_args()
    if options.check:
        return check_record()
    if unknown := [case for case in options.cases if case not in CASES]:
        parser.error(f"{', '.join(unknown)}: the cases are {', '.join(CASES)}")
    if options.runs < 1:
        parser.error("--runs: at least 1")
    commit = read_commit() if options.publish else ""
    if options.publish and (options.quick or commit.endswith("-dirty")):
        parser.error("--publish needs full inputs and a clean work tree")
    runs = min(5, options.runs) if options.quick else options.runs
    rows = []
    with tempfile.TemporaryDirectory() as name:
        tools = install_tools((options.environments or Path(name) / "environments").absolute())
        print(_HEAD)
        for number, case in enumerate(options.cases or CASES):
            directory = Path(name) / f"{number}-{case}"
            directory.mkdir()
            for row in CASES[case](Setting(tools, directory, runs, 10 if options.quick else 1, options.log)):
                rows.append(row)
                print(f"| {' | '.join((*row[:5], 'met' if row.met else 'missed'))} |", flush=True)
        versions = {"Python": platform.python_version(), **list_versions(tools)}
        print(
            f"\n{runs} runs (fewer of long processes) on {os.cpu_count()} processors, load"
            f" {os.getloadavg()[0]:.1f}, {', '.join(f'{tool} {version}' for tool, version in versions.items())}."
        )
    if options.publish:
        about = {
            "commit": commit,
            "date": dt.datetime.now(dt.UTC).date().isoformat(),
            "runs": runs,
            "processors": os.cpu_count(),
            "load": f"{os.getloadavg()[0]:.1f}",
            "versions": versions,
        }
        publish(make_record(about, [{**row._asdict(), "met": row.met} for row in rows]))
    return int(not all(row.met for row in rows))


def publish(record: str, root: Path = ROOT) -> None:
    """Write the record and the tables of the pages."""
    (root / RECORD).write_text(record, encoding="utf-8")
    for name in PAGES:
        page = (root / name).read_text(encoding="utf-8")
        (root / name).write_text(update_page(name, page, record), encoding="utf-8")


def read_commit() -> str:
    """Return the current commit ID, with the suffix `-dirty` if the work tree differs from the commit."""
    return _git("describe", "--always", "--abbrev=40", "--exclude=*", "--dirty")


def check_record(root: Path = ROOT) -> int:
    """Return 1 if the files in `STARTUP_PATHS` changed after the commit on which the published benchmark (`RECORD`) ran, else 0."""
    commit = json.loads((root / RECORD).read_text(encoding="utf-8"))["about"]["commit"]
    changed = _git("log", "--format=%h %s", f"{commit}..HEAD", "--", *STARTUP_PATHS, root=root)
    if changed:
        print(
            f"{RECORD} is older than these commits. Run python scripts/benchmark.py --publish:\n{changed}",
            file=sys.stderr,
        )
    return int(bool(changed))


def _git(*arguments: str, root: Path = ROOT) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


if __name__ == "__main__":
    sys.exit(main())
