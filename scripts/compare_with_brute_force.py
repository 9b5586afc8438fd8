"""Compare the findings of eleven rules about requests with an independent enumeration of all requests.

Also check which FlowSchemas apflint reads for a cluster whose manifests and context files may define the same objects.

    python scripts/compare_with_brute_force.py --configurations 5000 --seed 1 --processes 2
    python scripts/compare_with_brute_force.py --generator protected      more FlowSchemas reference protected levels
    python scripts/compare_with_brute_force.py --only 1:4711        compare one configuration again, and print its manifests

Prints totals and, for each difference, the smallest manifests with this difference. Exits with 1 if there are
differences. The reference is in tests/brute_force. The seed and the number of a configuration determine its content.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from multiprocessing import Pool
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from brute_force.claims import claims
from brute_force.clusters import compare_cluster
from brute_force.comparison import PROVEN, Difference, differences, run_check
from brute_force.losses import captured_methods, losses, missed_paths
from brute_force.outsiders import outsider_claims, protected_configuration
from brute_force.reduction import as_yaml, reduce
from brute_force.variants import variant

if TYPE_CHECKING:
    from collections.abc import Iterable

    from brute_force.configurations import Configuration


CONTEXT = "APF context"
"""Pseudo rule ID for objects that commands use differently."""
GENERATORS = {"any": variant, "protected": protected_configuration}


class Result(NamedTuple):
    """The result of comparing one configuration."""

    name: str
    counts: Counter[str]
    reproducers: tuple[str, ...]


def compare(configuration: Configuration, rules: Iterable[str]) -> tuple[Counter[str], list[Difference]]:
    """Return the number of cases of each kind in a configuration, and the differences in the findings of `rules`."""
    true = claims(configuration)
    wrong = [
        difference
        for difference in differences(configuration, true, run_check(configuration))
        if difference.rule in rules
    ]
    with tempfile.TemporaryDirectory() as directory:
        wrong += [Difference(CONTEXT, "miss", detail) for detail in compare_cluster(configuration, Path(directory))]
    outsiders = outsider_claims(configuration)
    counts = Counter(
        {
            "configurations": 1,
            "unreachable parts": len(true.unreachable),
            "ties": len(true.ties),
            "harmless ties": len(true.harmless),
            "captures": len(true.captures),
            "losses": len(losses(configuration)),
            "captured methods": len(captured_methods(configuration)),
            "missed paths": len(missed_paths(configuration)),
            "broad outsiders": len(outsiders.broad),
            "named outsiders": len(outsiders.named),
        }
    )
    counts.update(f"{difference.rule} {difference.kind}" for difference in wrong)
    return counts, wrong


def run(task: tuple[str, str, tuple[str, ...]]) -> Result:
    """Compare apflint with brute force on one configuration.

    `task` is (name, generator of the configuration, IDs of rules).
    """
    name, generator, rules = task
    config = GENERATORS[generator](name)
    counts, wrong = compare(config, rules)
    kinds = dict.fromkeys((difference.rule, difference.kind) for difference in wrong)
    return Result(name, counts, tuple(find_reproducer(name, config, *kind) for kind in kinds))


def find_reproducer(name: str, config: Configuration, rule: str, kind: str) -> str:
    """Return the smallest manifests for which apflint and brute force differ, as YAML with comments.

    The manifests are a reduced copy of `config`, and the comments describe the differences. Only
    differences of the rule `rule` and of the kind `kind` count, such as `miss`.
    """

    def find_remaining(smaller: Configuration) -> list[Difference]:
        return [difference for difference in compare(smaller, (rule,))[1] if difference.kind == kind]

    smallest = reduce(config, lambda smaller: bool(find_remaining(smaller)))
    return as_yaml(
        smallest,
        f"configuration {name}",
        *(f"{difference.rule} {difference.kind}: {difference.detail}" for difference in find_remaining(smallest)),
    )


def main() -> int:
    """Compare the configurations that the command line selects. Return 1 if there are differences, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--configurations", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--processes", type=int, default=1, metavar="P")
    parser.add_argument("--rules", nargs="+", choices=PROVEN, default=list(PROVEN))
    parser.add_argument("--generator", choices=GENERATORS, default="any")
    parser.add_argument("--only", metavar="SEED:NUMBER", help="print this configuration and compare it")
    arguments = parser.parse_args()

    names = [arguments.only] if arguments.only else [f"{arguments.seed}:{at}" for at in range(arguments.configurations)]
    if arguments.only:
        print(as_yaml(GENERATORS[arguments.generator](arguments.only)))
    totals: Counter[str] = Counter()
    tasks = [(name, arguments.generator, tuple(arguments.rules)) for name in names]
    with Pool(arguments.processes) as pool:
        for result in pool.imap(run, tasks, chunksize=20):
            totals += result.counts
            for text in result.reproducers:
                print(text)
    for rule in (*arguments.rules, CONTEXT):
        for kind in ("miss", "false claim"):
            totals.setdefault(f"{rule} {kind}", 0)
    for label, count in sorted(totals.items()):
        print(f"{label:24}{count:>10,}")
    return 1 if any(count for label, count in totals.items() if label.startswith("APF")) else 0


if __name__ == "__main__":
    sys.exit(main())
