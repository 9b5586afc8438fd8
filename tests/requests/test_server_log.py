"""Parser of kube-apiserver's own log, and its comparison with a configuration."""

from __future__ import annotations

import gzip
import json
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.audit_logs import COMPLETE, ROOT
from support.reading import read_effective

from apflint.evaluate.classify import classify
from apflint.evaluate.match import RequestDigest, UserInfo
from apflint.evaluate.possible_flow_schemas import list_possible_flow_schemas
from apflint.evaluate.requestinfo import parse_request_info
from apflint.releases import parse_release
from apflint.requests.server_log import LoggedRequest, is_server_log_line, parse_logged_request
from apflint.requests.server_log_comparison import LoggedComparer

FIXTURES = ROOT / "fixtures" / "server-log"
LINES = (FIXTURES / "httplog.txt").read_text("utf-8").splitlines()
REJECTED = next(line for line in LINES if "resp=429" in line and 'verb="WATCH"' in line)
WAITED = next(line for line in LINES if "fl_priorityandfairness" in line and "resp=20" in line)
ENDED = next(line for line in LINES if "resp=504" in line)
INCIDENTS = COMPLETE / "incidents"


def parse(line: str) -> LoggedRequest:
    request = parse_logged_request(line)
    assert request is not None
    return request


def comparer(seats: int = 30, **more: Any) -> LoggedComparer:
    return LoggedComparer(
        read_effective([str(FIXTURES / "objects.json")], parse_release("1.36"), seats, isolated=True, **more)
    )


@pytest.mark.parametrize("content_type", ["", "application/json", 'a=\\"b\\" resp=9'])
def test_content_type_of_newer_servers_changes_nothing(content_type: str) -> None:
    """From 1.37 on, lines also have the content type of the request (`Log` in server/httplog/httplog.go)."""
    for line in (REJECTED, WAITED, ENDED):
        newer = line.replace(" audit-ID=", f' contentType="{content_type}" audit-ID=')
        assert newer != line
        assert parse(newer) == parse(line)


def test_fields_of_a_rejected_request() -> None:
    request = parse(REJECTED)
    assert request == LoggedRequest(
        time="11-23 16:49:00.243874",
        verb="WATCH",
        uri="/api/v1/configmaps?watch=1&resourceVersion=0",
        user_agent="node-agent/v0.12 client-go/v0.35.0",
        audit_id="d6871a3d-8475-490a-a1bc-dfd88bf41c8d",
        flow_schema="service-accounts",
        priority_level="workload-low",
        seats=10,
        final_seats=0,
        latency=15.000960636,
        queue_seconds=None,
        execution=None,
        status=429,
    )
    assert request.is_rejected
    assert request.wait == 15.000960636
    assert request.read_info().verb == "watch"


def test_wait_of_an_executed_request() -> None:
    request = parse(WAITED)
    assert (request.is_rejected, request.wait) == (False, request.queue_seconds)
    assert request.wait is not None
    assert request.wait > 0.1
    assert request.execution is not None


def test_request_that_ended_while_it_waited() -> None:
    request = parse(ENDED)
    assert (request.is_rejected, request.status, request.execution) == (False, 504, None)
    assert request.wait == request.latency


def test_429_of_an_executed_request_is_not_a_rejection() -> None:
    line = REJECTED.replace(" resp=429", ' apf_execution_time="2ms" resp=429')
    assert not parse(line).is_rejected
    assert not parse('"HTTP" verb="GET" URI="/x" latency="1ms" resp=429').is_rejected


@pytest.mark.parametrize(
    "wrap",
    [
        lambda line: line,
        lambda line: line.partition("] ")[2],
        lambda line: f"2026-11-23T16:49:00.3Z stderr F {line}",
        lambda line: f"Nov 23 16:49:00 node-1 kube-apiserver[123]: {line}",
        lambda line: json.dumps({"log": f"{line}\n", "stream": "stderr", "time": "2026-11-23T16:49:00.3Z"}),
        lambda line: json.dumps({"MESSAGE": line, "_COMM": "kube-apiserver"}),
        lambda line: f"\ufeff{line}\r",
    ],
)
def test_lines_that_other_programs_have_wrapped(wrap: Any) -> None:
    request = parse(wrap(REJECTED))
    assert request._replace(time="") == parse(REJECTED)._replace(time="")


