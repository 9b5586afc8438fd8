"""`apflint explain`: text, JSON, requests from files, and usage."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from support.reading import read_effective

from apflint.cli.app import run
from apflint.output import explain_json_lines as lines
from apflint.output.configuration_line import name_configuration
from apflint.output.console import Style, count_cells
from apflint.output.explain import explanation_json, report_explanation
from apflint.output.explain_json_lines import LineExplainer, explain_lines
from apflint.output.text import render as render_text
from apflint.releases import parse_release
from apflint.request_explanation import Explainer
from apflint.requests import json_lines
from apflint.requests.json_lines import parse_record
from apflint.requests.request import parse_http
from apflint.requests.request_words import parse_command_line, parse_words
from apflint.sources import file_reading
from apflint.sources.file_reading import split_lines
from apflint.user_error import UserError

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from apflint.requests.request import Request

DEFAULT_CLUSTER = {
    "a user": parse_words(("list", "pods"), user="alice", groups=("dev",), namespace="team-a"),
    "a service account watches": parse_words(("watch", "po"), user="system:serviceaccount:ci:runner"),
    "a probe": parse_words(("get", "/healthz"), user="system:anonymous"),
    "a path": parse_words(("get", "/version"), user="system:anonymous"),
    "a node": parse_words(("get", "nodes", "n1"), user="system:node:n1"),
    "the scheduler": parse_words(
        ("update", "leases", "kube-scheduler"), user="system:kube-scheduler", namespace="kube-system"
    ),
    "long-running": parse_words(("create", "pods/exec", "web-0"), user="alice", namespace="team-a"),
    "an administrator": parse_http("DELETE", "/apis/apps/v1/namespaces/a/deployments/b", user="root",
                                  groups=("system:masters",)),
    "a custom resource": parse_words(("list", "widgets.example.com"), user="alice"),
    "without credentials": parse_words(("list", "nodes"), user="nobody", groups=("system:unauthenticated",)),
}  # fmt: skip

CONFIGURATION = "the current directory (4 objects) and built-in objects of 1.37"
CLUSTER = r"""
apiVersion: v1
kind: List
items:
- apiVersion: flowcontrol.apiserver.k8s.io/v1
  kind: PriorityLevelConfiguration
  metadata: {name: tenants, uid: level-uid}
  spec:
    type: Limited
    limited:
      nominalConcurrencyShares: 0
      borrowingLimitPercent: 0
      limitResponse: {type: Queue, queuing: {queues: 8, handSize: 2, queueLengthLimit: 5}}
- apiVersion: flowcontrol.apiserver.k8s.io/v1
  kind: FlowSchema
  metadata: {name: pods-only, uid: schema-uid}
  spec:
    priorityLevelConfiguration: {name: tenants}
    matchingPrecedence: 500
    distinguisherMethod: {type: ByNamespace}
    rules:
    - subjects: [{kind: Group, group: {name: dev}}]
      resourceRules:
      - {verbs: [get, list], apiGroups: [""], resources: [pods], namespaces: ["*"]}
- apiVersion: flowcontrol.apiserver.k8s.io/v1
  kind: FlowSchema
  metadata: {name: lost}
  spec:
    priorityLevelConfiguration: {name: nowhere}
    matchingPrecedence: 400
    rules:
    - subjects: [{kind: User, user: {name: "*"}}]
      nonResourceRules: [{verbs: ["*"], nonResourceURLs: ["*"]}]
- apiVersion: flowcontrol.apiserver.k8s.io/v1
  kind: FlowSchema
  metadata: {name: hostile}
  spec:
    priorityLevelConfiguration: {name: tenants}
    matchingPrecedence: 600
    rules:
    - subjects: [{kind: User, user: {name: "e\e[31mvil\u202e"}}]
      resourceRules:
      - {verbs: ["*"], apiGroups: ["*"], resources: ["*"], clusterScope: true}
