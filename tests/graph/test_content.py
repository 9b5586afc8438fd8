"""The content of a picture: states and origins of objects, their order, and problems."""

from __future__ import annotations

from typing import Any

from support.builders import effective

from apflint.effective_configuration import Assumptions
from apflint.graph.content import Unreachable, build_picture, find_unreachable
from graph.pictures import MIXED, draw, flow_schema, priority_level


def test_states_and_origins() -> None:
    nodes = {node.name: (node.state, node.origin, node.position) for node in MIXED.schemas}
    assert nodes["own"] == ("reachable", "own", 4)
    assert nodes["lost"] == ("dangling", "own", None)
    assert nodes["unlucky"] == ("dangling", "own", None)
    assert nodes["late"][:2] == ("unreachable", "own")
    assert nodes["service-accounts"][:2] == ("reachable", "changed")
    assert nodes["system-nodes"][:2] == ("reachable", "built-in")
    assert nodes["catch-all"][:2] == ("last resort", "built-in")
    levels = {level.name: (level.origin, level.limits is None) for level in MIXED.levels}
    assert levels["gold"] == ("own", False)
    assert levels["nowhere"] == ("missing", True)
    assert levels["stuck"] == ("unusable", True)
    assert levels["exempt"] == ("built-in", False)


def test_dangling_flow_schemas_stand_at_their_precedence() -> None:
    assert [node.precedence for node in MIXED.schemas] == sorted(node.precedence for node in MIXED.schemas)
    assert [node.position for node in MIXED.schemas if node.position] == list(range(1, len(MIXED.schemas) - 1))


def test_copy_of_built_in_object_is_built_in() -> None:
    probes = next(node for node in effective(kubernetes="1.36").configuration.order if node.name == "probes")
    copy: Any = flow_schema("probes", "exempt") | {"spec": probes.document.at("spec")}
    assert [node.origin for node in draw(copy).schemas if node.name == "probes"] == ["built-in"]


def test_imagined_objects_stand_at_the_ends() -> None:
    picture = draw(
        flow_schema("a", "exempt", 1), flow_schema("z", "exempt", 10000), assumptions=Assumptions(defaults=False)
    )
    assert [(node.name, node.origin) for node in picture.schemas] == [
        ("exempt", "imagined"),
        ("a", "own"),
        ("z", "own"),
        ("catch-all", "imagined"),
    ]
    assert {level.origin for level in picture.levels} == {"imagined"}


def test_dangling_exempt_and_imagined_exempt_are_both_shown() -> None:
    picture = draw(flow_schema("exempt", "nowhere", 1), assumptions=Assumptions(defaults=False))
    assert [(node.name, node.state) for node in picture.schemas] == [
        ("exempt", "reachable"),
        ("exempt", "dangling"),
        ("catch-all", "reachable"),
    ]


def test_proven_unreachable_flow_schemas_are_shown() -> None:
    server = effective(flow_schema("late", "exempt", 9990), priority_level("idle"))
    picture = build_picture(server, find_unreachable(server.configuration))
    late = next(node for node in picture.schemas if node.name == "late")
    assert late.state == "unreachable"
    assert [picture.schemas[blocker].name for blocker in late.blockers] == ["global-default"]
    assert [node.state for node in picture.schemas if node.name == "catch-all"] == ["last resort"]


def with_unreachable_rules(schema: dict[str, Any], count: int) -> dict[str, Any]:
    schema["spec"]["rules"] *= count + 1
    return schema


def test_unreachable_rules_are_found() -> None:
    server = effective(with_unreachable_rules(flow_schema("twice", "exempt"), 2))
    assert [*find_unreachable(server.configuration).rules.values()] == [(1, 2)]


def test_problems_of_flow_schemas() -> None:
    nothing = flow_schema("nothing", "gold")
    nothing["spec"]["rules"] = []
    server = effective(
        nothing,
        flow_schema("own", "gold"),
        with_unreachable_rules(flow_schema("twice", "gold"), 1),
        with_unreachable_rules(flow_schema("thrice", "gold"), 2),
        flow_schema("lost", "nowhere"),
        priority_level("gold"),
    )
    schemas = {schema.name: schema for schema in server.configuration.order}
    blockers = schemas["exempt"], schemas["probes"], schemas["catch-all"]
    unreachable = Unreachable(
        {schemas["nothing"].document: (), schemas["own"].document: blockers},
        {schemas["twice"].document: (1,), schemas["thrice"].document: (1, 2)},
    )
    problems = {node.name: node.problem for node in build_picture(server, unreachable).schemas}
    assert problems["own"] == (
        'Unreachable: "exempt", "probes" and "catch-all" capture all requests that this FlowSchema matches.'
    )
    assert problems["lost"] == 'Skipped by the server: the priority level "nowhere" does not exist.'
    assert problems["nothing"] == "Unreachable: this FlowSchema matches no request."
    assert problems["probes"] == ""
    assert problems["twice"] == "No request reaches spec.rules[1]."
    assert problems["thrice"] == "No request reaches spec.rules[1], spec.rules[2]."


def test_problems_of_priority_levels() -> None:
    picture = draw(
        flow_schema("late", "gold"),
        flow_schema("good", "silver"),
        priority_level("gold"),
        priority_level("silver"),
        priority_level("idle"),
        unreachable={"late": ("exempt",)},
    )
    problems = {level.name: level.problem for level in picture.levels}
    assert problems["idle"] == "No FlowSchema references this level, so it gets no requests."
    assert problems["gold"] == "Only unreachable FlowSchemas reference this level, so it gets no requests."
    assert problems["silver"] == ""
