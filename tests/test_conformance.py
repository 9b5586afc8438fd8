"""apflint rejects exactly the recorded manifests of fixtures/conformance that real kube-apiservers rejected, at the same fields."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from apflint.engine import Options, check
from apflint.releases import parse_release

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.finding import Finding

FOLDER = Path(__file__).resolve().parent.parent / "fixtures" / "conformance"
FILES = sorted(FOLDER.glob("*.jsonl"))

Case = dict[str, Any]
_BRACKETS = re.compile(r"\[([^]]*)\]")
_INDEX = re.compile(r"\.\d+(?=\.|$)")


def manifest(case: Case) -> bytes:
    """Return the manifest that was sent to the server. The fixture stores long runs of one character as `[character, count]`."""
    parts = case["manifest"]
    text = parts if isinstance(parts, str) else "".join(p if isinstance(p, str) else p[0] * p[1] for p in parts)
    return text.encode("utf-8", "surrogatepass")


def dotted(field: str) -> str:
    """Return a path in a common notation, because the server's decoder and apflint differ: `spec.rules.0.x`, `labels.a/b`."""
    return _BRACKETS.sub(r".\1", field).removeprefix(".")


def without_indices(field: str) -> str:
    """Return a path without the indices of list items: `spec.rules.subjects` for `spec.rules.0.subjects`.

    If a value has the wrong type, servers report the path of the value without indices.
    """
    return _INDEX.sub("", field)


def at_named_field(decode: dict[str, Any], findings: list[Finding]) -> bool:
    """Return whether a finding is at the field that the server could not decode."""
    if not decode.get("field"):
        return True
    named = dotted(decode["field"])
    places = {dotted(finding.field) for finding in findings}
    if decode["kind"] == "unknownField":
        return named in places
    if decode["kind"] == "duplicateKey":  # the server reports only the key, without its path
        return any(place == named or place.endswith("." + named) for place in places)
    places = {without_indices(place) for place in places}
    if named in ("metadata.labels", "metadata.annotations"):  # the server names the map, a finding names its value
        return any(place == named or place.startswith(named + ".") for place in places)
    return named in places


def disagreement(case: Case, findings: list[Finding]) -> str:
    """Return the differences between the server's verdict and the findings on one manifest."""
    causes = [finding.apiserver for finding in findings if finding.apiserver]
    mine = {(cause.reason, cause.field) for cause in causes}
    if case["accepted"]:
        return f"the server accepts it, apflint says {sorted(mine)}" if mine else ""
    if case["code"] == 422:
        theirs = {(reason, field) for reason, field in case["causes"]}
        return f"the server says {sorted(theirs)}, apflint {sorted(mine)}" if mine != theirs else ""
    undecodable = [finding for finding in findings if finding.apiserver and finding.apiserver.reason == "BadRequest"]
    missed = [decode for decode in case["decode"] if not at_named_field(decode, undecodable)]
    if missed or not undecodable:
        return f"the server cannot decode it: {missed or case['decode']}, apflint says {sorted(mine)}"
    return ""


def disagreements(cases: list[Case]) -> Iterator[str]:
    names = [f"{number}.yaml" for number in range(len(cases))]
    report = check(
        [(name, manifest(case)) for name, case in zip(names, cases, strict=True)],
        Options(kubernetes=parse_release(cases[0]["kube"])),
    )
    found: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        found[finding.file].append(finding)
    for name, case in zip(names, cases, strict=True):
        if text := disagreement(case, found[name]):
            yield f"{case['id']}: {text}"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_same_verdict_as_the_server(file: Path) -> None:
    cases = [json.loads(line) for line in file.read_text(encoding="ascii").splitlines()]
    wrong = list(disagreements(cases))
    assert not wrong, f"{len(wrong)} of {len(cases)} cases disagree:\n" + "\n".join(wrong[:25])


def test_cases_cover_every_server_and_verdict() -> None:
    verdicts = defaultdict(set)
    for file in FILES:
        for line in file.read_text(encoding="ascii").splitlines():
            case = json.loads(line)
            assert file.stem == f"{case['kube']}-{case['apiVersion']}"
            assert case["id"].startswith(
                ("b/", "f/", "g/")
            )  # other prefixes would be cases copied from the tests of Kubernetes
            verdicts[file.stem].add(case["code"])
    assert len(verdicts) >= 15
    assert all(codes >= {201, 422, 400} for codes in verdicts.values())
