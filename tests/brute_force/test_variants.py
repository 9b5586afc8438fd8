"""Redefined built-in FlowSchemas, copies of built-in objects and outdated contexts: findings, and what commands read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from . import server
from .claims import claims
from .clusters import compare_cluster, replaced
from .comparison import compare, differences, name_of, run_check
from .losses import captured_methods, losses, missed_paths
from .reduction import as_yaml, reduce
from .variants import variant, without_copies

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

SEEDS = 80
AT_ONCE = 20
RULES = ("APF508", "APF514", "APF517")


@pytest.mark.parametrize("start", range(0, SEEDS, AT_ONCE))
def test_findings_are_what_an_enumeration_finds(start: int) -> None:
    for seed in range(start, start + AT_ONCE):
        if compare(variant(seed)):
            smallest = reduce(variant(seed), lambda smaller: bool(compare(smaller)))
            pytest.fail(as_yaml(smallest, *map(str, compare(smallest))))


def test_the_variants_have_cases_of_everything() -> None:
    configurations = [variant(seed) for seed in range(SEEDS)]
    assert sum(len(losses(config)) for config in configurations) > 40
    assert sum(len(captured_methods(config)) for config in configurations) > 10
    assert sum(len(missed_paths(config)) for config in configurations) > 10
    assert sum(config != without_copies(config) for config in configurations) > 10
    assert sum(len([*replaced(config)]) for config in configurations) > 20


def test_a_missing_finding_and_a_false_claim_are_noticed() -> None:
    noticed = set()
    for seed in range(30):
        config = variant(seed)
        true, findings = claims(config), run_check(config)
        effective = {server.name_of(schema) for schema in true.order}
        for at, finding in enumerate(findings):
            if finding.rule in RULES and name_of(finding) in effective:
                field = "spec.rules[9].nonResourceRules[0].verbs"
                example = finding.message.replace("apflint explain", "explain")
                wrong = finding._replace(field=field, severity="error", message=example)
                for kind, changed in (("miss", ()), ("false claim", (wrong,))):
                    found = differences(config, true, (*findings[:at], *changed, *findings[at + 1 :]))
                    assert (finding.rule, kind) in {(difference.rule, difference.kind) for difference in found}
                    noticed.add((finding.rule, kind))
    assert noticed == {(rule, kind) for rule in RULES for kind in ("miss", "false claim")}


def test_manifests_replace_the_context_of_a_cluster(tmp_path: Path) -> None:
    for seed in range(SEEDS):
        directory = tmp_path / str(seed)
        directory.mkdir()
        assert compare_cluster(variant(seed), directory) == ()


def test_a_context_that_wins_is_noticed(tmp_path: Path) -> None:
    config = next(config for config in map(variant, range(SEEDS)) if [*replaced(config)])
    assert compare_cluster(
        config, tmp_path, expected=config._replace(context=config.manifests, manifests=config.context)
    )
