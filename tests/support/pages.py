"""Reads pages of the documentation for tests: fenced blocks, the files that blocks define, and commands with their output."""

from __future__ import annotations

import gzip
import os
import re
import shutil
import textwrap
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

import pytest

from support.object_store import BUCKET, MISSING, run_object_store
from support.shell import ROOT, bash, prepare, prepare_checkout

if TYPE_CHECKING:
    from pathlib import Path

    from support.object_store import ObjectStore

DOCS = ROOT / "docs"
PAGES = tuple(str(path.relative_to(DOCS).with_suffix("")) for path in sorted(DOCS.rglob("*.md")))
"""Names of pages in docs/, such as `guides/gitlab`."""

REPOSITORY_PAGES = tuple(
    f"../{path.relative_to(ROOT).with_suffix('')}"
    for pattern in ("*.md", "editors/*/*.md", "fixtures/**/*.md", "requirements/*.md", "tests/**/*.md")
    for path in sorted(ROOT.glob(pattern))
)
"""Names of pages outside of docs/, such as `../README`. Rule pages are excluded, because other tests run their examples."""

IN_CHECKOUT = ("contributing/", "releasing", "exactness", "guides/editors/vscode", "../")
"""Prefixes of the names of pages whose commands run in a checkout of apflint. Other commands run in a directory of a user."""

SCRIPTS = ("bash", "sh")
"""Languages of blocks that contain commands without output."""

START_UP_FILES = {
    "fish": ("fish", "--no-config", "-c", "{}"),
    "zsh": ("zsh", "-f", "-c", "autoload -U compinit && compinit -u\n{}"),
}
"""Commands for running blocks for other shells, by language. `run_page` skips these blocks, because the shells may not
be installed."""

NOT_RUN = {"lisp", "lua", "markdown", "mermaid", "python", "text"}
"""Languages of blocks without commands: editor settings, code, pictures, and formats.

`tests/test_contributing.py` runs the blocks in Python and Markdown.
"""

PLACEHOLDERS = {"X.Y.Z": "9.9.9", " DIR": " ../documents", "> DIR": "> ../documents"}
"""Placeholders in commands, each with a value for tests. Commands with other placeholders are only parsed."""

SETUPS = {
    "commands/index": f"cp {ROOT / 'Containerfile'} .",
    "../fixtures/openapi/README": "mkdir ../documents",
}
"""Commands that a reader of a page has run before the `sh` blocks of the page."""

SPARK_SERVER = "sc://spark.example:15002"
"""Spark Connect server on pages. Commands for it run only if `APFLINT_SPARK_REMOTE` has the URL of a server, because Spark and
the connector for S3 are too large for development."""

_FENCE = re.compile(r'^( *)```(\w*)(?: title="([^"]+)")?\n(.*?)^\1```$', re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"\$ ((?:.*\\\n)*.*)\n((?:(?!\$ ).*\n)*)")
_EXAMPLE = re.compile(r"\]\((?:\.\./)*examples/([\w-]+\.yaml)\)")
_ANY_LINES = r"(?:.*\n)*"


class Block(NamedTuple):
    """A fenced block of a page. `title` is the name of the file with this text, or empty."""

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
    """Return the fenced blocks of a page in these languages, or all fenced blocks if no languages are given."""
    found = [
        Block(name, language, title, textwrap.dedent(text))
        for _, language, title, text in _FENCE.findall(read_page(name))
    ]
    return [block for block in found if not languages or block.language in languages]


def read_table(name: str, heading: str) -> dict[str, str]:
    """Return a table of a page: the first cell of each row, and the text of its other cells.

    The table is the one whose first column has the title `heading`.
    """
    table = re.search(rf"^\| {heading} \|.*\n\|[-|]+\n((?:\|.*\n)+)", read_page(name), re.MULTILINE)
    assert table is not None
    cells = [line.strip("|").split("|") for line in table[1].splitlines()]
    return {first.strip().strip("`"): "|".join(rest).strip() for first, *rest in cells}