@pytest.mark.parametrize(
    ("time", "text"),
    [
        (1795451148.41726, "2026-11-23T16:25:48.417260Z"),  # seconds (kube-apiserver writes milliseconds)
        (0, "1970-01-01T00:00:00.000000Z"),
        (1e300, ""),
        (10**400, ""),
        (float("nan"), ""),
        (True, ""),
        (["1"], ""),
        ("2026-11-23T16:25:48Z", "2026-11-23T16:25:48Z"),
    ],
)
def test_times_in_json_of_the_server(time: object, text: str) -> None:
    assert parse(json.dumps({"ts": time, "msg": "HTTP", "verb": "GET", "URI": "/api/v1/nodes"})).time == text


def test_json_of_the_server() -> None:
    """The JSON format of kube-apiserver's flag `--logging-format=json` is parsed."""
    record = {"ts": 1795451148417.26, "caller": "httplog/httplog.go:134", "msg": "HTTP", "v": 3, "verb": "GET", "URI": "/api/v1/nodes",
              "latency": "1.5s", "apf_pl": "system", "apf_fs": "system-nodes", "apf_iseats": 2, "resp": 200}  # fmt: skip
    request = parse(json.dumps(record))
    assert (request.time, request.uri, request.latency, request.seats) == (
        "2026-11-23T16:25:48.417260Z",
        "/api/v1/nodes",
        1.5,
        2,
    )
    assert (request.flow_schema, request.priority_level, request.status) == ("system-nodes", "system", 200)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        '{"msg": "HTTP"}',
        '{"msg": "HTTP", "verb": ["GET"], "URI": 1}',
        '{"log": {"HTTP": 1}}',
        '"HTTP" ',
        '"HTTP" verb="GET"',
        '"HTTP" verb="GET" URI="',
        "I1123 16:48:35.496585    8743 controller.go:1] starting",
        '{"kind":"Event","apiVersion":"audit.k8s.io/v1","userAgent":"HTTP"}',
        '{"a": ' + "[" * 100_000 + '"HTTP"',
    ],
)
def test_other_lines_are_not_requests(line: str) -> None:
    assert parse_logged_request(line) is None


def test_header_of_klog() -> None:
    assert is_server_log_line("I1123 16:48:35.496585    8743 controller.go:1] starting")
    assert is_server_log_line(f"2026-11-23T16:49:00.3Z stderr F {REJECTED}")
    assert not is_server_log_line('{"kind":"Event"}')


def test_escaped_values() -> None:
    request = parse(
        r'"HTTP" verb="GET" URI="/a\"b c=\\\u00e9\x1b\U0001f600\n\ud800" userAgent="x=\"y\" resp=9" resp=200'
    )
    assert request.uri == '/a"b c=\\é\x1b\U0001f600\n\ufffd'
    assert (request.user_agent, request.status) == ('x="y" resp=9', 200)


@given(st.text(max_size=60))
def test_no_text_crashes_the_parser(text: str) -> None:
    for line in (text, f'"HTTP" {text}', f'"HTTP" verb="GET" URI="{text}', f'{{"msg":"HTTP",{text}'):
        request = parse_logged_request(line)
        if request is not None:
            comparer_of_fixtures().compare(request)


def comparer_of_fixtures(known: list[LoggedComparer] = []) -> LoggedComparer:  # noqa: B006  # `known` is a cache
    if not known:
        known.append(comparer())
    return known[0]


@pytest.mark.parametrize(("verb", "uri", "expected"), [
    ("LIST", "/api/v1/pods", "list"), ("APPLY", "/api/v1/namespaces/a/pods/b", "patch"),
    ("CONNECT", "/api/v1/namespaces/a/pods/b/exec?command=sh", "create"), ("DELETE", "/api/v1/pods", "deletecollection"),
    ("GET", "/metrics", "get"),
])  # fmt: skip
def test_verbs_of_the_log_are_not_methods(verb: str, uri: str, expected: str) -> None:
    assert parse(f'"HTTP" verb="{verb}" URI="{uri}"').read_info().verb == expected


def disagreements(line: str, **more: Any) -> list[str]:
    return list(comparer(**more).compare(parse(line)).disagreements)


def test_recorded_lines_agree() -> None:
    by = comparer()
    reporting = [line for line in LINES if 'apf_fs="reporting"' in line]
    assert len(reporting) > 5
    for line in reporting:
        found = by.compare(parse(line))
        assert found.disagreements == ()
        assert "reporting" in found.possible


