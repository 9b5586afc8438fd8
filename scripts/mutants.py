"""Mutation testing: mistakes are put into the code, and each should make a test fail.

    pip install -e '.[test]' mutmut
    python scripts/mutants.py apflint/model.py apflint/evaluate apflint/checks --sample 2000 --seed 7
    python scripts/mutants.py apflint/checks/flows.py --tests tests/test_rules_whole_set.py tests/test_rules_objects.py

A line of JSON for each mutant goes to `--out`; a second run leaves out those that are there. With `--retry FILE` only those
that survived in an earlier run are tried. A sample is tried in random order: what there is when it is stopped is one, too.

The mistakes are those of mutmut 3. They are made otherwise: the tests are collected once, and each mutant is a fork of that
process in which the code of one function is exchanged. It runs the tests that execute the line, quick ones and those that
killed its neighbours first, up to `--seconds` of them, so a mutant costs 0.1 seconds. Laws are tried on 20 examples. Mutated
as well are functions behind decorators (properties, caches). Not mutated are what runs at import, annotations, `cast`, `len`,
`isinstance`, the `strict` of zip, and prose: texts with a blank in them, and what is put into them.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from mutating.mistakes import ROOT
from mutating.records import DEAD, SAME, records
from mutating.runner import Run


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="+", help="files and folders to mutate")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="what to give to pytest")
    parser.add_argument("--seconds", type=float, default=8.0, help="of tests for each mutant")
    parser.add_argument("--sample", type=int, default=0, help="so many mutants, drawn from those of all files")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", default="mutants.jsonl")
    parser.add_argument("--killers", nargs="+", default=[], help="the --out of earlier runs: their tests go first")
    parser.add_argument(
        "--measured", help="the --out of an earlier run with .tests behind it: the tests are those still"
    )
    parser.add_argument("--retry", help="the --out of an earlier run: only what survived there")
    options = parser.parse_args()
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    paths = [ROOT / path for path in options.paths]
    files = [each for path in paths for each in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    options.files = [os.path.relpath(each, ROOT) for each in files]
    for file in options.files:
        __import__(file.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
    begun = time.monotonic()
    plugins = [f"no:{name}" for name in ("cacheprovider", "randomly", "cov", "timeout", "xdist", "logging")]
    arguments = [argument for name in plugins for argument in ("-p", name)]
    pytest.main(["-q", *arguments, *options.tests], plugins=[Run(options)])
    verdicts = Counter(each["verdict"] for each in records(Path(options.out)))
    dead, real = sum(verdicts[each] for each in DEAD), verdicts.total() - verdicts[SAME]
    print(f"\n{dead} of {real} dead ({dead / max(real, 1):.1%}): {dict(verdicts)}, {time.monotonic() - begun:.0f} s")


if __name__ == "__main__":
    main()