"""


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to a directory whose only file is a configuration with a few FlowSchemas and levels."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "apf.yaml").write_text(CLUSTER)
    return tmp_path


@pytest.fixture
def empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Change to an empty directory."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def explainer(*paths: str, kubernetes: str = "1.36", **more: Any) -> Explainer:
    return Explainer(read_effective(paths, parse_release(kubernetes), **more))


def render(request: Request, by: Explainer, **style: Any) -> str:
    return render_text(report_explanation(by.explain(request), Style(**style)), Style(**style))


@pytest.mark.parametrize("name", DEFAULT_CLUSTER)
def test_text_for_a_default_cluster(name: str, snapshot: SnapshotAssertion) -> None:
    assert render(DEFAULT_CLUSTER[name], explainer(), width=80) == snapshot


@pytest.mark.parametrize("name", ["a user", "a service account watches"])
def test_verbose_text_for_a_default_cluster(name: str, snapshot: SnapshotAssertion) -> None:
    assert render(DEFAULT_CLUSTER[name], explainer(), width=80, verbose=True) == snapshot


@pytest.mark.parametrize("verbose", [False, True])
def test_words_of_shuffle_sharding_are_only_in_verbose_text(verbose: bool) -> None:
    for request in DEFAULT_CLUSTER.values():
        text = render(request, explainer(), verbose=verbose)
        assert not re.search(r"\b(asked|fate|dealt|hand|deck)\b", text, re.IGNORECASE), text
        has_queues = explainer().explain(request).flow.hand is not None and is_classified(request)
        assert ("hash" in text) == ("Shuffle sharding gives" in text) == (verbose and has_queues)


def is_classified(request: Request) -> bool:
    return explainer().explain(request).unclassified is None


@pytest.mark.usefixtures("cluster")
def test_built_in_flow_schemas_are_folded() -> None:
    by = explainer(".", kubernetes="1.36")
    rows = render(DEFAULT_CLUSTER["a user"], by).partition("Tried, in this order:\n")[2].splitlines()
    assert [row.split()[1] for row in rows[:-1]] == ["lost", "pods-only"]
    assert rows[-1] == "Not shown: 4 built-in FlowSchemas that did not match (--verbose shows all)."
    rows = render(DEFAULT_CLUSTER["a user"], by, verbose=True).partition("Tried, in this order:\n")[2].splitlines()
    names = ["exempt", "probes", "system-leader-election", "lost", "system-node-high", "pods-only"]
    assert [row.split()[1] for row in rows] == names


@pytest.mark.usefixtures("empty")
def test_copies_of_built_in_flow_schemas_are_folded(capsys: pytest.CaptureFixture[str]) -> None:
    """If the manifests contain copies of built-in FlowSchemas, the list of tried FlowSchemas counts them on one line."""
    assert run(["defaults", "--kubernetes", "1.36"]) == 0
    (Path("dump.yaml")).write_text(capsys.readouterr().out)
    text = render(DEFAULT_CLUSTER["a user"], explainer("dump.yaml"))
    rows = text.partition("Tried, in this order:\n")[2].splitlines()
    assert [row.split()[1] for row in rows[:-1]] == ["global-default"]
    assert "9 built-in FlowSchemas" in rows[-1]
    assert text.count("dump.yaml") == 2


@pytest.mark.usefixtures("cluster")
def test_path_of_the_only_file_is_not_repeated() -> None:
    question = parse_words(("list", "pods"), user="alice", groups=("dev",))
    text = render(question, explainer("."))
    assert text.count("apf.yaml") == 1
    assert "(line 24)" in text
    Path("other.yaml").write_text(CLUSTER.replace("name: hostile", "name: other").replace("name: lost", "name: lost2"))
    assert "(apf.yaml:29)" in render(question, explainer("."))


@pytest.mark.parametrize("kubernetes", ["1.20", "1.22", "1.25", "1.28", "1.36", "1.37"])
@pytest.mark.parametrize("name", DEFAULT_CLUSTER)
def test_text_is_short_and_starts_with_the_answer(name: str, kubernetes: str) -> None:
    request, by = DEFAULT_CLUSTER[name], explainer(kubernetes=kubernetes)
    for width in (100, 120, None):
        text = render(request, by, width=width)
        assert text.count("\n") <= 25, text
        skipped = name == "long-running" or (name == "a service account watches" and kubernetes == "1.20")
        first = "API Priority and Fairness does not classify" if skipped else "FlowSchema "
        assert text.startswith(first)


# Source: config.go, width.go and kube_features.go of k8s.io/apiserver at the tag of each release.
# 37 seats are 15% of the 245 seats of the priority level, rounded up.
@pytest.mark.parametrize(
    ("kubernetes", "listing", "create", "watch"),
    [
        ("1.22", 1, 1, 1),
        ("1.23", 10, 1, 1),
        ("1.24", 10, 10, 1),
        ("1.28", 10, 10, 1),
        ("1.32", 10, 10, 10),
        ("1.33", 10, 10, 1),
        # From 1.34 on, a list takes up to 37 seats. In recordings, a watch that sends the existing objects takes 10
        # seats, because the server assumes at most 1 MB of objects, and counts one seat for each 100 kB.
        ("1.34", 37, 10, 10),
        ("1.37", 37, 10, 10),
    ],
)
@pytest.mark.usefixtures("empty")
def test_seats_of_a_request_depend_on_the_release(kubernetes: str, listing: int, create: int, watch: int) -> None:
    by = explainer(kubernetes=kubernetes)
    for verb, seats in (("list", listing), ("create", create), ("watch", watch), ("get", 1)):
        words = (verb, "pods", "a") if verb == "get" else (verb, "pods")
        text = render(parse_words(words, user="system:serviceaccount:ci:runner"), by)
        found = re.search(r" One (\w+) takes up to (\d+)", text)
        assert (found.groups() if found else None) == (None if seats == 1 else (verb, str(seats)))


# Source: list_work_estimator.go of k8s.io/apiserver 0.34.10 and 0.35.7.
@pytest.mark.parametrize(
    ("kubernetes", "query", "sentence"),
    [
        ("1.34", "watch=true", "This watch takes 1 seat, which it holds only until it is initialized."),
        ("1.34", "watch=true&resourceVersion=100", "This watch takes 1 seat, which"),
        (
            "1.34",
            "watch=true&sendInitialEvents=true",
            "One watch takes up to 8. A watch holds its seats only until the server has",
        ),
        (
            "1.35",
            "watch=true",
            "One watch takes up to 8. A watch holds its seats only until the server has sent the existing",
        ),
        ("1.35", "watch=true&resourceVersion=0", "One watch takes up to 8. A watch holds"),
        ("1.35", "watch=true&resourceVersion=100", "This watch takes 1 seat, which"),
        ("1.33", "watch=true&sendInitialEvents=true", "This watch takes 1 seat, which"),
        ("1.32", "watch=true&sendInitialEvents=true", "One watch takes up to 8. A watch holds"),
        ("1.33", "fieldSelector=metadata.name%3Dx", "attainable 368.\n"),
    ],
)
@pytest.mark.usefixtures("empty")
def test_seats_depend_on_the_parameters_in_the_url(kubernetes: str, query: str, sentence: str) -> None:
    request = parse_http("GET", f"/api/v1/pods?{query}", user="alice")
    assert sentence in render(request, explainer(kubernetes=kubernetes))


@pytest.mark.usefixtures("empty")
def test_seats_of_a_watch_without_a_url() -> None:
    request = parse_words(("watch", "pods"), user="alice")
    assert "One watch takes up to 8 with sendInitialEvents=true." in render(request, explainer(kubernetes="1.34"))
    assert "One watch takes up to 8 with the existing objects." in render(request, explainer(kubernetes="1.35"))


@pytest.mark.parametrize(
    "words",
    [
        *("create subjectaccessreviews", "create tokenreviews.authentication.k8s.io", "create selfsubjectreviews"),
        *("create bindings -n a", "list componentstatuses", "create selfsubjectrulesreviews"),
        *(
            "create localsubjectaccessreviews -n a",
            "create selfsubjectaccessreviews",
            "create serviceaccounts/token a -n a",
        ),
        *("list pods.metrics.k8s.io", "watch nodes.metrics.k8s.io", "create pods.custom.metrics.k8s.io -n a"),
        *("list queue-length.external.metrics.k8s.io -n a", "list pods.custom.metrics.k8s.io/http_requests -n a"),
    ],
)
@pytest.mark.usefixtures("empty")
def test_resources_without_stored_objects_take_one_seat(words: str) -> None:
    """Requests for resources that the server does not store, and so does not count, take one seat."""
    request = parse_command_line(f"{words} --as alice").to_request()
    text = render(request, explainer(kubernetes="1.36"))
    assert "takes up to" not in text
    assert ("takes 1 seat" in text) == (request.info.verb in ("list", "watch"))


@pytest.mark.usefixtures("empty")
def test_custom_resource_may_be_of_an_aggregated_server() -> None:
    text = render(parse_words(("list", "services.serving.knative.dev"), user="alice"), explainer())
    assert "One list takes up to 8, or 1 if an aggregated API server serves it." in text
    text = render(parse_words(("create", "services.serving.knative.dev"), user="alice"), explainer())
    assert "One create takes up to 8." in text


@pytest.mark.usefixtures("empty")
def test_wait_depends_on_the_timeout_of_the_request() -> None:
    url = "/api/v1/namespaces/ci/pods?timeout=5s"
    request = parse_words(("get", url), user="alice")
    assert "up to 1.25 seconds (a quarter of its timeout" in render(request, explainer(kubernetes="1.28"))
    assert "1.25 seconds" not in render(request, explainer(kubernetes="1.27"))
    asked = parse_record({"user": "alice", "method": "GET", "path": url})
    found: Any = explanation_json(explainer().explain(asked))
    assert found["outcomes"][-1]["when"] == "Rejected after 1.25 seconds, or when the client is gone."


@pytest.mark.usefixtures("empty")
def test_invalid_timeout_is_rejected_before_classification() -> None:
    request = parse_words(("get", "/api/v1/pods?timeout=bogus"), user="alice")
    text = render(request, explainer())
    assert text.startswith("The server answers this request with status 400 before API Priority and Fairness")
    assert "Otherwise this would be the answer:\nFlowSchema" in text
    assert render(request, explainer(kubernetes="1.20")).startswith("FlowSchema")


@pytest.mark.usefixtures("empty")
def test_watches_are_not_classified_before_1_22() -> None:
    for kubernetes, seen in (("1.18", False), ("1.21", False), ("1.22", True)):
        answer = explainer(kubernetes=kubernetes).explain(DEFAULT_CLUSTER["a service account watches"])
        assert (answer.unclassified is None) is seen


@pytest.mark.parametrize("width", [40, 60, 80, 100])
def test_text_fits_the_terminal(width: int) -> None:
    for request in DEFAULT_CLUSTER.values():
        for line in render(request, explainer(), width=width).splitlines():
            # Names are never wrapped, so a line with one word may be longer than the terminal.
            assert count_cells(line) <= width or len(line.split()) == 1, line


@pytest.mark.parametrize(
    ("name", "question", "kubernetes"),
    [
        ("matched", DEFAULT_CLUSTER["a user"], "1.36"),
        ("missed by scope", parse_words(("list", "pods"), user="alice", groups=("dev",)), "1.36"),
        ("hostile", parse_words(("list", "nodes"), user="e\x1b[31mvil\u202e"), "1.36"),
        ("before borrowing", DEFAULT_CLUSTER["a user"], "1.20"),
    ],
)
@pytest.mark.usefixtures("cluster")
def test_text_for_manifests(name: str, question: Request, kubernetes: str, snapshot: SnapshotAssertion) -> None:
    # Kubernetes 1.20 does not serve v1, the version of the manifests. Only `apflint check` reports this, so the text
    # for 1.20 does not mention it.
    text = render(question, explainer(".", kubernetes=kubernetes), width=100)
    assert text == snapshot, name
    assert text.replace("\n", "").isprintable()


@pytest.mark.usefixtures("cluster")
def test_narrow_and_colored_text(snapshot: SnapshotAssertion) -> None:
    assert render(DEFAULT_CLUSTER["a user"], explainer("."), width=50, color=True) == snapshot


@pytest.mark.usefixtures("cluster")
def test_server_imagines_missing_mandatory_objects() -> None:
    text = render(parse_words(("get", "/healthz"), user="alice"), explainer(".", defaults=False))
    assert text.startswith('FlowSchema "catch-all" -> priority level "catch-all"')
    assert (
        'The FlowSchema "exempt" or its priority level is missing. Instead, the server uses the built-in FlowSchema, and checks it before all others.'
        in text
    )
    assert 'skipped: the priority level "nowhere" does not exist (line 29)' in text


@pytest.mark.usefixtures("cluster")
def test_json_fields(capsys: pytest.CaptureFixture[str]) -> None:
    command = "explain list pods -n team-a --as alice --as-group dev --kubernetes 1.36 --format json"
    assert run(command.split()) == 0
    printed = capsys.readouterr()
    assert printed.err == ""
    found = json.loads(printed.out)
    considered = found.pop("considered")
    outcomes = found.pop("outcomes")
    assert list(found)[:2] == ["schema", "configuration"]
    assert found == {
        "schema": 1,
        "configuration": "the current directory (4 objects) and built-in objects of 1.36",
        "request": {
            "isResourceRequest": True,
            "verb": "list",
            "apiPrefix": "api",
            "apiGroup": "",
            "apiVersion": "v1",
            "namespace": "team-a",
            "resource": "pods",
            "subresource": "",
            "name": "",
            "path": "/api/v1/namespaces/team-a/pods",
            "longRunning": False,
        },
        "user": {"name": "alice", "groups": ["dev", "system:authenticated"]},
        "flowSchema": "pods-only",
        "priorityLevel": "tenants",
        "matchedBy": {"rule": 0, "subject": 0, "resourceRule": 0, "nonResourceRule": None},
        "flow": {
            "distinguisherMethod": "ByNamespace",
            "distinguisher": "team-a",
            "hash": found["flow"]["hash"],
            "hand": found["flow"]["hand"],
        },
        "limits": {
            "nominal": 0,
            "min": 0,
            "max": 0,
            "attainable": 0,
            "shares": 0,
            "maxSeats": 1,
            "maxListSeats": 1,
            "maxMutatingSeats": 1,
            "serverConcurrency": 600,
        },
        "exempt": False,
        "unclassifiedBecause": None,
        "notes": ['Authentication adds the group "system:authenticated".'],
        "basedOn": {"kubernetes": "1.36", "objects": 4, "builtInObjects": 19},
        "skipped": [
            {
                "flowSchema": "lost",
                "matchingPrecedence": 400,
                "because": 'the priority level "nowhere" does not exist',
            }
        ],
        "file": "apf.yaml",
        "line": 16,
    }
    assert found["flow"]["hash"].isdecimal()
    assert len(set(found["flow"]["hand"])) == 2
    assert [outcome["reason"] for outcome in outcomes] == [None, "queue-full", "time-out"]
    assert [(tried["flowSchema"], tried["matched"], tried["line"]) for tried in considered][-2:] == [
        ("system-node-high", False, None),
        ("pods-only", True, 24),
    ]
    assert considered[0] == {
        "flowSchema": "exempt",
        "matchingPrecedence": 1,
        "matched": False,
        "because": 'the user is not in the group "system:masters"',
        "file": None,
        "line": None,
    }


RECORDS = st.fixed_dictionaries(
    {
        "user": st.sampled_from(["alice", "e\x1b[31mvil\u202e", "system:kube-scheduler", "\ud800", "é"]),
        "groups": st.lists(st.sampled_from(["dev", "system:nodes", "system:authenticated"]), max_size=2),
        "method": st.sampled_from(["GET", "PUT", "OPTIONS"]),
        "path": st.sampled_from(
            [
                "/api/v1/pods",
                "/api/v1/namespaces/a/pods/b",
                "/apis/coordination.k8s.io/v1/namespaces/x/leases/%00\u2028",
                "/api/v1/namespaces/a/pods/b/log",
                "/healthz",
                "/api/v1/nodes/n/status",
                "no path",
            ]
        ),
    }
)


@given(RECORDS)
def test_chosen_flow_schema_is_the_first_that_matches(record: dict[str, Any]) -> None:
    by = explainer()
    try:
        asked = parse_record(record)
    except UserError:
        reject()
    found: Any = explanation_json(by.explain(asked))
    *missed, last = found["considered"]
    assert not any(tried["matched"] for tried in missed)
    if found["matchedBy"] is None:
        assert not last["matched"]
        assert found["flowSchema"] == "catch-all"
    else:
        assert last["matched"]
        assert last["flowSchema"] == found["flowSchema"]


@given(st.lists(RECORDS, max_size=8), st.booleans(), st.integers(1, 50))
def test_many_requests_have_the_answers_of_single_requests(
    records: list[dict[str, Any]], reasons: bool, size: int
) -> None:
    by = explainer()
    data = "".join(json.dumps(record) + "\n" for record in [*records, *records]).encode()
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    answers = []
    for text, _ in explain_lines(by, parse_record, split_lines(pieces), reasons=reasons, configuration=CONFIGURATION):
        assert text == "" or text.endswith("\n")
        answers += text.splitlines()
    assert len(answers) == 2 * len(records)
    for number, (line, record) in enumerate(zip(answers, [*records, *records], strict=True), 1):
        try:
            wanted = name_configuration(explanation_json(by.explain(parse_record(record))), CONFIGURATION)
        except UserError as error:
            problem = str(error)
        else:
            problem = ""
        if problem:
            rejected = {"schema": 1, "configuration": CONFIGURATION, "error": problem, "inputLine": number}
            assert json.loads(line) == rejected
            continue
        if not reasons:
            del wanted["considered"], wanted["outcomes"], wanted["skipped"]
        assert json.loads(line) == wanted
        assert list(json.loads(line)) == list(wanted)
        assert line.isascii()


@pytest.mark.usefixtures("empty")
def test_shapes_of_requests_in_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    record = {"user": "alice", "groups": ["system:authenticated"], "verb": "get", "resource": "po", "name": "x"}
    line = json.dumps(record)
    shapes = {
        line: 1,
        f"\ufeff\n\n{line}\r\n{line}": 2,
        json.dumps(record, indent=2): 1,
        json.dumps([record, record], indent=2): 2,
        json.dumps({"kind": "List", "items": [record]}): 1,
        f"[{line}, {line}]\n{line}\n": 3,
        "\n \n": 0,
        "": 0,
    }
    for text, count in shapes.items():
        (tmp_path / "requests.jsonl").write_text(text)
        assert run(["explain", "--requests", "requests.jsonl"]) == 0, text
        found = [json.loads(answer) for answer in capsys.readouterr().out.splitlines()]
        assert [answer["request"]["resource"] for answer in found] == ["pods"] * count


@pytest.mark.usefixtures("empty")
def test_line_without_a_request_does_not_hide_others(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    good = '{"user": "alice", "groups": [], "method": "GET", "path": "/healthz"}\n'
    (tmp_path / "r").write_text(good + "ba\x1bd\n" + good + '{"user": 3}\n' + "x\n" * 20)
    assert run(["explain", "--requests", "r"]) == 2
    printed = capsys.readouterr()
    found = [json.loads(line) for line in printed.out.splitlines()]
    assert [answer.get("inputLine") for answer in found[:4]] == [None, 2, None, 4]
    error_lines = printed.err.splitlines()
    assert error_lines[1] == 'apflint: r:4: "user" must be a string, not a number'
    assert error_lines[-1] == "apflint: r: 12 more lines that cannot be read as a request"
    assert len(error_lines) == 11
    assert "\x1b" not in printed.err


@pytest.mark.usefixtures("cluster")
def test_audit_event(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "verb": "list",
        "requestURI": "/api/v1/namespaces/team-a/pods",
        "user": {"username": "alice", "groups": ["dev", "system:authenticated"]},
    }
    (tmp_path / "event.log").write_text(json.dumps(event, indent=1))
    assert run(["explain", "--event", "event.log"]) == 0
    line, answer, *_ = capsys.readouterr().out.splitlines()
    assert line == f"Configuration: {CONFIGURATION}"
    assert answer == 'FlowSchema "pods-only" -> priority level "tenants" (apf.yaml:16)'
    assert run(["explain", "--event", "event.log", "--format", "json"]) == 0
    assert [tried["matched"] for tried in json.loads(capsys.readouterr().out)["considered"]] == [False] * 4 + [True]


@pytest.mark.usefixtures("empty")
@pytest.mark.parametrize("text", ["", "\n", "[]", '{"items": []}'])
@pytest.mark.parametrize("options", [(), ("--format", "json")])
def test_log_without_events(
    options: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "event.log").write_text(text)
    assert run(["explain", "--event", "event.log", *options]) == 2
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == ("", "apflint: event.log: no audit event\n")


@pytest.mark.parametrize("version", ["v1", "v1beta1", "v1alpha1"])
@pytest.mark.usefixtures("cluster")
def test_versions_of_audit_events(version: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    event = {"kind": "Event", "apiVersion": f"audit.k8s.io/{version}", "verb": "get", "requestURI": "/healthz"}
    (tmp_path / "event.log").write_text(json.dumps({**event, "user": {"username": "a", "groups": []}}))
    assert run(["explain", "--event", "event.log"]) == 0
    assert 'FlowSchema "' in capsys.readouterr().out


@pytest.mark.usefixtures("cluster")
def test_uids_of_response_headers_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "--flow-schema-uid", "schema-uid", "--priority-level-uid", "level-uid"]) == 0
    names = "FlowSchema: pods-only\npriority level: tenants\n"
    assert capsys.readouterr().out == f"{names}Configuration: {CONFIGURATION}\n"
    assert run(["explain", "--flow-schema-uid", "schema-uid", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "schema": 1,
        "configuration": CONFIGURATION,
        "flowSchema": "pods-only",
        "priorityLevel": None,
    }
    assert run(["explain", "--priority-level-uid", "schema-uid"]) == 2
    swapped = '"schema-uid" is the uid of the FlowSchema "pods-only", not of a PriorityLevelConfiguration'
    assert swapped in capsys.readouterr().err
    assert run(["explain", "--priority-level-uid", "x"]) == 2
    message = capsys.readouterr().err
    assert 'no PriorityLevelConfiguration in these manifests has the uid "x"' in message
    assert "apflint explain --live --priority-level-uid ..." in message


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["explain"], "no request given. For example: apflint explain list pods"),
        (["explain", "list", "pods"], "no user given. Name the user with --as"),
        (["explain", "foo", "pods"], '"foo" is not a verb of resource requests.'),
        (["explain", "foo", "pods"], "Also name the user with --as"),
        (["explain", "list", "--as", "a"], '"list" is incomplete: name a verb and a resource'),
        (["explain", "list", "po\x1b[31m", "--as", "a"], r'"po\x1b[31m" is not a resource of Kubernetes itself'),
        (["explain", "lst", "pods", "--as", "a"], '"lst" is not a verb'),
        (["explain", "--method", "GET", "--as", "a"], "--method requires --path"),
        (["explain", "--path", "/api/v1/watch", "--as", "a"], "the server cannot determine the resource"),
        (["explain", "list", "pods", "--as", "a", "--event", "e"], "cannot be combined: name one request"),
        (["explain", "--requests", "-", "-f", "-"], "standard input cannot be both the manifests and the requests"),
        (["explain", "--requests", "nowhere.jsonl"], "nowhere.jsonl: No such file or directory"),
        (["explain", "--requests", "."], ".: This is a directory."),
        (["explain", "list", "pods", "--as", "a", "-f", "nowhere"], "nowhere: No such file"),
        (["explain", "list", "pods", "--as", "a", "--kubernetes", "1.99"], '"1.99" is too new'),
        (["explain", "list", "pods", "--as", "a", "--server-concurrency", "0"], "is not an integer from 1 to"),
        (["explain", "--flow-schema-uid", "x"], 'no FlowSchema in these manifests has the uid "x"'),
    ],
)
@pytest.mark.usefixtures("empty")
def test_wrong_usage_is_reported_on_one_line(
    command: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(command) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("apflint: ")
    assert message in printed.err
    assert printed.err.count("\n") == 1
    assert printed.err.rstrip("\n").isprintable()


TWO_MORE = """---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: renamed}
spec: {type: Limited, limited: {assuredConcurrencyShares: 50, limitResponse: {type: Reject}}}
---
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: undecodable}
spec: {type: Limited, limited: {nominalConcurrencyShares: "50", limitResponse: {type: Reject}}}
"""


@pytest.mark.parametrize(
    ("files", "warnings"),
    [
        # The server cannot use this level, because handSize 9 is greater than queues 8.
        (
            {"apf": CLUSTER.replace("handSize: 2", "handSize: 9")},
            [
                'PriorityLevelConfiguration "tenants" (apf.yaml:13): rejected by the API server, and not part of the configuration'
            ],
        ),
        (
            {"apf": CLUSTER.replace("handSize: 2", "handSize: 2, queueLengthLimit: 0")},
            [
                'PriorityLevelConfiguration "tenants" (apf.yaml:13): rejected by the API server, but part of the configuration'
            ],
        ),
        (
            {"apf": CLUSTER + TWO_MORE},
            [
                'PriorityLevelConfiguration "renamed" (apf.yaml:48): rejected by the API server, but part of the configuration',
                'PriorityLevelConfiguration "undecodable" (apf.yaml:53): rejected by the API server, and not part of the configuration',
            ],
        ),
        (
            {"apf": CLUSTER + TWO_MORE.replace("assured", "asured").replace('"50"', "-1")},
            [
                'PriorityLevelConfiguration "renamed" (apf.yaml:48): rejected by the API server, but part of the configuration',
                'PriorityLevelConfiguration "undecodable" (apf.yaml:53): rejected by the API server, and not part of the configuration',
            ],
        ),
        (
            {"apf": CLUSTER + "---\nkind: FlowSchema\nspec: " + "[" * 300 + "]" * 300},
            ["a document (apf.yaml:46): too large for apflint, and not part of the configuration"],
        ),
        (
            {"apf": CLUSTER, "bpf": CLUSTER},
            [
                'PriorityLevelConfiguration "tenants" (bpf.yaml:7, apf.yaml:7) and 3 others: already defined; using the last definition'
            ],
        ),
    ],
)
def test_manifests_that_no_cluster_can_have_are_warned_about(
    files: dict[str, str],
    warnings: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    assert run(["explain", "list", "pods", "--as", "alice"]) == 0
    assert capsys.readouterr().err == "".join(f"apflint: {warning}; see `apflint check`\n" for warning in warnings)


GET = {"user": "alice", "groups": ["system:authenticated"], "verb": "get", "resource": "pods", "namespace": "x"}
LINE = json.dumps(GET).encode() + b"\n"


def replies(*pieces: bytes) -> list[dict[str, Any]]:
    found = explain_lines(explainer(), parse_record, split_lines(pieces), reasons=False)
    return [json.loads(line) for text, _ in found for line in text.splitlines()]


def test_caches_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_REMEMBERED_CHARACTERS", 2_000)
    records = [GET | {"user": user, "name": name} for user in "abcde" for name in "xyz"]
    data = [json.dumps(record).encode() + b"\n" for record in [*records, *records]]
    assert replies(*data) == [answer for line in data for answer in replies(line)]
    by = LineExplainer(explainer(), parse_record, reasons=False)
    for line in data:
        "".join(by.explain_batch(1, [line.rstrip()]))
    assert 0 < len(by._by_line) <= 2


def test_log_that_starts_within_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first line looks like the start of a JSON value over several lines, but the value never ends."""
    monkeypatch.setattr(json_lines, "MAX_AUDIT_VALUE_BYTES", 2 * len(LINE))
    first, *others = replies(b'{"user":\n', *[LINE] * 5)
    assert first.keys() == {"schema", "configuration", "error", "inputLine"}
    assert [other["flowSchema"] for other in others] == ["global-default"] * 5
    pieces = [b'{"user":\n', *[LINE] * 5]
    assert (
        len(list(explain_lines(explainer(), parse_record, split_lines(pieces), reasons=False))) > 2
    )  # requests are answered before the input ends
    monkeypatch.setattr(json_lines, "MAX_AUDIT_VALUE_BYTES", 9 * len(LINE))
    assert (
        len(list(explain_lines(explainer(), parse_record, split_lines(pieces), reasons=False))) == 1
    )  # the whole input is read first, because it may be a single value


