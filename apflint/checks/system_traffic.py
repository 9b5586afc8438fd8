"""APF507, APF517: requests of built-in FlowSchemas that go elsewhere because of the user's FlowSchemas.

Only the cheap tests are here, which most files pass. The proofs are loaded for FlowSchemas that fail them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from apflint import builtin
from apflint.checks.system_users import may_be_of_system
from apflint.effective import once
from apflint.evaluate.configuration import EXEMPT, matching_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from apflint.effective import Effective
    from apflint.finding import Problem
    from apflint.load.document import Document
    from apflint.model import FlowSchema


def system_traffic_captured(effective: Effective) -> Iterator[Problem]:
    """APF507."""
    candidates = _candidates(effective)
    if candidates:
        from apflint.checks.captures import capture_problems

        yield from capture_problems(effective, candidates)


def built_in_flow_schema_narrowed(effective: Effective) -> Iterator[Problem]:
    """APF517."""
    yield from _narrowed(effective)


def documents_to_widen(effective: Effective) -> frozenset[Document]:
    """Return the documents for which APF517 already advises to add clusterScope."""
    places = (problem.place for problem in _narrowed(effective) if problem.fix is not None)
    return frozenset(place.document for place in places if place.document is not None)


@once
def _narrowed(effective: Effective) -> tuple[Problem, ...]:
    suggested = builtin.suggested_names(effective.release, "FlowSchema")
    redefined = [schema for schema in effective.own_flow_schemas if schema.name in suggested]
    if not redefined:
        return ()
    from apflint.checks.narrowed_defaults import narrowed_problems

    return tuple(narrowed_problems(effective, redefined))


def _candidates(effective: Effective) -> list[FlowSchema]:
    """Return the user's FlowSchemas that come early enough, and whose subjects may include a user of the system."""
    names = builtin.protected_flow_schemas(effective.release)
    # Manifests of the cluster that are only known may move a protected one.
    before = effective.without_own.order if effective.workspace.context else _built_in(effective)
    last = max((matching_order(schema) for schema in before if schema.name in names), default=(0, ""))
    own = {schema.document for schema in effective.own_flow_schemas if matching_order(schema) < last}
    return [
        schema
        for schema in (effective.assumed.order if own else ())
        if schema.document in own
        and schema.spec.priority_level_configuration != EXEMPT
        and any(may_be_of_system(subject) for rule in schema.spec.rules for subject in rule.subjects)
        and not builtin.is_retired(effective.release, "FlowSchema", schema.name)  # APF705 says what to do
    ]


def _built_in(effective: Effective) -> tuple[FlowSchema, ...]:
    return builtin.workspace_objects(effective.release).flow_schemas
