"""`check` and `fix` agree about the number of findings with a fix, in all fixtures and examples of rule pages."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING

import pytest
from support.rule_examples import parse_examples
from support.shell import ROOT

from apflint import rule_catalogue
from apflint.cli.app import run
from apflint.releases import NEWEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FIXABLE = re.compile(r"(?:(\d+) of them|It) can be fixed: apflint fix( --unsafe-fixes)?(?: \((\d+) more with)?")
_FIXED = re.compile(r"would fix (\d+) findings? in \d+ files?(?:, and (\d+) that (?:it hides|they hide))?")
_REFUSED = re.compile(r"(\d+) findings? not fixed")
MANIFESTS = sorted({path.parent for path in (ROOT / "fixtures").rglob("*.yaml")})


def _cases() -> Iterator[object]:
    for rule_id in rule_catalogue.list_ids():
        for example in parse_examples(rule_catalogue.read_rule(rule_id)):
            files = {example.file: example.text}
            yield pytest.param(files, example.kubernetes or NEWEST.name, id=f"{rule_id}-{example.page_line}")
    for directory in MANIFESTS:
        files = {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*.yaml")}
        yield pytest.param(files, NEWEST.name, id=str(directory.relative_to(ROOT / "fixtures")))


def _write(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text, encoding="utf-8")


def _count_fixable(notes: str) -> dict[bool, int]:
    """Return the numbers that `check` prints: of safe fixes, and (key True) of all fixes."""
    found = _FIXABLE.search(notes)
    if found is None:
        return {False: 0, True: 0}
    number = int(found[1] or 1)
    return {False: 0 if found[2] else number, True: number + int(found[3] or 0)}


@pytest.mark.parametrize(("files", "kubernetes"), list(_cases()))
def test_check_and_fix_agree(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    files: dict[str, str],
    kubernetes: str,
) -> None:
    _write(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    run(["check", "--kubernetes", kubernetes, "--isolated"])
    fixable = _count_fixable(capsys.readouterr().err)
    for unsafe in (False, True):
        run(["fix", "--diff", "--kubernetes", kubernetes, "--isolated", *["--unsafe-fixes"] * unsafe])
        lines = capsys.readouterr().err.splitlines()
        fixed, refused = _FIXED.search(lines[-1]), _REFUSED.search(lines[-1])
        assert int(fixed[1] if fixed else 0) + int(refused[1] if refused else 0) == fixable[unsafe]
        hidden = sum("(hidden by another finding)" in line for line in lines)
        assert hidden == int((fixed[2] if fixed else 0) or 0)


def test_finding_that_another_finding_hides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The FlowSchema is unreachable, so `check` does not report that its rule misses requests across namespaces."""
    story = ROOT / "fixtures" / "stories" / "accepted-but-wrong" / "ci.yaml"
    shutil.copy(story, tmp_path)
    monkeypatch.chdir(tmp_path)
    text = story.read_text(encoding="utf-8").replace("      clusterScope: true\n", "")
    (tmp_path / "ci.yaml").write_text(text, encoding="utf-8")
    assert run(["check"]) == 1
    assert "APF505" not in capsys.readouterr().out
    assert run(["fix", "--unsafe-fixes"]) == 0
    printed = capsys.readouterr().err
    assert "fixed APF505 (hidden by another finding): add clusterScope: true\n" in printed
    assert "apflint: fixed 1 finding in 1 file, and 1 that it had hidden\n" in printed