@pytest.mark.parametrize("line", [b"[" * 100_000, b"7" * 10_000, b"nonsense", b'{"user": "a"} x'])
def test_line_that_cannot_start_a_value_is_read_alone(line: bytes) -> None:
    first, other = replies(line + b"\n", LINE)
    assert first["inputLine"] == 1
    assert other["flowSchema"] == "global-default"


@pytest.mark.parametrize(
    "line",
    [
        "",
        " \t",
        "\r",
        "\x1c",
        "\ufeff",
        "\ufeff" + LINE.decode(),
        "no",
        '"\x01"',
        "{}",
        '{"user": 1}',
        "[1]",
        "[{}, 2]",
        "NaN",
        '{"items": []}',
        '{"items": 1}',
        "[" * 100_000,
        "\ud800",
    ],
    ids=lambda line: repr(line[:9]),
)
def test_line_has_the_answer_of_the_same_text(line: str) -> None:
    by = LineExplainer(explainer(), parse_record, reasons=False)
    data = line.encode("utf-8", "surrogatepass")
    of_line, of_text = (
        "".join(by.explain_batch(7, [data])),
        "".join(by.explain_text(7, data.decode("utf-8", "replace"))),
    )
    assert of_line == of_text
    assert by.rejected[: len(by.rejected) // 2] == by.rejected[len(by.rejected) // 2 :]


@pytest.mark.parametrize("data", [b"\xff\xfe{\0}\0", b"\xfe\xff\0{\0}"])
def test_requests_in_utf_16_are_rejected(data: bytes) -> None:
    with pytest.raises(UserError, match="the requests are in UTF-16; write them in UTF-8"):
        replies(data)
    # Only at the start of the input does the byte order mark of UTF-16 cause an exception. In the second line, the mark
    # makes only this line invalid.
    assert [answer["inputLine"] for answer in replies(LINE, data) if "error" in answer] == [2]


def test_endless_line_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_reading, "MAX_FILE_BYTES", 3 << 20)
    with pytest.raises(UserError, match="a line of the requests is longer than 3 MiB"):
        replies(*[b"x" * (1 << 20)] * 4)


