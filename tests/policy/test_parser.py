"""The format of suites: valid values, mistakes with their positions, and agreement with the JSON Schema."""

from __future__ import annotations

import json
import re
import shlex
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from support.pages import read_blocks

from apflint.model import NonResourcePolicyRule, ResourcePolicyRule
from apflint.policy.expectation import Property, RequestExpectation, Suite
from apflint.policy.parser import ParsedSuite, parse_suite
from apflint.policy.request_sets import describe_requests
from apflint.requests.request_words import parse_command_line

if TYPE_CHECKING:
    from pathlib import Path

    from apflint.load.apflint_files import Mistake

ALL = ("*",)


def parse(text: str, name: str = "suite.yaml") -> ParsedSuite:
    found = parse_suite(name, text.encode())
    assert (found.suite is None) == bool(found.mistakes)
    return found


def suite(text: str) -> Suite:
    found = parse(text)
    assert found.suite is not None, found.mistakes
    return found.suite


def mistakes(text: str) -> list[Mistake]:
    return list(parse(text).mistakes)


def marked(text: str) -> tuple[str, int, int, int]:
    """Return a text without its marks, and the line and columns of the marked part."""
    before, inside, after = re.split("[«»]", text)
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1) + 1
    return before + inside + after, line, column, column + len(inside)


