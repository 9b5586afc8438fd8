"""The effective configuration: values that it caches, and how manifests, context and assumptions change it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.builders import COMPLETE, effective, flow_schema, group, priority_level

from apflint.effective_configuration import once

if TYPE_CHECKING:
    from apflint.effective_configuration import Effective


def test_facts_are_computed_once_for_each_configuration() -> None:
    calls: list[Effective] = []

    @once
    def count_flow_schemas(server: Effective) -> int:
        calls.append(server)
        return len(server.flow_schemas)

    first, second = effective(flow_schema("a")), effective()
    assert [count_flow_schemas(server) for server in (first, second, first, second)] == [1, 0, 1, 0]
    assert calls == [first, second]
    assert first.proofs is first.proofs
    assert first.configuration is first.configuration


def test_without_documents_leaves_the_original_as_it_is() -> None:
    server = effective(flow_schema("a"), flow_schema("b"))
    fewer = server.without({server.flow_schemas[0].document})
    assert [schema.name for schema in fewer.flow_schemas] == ["b"]
    assert [schema.name for schema in server.flow_schemas] == ["a", "b"]
    assert server.without(()) is server


def test_workspace_cannot_be_changed() -> None:
    workspace = effective(flow_schema("a")).workspace
    with pytest.raises(AttributeError):
        workspace.flow_schemas = ()  # type: ignore[misc]  # that is the point


def test_missing_levels_are_assumed_in_the_open_world_only() -> None:
    dangling = flow_schema("ci", "elsewhere")
    server, complete = effective(dangling), effective(dangling, assumptions=COMPLETE)
    assert [schema.name for schema in server.configuration.dangling] == ["ci"]
    assert "elsewhere" in server.assumed.levels
    assert "elsewhere" not in complete.assumed.levels


def test_own_objects_of_the_user_are_left_out_of_what_the_built_in_ones_do() -> None:
    server = effective(flow_schema("ci", "batch", subjects=[group("ci")]), priority_level("batch"))
    assert "ci" in {schema.name for schema in server.assumed.order}
    assert "ci" not in {schema.name for schema in server.without_own.order}
    assert {document.name for document in server.own_documents} == {"ci", "batch"}