@pytest.mark.usefixtures("empty")
def test_requests_from_standard_input(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(LINE * 3))

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert run(["explain", "--requests", "-"]) == 0
    assert capsys.readouterr().out.count('"flowSchema": "global-default"') == 3
    monkeypatch.setattr(sys, "stdin", None)
    assert run(["explain", "--requests", "-"]) == 2
    assert capsys.readouterr() == ("", "apflint: <stdin>: Standard input is closed. Connect it to a pipe or a file.\n")


def test_number_with_thousands_of_digits_is_not_a_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.jsonl").write_text('{"user": "a", "path": ' + "1" * 5_000 + "}\n", encoding="utf-8")
    assert run(["explain", "--requests", str(tmp_path / "a.jsonl")]) == 2
    captured = capsys.readouterr()
    assert "this is not JSON: a number has thousands of digits" in captured.out + captured.err
    assert "set_int_max_str_digits" not in captured.out + captured.err


def test_many_values_that_start_like_one_are_answered_in_pieces() -> None:
    data = b"[\n" * 2_500
    parts = list(explain_lines(explainer(), parse_record, split_lines([data]), reasons=False))
    assert [len(found) for _, found in parts] == [1_000, 1_000, 500]
    assert [text.count("\n") for text, _ in parts] == [1_000, 1_000, 500]
    assert parts[-1][1][-1][0] == 2_500


