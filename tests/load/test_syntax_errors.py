"""Places and messages of syntax errors."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from apflint.load.yaml import parse_documents

if TYPE_CHECKING:
    from apflint.load.tree import ParseError


@pytest.fixture(autouse=True, params=["libyaml", "python"])
def _parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run each test with both parsers of PyYAML. The messages of the parsers differ, but apflint's do not."""
    if request.param == "python":
        monkeypatch.setitem(sys.modules, "yaml._yaml", None)


def error(text: str) -> ParseError:
    (found,) = [found.error for found in parse_documents(text) if found.error]
    return found


def place(text: str) -> str:
    """Return the text with `>>` and `<<` around the place of the syntax error."""
    found = error(text)
    return f"{text[: found.start]}>>{text[found.start : found.end]}<<{text[found.end :]}"


@pytest.mark.parametrize(
    "marked",
    [
        'a: 1\nb: >>"<<abc\nc: d\n',
        "a: 1\nb: >>'<<abc\nc: d\n",
        "a: 1\nb: >>'<<abc\nc: d\n---\nx: y\n",
        "a: 1\nb: >>[<<a, b\nc: d\n",
        "a: 1\nb: >>[<<a, b\n",
        "a: 1\nb: >>{<<a: b\nc: d\n",
        "x:\n- a: >>[<<b\n- c\n",
        "a: [a b c: d e>>:<< f]\n",
        '{\n  a: "x"\n  >>b<<: "y",\n}\n',
        "spec:\n  name: x\n  >>rules<<\n  - a\n",
        "a: 1\n>>b:2<<\nc: d\n",
        "a: 1\n>>b<<\nc: d\n",
        "a: b>>:<< c\n",
        "a: b\n  >>c<<: d\n",
        "a:\n  b: 1\n   >>c<<: 2\n",
        "a:\n  b: 1\n>>\t<<c: 1\n",
        "a:\n>>\t<<b: 1\n",
        "a: >>@<<foo\n",
        "a: >>`<<foo`\n",
        "a: [>>*<<]\n",
        "a: >>*<<\n",
        "a: >>*foo<<\n",
        "a: >>&<< \n",
        "a:\n   b: 1\n  >>c<<: 2\n",
        "a:\n  - b\n  >>c<<: d\n",
        "a: [b]>>]<<\n",
        'a: "b" >>c d<<\n',
        'a: "é>>\\<<q"\n',
        "é: b>>\0<<c\n",
        "😀: b\nx: >>\x01<<\n",
        ">>[<<a]: 1\n",
        "a: >>!!int x<<\n",
        "a: |>>x<<\n  b\n",
    ],
)
def test_place_of_syntax_errors(marked: str) -> None:
    text = marked.replace(">>", "").replace("<<", "")
    assert place(text) == marked


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [b\n", "this `[` is not closed"),
        ("a: {b: c\nd: e\n", "`}` is missing"),
        ("a: [b]]\n", "`]` closes nothing"),
        ('a: "b" c\n', "after the closing quote"),
        ("a: b\n  c: d\n", "indented below a line that already has a value"),
        ("a: *x\n", "no anchor `&x`"),
        ("? [a]\n: b\n", "a key must not be a list"),
        ("a: [*]\n", "is a YAML alias"),
        ("a: & \n", "is a YAML anchor"),
        ("a: @b\n", "cannot start a value"),
        ("a: - b\n", "a list item cannot start here"),
        ("a: |x\n  b\n", "only a comment may follow"),
        ("a: [b c: d e: f]\n", "missing `,` or `]`"),
        ("a:\n   b: 1\n  c: 2\n", "belongs neither to the block above nor to a new block"),
        ("- a\nb: c\n", "not an item of the list above"),
        ("a: ,b\n", "missing value"),
        ("a: b\n...\nc: d\n", "after the end of the document"),
        ('a: "\\', "unknown escape"),
    ],
)
def test_messages_of_syntax_errors(text: str, words: str) -> None:
    assert words in str(error(text))


def test_advice_about_a_horizontal_rule() -> None:
    found = error("a: b\n***\nc: d\n")
    assert "is a horizontal rule of Markdown" in str(found)
    assert found.help == "separate documents with `---`"