def list_commands(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with the output that the page shows."""
    assert block.text.startswith("$ "), f"{block.page}: a console block starts with a command: {block.text}"
    return _COMMAND.findall(block.text)


def run_page(name: str, directory: Path) -> None:
    """Follow a page as a reader does: save the linked examples, write the files with a title, and run the commands.

    The text below a command is its standard output, followed by its standard error. A line `...` matches any lines.
    Blocks in `sh` and `bash` run last, because a guide may begin with a block that summarizes the later commands. Their
    output is not compared.

    Raises:
        AssertionError: A command prints something else, or fails without an output that explains the failure.
    """
    with ExitStack() as stack:
        _follow_page(name, directory, stack)


def _follow_page(name: str, directory: Path, stack: ExitStack) -> None:
    variables = (prepare_checkout if name.startswith(IN_CHECKOUT) else prepare)(directory)
    if f"s3://{BUCKET}/" in read_page(name):
        if MISSING:
            pytest.skip(f"not installed: {', '.join(MISSING)}")
        variables |= prepare_objects(stack.enter_context(run_object_store()))
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
    if name == "contributing/index":
        add_examples(directory / "work")
    remote = os.environ.get("APFLINT_SPARK_REMOTE", "")
    for script in (SETUPS.get(name, ""), *(block.text for block in read_blocks(name, *SCRIPTS))):
        if remote or SPARK_SERVER not in script:
            run_script(script.replace(SPARK_SERVER, remote), directory, variables)


def prepare_objects(store: ObjectStore) -> dict[str, str]:
    """Store audit logs in `store`, because commands in the documentation read logs from object storage.

    Return the environment variables with the credentials of the store.
    """
    log = (ROOT / "fixtures" / "replay" / "live" / "audit.log.gz").read_bytes()
    store.put("production/audit.log.gz", log)
    for hour in range(24):
        store.put(f"hourly/2026/11/22/{hour:02}/audit.log.gz", log if hour == 5 else gzip.compress(b"\n"))
    return store.environment


def run_script(text: str, directory: Path, variables: dict[str, str]) -> None:
    """Run a block of commands of a page of the documentation. The page does not show the output of these commands.

    Raises AssertionError if one of the commands fails.
    """
    failures = directory / "failures"
    failures.unlink(missing_ok=True)  # failures of commands in console blocks are intended
    done = bash(to_strict_script(text), directory, variables)
    assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
    assert not failures.exists(), f"{text}\n{failures.read_text(encoding='utf-8')}{done.stderr}"


def to_strict_script(text: str) -> str:
    """Return a script that stops at the first failing line. Only apflint may exit with 1, which means findings.

    Commands do not run in the background: stand-ins for servers return immediately."""
    for placeholder, value in PLACEHOLDERS.items():
        text = text.replace(placeholder, value)
    script = ""
    for line in re.findall(r"(?:.*\\\n)*.+", text):
        highest = 1 if re.search(r"\bapflint [a-z][^|&;]*$", line) else 0
        script += f"{line.removesuffix(' &')}\ncode=$?; [ $code -le {highest} ] || exit $code\n"
    return script


def add_examples(checkout: Path) -> None:
    """Add the examples of the page for contributors to a checkout: rule, output format, report, command and source."""
    package = checkout / "apflint"
    (checkout / "rules" / "APF610.md").write_text(find_example("---"), encoding="utf-8")
    with (package / "checks" / "capacity.py").open("a", encoding="utf-8") as module:
        module.write("\n\n" + find_example("def many_queues"))
    (package / "output" / "findings" / "logfmt.py").write_text(find_example("`key=value` pairs"), encoding="utf-8")
    (package / "output" / "count.py").write_text(find_example("Counts of FlowSchemas"), encoding="utf-8")
    (package / "cli" / "commands" / "count.py").write_text(find_example("`apflint count`"), encoding="utf-8")
    (package / "sources" / "helm.py").write_text(find_example("`helm template`"), encoding="utf-8")
    for file, previous, line in (
        (package / "checks" / "__init__.py", '    "APF609": ', find_example('"APF610"')),
        (package / "output" / "findings" / "__init__.py", '    "markdown": ', find_example('"logfmt"')),
        (package / "sources" / "source_arguments.py", "    KUSTOMIZE_PREFIX: ", find_example('"helm:": ')),
    ):
        text = file.read_text(encoding="utf-8")
        before, _, rest = text.partition(previous)
        first, _, rest = rest.partition("\n")
        updated = f"{before}{previous}{first}\n{line}{rest}"
        assert updated != text
        file.write_text(updated, encoding="utf-8")


def find_example(start: str) -> str:
    """Return the block of the page for contributors whose first line contains `start`."""
    page = read_page("contributing/index")
    blocks = re.findall(r"^ *(```|~~~)\w+\n(.*?)^ *\1$", page, re.MULTILINE | re.DOTALL)
    (block,) = (text for _, text in blocks if start in text.partition("\n")[0])
    return textwrap.dedent(block)