@pytest.mark.usefixtures("cluster")
def test_answer_names_its_release_and_objects(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["explain", "list", "pods", "--as", "alice", "--kubernetes", "1.36"]
    assert run(asked) == 0
    assert (
        "\nKubernetes 1.36, 4 objects from apf.yaml, 19 built-in objects. Tried, in this order:\n"
        in capsys.readouterr().out
    )
    assert run([*asked, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["basedOn"] == {"kubernetes": "1.36", "objects": 4, "builtInObjects": 19}
    assert run([*asked, "-f", "apf.yaml", "-f", "apf.yaml", "--no-defaults"]) == 0
    assert "\nKubernetes 1.36, 4 objects from apf.yaml, 4 built-in objects. " in capsys.readouterr().out


@pytest.mark.usefixtures("empty")
def test_answer_without_manifests_names_only_built_in_objects(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(["explain", "list", "pods", "--as", "alice", "--kubernetes", "1.36"]) == 0
    text = capsys.readouterr().out
    assert "\nKubernetes 1.36, only 19 built-in objects (name manifests with -f). Tried, in this order:\n" in text


@pytest.mark.usefixtures("cluster")
def test_skipped_flow_schema_is_listed_at_its_precedence(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["explain", "list", "pods", "-n", "a", "--as", "alice", "--as-group", "dev"]
    assert run(asked) == 0
    rows = capsys.readouterr().out.partition("Tried, in this order:\n")[2].splitlines()[:-1]
    order = [int(row.split()[0]) for row in rows]
    assert order == sorted(order)
    (row,) = (row for row in rows if " lost " in row)
    assert row.split(maxsplit=2) == [
        "400",
        "lost",
        'skipped: the priority level "nowhere" does not exist (line 29)',
    ]
    assert run([*asked, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["skipped"] == [
        {"flowSchema": "lost", "matchingPrecedence": 400, "because": 'the priority level "nowhere" does not exist'}
    ]


@pytest.mark.usefixtures("empty")
def test_path_in_place_of_an_object_name(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "apf.yaml").write_text(CLUSTER)
    for path in ("good", "apf.yaml"):
        assert run(["explain", "list", "pods", path, "--as", "alice"]) == 2
        advice = f'apflint: "{path}" is a path, and list does not take an object name. To read manifests from the path, use -f {path}\n'
        assert capsys.readouterr().err == advice
    assert run(["explain", "get", "pods", "good", "--as", "alice"]) == 0
    assert '"good" is read as the name of an object.' in capsys.readouterr().out
    assert run(["explain", "list", "pods", "web-0", "--as", "alice"]) == 0
    assert "-f." not in capsys.readouterr().out


@pytest.mark.usefixtures("empty")
def test_requests_get_the_groups_that_authentication_adds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "r").write_text(
        '{"user": "alice", "groups": ["dev"], "verb": "list", "resource": "pods"}\n'
        '{"user": "alice", "groups": ["system:unauthenticated"], "verb": "list", "resource": "pods"}\n'
        '{"kind": "Event", "apiVersion": "audit.k8s.io/v1", "user": {"username": "alice"}, "verb": "list"}\n'
    )
    assert run(["explain", "--requests", "r"]) == 2
    printed = capsys.readouterr()
    first, second, third = map(json.loads, printed.out.splitlines())
    assert (first["flowSchema"], first["user"]["groups"]) == ("global-default", ["dev", "system:authenticated"])
    assert first["notes"] == ['Authentication adds the group "system:authenticated".']
    assert (second["user"]["groups"], second["notes"]) == (["system:unauthenticated"], [])
    assert third == {
        "schema": 1,
        "configuration": "built-in objects of 1.37; no objects in the current directory",
        "error": 'this is an audit event: read it with --event. In a request, "user" must be a string',
        "inputLine": 3,
    }
    assert "read it with --event" in printed.err
