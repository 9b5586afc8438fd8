"""The pages of the documentation as tests read them: fenced blocks, the files they define, and commands with their output."""

from __future__ import annotations

import re
import shutil
import textwrap
from typing import TYPE_CHECKING, NamedTuple

from support.shell import ROOT, bash, prepare

if TYPE_CHECKING:
    from pathlib import Path

DOCS = ROOT / "docs"
PAGES = tuple(str(path.relative_to(DOCS).with_suffix("")) for path in sorted(DOCS.rglob("*.md")))
"""Names such as `guides/gitlab`."""

NOT_RUN = {"bash", "fish", "lisp", "lua", "markdown", "mermaid", "python", "sh", "text", "zsh"}
"""Languages of blocks that need a cluster, a network, a start-up file or an editor. `text` shows a file or a format.

`tests/test_contributing.py` runs the blocks in Python and Markdown.
"""

_FENCE = re.compile(r'^( *)```(\w*)(?: title="([^"]+)")?\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)")
_EXAMPLE = re.compile(r"\]\((?:\.\./)*examples/([\w-]+\.yaml)\)")
_ANY_LINES = r"(?:.*\n)*"


class Block(NamedTuple):
    """A fenced block of a page. `title` is the file that holds its text, or empty."""

    page: str
    language: str
    title: str
    text: str


def page_path(name: str) -> Path:
    """Return the file of a page."""
    return DOCS / f"{name}.md"


def read_page(name: str) -> str:
    """Return the text of a page."""
    return page_path(name).read_text(encoding="utf-8")


def read_blocks(name: str, *languages: str) -> list[Block]:
    """Return the fenced blocks of a page in these languages; all blocks without languages."""
    found = [
        Block(name, language, title, textwrap.dedent(text))
        for _, language, title, text in _FENCE.findall(read_page(name))
    ]
    return [block for block in found if not languages or block.language in languages]


def read_table(name: str, heading: str) -> dict[str, str]:
    """Return the rows of the table with this first heading: first cell -> other cells."""
    table = re.search(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", read_page(name), re.MULTILINE)
    assert table is not None
    cells = [line.strip("|").split("|") for line in table[1].splitlines()]
    return {first.strip().strip("`"): "|".join(rest).strip() for first, *rest in cells}


def list_commands(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with the output that the page shows."""
    assert block.text.startswith("$ "), f"{block.page}: a console block starts with a command: {block.text}"
    return _COMMAND.findall(block.text)


def run_page(name: str, directory: Path) -> None:
    """Do what a reader of the page does: save the linked examples, write the files that have a title, and run the commands.

    The text below a command is its output: standard output, then standard error. A line `...` stands for any lines.

    Raises:
        AssertionError: A command prints something else, or fails without an output that explains it.
    """
    variables = prepare(directory)
    for example in _EXAMPLE.findall(read_page(name)):
        shutil.copy(ROOT / "docs" / "examples" / example, directory / "work")
    for block in read_blocks(name):
        if block.title:
            file = directory / "work" / block.title
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block.text, encoding="utf-8")
        elif block.language == "console":
            for line, shown in list_commands(block):
                done = bash(line, directory, variables)
                printed = done.stdout + done.stderr
                assert shown or done.returncode in (0, 1), f"{line}\n{printed}"
                if not re.fullmatch(
                    _ANY_LINES.join(map(re.escape, re.split(r"^\.\.\.\n", shown, flags=re.MULTILINE))), printed
                ):
                    assert not shown or printed == shown, line
