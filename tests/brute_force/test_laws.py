"""Changes without an effect on the server do not change findings."""

from __future__ import annotations

import json
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from . import server
from .comparison import PROVEN, involved, name_of, run_check
from .configurations import Configuration, built_in, configuration, manifest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from apflint.finding import Finding

    from .server import Manifest

pytestmark = pytest.mark.slow

SEEDS = range(1000, 1030)
Reported = set[tuple[str, str, str, str | None, str]]


def reported(config: Configuration, rules: tuple[str, ...] = PROVEN) -> Reported:
    """Return rule, FlowSchema, other named FlowSchemas, field and severity of each finding."""
    return {
        (finding.rule, name_of(finding), ", ".join(sorted(about(finding, config))), field_of(finding), finding.severity)
        for finding in run_check(config)
        if finding.rule in rules
    }


def field_of(finding: Finding) -> str | None:
    """Return the field of a finding, except for APF518 and APF601, which choose one of several subjects by their order."""
    return None if finding.rule in ("APF518", "APF601") else finding.field


def about(finding: Finding, config: Configuration) -> Iterable[str]:
    """Return the other FlowSchemas that a finding names, for APF503 (ties) and APF507 (captures).

    For all other rules, return (). A finding about an unreachable part may name any of the parts that
    shadow the part, so the named FlowSchemas must not be compared.
    """
    return involved(finding, config) if finding.rule in ("APF503", "APF507") else ()


@pytest.fixture(scope="module", params=SEEDS, name="config")
def _config(request: pytest.FixtureRequest) -> Configuration:
    return configuration(request.param)


@pytest.fixture(name="random")
def _random(config: Configuration) -> Random:
    return Random(json.dumps(config.manifests))


def test_the_order_of_documents(config: Configuration, random: Random) -> None:
    shuffled = config._replace(manifests=tuple(random.sample(config.manifests, len(config.manifests))))
    assert reported(shuffled) == reported(config)


def test_the_order_of_values_in_a_list(config: Configuration, random: Random) -> None:
    assert reported(mapped(config, lambda value: shuffled(value, random) if is_plain(value) else value)) == reported(
        config
    )


def test_the_order_of_rules_subjects_and_entries(config: Configuration, random: Random) -> None:
    """Findings of APF502 are left out, because they depend on the order: if two parts cover each other, APF502 reports
    the later part.

    Fields of APF508 and APF514 are not compared, because the indices of rules and entries change."""
    rules = tuple(rule for rule in PROVEN if rule != "APF502")

    def without_indices(found: Reported) -> Reported:
        return {
            (rule, name, others, None if rule in ("APF508", "APF514") else field, severity)
            for rule, name, others, field, severity in found
        }

    again = reported(mapped(config, lambda value: shuffled(value, random)), rules)
    assert without_indices(again) == without_indices(reported(config, rules))


def test_the_names_of_objects(config: Configuration) -> None:
    """Renaming objects does not change findings if the new names have the same order."""
    built_in_names = {server.name_of(manifest) for manifest in built_in(config.kubernetes)}
    renamed = {name: f"{name}-of-ours" for name in map(server.name_of, config.objects) if name not in built_in_names}
    in_order = sorted({*renamed, *built_in_names})
    assert sorted(in_order, key=lambda name: renamed.get(name, name)) == in_order

    def rename(names: str) -> str:
        return ", ".join(sorted(renamed.get(name, name) for name in names.split(", ")))

    again = reported(replaced(config, {named(name): named(new) for name, new in renamed.items()}))
    assert again == {(rule, rename(name), rename(others), *more) for rule, name, others, *more in reported(config)}


def test_the_names_of_users_and_groups(config: Configuration) -> None:
    changes = {
        f'"{kind}": {named(name)}': f'"{kind}": {named(f"{name}@example.com")}'
        for name in ("alice", "bob", "dev", "ops", "monitors")
        for kind in ("user", "group")
    }
    assert reported(replaced(config, changes)) == reported(config)


@pytest.mark.parametrize(
    "subject", [{"kind": "User", "user": {"name": "zoe"}}, {"kind": "Group", "group": {"name": "zoo"}}]
)
def test_an_unrelated_flow_schema(config: Configuration, subject: Manifest) -> None:
    used = {server.precedence_of(schema) for schema in config.objects if schema["kind"] == "FlowSchema"}
    precedence = next(number for number in range(8990, 0, -1) if number not in used)
    entries = {
        "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["zebras"], "namespaces": ["zoo"]}],
        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": ["/zoo"]}],
    }
    spec = {
        "priorityLevelConfiguration": {"name": "workload-low"},
        "matchingPrecedence": precedence,
        "rules": [{"subjects": [subject], **entries}],
    }
    more = manifest("FlowSchema", "zoo", spec, config.kubernetes)
    again = reported(config._replace(manifests=(*config.manifests, more)))
    assert {report for report in again if report[1] != "zoo"} == reported(config)


def is_plain(values: list[Any]) -> bool:
    return all(isinstance(value, str) for value in values)


def shuffled(values: list[Any], random: Random) -> list[Any]:
    return random.sample(values, len(values))


def mapped(config: Configuration, change: Callable[[list[Any]], list[Any]]) -> Configuration:
    """Return the configuration with a function applied to every list in its manifests."""

    def walk(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: walk(inner) for key, inner in value.items()}
        return [walk(inner) for inner in change(value)] if isinstance(value, list) else value

    manifests, context = (tuple(map(walk, objects)) for objects in (config.manifests, config.context))
    return config._replace(manifests=manifests, context=context)


def named(name: str) -> str:
    """Return the JSON fragment that names an object or a subject."""
    return json.dumps({"name": name})


def replaced(config: Configuration, changes: dict[str, str]) -> Configuration:
    """Return the configuration with fragments of its JSON replaced."""
    text = json.dumps((config.manifests, config.context))
    for piece, new in changes.items():
        text = text.replace(piece, new)
    manifests, context = json.loads(text)
    return config._replace(manifests=tuple(manifests), context=tuple(context))
