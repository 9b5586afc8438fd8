"""Subjects of a rule that behave alike, compared with proofs that try each subject."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.builders import group, service_account, user
from support.configurations import BUILT_IN, Objects, objects

from apflint.evaluate.configuration import Configuration, build_configuration
from apflint.proofs import alike_subjects
from apflint.proofs.alike_subjects import AlikeSubjects
from apflint.proofs.one_configuration import Analysis

from .enumeration import WORLDS, names

if TYPE_CHECKING:
    from apflint.proofs.request_space import World

SUBJECTS = (
    *(user(name) for name in ("a", "b", "c", "*", "system:serviceaccount:dev:d", "system:kube-proxy")),
    *(group(name) for name in ("a", "b", "c", "*", "system:serviceaccounts:dev", "system:authenticated")),
    *(service_account(*account) for account in (("dev", "e"), ("dev", "f"), ("ops", "e"), ("ops", "f"), ("dev", "*"))),
)
ENTRIES = [
    {"verbs": verbs, "apiGroups": ["*"], "resources": ["pods"], "clusterScope": True, "namespaces": ["*"]}
    for verbs in (["*"], ["get"], ["list", "watch"])
]
RULES = st.fixed_dictionaries(
    {
        "subjects": st.lists(st.sampled_from(SUBJECTS), min_size=1, max_size=8),
        "resourceRules": st.lists(st.sampled_from(ENTRIES), min_size=1, max_size=2),
    }
)


def configuration(*schemas: list[dict[str, Any]]) -> Configuration:
    values = [
        {
            "kind": "FlowSchema",
            "name": f"schema-{number}",
            "spec": {
                "matchingPrecedence": 100 + number,
                "priorityLevelConfiguration": {"name": "workload-low"},
                "rules": rules,
            },
        }
        for number, rules in enumerate(schemas)
    ]
    return build_configuration(Objects(objects(values).flow_schemas), BUILT_IN)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(RULES, min_size=1, max_size=2), min_size=1, max_size=3), st.sampled_from(WORLDS))
def test_representatives_prove_what_all_subjects_prove(schemas: list[list[dict[str, Any]]], world: World) -> None:
    config = configuration(*schemas)
    every = names(Analysis(config, world).find_unreachable()[0])
    with patch.object(alike_subjects, "_FEW_SUBJECTS", 0):
        assert names(Analysis(config, world).find_unreachable()[0]) == every


def test_thousands_of_subjects_have_few_representatives() -> None:
    subjects = [
        *(user(f"u{number}") for number in range(1_000)),
        *(group(f"g{number}") for number in range(1_000)),
        *(service_account(f"n{number}", "a") for number in range(1_000)),
    ]
    config = configuration([{"subjects": subjects, "resourceRules": ENTRIES[:1]}])
    (schema,) = (schema for schema in config.order if schema.name == "schema-0")
    found = AlikeSubjects(config.order).representatives(schema.spec.rules[0])
    assert found == [0, 999, 1_000, 1_999, 2_000, 2_999]


def test_subjects_that_others_distinguish_represent_themselves() -> None:
    apart = [user("*"), group("system:masters"), user("u0"), service_account("dev", "a"), service_account("dev", "*")]
    subjects = [*apart, *(user(f"u{number}") for number in range(100))]
    config = configuration([{"subjects": subjects, "resourceRules": ENTRIES[:1]}])
    (schema,) = (schema for schema in config.order if schema.name == "schema-0")
    found = AlikeSubjects(config.order).representatives(schema.spec.rules[0])
    assert found == [0, 1, 2, 3, 4, 5, 6, len(subjects) - 1]
