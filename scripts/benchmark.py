"""Measure apflint and its peers as whole processes, and print the table of docs/contributing/benchmark.md.

    python scripts/benchmark.py [--runs N] [--quick] [--environments DIR] [--log SIZE] [CASE]...

Generates its inputs from a fixed seed, and creates two virtual environments: apflint from a wheel of this checkout, and
yamllint, check-jsonschema, simpy and PyYAML from the package index of pip. Runs the processes that are compared in turn.
Exits with 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from pathlib import Path

from benchmarking.audit_log import parse_size
from benchmarking.cases import CASES, Setting
from benchmarking.environments import install_tools, list_versions

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
    options = parser.parse_args()
    if unknown := [case for case in options.cases if case not in CASES]:
        parser.error(f"{', '.join(unknown)}: the cases are {', '.join(CASES)}")
    if options.runs < 1:
        parser.error("--runs: at least 1")
    runs = min(5, options.runs) if options.quick else options.runs
    missed = 0
    with tempfile.TemporaryDirectory() as name:
        tools = install_tools((options.environments or Path(name) / "environments").absolute())
        print(_HEAD)
        for number, case in enumerate(options.cases or CASES):
            folder = Path(name) / f"{number}-{case}"
            folder.mkdir()
            for row in CASES[case](Setting(tools, folder, runs, 10 if options.quick else 1, options.log)):
                missed += not row.met
                print(f"| {' | '.join((*row[:-1], 'met' if row.met else 'missed'))} |", flush=True)
        print(
            f"\n{runs} runs (fewer of long processes) on {os.cpu_count()} processors, load"
            f" {os.getloadavg()[0]:.1f}, Python {platform.python_version()}, {list_versions(tools)}."
        )
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
