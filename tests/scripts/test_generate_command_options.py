"""The tables of options in docs/commands/ equal the definitions of the commands."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import generate_command_options as generator
import pytest

from apflint.cli.app import COMMANDS

if TYPE_CHECKING:
    from pathlib import Path


def test_pages_are_up_to_date(root: Path) -> None:
    done = subprocess.run(
        [sys.executable, "scripts/generate_command_options.py", "--check"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_page_that_differs_is_reported_and_updated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (*COMMANDS, generator.INDEX):
        page = (generator.DOCS / f"{name}.md").read_text(encoding="utf-8")
        (tmp_path / f"{name}.md").write_text(page, encoding="utf-8")
    old = (tmp_path / "limits.md").read_text(encoding="utf-8")
    (tmp_path / "limits.md").write_text(old.replace("`--isolated`", "`--alone`"), encoding="utf-8")
    monkeypatch.setattr(generator, "DOCS", tmp_path)
    monkeypatch.setattr("sys.argv", ["generate_command_options.py", "--check"])
    assert generator.main() == 1
    assert re.findall(r"(\w+)\.md is not up to date", capsys.readouterr().err) == ["limits"]
    monkeypatch.setattr("sys.argv", ["generate_command_options.py"])
    assert generator.main() == 0
    assert (tmp_path / "limits.md").read_text(encoding="utf-8") == old


@pytest.mark.parametrize("name", COMMANDS)
def test_table_names_every_option(name: str) -> None:
    table = generator.render_table(name)
    for parameter in generator.load_parameters(name):
        for option in parameter.opts:
            assert f"`{option}" in table or parameter.param_type_name == "argument"
    assert "--" not in re.sub(r"`[^`]*`", "", table.replace("|---|---|", ""))  # the site shows -- in text as a dash


def test_common_options_are_described_once() -> None:
    common = generator.find_common_options()
    assert {"`--live`", "`--kubernetes X.Y`", "`--filename PATH`, `-f`"} <= common.keys()
    described = "".join(generator.render_table(name) for name in COMMANDS)
    for names, description in common.items():
        assert f"| {names} | {description} |" in generator.render_common_table()
        assert f"| {names} | {description} |" not in described


def test_page_without_a_table_is_an_error() -> None:
    with pytest.raises(LookupError, match="must have 1 tables"):
        generator.update_page("limits", "# apflint limits\n")
    assert generator.update_page("lsp", "# apflint lsp\n") == "# apflint lsp\n"
