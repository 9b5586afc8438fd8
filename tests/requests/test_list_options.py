"""The list options that determine seats: Python and SQL reduce them to the same form."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.audit_logs import event, needs_duckdb, write_log

from apflint.replay.loaded_log import Wanted
from apflint.requests.list_options import MAX_LIMIT, reduce_list_options
from apflint.sources.audit_logs import find_audit_logs

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("query", "reduced"),
    [
        ("", ""),
        ("?", ""),
        ("?timeout=5s&pretty=limit", ""),
        ("?limit=500&resourceVersion=0", "&limit=500&resourceVersion=0"),
        ("?resourceVersion=0&limit=0500", "&limit=500&resourceVersion=0"),
        ("?limit=0", ""),
        ("?limit=-1", ""),
        ("?limit=99999", "&limit=99999"),
        ("?limit=100000", f"&limit={MAX_LIMIT}"),
        ("?limit=9223372036854775807", f"&limit={MAX_LIMIT}"),
        ("?limit=abc", "&invalid"),
        ("?limit=", "&invalid"),
        ("?limit", "&invalid"),
        ("?limit=-&x=1", "&invalid"),
        ("?limit=+5", "&invalid"),
        ("?limits=abc&xlimit=abc", ""),
        ("?timeoutSeconds=x", "&invalid"),
        ("?watch=1&timeoutSeconds=450&resourceVersion=912345", "&resourceVersion=other"),
        ("?resourceVersion=&resourceVersionMatch=", ""),
        ("?resourceVersion=00", "&resourceVersion=other"),
        ("?resourceVersion=5&resourceVersionMatch=Exact", "&resourceVersion=other&resourceVersionMatch=Exact"),
        ("?resourceVersionMatch=NotOlderThan", "&resourceVersionMatch=NotOlderThan"),
        ("?resourceVersionMatch=x", "&resourceVersionMatch=other"),
        ("?continue=eyJ2IjoibWV0YSJ9", "&continue"),
        ("?continue=", ""),
        ("?labelSelector=app%3Dweb&fieldSelector=", "&selector"),
        ("?fieldSelector=spec.nodeName%3Dnode-1", "&selector"),
        ("?sendInitialEvents=true", "&sendInitialEvents"),
        ("?sendInitialEvents", "&sendInitialEvents"),
        ("?sendInitialEvents=False", ""),
        ("?sendInitialEvents=0&x", ""),
    ],
)
def test_reduces_options(query: str, reduced: str) -> None:
    assert reduce_list_options(f"/api/v1/limit/pods{query}", None) == reduced
    assert reduce_list_options(f"/api/v1/limit/pods{query}", "x") == f"&name{reduced}"


_NAMES = ("limit", "timeoutSeconds", "resourceVersion", "resourceVersionMatch", "continue", "labelSelector",
          "fieldSelector", "sendInitialEvents", "watch", "x")  # fmt: skip
_VALUES = ("", "=", "=0", "=00", "=5", "=-5", "=-", "=--5", "=5-5", "=100000", "=123456789012", "=x", "=Exact", "=Exactly",
           "=NotOlderThan", "=false", "=FALSE", "=true", "=%35", "=a=b", '="', "=\\", "=\n", "=é", "=+5", "=5;6")  # fmt: skip


@st.composite
def urls(draw: st.DrawFn) -> str:
    pairs = draw(st.lists(st.tuples(st.sampled_from(_NAMES), st.sampled_from(_VALUES)), max_size=5))
    return "/api/v1/pods" + draw(st.sampled_from(["?", "?", "?", "?&", "&", ""])) + "&".join(map("".join, pairs))


@needs_duckdb
@settings(max_examples=5)
@given(
    st.lists(
        st.tuples(urls(), st.sampled_from(["list", "watch", "get"]), st.sampled_from([None, "", "c1"])),
        min_size=50,
        max_size=200,
    )
)
def test_engines_read_the_same_options(
    tmp_path_factory: pytest.TempPathFactory, requests: list[tuple[str, str, str | None]]
) -> None:
    from apflint.replay import duckdb_engine, python_engine

    path = tmp_path_factory.mktemp("logs") / "audit.log"
    references = [{"resource": "pods", **({} if name is None else {"name": name})} for _, _, name in requests]
    events = [
        event(auditID=f"{number:036}", requestURI=url, verb=verb, objectRef=reference)
        for number, ((url, verb, _), reference) in enumerate(zip(requests, references, strict=True))
    ]
    write_log(path, events)
    files = find_audit_logs([str(path)])
    wanted = Wanted(audit_id=True, list_options=True)
    found: list[Any] = []
    for log in (
        python_engine.read_log(files, wanted, ()),
        duckdb_engine.read_log(files, wanted, (), memory="256MB"),
    ):
        rows = log.database.query("SELECT audit_id, tuple FROM request ORDER BY audit_id")
        found.append([(audit_id, log.tuples[int(str(number))]) for audit_id, number in rows])
        log.database.close()
    assert found[0] == found[1]
    expected = [reduce_list_options(url, name)[1:] if verb != "get" else "" for url, verb, name in requests]
    assert [attributes.list_options for _, attributes in found[0]] == expected


def test_number_of_tuples_is_bounded(tmp_path: Path) -> None:
    """Requests that differ only in resource versions, continue tokens or object names have the same attribute tuple."""
    from apflint.replay import python_engine

    path = write_log(
        tmp_path / "audit.log",
        [
            event(
                requestURI=f"/api/v1/pods?limit=500&continue={number}&resourceVersion={number + 1}",
                objectRef={"resource": "pods", "name": f"pod-{number}"},
            )
            for number in range(20)
        ],
    )
    log = python_engine.read_log(find_audit_logs([str(path)]), Wanted(list_options=True), ())
    assert [attributes.list_options for attributes in log.tuples] == ["name&limit=500&resourceVersion=other&continue"]
    log.database.close()


@pytest.mark.parametrize("changes", [{"requestURI": 5}, {"objectRef": {"resource": "pods", "name": 5}}])
@pytest.mark.parametrize("engine", [pytest.param("python"), pytest.param("duckdb", marks=needs_duckdb)])
def test_wrong_types_are_unreadable(
    changes: dict[str, Any], engine: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from apflint.cli.app import run

    path = write_log(tmp_path / "audit.log", [event(objectRef={"resource": "pods", "name": "x"}), event(**changes)])
    assert run(["replay", str(path), "--engine", engine, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["requests"], report["unreadable"]) == (1, 1)
    assert "must be a string" in report["firstUnreadable"]["reason"]
