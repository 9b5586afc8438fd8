"""Tests of the generated manifests (cases) that are sent to API servers to record the answers.

The cases are the same in each run. A family is a group of cases, such as cases with unknown fields.
The cases of each family have the mistakes of this family.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from recording.cases import FAMILIES, MAX_CASES_PER_FAMILY, Raw, Target, generate, sample, to_yaml  # noqa: E402

from apflint.engine import Options, check  # noqa: E402
from apflint.load import load  # noqa: E402
from apflint.releases import API_VERSIONS, parse_release  # noqa: E402

UNDECODABLE, INVALID, REQUIRED = "BadRequest", "FieldValueInvalid", "FieldValueRequired"
NOT_SUPPORTED, FORBIDDEN, TOO_LONG = "FieldValueNotSupported", "FieldValueForbidden", "FieldValueTooLong"
# Maps each family of cases to the reasons for which Kubernetes 1.36 rejects these cases, and to a pattern for the last
# part of the rejected fields.
CLAIMS: dict[str, tuple[set[str], str]] = {
    "valid": (set(), ""),
    "missing_fields": ({REQUIRED, NOT_SUPPORTED}, r"\w+"),
    "wrong_types": ({UNDECODABLE}, r"\w+"),
    "unknown_fields": ({UNDECODABLE}, r"\w+"),
    "duplicate_keys": ({UNDECODABLE}, r"\w+"),
    "wildcards": ({INVALID}, "verbs|apiGroups|resources|namespaces|nonResourceURLs"),
    "lists": ({REQUIRED, INVALID, NOT_SUPPORTED}, r"\w+"),
    "verbs": ({NOT_SUPPORTED}, "verbs"),
    "namespaces": ({INVALID, REQUIRED}, "namespaces"),
    "non_resource_urls": ({INVALID}, "nonResourceURLs"),
    "rules": ({REQUIRED}, "rules|subjects"),
    "subjects": ({REQUIRED, FORBIDDEN, INVALID, NOT_SUPPORTED}, "kind|user|group|serviceAccount|name|namespace"),
    "precedence": ({UNDECODABLE, INVALID}, "matchingPrecedence|name|spec"),
    "distinguisher_methods": ({NOT_SUPPORTED}, "type"),
    "names": ({REQUIRED, INVALID}, "name"),
    "metadata": (
        {INVALID, TOO_LONG},
        "labels|annotations|finalizers|generateName|name|apiVersion|kind|uid",
    ),
    "shares": ({UNDECODABLE, INVALID, FORBIDDEN}, "assuredConcurrencyShares|nominalConcurrencyShares|annotations"),
    "borrowing": ({UNDECODABLE, INVALID}, "lendablePercent|borrowingLimitPercent"),
    "queuing": (
        {UNDECODABLE, INVALID, FORBIDDEN, NOT_SUPPORTED},
        "queues|handSize|queueLengthLimit|queuing|type",
    ),
    "hands": ({INVALID}, "handSize|queues"),
    "exempt_levels": (
        {UNDECODABLE, INVALID, FORBIDDEN, NOT_SUPPORTED, REQUIRED},
        "spec|type|exempt|limited|nominalConcurrencyShares|lendablePercent|borrowingLimitPercent",
    ),
    "yaml_scalars": ({UNDECODABLE, INVALID, REQUIRED}, "matchingPrecedence|clusterScope|name|labels|"),
    "documents": ({UNDECODABLE}, r"\w*"),
    "combine_mistakes": ({UNDECODABLE, INVALID, NOT_SUPPORTED, REQUIRED}, r"\w+"),
}
ALWAYS_REJECTED = {"wrong_types", "unknown_fields", "rules"}


@cache
def verdicts() -> dict[str, list[tuple[str, str]]]:
    """Map each case to the (reason, field) of its rejections by Kubernetes 1.36, as apflint predicts them."""
    cases = generate("v1")
    report = check([(case.id, case.manifest.encode()) for case in cases], Options(kubernetes=parse_release("1.36")))
    found: dict[str, list[tuple[str, str]]] = {case.id: [] for case in cases}
    for finding in report.findings:
        if finding.apiserver:
            found[finding.file].append((finding.apiserver.reason, finding.apiserver.field or ""))
    return found


@pytest.mark.parametrize("version", [life.name for life in API_VERSIONS])
def test_cases_are_the_same_each_time(version: str) -> None:
    cases = generate(version)
    assert cases == generate(version)
    assert sample(cases) == sample(generate(version))
    assert len({case.id for case in cases}) == len({case.manifest for case in cases}) == len(cases)
    assert all(f"flowcontrol.apiserver.k8s.io/{version}" in case.manifest for case in cases)


def test_sample_has_cases_of_every_family() -> None:
    sizes: dict[str, int] = defaultdict(int)
    cases = generate("v1")
    chosen = sample(cases)
    for case in chosen:
        sizes[case.id.split("/")[1]] += 1
    assert sizes.keys() == FAMILIES.keys() == CLAIMS.keys()
    assert max(sizes.values()) == MAX_CASES_PER_FAMILY
    assert [case for case in cases if case in set(chosen)] == chosen


@pytest.mark.parametrize("name", CLAIMS)
def test_cases_make_the_mistakes_of_their_family(name: str) -> None:
    reasons, pattern = CLAIMS[name]
    mine = {case: causes for case, causes in verdicts().items() if case.split("/")[1] == name}
    assert {reason for causes in mine.values() for reason, _ in causes} == reasons
    fields = {re.sub(r"\[[^]]*\]", "", field).rpartition(".")[2] for causes in mine.values() for _, field in causes}
    assert {field for field in fields if not re.fullmatch(pattern, field)} == set()
    accepted = [case for case, causes in mine.items() if not causes]
    assert bool(accepted) != (name in ALWAYS_REJECTED)


def test_yaml_is_the_object() -> None:
    for value in (Target("v1").flow_schema(), Target("v1beta2").level()):
        (document,) = load("case.yaml", to_yaml(value).encode()).documents
        assert document.value == value
    assert to_yaml({"a": [{"b": Raw("0x10")}, {}], "c/d": {}}) == 'a:\n  - b: 0x10\n  - {}\n"c/d": {}\n'
