"""Models of the formula are requests that exist."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.builders import group
from support.configurations import schema

from apflint.proofs.encoding import Encoding
from apflint.proofs.request_space import is_possible, usual_groups
from apflint.proofs.vocabulary import (
    build_vocabulary,
)

if TYPE_CHECKING:
    from apflint.model import FlowSchema, PolicyRulesWithSubjects


def rules(*schemas: FlowSchema) -> list[PolicyRulesWithSubjects]:
    return [rule for each in schemas for rule in each.spec.rules]


def test_models_have_the_groups_that_authentication_gives() -> None:
    found = Encoding(build_vocabulary(rules(schema(group("dev"))), "authenticated"))
    point = found.solve()
    assert point is not None
    assert {*usual_groups(point.user)} <= {*point.groups}
    assert is_possible(point, "authenticated")
