"""docs/fix.md: its examples print what the page shows, and its table agrees with the rule pages."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.rule_examples import parse_examples
from support.shell import ROOT, bash, prepare

from apflint import catalogue, engine
from apflint.releases import NEWEST, parse_release

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "fix.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"(?:This is `([\w.]+)`[^\n]*\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r"^\| (APF\d+) \| (\S+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
ROWS = {rule_id: (name, how) for rule_id, name, how, _ in _ROW.findall(PAGE)}


def test_examples_print_what_the_page_shows(tmp_path: Path) -> None:
    """Run the examples in order. The page shows standard error below standard output."""
    variables = prepare(tmp_path)
    commands = 0
    for name, language, text in _BLOCK.findall(PAGE):
        if language == "yaml":
            (tmp_path / "work" / name).write_text(text, encoding="utf-8")
            continue
        assert language == "console"
        command, _, output = text.removeprefix("$ ").partition("\n")
        done = bash(command, tmp_path, variables)
        assert done.stdout + done.stderr == output, command
        commands += 1
    assert commands == len(re.findall(r"^\$ ", PAGE, re.MULTILINE)) > 3


def test_diff_of_the_example_can_be_applied(tmp_path: Path) -> None:
    (name, _, before), (_, _, shown), *_ = _BLOCK.findall(PAGE)
    (tmp_path / name).write_text(before, encoding="utf-8")
    diff = "".join(line for line in shown.splitlines(keepends=True) if line.startswith((" ", "+", "-", "@")))
    subprocess.run(["git", "apply"], input=diff, text=True, cwd=tmp_path, check=True)
    assert 'verbs: ["*"]' in (tmp_path / name).read_text(encoding="utf-8")


def test_table_lists_the_rules_with_a_fix() -> None:
    wanted = {rule.id: rule.name for rule in map(catalogue.read_rule, catalogue.list_ids()) if rule.fix}
    assert {rule_id: name for rule_id, (name, _) in ROWS.items()} == wanted
    assert list(ROWS) == sorted(ROWS)


@pytest.mark.parametrize("rule_id", ROWS)
def test_table_shows_whether_fixes_are_safe(rule_id: str) -> None:
    how = ROWS[rule_id][1]
    assert how in ("safe", "unsafe", "safe or unsafe")
    assert (catalogue.read_rule(rule_id).fix == "unsafe") == (how == "unsafe")
    found = set()
    for example in parse_examples(catalogue.read_rule(rule_id)):
        options = engine.Options(kubernetes=parse_release(example.kubernetes or NEWEST.name))
        findings = engine.check([(example.file, example.text.encode())], options).findings
        found |= {one.fix.safe for one in findings if one.fix and one.rule == rule_id}
    assert True in found if how == "safe or unsafe" else found == {how == "safe"}


def test_links_have_targets() -> None:
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