@pytest.fixture(scope="module")
def validator(root: Path) -> Draft202012Validator:
    schema = json.loads((root / "schemas/apflint-test.json").read_text("utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def never(body: str) -> str:
    return f"tests:\n- never: {{{body}, reaches: exempt}}\n"


# (suite with the position of a mistake marked, words in the message, whether the JSON Schema also rejects the suite)
MISTAKES = [
    (
        "«manifest»: [a]\ntests: [{unreachable: {flowSchema: x}}]",
        'unknown key "manifest". Did you mean "manifests"?',
        1,
    ),
    ("manifests: [«1»]\ntests: [{unreachable: {flowSchema: x}}]", 'quote it, "1"', 1),
    ("«manifests»:\ntests: [{unreachable: {flowSchema: x}}]", "expected a string, not null", 1),
    ('manifests: «"-"»\ntests: [{unreachable: {flowSchema: x}}]', "-f -", 0),
    ("kubernetes: «1.30»\ntests: [{unreachable: {flowSchema: x}}]", 'quote it, "1.30"', 1),
    ('kubernetes: «"1.99"»\ntests: [{unreachable: {flowSchema: x}}]', "apflint knows Kubernetes", 0),
    ("serverConcurrency: «0»\ntests: [{unreachable: {flowSchema: x}}]", "expected an integer of at least 1", 1),
    ("serverConcurrency: «true»\ntests: [{unreachable: {flowSchema: x}}]", "not a boolean", 1),
    ("world: «anybody»\ntests: [{unreachable: {flowSchema: x}}]", "authenticated, any", 1),
    ("tests: «[]»", "at least one expectation", 1),
    ("tests: «{}»", "`tests` must be a list", 1),
    ("tests: [«list»]", "a mapping with", 1),
    ("tests:\n- «name: nothing»", "this entry is not an expectation", 1),
    ("tests:\n- nevr: {}\n".replace("nevr", "«nevr»"), 'Did you mean "never"?', 1),
    ("tests:\n- never: {reaches: a}\n  «always»: {reaches: a}", "is one expectation", 1),
    ("tests:\n- never: {reaches: a}\n  «as»: alice", "`subject`", 1),
    ("tests:\n- never: {verbs: get}\n  «reaches»: a", "one level deeper", 1),
    ("tests:\n- request: get /x\n  as: «yes»\n  reaches: a", 'quote it, "yes"', 1),
    ("tests:\n- request: «get /x»\n  reaches: a", "the request has no user", 0),
    ("tests:\n- request: «get /x --as bob»\n  as: alice\n  reaches: a", "twice", 0),
    ("tests:\n- request: «lst pods»\n  as: alice\n  reaches: a", '"lst" is not a verb', 0),
    ("tests:\n- request: «list pods --ns x»\n  as: alice\n  reaches: a", "unrecognized arguments: --ns", 0),
    ("tests:\n- request: «list pods -n»\n  as: alice\n  reaches: a", "expected one argument", 0),
    ("tests:\n- request: «list pods -n a -n b»\n  as: alice\n  reaches: a", "the request has -n/--namespace twice", 0),
    ("tests:\n- request: «list pods --path /x»\n  as: alice\n  reaches: a", "is given twice", 0),
    ("tests:\n- request: «--method GET»\n  as: alice\n  reaches: a", "name a verb and a resource", 0),
    ("tests:\n- request: «list 'pods»\n  as: alice\n  reaches: a", "cannot parse the request: no closing quotation", 0),
    ("tests:\n- «request: get /x»\n  as: alice", "`reaches` is missing", 1),
    ("tests:\n- request: get /x\n  as: alice\n  reaches: {priorityLevel: a, «priority»: b}", "priorityLevel", 1),
    ("tests:\n- request: get /x\n  as: alice\n  reaches: {whenFull: «shed»}", "dispatched, queued, rejected", 1),
    ("tests:\n- request: get /x\n  as: alice\n  reaches: {minSeats: «1.5»}", "the number 1.5", 1),
    ("tests:\n- always: {reaches: {priorityLevel: a, «distinguisher»: b}}", "use `request`", 1),
    ("tests:\n- never: {reaches: {priorityLevel: a, «minSeats»: 3}}", "`always`", 1),
    ("tests:\n- reachable: «{}»", "`flowSchema: NAME`", 1),
    ("tests:\n- reachable: {flowSchema: «[]»}", "the list is empty", 1),
    ("tests:\n- never: {reaches: {priorityLevel: a, «nominalSeats»: 3}}", "`always`", 1),
    ("tests:\n- request: get /x\n  as: alice\n  reaches: {nominalSeats: «1.5»}", "the number 1.5", 1),
    ("tests:\n- reachable: {flowSchema: a, «minSeats»: 3}", "unknown key", 1),
    (never("«subjects»: {user: a}"), 'Did you mean "subject"?', 1),
    (never("«user»: a"), "subject: {user: NAME}", 1),
    (never("«priorityLevel»: a"), "inside `reaches`", 1),
    (never("subject: {«kind»: User}"), "`user: NAME`", 1),
    (never("subject: «{user: a, group: b}»"), "write a list of subjects", 1),
    (never("subject: {serviceAccount: «builder»}"), "NAMESPACE/NAME", 0),
    (never("subject: {serviceAccount: «CI/builder»}"), "is not a service account", 0),
    (never("subject: «[]»"), "matches nobody", 1),
    (never("subject: [{user: a}, «b»]"), "a mapping", 1),
    (never("verbs: «lst»"), 'Did you mean "list"?', 0),
    (never("nonResourceURLs: /x, verbs: [get, «list»]"), 'the verb "list"', 0),
    (never("resources: pods, verbs: «post»"), 'the verb "post"', 0),
    (never('verbs: «["*", get]»'), "matches everything", 0),
    (never("nonResourceURLs: «healthz»"), "must start with /", 0),
    (never("resources: «widgets»"), "name its API group too", 0),
    (never("resources: [pods, «pods/*»]"), "does not name a subresource", 0),
    (never('apiGroups: "", resources: «pod»'), 'requests name the resource "pods"', 0),
    (never("apiGroups: apps, resources: «deployments.apps»"), "remove `apiGroups`", 0),
    (never("apiGroups: x.io, resources: «Widgets»"), "upper-case", 0),
    (never("apiGroups: «apps/v1»"), 'write "apps" only', 0),
    (never("namespaces: «Team_A»"), "is not a valid namespace", 0),
    (never('clusterScope: «"true"»'), "true or false", 1),
    (never("except: «{}»"), "excludes all requests", 1),
    (never("except: «[]»"), "excludes nothing", 1),
    (never("except: {«reaches»: a}"), "unknown key", 1),
    ("except: {«verb»: get}\ntests: [{unreachable: {flowSchema: x}}]", 'Did you mean "verbs"?', 1),
    ("tests: [{unreachable: {flowSchema: x}}]\n«tests»: [{unreachable: {flowSchema: x}}]", "is set twice", 0),
    ("tests: «[»{unreachable: {flowSchema: x}}\n", "is not closed", 0),
    ("tests: [{unreachable: {flowSchema: x}}]\n«-»--\ntests: []", "only one document", 0),
    ("«- request: get /x»", "a suite is a mapping", 1),
]


@pytest.mark.parametrize(("text", "message", "by_schema"), MISTAKES)
def test_mistake_has_a_position(text: str, message: str, by_schema: int, validator: Draft202012Validator) -> None:
    plain, line, column, end = marked(text)
    (found,) = mistakes(plain)
    assert message in found.message
    assert not found.message.endswith(".")
    assert (found.span.line, found.span.column, found.span.end_column) == (line, column, end), plain
    if by_schema:
        assert not validator.is_valid(yaml.safe_load(plain))


def test_mistakes_are_in_order() -> None:
    found = mistakes("kubernetes: 1.3\ntests:\n- never: {verb: get, reaches: {level: x}}\n- {}\n")
    assert [mistake.span.line for mistake in found] == [1, 3, 3, 4]


@pytest.mark.parametrize(
    "data", [b"", b"# nothing\n", b"\xff\xfe\x00", b"tests: \xff\n", b"a: *b", b"a: &a [*a]", b"\x00"]
)
def test_binary_file_is_a_mistake(data: bytes) -> None:
    found = parse_suite("x.yaml", data)
    assert found.suite is None
    assert len(found.mistakes) == 1


@given(st.binary(max_size=40) | st.text(max_size=60).map(str.encode))
def test_nothing_is_raised(data: bytes) -> None:
    for name in ("x.yaml", "x.json"):
        found = parse_suite(name, data)
        for mistake in found.mistakes:
            assert mistake.span.line <= len(found.source.line_starts)


SCALARS = (
    st.none() | st.booleans() | st.integers(-1, 3) | st.sampled_from(("", "*", "pods", "get", "/x", "a/b", "1.30"))
)
KEYS = st.sampled_from(
    [
        "tests",
        "never",
        "always",
        "reachable",
        "request",
        "as",
        "groups",
        "reaches",
        "except",
        "subject",
        "user",
        "verbs",
        "priorityLevel",
        "flowSchema",
        "whenFull",
        "minSeats",
        "nominalSeats",
        "resources",
        "serviceAccount",
        "manifests",
        "kubernetes",
    ]
)
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4))
PROPERTIES = st.fixed_dictionaries({"tests": st.lists(st.fixed_dictionaries({"never": VALUES}) | VALUES, max_size=2)})


