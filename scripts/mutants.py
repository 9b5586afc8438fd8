"""Mutation testing: change the code in small ways. Each change should make a test fail.

    pip install -e '.[test]' mutmut
    python scripts/mutants.py apflint/model.py apflint/evaluate apflint/checks --sample 2000 --seed 7
    python scripts/mutants.py apflint/checks/distinguisher.py --tests tests/checks/test_distinguisher.py

Appends a line of JSON for each mutant to `--out`. A second run skips the mutants in this file. `--retry FILE` runs only
the mutants that survived an earlier run. A sample is in random order, so an interrupted run is a smaller sample.

The mutations are those of mutmut 3, but the script has its own runner, which collects the tests once and forks for each
mutant. The fork replaces the code of one function and runs the tests that execute the mutated line: first the tests
that killed mutants of the same function, then the fastest tests. `--seconds` limits the total time of these tests. A
mutant takes 0.1 seconds. Property tests run 20 examples. Decorated functions (properties, caches) are mutated, too. Not
mutated: code that runs at import, annotations, `cast`, `len`, `isinstance`, the `strict` of zip, and messages (strings
that contain a space).

Each run begins with two control mutants: a mutant that raises an error immediately must fail a test, and an equivalent
mutant must not.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from mutating.mutations import ROOT
from mutating.records import EQUAL, KILLED, read_records
from mutating.runner import Run


def main() -> None:
    """Run the tests for the mutants that the command line selects, and print the totals."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", help="files and directories to mutate")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="arguments of pytest")
    parser.add_argument("--seconds", type=float, default=8.0, help="maximum time of the tests of a mutant")
    parser.add_argument("--sample", type=int, default=0, help="number of mutants to draw from all files [default: all]")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="mutants.jsonl")
    parser.add_argument(
        "--killers", nargs="+", default=[], help="--out files of earlier runs: try the tests that killed mutants first"
    )
    parser.add_argument("--measured", help="OUT.tests of an earlier run with the same tests: do not measure them again")
    parser.add_argument("--retry", help="--out file of an earlier run: try only the mutants that survived")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    paths = [ROOT / path for path in options.paths]
    files = [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    options.files = [os.path.relpath(file, ROOT) for file in files]
    for file in options.files:
        __import__(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    start = time.monotonic()
    plugins = [f"no:{name}" for name in ("cacheprovider", "randomly", "cov", "timeout", "xdist", "logging")]
    arguments = [argument for name in plugins for argument in ("-p", name)]
    if status := pytest.main(["-q", *arguments, *options.tests], plugins=[Run(options)]):
        sys.exit(int(status))  # pytest has printed the reason
    verdicts = Counter(record["verdict"] for record in read_records(Path(options.out)))
    killed, total = sum(verdicts[verdict] for verdict in KILLED), verdicts.total() - verdicts[EQUAL]
    print(
        f"\n{killed} of {total} killed ({killed / max(total, 1):.1%}): {dict(verdicts)}, {time.monotonic() - start:.0f} s"
    )


if __name__ == "__main__":
    main()
