"""Attributes of requests from method and URL, compared with a real server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.configurations import FIXTURES, lines

from apflint.evaluate.requestinfo import (
    RequestInfo,
    exact_field_match,
    is_label_selector,
    is_long_running,
    is_seen_by_apf,
    parse_query,
    parse_request_info,
)
from apflint.user_error import UserError

if TYPE_CHECKING:
    from pathlib import Path

CASES = lines(FIXTURES / "requestinfo.jsonl")
INTERNAL = dict(lines(FIXTURES / "requestinfo_internal.jsonl"))

INTERNAL_ATTRIBUTES = ("apiPrefix", "path", "parts", "fieldSelector", "labelSelector", "longRunning")


def recorded_form(info: RequestInfo) -> dict[str, Any]:
    """Return the attributes as recorded, without empty values."""
    values = {
        "isResourceRequest": info.is_resource_request,
        "verb": info.verb,
        "apiPrefix": info.api_prefix,
        "apiGroup": info.api_group,
        "apiVersion": info.api_version,
        "namespace": info.namespace,
        "resource": info.resource,
        "subresource": info.subresource,
        "name": info.name,
        "path": info.path,
        "parts": list(info.parts),
        "fieldSelector": info.field_selector,
        "labelSelector": info.label_selector,
        "longRunning": is_long_running(info),
    }
    return {key: value for key, value in values.items() if value}


@pytest.mark.parametrize(("case", "method", "url", "seen", "expect"), CASES, ids=[case[0] for case in CASES])
def test_agrees_with_the_server(case: str, method: str, url: str, seen: bool, expect: dict[str, Any]) -> None:
    if "error" in expect:
        with pytest.raises(UserError, match="cannot determine the resource"):
            parse_request_info(method, url)
        return
    info = parse_request_info(method, url)
    mine = recorded_form(info)
    if case in INTERNAL:
        assert mine == expect | INTERNAL[case]
    else:  # a server does not show its internal attributes
        assert {key: value for key, value in mine.items() if key not in INTERNAL_ATTRIBUTES} == expect
    assert {type(value) for value in (*info[1:10], info.field_selector, info.label_selector)} == {str}
    assert is_seen_by_apf(info) is seen


def test_agrees_with_the_whole_recording(shared: Path) -> None:
    for row in lines(shared / "oracle/requestinfo/cases.jsonl"):
        wanted = {key: value for key, value in row["expect"].items() if value}
        if "error" in wanted:
            with pytest.raises(UserError):
                parse_request_info(row["method"], row["url"])
        else:
            assert recorded_form(parse_request_info(row["method"], row["url"])) == wanted, row["id"]


@pytest.mark.parametrize("url", ["", "api/v1/pods", "/api/%zz", "/api/%", "/a\x00b", "/a\nb", "*?x"])
def test_invalid_targets_are_rejected(url: str) -> None:
    with pytest.raises(UserError):
        parse_request_info("GET", url)


def test_invalid_targets_are_described() -> None:
    with pytest.raises(UserError, match=r'^"/a/%zz/b" has the invalid percent escape "%zz": the server'):
        parse_request_info("GET", "/a/%zz/b")
    with pytest.raises(UserError, match=r"^'/a\\nb' has a control character in it"):
        parse_request_info("GET", "/a\nb")


def test_only_slashes_are_stripped() -> None:
    assert parse_request_info("GET", "/api/v1/X/").resource == "X"
    assert parse_request_info("GET", "//api/v1/pods//").resource == "pods"


def test_invalid_utf_8_becomes_replacement_characters() -> None:
    assert parse_request_info("GET", "/a%ff%20").path == "/a\ufffd "
    assert parse_request_info("GET", "/a\ud800%20").path == "/a\ufffd\ufffd\ufffd "  # a lone surrogate, from JSON


def test_absolute_url_is_its_path() -> None:
    assert parse_request_info("GET", "https://server:6443/api/v1/pods?watch=1") == parse_request_info(
        "GET", "/api/v1/pods?watch=1"
    )


def test_fragment_belongs_to_the_path() -> None:
    assert parse_request_info("GET", "/healthz#x").path == "/healthz#x"


@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("fieldSelector=metadata.name%3Dx", "x"),
        ("fieldSelector=metadata.name%3Dx&labelSelector=app%3Dweb,!b,c+in+(d,e)", "x"),
        ("fieldSelector=metadata.name%3Dx&labelSelector=app%3D%3D%3Dweb", ""),
        ("fieldSelector=metadata.name%3Dx&limit=5", "x"),
        ("fieldSelector=metadata.name%3Dx&limit=", ""),
        ("fieldSelector=metadata.name%3Dx&limit=9223372036854775807", "x"),
        ("fieldSelector=metadata.name%3Dx&limit=9223372036854775808", ""),
        ("fieldSelector=metadata.name%3Dx&limit=-9223372036854775808", "x"),
        ("fieldSelector=metadata.name%3Dx&limit=-9223372036854775809", ""),
        ("fieldSelector=metadata.name%3D.", ""),
        ("fieldSelector=metadata.name%3D..", ""),
        ("fieldSelector=metadata.name%3D...", "..."),
        ("fieldSelector=metadata.name%3Dx&timeoutSeconds=1s", ""),
        ("fieldSelector=metadata.name%3Dy,metadata.name%3Dx", "x"),
    ],
)
def test_name_comes_from_a_field_selector_of_valid_options(query: str, name: str) -> None:
    assert parse_request_info("GET", f"/api/v1/pods?{query}").name == name


@pytest.mark.parametrize(
    ("selector", "value"),
    [
        ("metadata.name=x", "x"),
        ("metadata.name==x", "x"),
        ("metadata.name!=x", None),
        ("spec.nodeName=n,metadata.name=x", "x"),
        ("metadata.name=a\\,b", "a,b"),
        ("metadata.name=a\\=b", "a=b"),
        ("metadata.name=a\\b", None),
        ("metadata.name=a\\", None),
        ("metadata.name===x", None),
        ("nonsense", None),
        ("metadata.name=x,nonsense", None),
        (",metadata.name=x,", "x"),
        ("", None),
        ("\ud800=x,metadata.name=y", "y"),
        ("metadata.name=b,metadata.name=a", "a"),
        ("metadata.name=b,metadata.name=", ""),
    ],
)
def test_field_selectors(selector: str, value: str | None) -> None:
    assert exact_field_match(selector, "metadata.name") == value


@pytest.mark.parametrize(
    "selector",
    [
        "",
        "a",
        "!a",
        "a,b",
        "a=b",
        "a==b",
        "a!=b",
        "a=",
        "a=,b",
        "x.io/a in (b, c)",
        "a notin ()x"[:8] + " (b)",
        "a in (,)",
        "a in (b,)",
        "a>1",
        "a<1",
        "!a,b",
        "a,!b",
        "a=b,!c",
        f"{'x' * 253}/a",
        f"{'x' * 253}/{'a' * 63}={'b' * 63}",
        "in",
        " a = b ",
    ],
)
def test_label_selectors_that_decode(selector: str) -> None:
    assert is_label_selector(selector)


@pytest.mark.parametrize(
    "selector",
    [
        ",",
        "a,",
        ",a",
        "a b",
        "a===b",
        "=b",
        "!",
        "!a=b",
        "a in",
        "a in b",
        "a in ()",
        "a in (b",
        "a in (b c)",
        "a in (",
        "a in (b,",
        "a in (b,=)",
        "a<",
        "a<b",
        "a<-1",
        f"{'x' * 254}/a",
        "a>x",
        "a>",
        "-a",
        "a=-b",
        "/a",
        "A.b/a",
        "a/b/c",
        "a" * 64,
        "a(b",
    ],
)
def test_label_selectors_that_do_not(selector: str) -> None:
    assert not is_label_selector(selector)


def test_first_valid_value_of_a_parameter_counts() -> None:
    assert parse_query("a=1&a=2&b=%zz&c=1;d=2&e&f+=x+y&%67=%20") == {"a": "1", "e": "", "f ": "x y", "g": " "}


@given(st.text(), st.text(max_size=8))
def test_any_target_is_parsed_or_rejected(url: str, method: str) -> None:
    for target in (url, "/" + url, "/api/v1/pods?" + url):
        try:
            info = parse_request_info(method, target)
        except UserError:
            continue
        assert info == parse_request_info(method, target)
        json.dumps(info)


@given(st.lists(st.sampled_from("a=!(),<> in"), max_size=12).map("".join), st.text(max_size=12))
def test_any_string_is_a_label_selector_or_not(selector: str, text: str) -> None:
    assert is_label_selector(selector) in (True, False)
    assert is_label_selector(text) in (True, False)
    exact_field_match(text, "metadata.name")


@pytest.mark.parametrize("url", ["pods", "", "api/v1/pods", "?watch=true"])
def test_url_without_a_path(url: str) -> None:
    with pytest.raises(UserError, match="is not a path: it must start with") as caught:
        parse_request_info("GET", url)
    assert str(caught.value).startswith(f'"{url}" ')