@given(VALUES | PROPERTIES)
def test_schema_accepts_what_the_parser_accepts(value: Any) -> None:
    """The parser also knows verbs and resources, so it rejects some suites that the schema accepts, but not the other way round."""
    found = parse_suite("suite.json", json.dumps(value).encode())
    if found.suite is not None:
        assert SCHEMA.is_valid(value)


def _schema() -> Draft202012Validator:
    from conftest import ROOT

    return Draft202012Validator(json.loads((ROOT / "schemas/apflint-test.json").read_text("utf-8")))


SCHEMA = _schema()


def test_examples_are_suites(root: Path, validator: Draft202012Validator) -> None:
    texts = [block.text for block in read_blocks("guides/policy-tests", "yaml") if "\ntests:\n" in block.text]
    assert len(texts) == 4
    for text in (*texts, (root / "fixtures/policy/apf-test.yaml").read_text("utf-8")):
        assert suite(text).tests
        validator.validate(yaml.safe_load(text))


def test_page_describes_every_key(root: Path, validator: Draft202012Validator) -> None:
    page = (root / "docs/guides/policy-tests.md").read_text("utf-8")
    keys = set(re.findall(r'"(\w+)": {', json.dumps(validator.schema)))
    keys -= {"properties", "items", "not", "requests", "texts"}
    assert not {key for key in keys if f"`{key}`" not in page and f"{{{key}: " not in page}


def test_suite_may_be_json() -> None:
    found = parse_suite("suite.json", b'{"tests": [{"never": {"reaches": "exempt"}}]}')
    assert found.suite is not None
    assert found.suite.manifests is None


def _property(body: str) -> Property:
    claim = suite(never(body)).tests[0].claim
    assert isinstance(claim, Property)
    return claim


