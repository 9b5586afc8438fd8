"""Text for terminals: wrapping, widths, harmless text, links."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from apflint.load.source_text import Source
from apflint.location import Span
from apflint.output.console import Style, count_cells, wrap
from apflint.output.diagnostic import cut_snippet
from apflint.output.sanitize import sanitize, sanitize_json
from output.findings.reports import LAWS, TEXT


@given(TEXT, st.integers(10, 120), st.integers(0, 60), st.integers(0, 8))
@LAWS
def test_wrapping_keeps_every_character(text: str, width: int, first: int, rest: int) -> None:
    text = sanitize(text)
    lines = wrap(text, width, first, rest)
    assert " ".join(lines).removeprefix("" if lines[0] or text[:1] in ("", " ") else " ") == text
    for number, line in enumerate(lines):
        taken = rest if number else first
        assert taken + count_cells(line) <= width or " " not in line.strip(" ")


@pytest.mark.parametrize(
    "text", ["plain", "開発", "e\u0301", "\u1112\u1161\u11ab", "😀", "\uff46\uff55", "ﾊﾝｶｸ", "Grüße"]
)
def test_cells_are_counted_as_rich_does(text: str) -> None:
    assert count_cells(text) == cell_len(text)


@given(TEXT)
@LAWS
def test_sanitized_text_is_printable(text: str) -> None:
    assert sanitize(text).isprintable()
    assert sanitize(text) == text or not text.isprintable() or "##" in text


@pytest.mark.parametrize("command", ["##[add-mask]", "##vso[x]", "##teamcity[x]"])
def test_log_commands_are_escaped(command: str) -> None:
    escaped = command.replace("##", r"#\x23")
    assert sanitize(f"a #{command}{command}\x1b") == rf"a #{escaped}{escaped}\x1b"
    assert sanitize("## [a] ##vs[o] #[") == "## [a] ##vs[o] #["
    line = f"  #{command} b: {command}"
    shown = cut_snippet(Source("f", line), Span(1, 4, 1, 4 + len(command)), 80)
    assert shown == (f"  #{escaped} b: {escaped}", 3, len(escaped))
    read = json.loads(sanitize_json(json.dumps({"a": f"\\{command}\\"})))
    assert read == {"a": f"\\{command}\\"}
    assert command not in sanitize_json(json.dumps(f"#{command}"))


def test_only_printable_https_addresses_become_links() -> None:
    style = Style(hyperlinks=True)
    assert style.link("x", "https://e/\x1b]0;") == "x"
    assert style.link("x", "javascript:alert(1)") == "x"
    assert style.link("x", "https://e/") == "\x1b]8;;https://e/\x1b\\x\x1b]8;;\x1b\\"
