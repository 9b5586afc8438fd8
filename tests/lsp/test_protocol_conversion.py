"""URIs, positions, changes, edits and Markdown of the protocol."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol.types import (
    Position,
)
from pygls import uris

from apflint.edit.text_edits import apply_edits
from apflint.load.source_text import Source
from apflint.lsp.protocol_conversion import (
    escape_markdown,
    line_edits,
    offset_at,
    path_from_uri,
    plain_text,
    position_at,
    uri_from_path,
)

if TYPE_CHECKING:
    from apflint.lsp.protocol_conversion import Encoding


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("file:///a/b%20c/%C3%BC.yaml", "/a/b c/\u00fc.yaml"),
        ("file:///a/b;c?d#e.yaml", "/a/b;c?d#e.yaml"),
        ("file://localhost/a", "/a"),
        ("file://elsewhere/a", None),
        ("file:///%FF", None),
        ("file:///a%00", None),
        ("untitled:Untitled-1", None),
        ("git:/a/b.yaml?%7B%7D", None),
        ("", None),
        ("http://[", None),
    ],
)
def test_uris(address: str, expected: str | None) -> None:
    assert path_from_uri(address) == expected
    assert expected is None or path_from_uri(uri_from_path(expected)) == expected


def test_uris_of_windows_have_a_drive_or_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(os, "name", "nt")
        patched.setattr(uris, "IS_WIN", True)
        found = [path_from_uri(address) for address in ("file:///C:/a%20b.yaml", "file://host/share/a.yaml")]
    assert found == ["c:\\a b.yaml", "\\\\host\\share\\a.yaml"]


LINES = st.lists(st.sampled_from(["a\n", "b\r\n", "c", "\n", "\u2028d\n", ""]), max_size=8).map("".join)


@given(LINES, LINES)
def test_line_edits_make_one_text_of_another(old: str, new: str) -> None:
    assert apply_edits(old, line_edits(old, new)) == new


def test_line_edits_of_long_texts() -> None:
    lines = [f"a: {number}\n" for number in range(5000)]
    old = "".join(lines)
    changed = "".join([*lines[:10], "b\n", *lines[11:3000], "c\n", *lines[3001:]])
    assert [edit.new for edit in line_edits(old, changed)] == ["b\n", "c\n"]
    grown = "".join([*lines[:10], "b\n", *lines[10:20], *lines[21:30], "c\n", "d\n", *lines[30:]])
    assert [edit.new for edit in line_edits(old, grown)] == ["b\n", "", "c\nd\n"]
    for new in (changed, grown, "", old + old):
        assert apply_edits(old, line_edits(old, new)) == new
        assert apply_edits(new, line_edits(new, old)) == old


TEXTS = st.text(alphabet=st.sampled_from(list("a\u00e9\u20ac\U0001f600\ud800\r\n\x85\u2028\x0c")), max_size=12)
ENCODINGS = st.sampled_from(["utf-8", "utf-16", "utf-32"])


@given(TEXTS, st.integers(-2, 14), ENCODINGS)
def test_positions_and_offsets(text: str, at: int, encoding: Encoding) -> None:
    source = Source("", text)
    inside = min(max(at, 0), len(text))
    place = position_at(source, at, encoding)
    assert offset_at(source, place, encoding) == inside or text[inside - 1 : inside + 1] == "\r\n"
    line = source.text[source.line_starts[place.line] :].splitlines(keepends=True)
    assert place.character == 0 or line
    for character in (place.character + 1, 10**9):
        assert 0 <= offset_at(source, Position(place.line, character), encoding) <= len(text)


def test_positions_behind_the_end_of_a_line() -> None:
    for text in ("abc", "\u00e9bc", "abc\n", "\u00e9bc\r\n"):
        for character in (3, 4, 2**31 - 1):
            assert offset_at(Source("", text), Position(0, character), "utf-16") == 3
    assert offset_at(Source("", "\u00e9"), Position(7, 0), "utf-16") == 1


@given(st.text(alphabet=st.sampled_from(list("a1 *_`<>[]()#|~\\.\n")), max_size=20))
def test_escaped_markdown_reads_as_the_text(text: str) -> None:
    assert plain_text(escape_markdown(text)) == text