@pytest.mark.parametrize(
    ("body", "resource_rules", "non_resource_rules"),
    [
        ("verbs: get", [(("get",), ALL, ALL, True, ALL)], [(("get",), ALL)]),
        ("resources: nodes", [(ALL, ("",), ("nodes",), True, ALL)], []),
        ("resources: [po, leases, no/status]", [(ALL, ("",), ("pods", "nodes/status"), True, ALL),
                                                (ALL, ("coordination.k8s.io",), ("leases",), True, ALL)], []),
        ("resources: events", [(ALL, ("", "events.k8s.io"), ("events",), True, ALL)], []),
        ("resources: widgets.example.com/status", [(ALL, ("example.com",), ("widgets/status",), True, ALL)], []),
        ('resources: widgets, apiGroups: "*"', [(ALL, ALL, ("widgets",), True, ALL)], []),
        ('apiGroups: ["", apps]', [(ALL, ("", "apps"), ALL, True, ALL)], []),
        ("namespaces: a", [(ALL, ALL, ALL, False, ("a",))], []),
        ("namespaces: a, clusterScope: true", [(ALL, ALL, ALL, True, ("a",))], []),
        ("clusterScope: true", [(ALL, ALL, ALL, True, ())], []),
        ("clusterScope: false", [(ALL, ALL, ALL, False, ALL)], []),
        ("nonResourceURLs: /x", [], [(ALL, ("/x",))]),
        ("nonResourceURLs: /x, resources: pods", [(ALL, ("",), ("pods",), True, ALL)], [(ALL, ("/x",))]),
    ],
)  # fmt: skip
def test_omitted_keys_match_everything(body: str, resource_rules: list[Any], non_resource_rules: list[Any]) -> None:
    rule = _property(body).requests
    assert list(rule.resource_rules) == [ResourcePolicyRule(*resource_rule) for resource_rule in resource_rules]
    assert list(rule.non_resource_rules) == [
        NonResourcePolicyRule(*non_resource_rule) for non_resource_rule in non_resource_rules
    ]


def test_subject_may_be_a_list() -> None:
    found = _property("subject: [{user: [a, b]}, {serviceAccount: ci/*}, {group: g}]").requests.subjects
    assert [(subject.kind, subject.user, subject.group) for subject in found] == [
        ("User", "a", None),
        ("User", "b", None),
        ("ServiceAccount", None, None),
        ("Group", None, "g"),
    ]


@pytest.mark.parametrize(
    "line",
    [
        "list pods -n team-a --as alice --as-group dev",
        "get /healthz --as=system:anonymous",
        "update leases.coordination.k8s.io x -n kube-system --as a",
        "list pods -A --as a",
        "--method OPTIONS --path '/api/v1/pods?x=a b' --as a",
        "get /x --as=-odd --as-group=-g",
    ],
)
def test_request_has_the_syntax_of_explain(line: str) -> None:
    arguments = parse_command_line(f"apflint explain {line}")
    assert parse_command_line(shlex.join(arguments.to_command_line())) == arguments
    assert arguments.to_request().digest == parse_command_line(line).to_request().digest


def test_groups_are_joined() -> None:
    claim = suite("tests:\n- {request: list pods --as-group a, as: x, groups: [b], reaches: z}").tests[0].claim
    assert isinstance(claim, RequestExpectation)
    assert claim.request.user.groups == ("b", "a", "system:authenticated")


@pytest.mark.parametrize(
    ("body", "description"),
    [
        ("subject: {user: '*'}", "request"),
        ("verbs: get", "request to get"),
        ("resources: '*'", "request for any resource"),
        ("resources: '*', apiGroups: [apps, batch]", 'request for any resource in API groups ["apps", "batch"]'),
        ("resources: deployments", "request for deployments.apps"),
        ("resources: [x, z], apiGroups: [a.io, b.io]", 'request for x or z in API groups ["a.io", "b.io"]'),
        ("resources: [x, z], apiGroups: '*'", "request for x or z in any API group"),
        ("resources: pods, namespaces: a", "request for pods in namespace a"),
        ("resources: pods, namespaces: [a, b]", "request for pods in namespaces a, b"),
        ("resources: pods, namespaces: '*'", "request for pods in a namespace"),
        ("resources: pods, clusterScope: true", "request for pods in no namespace"),
        ("resources: pods, namespaces: a, clusterScope: true", "request for pods in namespace a or in no namespace"),
        ("nonResourceURLs: '*'", "request for any path"),
        ("nonResourceURLs: [/a, /b], verbs: get", "request to get for /a or /b"),
    ],
)
def test_requests_are_described(body: str, description: str) -> None:
    assert describe_requests(_property(body).requests) == description
