"""The fast reader, which splits lines into parts, gives the same rows as a JSON parser, and loses no line."""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.audit_logs import FIXTURES

from apflint.replay import fast_lines
from apflint.replay.loaded_log import Coverage, Wanted
from apflint.replay.python_engine import EventReader, find_lines

if TYPE_CHECKING:
    from collections.abc import Sequence


@cache
def recorded_lines() -> list[str]:
    with gzip.open(FIXTURES / "live" / "audit.log.gz", "rt", encoding="utf-8") as file:
        return file.read().splitlines()


def read_lines(lines: Sequence[str], *, by_parts: bool) -> tuple[list[Any], Coverage]:
    """Return the rows with their tuples, and the coverage."""
    rows: list[Any] = []
    wanted = Wanted(list_options=True)
    reader = EventReader(wanted, ("dev", "slow"), lambda table, new: rows.extend(new) if table == "request" else None)
    if not by_parts:
        reader._canonical_lines.read = lambda data, *_: (find_lines(data), len(find_lines(data)))  # type: ignore[method-assign]
    assert reader._read_lines(1, "\n".join(lines).encode(), 0) == len(lines)
    reader.flush()
    return sorted(((reader.tuples[row[0]], *row[1:]) for row in rows), key=repr), reader.coverage


@st.composite
def changed_lines(draw: st.DrawFn) -> list[str]:
    """Draw lines of the recorded log. Some of them are changed."""
    lines = recorded_lines()
    chosen = []
    for start in draw(st.lists(st.integers(0, len(lines) - 8), min_size=1, max_size=3)):
        for line in lines[start : start + 8]:
            at, end = draw(st.integers(0, len(line))), draw(st.integers(0, 20))
            kind = draw(st.sampled_from(["", "", "", "", "cut", "insert", "twice", "field", "end"]))
            part = draw(
                st.sampled_from(['"', "\\", "\x01", ",", "}", '{"', "²", "٣", " ", '","stage":"Panic', "0", "null"])
            )
            chosen.append(
                {
                    "": line,
                    "cut": line[:at] + line[at + end :],
                    "insert": line[:at] + part + line[at:],
                    "twice": line + "\n" + line,
                    "field": line.replace("{", '{"stage":"Panic","user":{},', 1),
                    "end": f'{line[:-1]},"annotations":{{}},"responseStatus":{{"code":{end}}}}}',
                }[kind]
            )
    return "\n".join(chosen).split("\n")


@given(changed_lines())
def test_reading_by_parts_equals_parsing(lines: list[str]) -> None:
    rows, coverage = read_lines(lines, by_parts=True)
    assert (rows, coverage) == read_lines(lines, by_parts=False)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"verb":"update"', '"verb":"list"'),
        (',"sourceIPs"', ',"verb":"list","sourceIPs"'),
        ('"namespace":"default"', '"namespace":"dev"'),
        ('"namespace":"default",', ""),
        ('"name":"lease"', '"name":"x\\u0026","subresource":"status"'),
    ],
)
def test_attributes_of_similar_requests_differ(old: str, new: str) -> None:
    line = next(line for line in recorded_lines() if '"ResponseComplete"' in line)
    before, after = line.index('"requestURI"'), line.index(',"responseStatus"')
    lines = []
    for number in range(6):
        body = (
            f'"requestURI":"/x?limit={number}","verb":"update","user":{{"username":"a"}},"sourceIPs":[],"objectRef":'
            '{"resource":"leases","namespace":"default","name":"lease","apiVersion":"v1"}'
        )
        assert old in body
        lines.append(line[:before] + (body.replace(old, new) if number % 2 else body) + line[after:])
    rows, coverage = read_lines(lines, by_parts=True)
    assert len(rows) == len(lines)
    assert (rows, coverage) == read_lines(lines, by_parts=False)


@pytest.mark.parametrize("verb", ["list", "watch", "get"])
def test_attributes_of_lists_depend_on_the_url_and_the_name(verb: str) -> None:
    line = next(line for line in recorded_lines() if '"ResponseComplete"' in line)
    before, after = line.index('"requestURI"'), line.index(',"responseStatus"')
    urls = (
        "/x",
        "/x?limit=5",
        "/x?limit=6",
        "/x?watch=1\\u0026limit=5",
        "/x?fieldSelector=metadata.name%3Da",
        "/é?limit=5",
    )
    repeated = ("verb", "list"), ("requestURI", "/x?limit=7"), ("requestURI", "/x")
    lines = [
        f'{line[:before]}"requestURI":"{url}","verb":"{verb}"{middle},"objectRef":{{"resource":"pods"{end}}}{line[after:]}'
        for middle in (
            "",
            *(f',"{key}" :"{value}"' for key, value in repeated),
            *(f',"{key}":"{value}"' for key, value in repeated),
        )
        for end in ("", ',"name":"a"', ',"name":"b"', ',"name":""', ',"name":"","name":"a"', ',"name":"a","name":""')
        for url in urls
    ]
    rows, coverage = read_lines(lines, by_parts=True)
    assert len(rows) == len(lines)
    assert (rows, coverage) == read_lines(lines, by_parts=False)


def test_most_recorded_lines_are_read_by_their_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = recorded_lines()
    parsed: list[str] = []

    def scan(line: str, at: int) -> tuple[Any, int]:
        parsed.append(line)
        return fast_lines.scan(line, at)

    monkeypatch.setattr("apflint.replay.python_engine.scan", scan)
    rows, coverage = read_lines(lines, by_parts=True)
    assert coverage.stages.total() == len(lines)
    assert len(rows) + coverage.stages["RequestReceived"] == len(lines)
    assert len(parsed) < len(lines) / 2


def test_remembered_text_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fast_lines, "MAX_REMEMBERED_BYTES", 10_000)
    lines = recorded_lines()
    rows: list[Any] = []
    reader = EventReader(Wanted(), (), lambda _, new: rows.extend(new))
    parts = reader._canonical_lines
    for start in range(0, len(lines), 10):
        reader._read_lines(start + 1, "\n".join(lines[start : start + 10]).encode(), 0)
        requests = (f"{key[0]!s}{key[2]!s}" for key in filter(None, parts._requests))
        remembered = (*parts._bodies, *requests, *parts._codes, *parts._rests)
        assert sum(map(len, remembered)) <= 10_000
    assert reader.coverage.stages.total() == len(lines)


def test_event_of_another_layout_is_parsed() -> None:
    lines = [json.dumps(json.loads(line)) for line in recorded_lines()]
    rows, coverage = read_lines(lines, by_parts=True)
    assert (rows, coverage) == read_lines(recorded_lines(), by_parts=True)
