"""APF501, APF502, APF503, APF507, APF518 and more rules report exactly what an independent enumeration of all requests finds.

`scripts/compare_with_brute_force.py` does the same for thousands of configurations.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from . import server
from .claims import claims
from .comparison import PROVEN, compare, differences, name_of, run_check
from .configurations import Configuration, configuration, manifest
from .reduction import as_yaml, reduce

pytestmark = pytest.mark.slow

SEEDS = 160
AT_ONCE = 20


@pytest.mark.parametrize("start", range(0, SEEDS, AT_ONCE))
def test_findings_are_what_an_enumeration_finds(start: int) -> None:
    for seed in range(start, start + AT_ONCE):
        if compare(configuration(seed)):
            pytest.fail(report(configuration(seed)))


def report(config: Configuration) -> str:
    smallest = reduce(config, lambda smaller: bool(compare(smaller)))
    return as_yaml(smallest, *(str(difference) for difference in compare(smallest)))


def test_the_configurations_have_cases_of_everything() -> None:
    everything = [claims(configuration(seed)) for seed in range(SEEDS)]
    assert sum(len(true.unreachable) for true in everything) > 500
    assert sum(len(true.ties) for true in everything) > 150
    assert sum(len(true.harmless) for true in everything) > 20
    assert sum(len(true.captures) for true in everything) > 150


def test_a_missing_finding_is_noticed() -> None:
    noticed = set()
    for seed in range(12):
        config = configuration(seed)
        true, findings = claims(config), run_check(config)
        before = set(differences(config, true, findings))
        for at, finding in enumerate(findings):
            more = set(differences(config, true, findings[:at] + findings[at + 1 :])) - before
            assert finding.rule not in PROVEN or {(difference.rule, difference.kind) for difference in more} == {
                (finding.rule, "miss")
            }
            noticed |= {(difference.rule, difference.kind) for difference in more}
    # test_variants.py contains the same test for the excluded rules.
    assert noticed >= {(rule, "miss") for rule in PROVEN if rule not in ("APF508", "APF514", "APF517")}


def test_a_false_claim_is_noticed() -> None:
    config, finding = next(
        (config, finding)
        for config in map(configuration, range(SEEDS))
        for finding in run_check(config)
        if finding.rule == "APF502"
    )
    true, findings = claims(config), run_check(config)
    for field in ("spec.rules[9]", "metadata.name"):
        kinds = [
            (difference.rule, difference.kind)
            for difference in differences(config, true, (*findings, finding._replace(field=field)))
        ]
        assert ("APF502", "false claim") in kinds


def test_a_false_capture_is_noticed() -> None:
    config, finding = next(
        (config, finding)
        for config in map(configuration, range(SEEDS))
        for finding in run_check(config)
        if finding.rule == "APF507" and '"probes"' not in finding.message
    )
    true = claims(config)
    for wrong in (f'{finding.message} "probes"', finding.message.replace("apflint explain", "explain")):
        kinds = {
            (difference.rule, difference.kind)
            for difference in differences(config, true, [finding._replace(message=wrong)])
        }
        assert ("APF507", "false claim") in kinds


def test_a_false_tie_is_noticed() -> None:
    """The comparison detects a finding that names an untied FlowSchema, shows another request, occurs twice, or has too
    high a severity."""
    config, finding = next(
        (config, finding)
        for config in map(configuration, range(SEEDS))
        for finding in run_check(config)
        if finding.rule == "APF503" and finding.severity == "info"
    )
    true, command = claims(config), "`apflint explain get /metrics --as nobody`"
    tied = next(schema for schema in config.manifests if server.name_of(schema) == name_of(finding))
    lone = manifest("FlowSchema", "lone", {**tied["spec"], "rules": []}, config.kubernetes)
    for wrong in (
        [finding._replace(message=f'{finding.message} "lone"')],
        [finding._replace(message=f"{finding.message} {command}")],
        [finding._replace(severity="warning")],
        [finding, finding],
    ):
        more = config._replace(manifests=(*config.manifests, lone))
        assert ("APF503", "false claim") in {
            (difference.rule, difference.kind) for difference in differences(more, true, wrong)
        }


def test_a_wrong_reason_is_noticed() -> None:
    """The comparison detects a finding with a wrong reason for an unreachable part of a FlowSchema.

    Such a finding names too few or too many of the FlowSchemas and rules that match all requests of the
    part.
    """
    config, finding = next(
        (config, finding)
        for config in map(configuration, range(SEEDS))
        for finding in run_check(config)
        if finding.rule == "APF501" and '"global-default"' in finding.message
    )
    true = claims(config)
    for wrong in (finding.message.replace('"global-default"', "it"), f'{finding.message} and "exempt" (1)'):
        assert [difference.rule for difference in differences(config, true, [finding._replace(message=wrong)])].count(
            "APF501"
        ) > [difference.rule for difference in differences(config, true, [finding])].count("APF501")


def test_the_reference_shares_no_code_with_apflint() -> None:
    """Only two modules of the brute-force tests import the code of apflint, and only to run it.

    `comparison` runs `check`, and `clusters` reads the clusters of settings. All other modules may
    import only `apflint.finding`.
    """
    imported = {}
    for file in Path(__file__).parent.glob("*.py"):
        tree = ast.parse(file.read_text(encoding="utf-8"))
        names = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        names |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        imported[file.stem] = {name for name in names if name.partition(".")[0] == "apflint"}
    assert imported.pop("comparison") == {
        "apflint.engine",
        "apflint.finding",
        "apflint.effective_configuration",
        "apflint.releases",
    }
    assert imported.pop("clusters") == {"apflint.sources.effective_configurations", "apflint.sources.input_types"}
    assert set().union(*imported.values()) <= {"apflint.finding"}


def test_an_error_that_needs_an_assumed_level_is_a_false_claim() -> None:
    def schema(name: str, precedence: int, level: str) -> dict[str, object]:
        paths = [{"verbs": ["*"], "nonResourceURLs": ["/x"]}]
        rules = [{"subjects": [{"kind": "User", "user": {"name": "a"}}], "nonResourceRules": paths}]
        spec = {
            "priorityLevelConfiguration": {"name": level},
            "matchingPrecedence": precedence,
            "rules": rules,
        }
        api_version = "flowcontrol.apiserver.k8s.io/v1"
        return {"apiVersion": api_version, "kind": "FlowSchema", "metadata": {"name": name}, "spec": spec}

    manifests = (schema("first", 100, "elsewhere"), schema("second", 200, "workload-low"))
    config = Configuration("1.36", complete=False, manifests=manifests)
    found = run_check(config)
    assert not list(differences(config, claims(config), found))
    errors = [finding._replace(severity="error") for finding in found]
    details = [difference.detail for difference in differences(config, claims(config), errors)]
    assert details == ["second: an error that an assumed level refutes"]
