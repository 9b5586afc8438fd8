"""Load files: each mistake is reported at its place, and the JSON Schema agrees with the parser."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml
from conftest import ROOT
from jsonschema import Draft202012Validator

from apflint.simulate.load import (
    SECOND,
    Burst,
    Load,
    ObjectCount,
    Retries,
    ServiceTime,
    SimulatedClient,
    log_normal,
)
from apflint.simulate.load_parser import ParsedLoad, parse_load

if TYPE_CHECKING:
    from pathlib import Path

MILLISECOND = SECOND // 1000
SCHEMA = Draft202012Validator(json.loads((ROOT / "schemas/apflint-load.json").read_text("utf-8")))
EXAMPLE = (ROOT / "fixtures/simulate/load.yaml").read_text("utf-8")
CLIENT = "name: a, as: alice, request: list pods, service: 1s"


def parse(text: str) -> ParsedLoad:
    return parse_load("load.yaml", text.encode())


def client_load(body: str) -> str:
    """Return a load with one client on the second line."""
    return f"duration: 1m\nclients: [{{{body}}}]"


def load_of(body: str) -> SimulatedClient:
    found = parse(client_load(body)).load
    assert found is not None
    return found.clients[0]


def marked(text: str) -> tuple[str, int, int, int]:
    """Return a text without its marks « and », and the line and columns of the marked part."""
    before, inside, after = re.split("[«»]", text)
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return before + inside + after, line, column, column + len(inside)


# Each row has a file in which the place of the mistake is marked, words of the message, and whether the JSON Schema
# rejects the file, too.
MISTAKES = [
    ("«duration: 1m»", "`clients` must be a list with at least one client", 1),
    ("duration: 1m\nclients: «[]»", "`clients` must be a list with at least one client", 1),
    (f"«clients»:\n- {{{CLIENT}, rate: 1/s}}", "`duration` is missing", 1),
    (f"duration: «10»\nclients: [{{{CLIENT}, rate: 1/s}}]", "a duration such as 500ms, 1.5s or 10m, not 10", 1),
    (f"duration: «0s»\nclients: [{{{CLIENT}, rate: 1/s}}]", "at least 1ms, not 0s", 0),
    (f"duration: 1m\nserver: 2\nclients: [{{{CLIENT}, rate: 1/s}}]".replace("server:", "«server»:"), "servers", 1),
    (
        f"duration: 1m\nwarmup: «10»\nclients: [{{{CLIENT}, rate: 1/s}}]",
        "a duration such as 500ms, 1.5s or 10m, not 10",
        1,
    ),
    (f"duration: 1m\nwarmup: «-1s»\nclients: [{{{CLIENT}, rate: 1/s}}]", "at least 0s, not -1s", 1),
    (f"duration: 1m\nservers: «0»\nclients: [{{{CLIENT}, rate: 1/s}}]", "an integer of at least 1", 1),
    ("duration: 1m\nclients: [«1»]", "expected a mapping with", 1),
    (
        client_load("«name: a, as: alice, service: 1s, rate: 1/s»").replace("{«", "«{").replace("»}", "}»"),
        "no `request`",
        1,
    ),
    (client_load(f"{CLIENT}, «rates»: 1/s, rate: 1/s"), 'unknown key "rates". Did you mean "rate"?', 1),
    (client_load(f"{CLIENT}, rate: «2»"), "expected a rate such as 2/s", 1),
    (client_load(f"{CLIENT}, rate: «0/s»"), "expected a rate such as 2/s", 0),
    (client_load(f"{CLIENT}, rate: «{'9' * 400}/s»"), "expected a rate such as 2/s", 1),
    (client_load(f"{CLIENT}, rate: 1/s, «think»: 1s"), "not both", 1),
    (
        client_load('name: «"a-{n}"», as: alice, request: list pods, service: 1s, rate: 1/s'),
        "in `name` does not make the clients different",
        0,
    ),
    (client_load(f"«{CLIENT}»").replace("{«", "«{").replace("»}", "}»"), "add `rate`, `think` or `bursts`", 1),
    (client_load(f"{CLIENT}, think: «0s»"), "at least 1ms", 0),
    (client_load(f"{CLIENT}, rate: 1/s, timeout: «900ms»"), "not longer than the median service time", 0),
    (client_load("name: a, as: alice, request: list pods, rate: 1/s, service: «2m»"), "ends requests after 60s", 0),
    (client_load("name: a, as: alice, request: list pods, rate: 1/s, service: «[]»"), "the list is empty", 1),
    (client_load("name: a, as: alice, request: list pods, rate: 1/s, service: «{p50: 1s}»"), "`p99` is missing", 1),
    (
        client_load("name: a, as: alice, request: list pods, rate: 1/s, service: {p50: 1s, p99: «1ms»}"),
        "p99 is less",
        0,
    ),
    (
        client_load("name: a, as: alice, request: list pods, rate: 1/s, service: {p50: «0s», p99: 1s}"),
        "at least 1ns, not 0s",
        0,
    ),
    (client_load(f"{CLIENT}, bursts: [«{{requests: 1}}»]"), "this burst has no `at`", 1),
    (client_load(f"{CLIENT}, bursts: [{{at: 0s, requests: 1, over: «0s»}}]"), "at least 1ms, not 0s", 0),
    (f"duration: «10»\nclients: [{{{CLIENT}, bursts: [{{at: 1s, requests: 1}}]}}]", "a duration such as", 1),
    (client_load("name: a, request: «list pods», rate: 1/s, service: 1s"), "add `as`", 0),
    (client_load("name: a, as: alice, request: «list podz», rate: 1/s, service: 1s"), "Did you mean", 0),
    (client_load(f"{CLIENT}, bursts: [{{at: «1m», requests: 3}}]"), "after the end of the load", 0),
    (client_load(f"{CLIENT}, bursts: [{{at: 50s, requests: 3, over: «11s»}}]"), "ends after the end of the load", 0),
    (client_load(f"{CLIENT}, bursts: [«{{at: 1s}}»]"), "this burst has no `requests`", 1),
    (client_load(f"{CLIENT}, rate: 1/s, retries: «{{on429: 1s}}»"), "`max` is missing", 1),
    (client_load(f"{CLIENT}, rate: 1/s, retries: {{on429: «never», max: 2}}"), "`retry-after`, or a duration", 1),
    (client_load(f"{CLIENT}, rate: 1/s, retries: {{max: «300»}}"), "at most 255 retries", 1),
    (f"{client_load(f'{CLIENT}, rate: 1/s')}\nobjects: {{«podz»: 3}}", "Did you mean", 0),
    (f"{client_load(f'{CLIENT}, rate: 1/s')}\nobjects: «3»", "expected a mapping from resources to numbers", 1),
    (f"{client_load(f'{CLIENT}, rate: 1/s')}\nobjects: {{pods: «{{size: 3}}»}}", "`count` is missing", 1),
    (f"{client_load(f'{CLIENT}, rate: 1/s')}\nobjects: {{pods: {{count: 1, size: «big»}}}}", "a size such as 8Ki", 1),
    (
        f"{client_load(f'{CLIENT}, rate: 1/s')}\nobjects: {{pods: {{count: 1, size: «4000000000»}}}}",
        "a size such as 8Ki",
        1,
    ),
    (
        f"{client_load(f'{CLIENT}, rate: 1/s')}\nobjects: {{pods: {{count: 1, size: «4000000000k»}}}}",
        "a size such as 8Ki",
        1,
    ),
    (f"{client_load(f'{CLIENT}, rate: 1/s')}\nwatchers: {{pods: «many»}}", "an integer of at least 1", 1),
    (
        f"duration: 1m\nclients: [{{{CLIENT}, rate: 1/s}}, {{name: «a», as: b, request: list pods, service: 1s, rate: 1/s}}]",
        "several clients have the name",
        0,
    ),
    (f"{client_load(f'{CLIENT}, rate: 1/s')}\n«duration»: 2m", "is set twice", 0),
    ("duration: 1m\n«-»--\na: 1", "only one document", 0),
    ("«»", "the file is empty", 0),
]


@pytest.mark.parametrize(("text", "words", "by_schema"), MISTAKES)
def test_mistake_is_reported_at_its_place(text: str, words: str, by_schema: bool) -> None:
    text, line, start, end = marked(text)
    found = parse(text)
    assert found.load is None
    (mistake,) = found.mistakes  # mistakes that follow from this mistake are not reported
    assert words in mistake.message
    assert not mistake.message.endswith(".")
    assert (mistake.span.line, mistake.span.column, mistake.span.end_column) == (line, start, end)
    if by_schema:
        assert not SCHEMA.is_valid(yaml.safe_load(text))


def test_every_value_of_the_example() -> None:
    load = parse(EXAMPLE).load
    assert load is not None
    SCHEMA.validate(yaml.safe_load(EXAMPLE))
    argo, runners, nodes = load.clients
    assert load._replace(clients=()) == Load(
        60 * SECOND, (), 2, {("", "pods"): ObjectCount(4000, 8192)}, {("batch", "jobs"): 150}, 30 * SECOND
    )
    assert argo.bursts == (Burst(20 * SECOND, 150),)
    assert argo.retries == Retries(5)
    assert (argo.rate, argo.think, argo.timeout, argo.instances) == (2.0, None, 10 * SECOND, 10)
    assert argo.service == log_normal(80 * MILLISECOND, 1200 * MILLISECOND)
    assert (runners.rate, runners.think, runners.retries) == (0.0, 500 * MILLISECOND, None)
    assert runners.service == ServiceTime(
        25 * MILLISECOND, samples=(20 * MILLISECOND, 25 * MILLISECOND, 40 * MILLISECOND)
    )
    assert nodes.rate == pytest.approx(0.1)
    assert nodes.service == ServiceTime(10 * MILLISECOND)
    request = nodes.arguments_of(41).to_request()
    assert (request.user.name, request.info.name, request.info.namespace) == (
        "system:node:node-42",
        "node-42",
        "kube-node-lease",
    )
    assert [client.differ for client in load.clients] == [False, False, True]


def test_other_forms_of_values() -> None:
    client = load_of(f"{CLIENT}, bursts: {{at: 0s, requests: 3, over: 2s}}, retries: {{on429: 250ms, max: 1}}")
    assert client.bursts == (Burst(0, 3, 2 * SECOND),)
    assert client.retries == Retries(1, 250 * MILLISECOND)
    assert load_of(f"{CLIENT}, rate: 30/m").rate == 0.5
    assert load_of(f"{CLIENT}, rate: 18/h").rate == 0.005
    assert load_of(f"{CLIENT}, rate: 1/s, timeout: 5m").timeout == 60 * SECOND
    times = load_of("name: a, as: b, request: list pods, rate: 1/s, service: {p50: 1us, p99: 1us}").service
    assert (times.at(0.01), times.at(0.99)) == (1000, 1000)
    assert load_of(f"{CLIENT}, bursts: {{at: 59s, requests: 3, over: 1s}}").bursts[0].over == SECOND
    assert load_of("name: a, request: list pods --as bob, service: 0s, rate: .5/s").arguments.user == "bob"
    text = (
        f'{client_load(f"{CLIENT}, rate: 1/s")}\nobjects: {{secrets: 7, "deployments.apps": {{count: 2, size: 500}}}}'
    )
    found = parse(text).load
    assert found is not None
    assert found.objects == {("", "secrets"): ObjectCount(7, 1000), ("apps", "deployments"): ObjectCount(2, 500)}
    SCHEMA.validate(yaml.safe_load(text))


def test_warmup_may_be_absent_or_0() -> None:
    for line, warmup in (("", 30 * SECOND), ("warmup: 0s", 0), ("warmup: 2m", 120 * SECOND)):
        found = parse(f"{client_load(f'{CLIENT}, rate: 1/s')}\n{line}").load
        assert found is not None
        assert found.warmup == warmup


def test_load_may_be_json() -> None:
    found = parse_load("load.json", json.dumps(yaml.safe_load(EXAMPLE)).encode())
    assert found.load is not None
    assert [client.name for client in found.load.clients] == ["argo", "runners", "nodes"]


def test_page_describes_every_key(root: Path) -> None:
    page = (root / "docs/commands/simulate.md").read_text("utf-8")
    keys = set(re.findall(r'"(\w+)": {', json.dumps(SCHEMA.schema)))
    keys -= {"properties", "items", "not", "client", "burst", "additionalProperties"}
    assert len(keys) > 20
    assert not {key for key in keys if f"`{key}`" not in page and f"{key}:" not in page}
