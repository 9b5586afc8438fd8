"""The doc pages about fixes: the diff in the example can be applied, and the table of fixes agrees with the rule pages."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.pages import read_blocks
from support.rule_examples import parse_examples
from support.shell import ROOT

from apflint import engine, rule_catalogue
from apflint.releases import NEWEST, parse_release

if TYPE_CHECKING:
    from pathlib import Path

PAGE = (ROOT / "docs" / "reference" / "fixes.md").read_text(encoding="utf-8")
_ROW = re.compile(r"^\| (APF\d+) \| ([^|]+) \| [^|]+ \|$", re.MULTILINE)
ROWS = dict(_ROW.findall(PAGE))


def test_diff_of_the_example_can_be_applied(tmp_path: Path) -> None:
    before, preview, *_ = read_blocks("commands/fix")
    (tmp_path / before.title).write_text(before.text, encoding="utf-8")
    diff = "".join(line for line in preview.text.splitlines(keepends=True) if line.startswith((" ", "+", "-", "@")))
    subprocess.run(["git", "apply"], input=diff, text=True, cwd=tmp_path, check=True)
    assert 'verbs: ["*"]' in (tmp_path / before.title).read_text(encoding="utf-8")


def test_table_lists_the_rules_with_a_fix() -> None:
    assert list(ROWS) == sorted(
        rule.id for rule in map(rule_catalogue.read_rule, rule_catalogue.list_ids()) if rule.fix
    )


@pytest.mark.parametrize("rule_id", ROWS)
def test_table_shows_whether_fixes_are_safe(rule_id: str) -> None:
    how = ROWS[rule_id]
    assert how in ("safe", "unsafe", "both")
    assert (rule_catalogue.read_rule(rule_id).fix == "unsafe") == (how == "unsafe")
    found = set()
    for example in parse_examples(rule_catalogue.read_rule(rule_id)):
        options = engine.Options(kubernetes=parse_release(example.kubernetes or NEWEST.name))
        findings = engine.check([(example.file, example.text.encode())], options).findings
        found |= {finding.fix.safe for finding in findings if finding.fix and finding.rule == rule_id}
    assert True in found if how == "both" else found == {how == "safe"}