def test_disagreements() -> None:
    line = next(line for line in LINES if 'apf_fs="reporting"' in line)
    assert disagreements(line.replace('apf_fs="reporting"', 'apf_fs="other"')) == [
        'the configuration has no FlowSchema "other"'
    ]
    assert disagreements(line.replace('apf_pl="reporting"', 'apf_pl="system"')) == [
        'the FlowSchema "reporting" references the priority level "reporting", not "system"'
    ]
    assert disagreements(line.replace("apf_iseats=1", "apf_iseats=7")) == [
        'a get takes at most 1 seat at the priority level "reporting" of a server with 30 seats, not 7'
    ]
    (found,) = disagreements(
        line.replace('apf_fs="reporting"', 'apf_fs="probes"').replace('apf_pl="reporting"', 'apf_pl="exempt"')
    )
    assert found.startswith(
        'the FlowSchema "probes" cannot match this request; depending on the user, the request gets "exempt", '
    )
    (found,) = disagreements('"HTTP" verb="GET" URI="/api/v1/namespaces/a/pods/b/log" apf_fs="exempt" apf_pl="exempt"')
    assert found == "Kubernetes 1.36 does not classify requests of this kind: they are long-running"
    (found,) = disagreements('"HTTP" verb="GET" URI="/api/v1/watch" apf_fs="exempt" apf_pl="exempt"')
    assert found.startswith('"/api/v1/watch" ends after "watch"')


def test_line_without_flow_schema_is_no_disagreement() -> None:
    found = comparer().compare(parse('"HTTP" verb="GET" URI="/api/v1/pods" latency="1ms" resp=401'))
    assert (found.disagreements, found.flow_schema) == ((), None)
    assert found.possible[0] == "exempt"


def test_final_seats_are_limited() -> None:
    line = '"HTTP" verb="POST" URI="/api/v1/namespaces/a/pods" apf_fs="global-default" apf_pl="global-default" apf_fseats=11'
    (found,) = disagreements(line, seats=600)
    assert found == (
        'notifying watchers takes at most 8 seats at the priority level "global-default" of a server with 600 seats, not 11'
    )


@given(
    st.sampled_from(["alice", "system:kube-scheduler", "system:anonymous", "system:serviceaccount:kube-system:x", "u"]),
    st.lists(st.sampled_from(["system:nodes", "system:masters", "dev", "system:serviceaccounts"]), max_size=2),
    st.sampled_from(["system:authenticated", "system:unauthenticated"]),
    st.sampled_from(
        ["/api/v1/pods", "/healthz", "/version", "/api/v1/namespaces/kube-system/endpoints/x", "/api/v1/nodes/n"]
    ),
)
def test_every_classification_is_possible(user: str, groups: list[str], group: str, url: str) -> None:
    configuration = comparer_of_fixtures()._known.configuration
    info = parse_request_info("GET", url)
    schema = classify(configuration, RequestDigest(info, UserInfo(user, (*groups, group)))).flow_schema
    assert schema in list_possible_flow_schemas(configuration, info)


@pytest.mark.skipif(not INCIDENTS.is_dir(), reason="the complete recordings are not here")
def test_recorded_servers_agree_with_the_classification() -> None:
    """The logged FlowSchemas contradict the configuration only at a server that has just started."""
    compared = 0
    for label in sorted(INCIDENTS.glob("**/label.json")):
        directory = label.parent
        flags = json.loads(label.read_text())["server_flags"]
        total = flags["max-requests-inflight"] + flags["max-mutating-requests-inflight"]
        known = read_effective([str(directory / "objects.json")], parse_release("1.36"), total, isolated=True)
        by = LoggedComparer(known)
        with gzip.open(directory / "httplog.txt.gz", "rt", encoding="utf-8") as lines:
            requests = list(map(parse_logged_request, lines))
        assert all(requests)
        found = set(chain.from_iterable(by.compare(request).disagreements for request in requests if request))
        assert all("unless the server had just started" in clause for clause in found), directory
        assert not found or directory.name == "restart"
        compared += len(requests)
    assert compared > 70_000


def test_fixtures_are_complete() -> None:
    assert all(map(parse_logged_request, LINES))
    assert Path(FIXTURES / "README.md").is_file()
