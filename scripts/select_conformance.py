"""Choose the conformance cases in fixtures/conformance/ from recorded verdicts of real kube-apiservers.

    python scripts/select_conformance.py [--from DIR] [--check]

DIR contains the complete recording, with one `<kube>-<apiVersion>.jsonl` for each server and API version. The recording
is too large for this repository. The script selects cases by a greedy set cover over their features (see
`list_features`), and adds a seeded sample up to `CASES_PER_FILE`. The same recording gives the same files. Files of
servers that are not in DIR stay unchanged. `--check` writes nothing, and fails if the committed files differ.
"""

from __future__ import annotations

import argparse
import heapq
import json
import random
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from recording.verdicts import LONG_RUN, format_line

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent
RECORDING = ROOT.parent / "shared" / "oracle" / "validation"
TARGET = ROOT / "fixtures" / "conformance"

CASES_PER_FILE = 280
SEED = 1040  # number of KEP-1040, which defines API Priority and Fairness

Case = dict[str, Any]
_INDEX = re.compile(r"\[[^]]*\]")


def remove_indices(field: str | None) -> str:
    """Return `spec.rules.subjects` for `spec.rules[0].subjects[1]`."""
    return _INDEX.sub("", field or "")


def read_cases(file: Path) -> list[Case]:
    """Return the recorded cases of one server and API version that may be published here.

    `source: upstream` marks objects from Kubernetes' own tests, which must not be copied.
    """
    with file.open(encoding="utf-8") as lines:
        cases: list[Case] = [json.loads(line) for line in lines]
    return [case for case in cases if case["source"] != "upstream"]


def list_features(case: Case) -> Iterator[tuple[object, ...]]:
    """Yield the features of a case. The selected cases together have all features of all cases."""
    server = (case["kube"], case["apiVersion"])
    named = case["id"].startswith("b/")  # the IDs of all other cases are generated, and have no meaning
    family = "/".join(case["id"].split("/")[:3])
    yield (*server, case["code"])
    if named:
        yield ("family", family)
    for reason, field in case["causes"]:
        yield (*server, reason, remove_indices(field))
    for decode in case.get("decode", ()):
        kind, field = decode["kind"], remove_indices(decode.get("field"))
        yield (*server, kind)
        yield (kind, field, decode.get("got"))
        if kind == "wrongType":
            yield (*server, kind, field)
    if named:  # servers may give different verdicts on one manifest, so select a case for each verdict
        causes = sorted((reason, remove_indices(field)) for reason, field in case["causes"])
        yield ("verdict", family, case["code"], str(causes))
    if len(case["causes"]) > 1:
        yield ("together", str(sorted({(reason, remove_indices(field)) for reason, field in case["causes"]})))


def cover(cases: list[Case]) -> set[int]:
    """Return the indices of a small set of cases that has the features of all cases: greedy, with ties broken at random.

    Breaking ties by length would put all cases into one file, because "v1" is shorter than "v1beta1".
    """
    chance = random.Random(SEED)
    features = [frozenset(list_features(case)) for case in cases]
    heap = [(-len(found), chance.random(), index) for index, found in enumerate(features)]
    heapq.heapify(heap)
    covered: set[tuple[object, ...]] = set()
    chosen: set[int] = set()
    while heap:
        negative_gain, lot, index = heapq.heappop(heap)
        gain = len(features[index] - covered)
        if gain == -negative_gain:
            if gain == 0:
                break
            chosen.add(index)
            covered |= features[index]
        elif gain:
            heapq.heappush(heap, (-gain, lot, index))
    return chosen


def fill_up(cases: list[Case], chosen: set[int]) -> None:
    """Add a seeded sample of the other cases to each file that has fewer than `CASES_PER_FILE`."""
    by_file: dict[tuple[str, str], list[int]] = {}
    for index, case in enumerate(cases):
        by_file.setdefault((case["kube"], case["apiVersion"]), []).append(index)
    chance = random.Random(SEED)
    for indices in by_file.values():
        rest = [index for index in indices if index not in chosen and not LONG_RUN.search(cases[index]["manifest"])]
        missing = CASES_PER_FILE - sum(index in chosen for index in indices)
        chosen.update(chance.sample(rest, max(0, min(missing, len(rest)))))


def choose(recording: Path) -> dict[str, str]:
    """Return the files to write: name and content."""
    cases = [case for file in sorted(recording.glob("*.jsonl")) for case in read_cases(file)]
    chosen = cover(cases)
    print(f"{len(chosen)} of {len(cases)} cases cover all features", file=sys.stderr)
    fill_up(cases, chosen)
    texts: dict[str, list[str]] = {}
    for index in sorted(chosen):
        case = cases[index]
        texts.setdefault(f"{case['kube']}-{case['apiVersion']}.jsonl", []).append(format_line(case))
    return {name: "".join(lines) for name, lines in texts.items()}


def main() -> int:
    """Write or check the files. Returns 1 if they differ or if there is no recording."""
    parser = argparse.ArgumentParser(description="Choose the conformance cases from recorded verdicts.")
    parser.add_argument(
        "--from",
        dest="recording",
        type=Path,
        default=RECORDING,
        metavar="DIR",
        help="the recording (default: ../shared/oracle/validation)",
    )
    parser.add_argument("--check", action="store_true", help="write nothing; fail if the committed files differ")
    options = parser.parse_args()
    files = choose(options.recording)
    if not files:
        print(f"no recording in {options.recording}", file=sys.stderr)
        return 1
    there = {file.name: file.read_text(encoding="ascii") for file in TARGET.glob("*.jsonl")}
    if options.check:
        stale = sorted(name for name in files if files[name] != there.get(name))
        for name in stale:
            print(
                f"fixtures/conformance/{name} is out of date: run python scripts/select_conformance.py", file=sys.stderr
            )
        return 1 if stale else 0
    TARGET.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (TARGET / name).write_text(text, encoding="ascii", newline="\n")
    count = sum(text.count("\n") for text in files.values())
    print(f"{count} cases in {len(files)} files, {sum(map(len, files.values())) / 1e6:.2f} MB", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
