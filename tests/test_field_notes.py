"""The pages of docs/field-notes/ have the form that their index describes. `tests/test_docs.py` runs their commands."""

from __future__ import annotations

import re

import pytest
from support.pages import PAGES, read_blocks, read_page, read_table

NOTES = [name for name in PAGES if name.startswith("field-notes/") and not name.endswith("/index")]
HEADLESS = r"\|"
"""Pattern for the first row of a table whose column headings are empty."""
COMMIT = re.compile(r"\b[0-9a-f]{40}\b")


@pytest.mark.parametrize("name", NOTES)
def test_page_has_a_source_a_proof_and_a_change(name: str) -> None:
    text = re.sub(r"^```.*?^```$", "", read_page(name), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^##? (.*)", text, re.MULTILINE)[1:] == ["What", "Proof", "Suggested change"]
    facts = read_table(name, HEADLESS)
    assert re.fullmatch(r"<https://github\.com/[\w.-]+/[\w.-]+>", facts["repository"])
    assert COMMIT.search(facts["commit"]) or "unknown commit" in facts["commit"]
    assert {"file", "files"} & set(facts)
    assert {"Kubernetes"} <= set(facts)


@pytest.mark.parametrize("name", NOTES)
def test_downloads_are_those_of_the_commit(name: str) -> None:
    """URLs contain the commit of the page, so that downloads are repeatable. Helm charts are downloaded by version instead."""
    facts = read_table(name, HEADLESS)
    repository = facts["repository"].strip("<>").removeprefix("https://github.com/")
    for block in read_blocks(name, "sh"):
        for url in re.findall(r"https://(?:raw\.githubusercontent\.com|github\.com)/[^\s\"']+", block.text):
            assert f"/{repository}/" in url
            assert COMMIT.findall(url) == COMMIT.findall(facts["commit"])
        for version in re.findall(r"--version (\S+)", block.text):
            assert version in facts["commit"]


@pytest.mark.parametrize("name", NOTES)
def test_finding_is_repeated_without_the_network(name: str) -> None:
    """Each page shows a manifest and runs apflint on it, so that the finding can be repeated without the network."""
    files = {block.title.partition("/")[0] for block in read_blocks(name) if block.title}
    commands = re.findall(
        r"^\$ (apflint .*)", "\n".join(block.text for block in read_blocks(name, "console")), re.MULTILINE
    )
    assert files
    assert any(files & set(command.split()) for command in commands)


def test_index_lists_all_pages() -> None:
    listed = re.findall(r"^\| \[[^]]+\]\(([\w-]+)\.md\) \|", read_page("field-notes/index"), re.MULTILINE)
    assert sorted(f"field-notes/{name}" for name in listed) == NOTES
