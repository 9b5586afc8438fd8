"""The snippets of docs/guides/editors/: they are valid, and they start `apflint lsp`."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from support.pages import PAGES, read_blocks, read_page, read_table
from support.shell import ROOT, SCHEMA, environment

EDITORS = ("vscode", "neovim", "helix", "emacs", "zed")


def read_snippets(editor: str, language: str) -> list[str]:
    return [block.text for block in read_blocks(f"guides/editors/{editor}", language)]


def read_settings(editor: str) -> list[dict[str, Any]]:
    return [json.loads(text) for text in read_snippets(editor, "json")]


def has_nvim() -> bool:
    """Return whether Neovim 0.11 or later, which has `vim.lsp.config`, is installed."""
    if shutil.which("nvim") is None:
        return False
    done = subprocess.run(["nvim", "--version"], capture_output=True, text=True, check=True)
    version = re.search(r"NVIM v(\d+)\.(\d+)", done.stdout)
    return version is not None and (int(version[1]), int(version[2])) >= (0, 11)


def test_start_page_has_all_editors() -> None:
    assert {name for name in PAGES if name.startswith("guides/editors/")} == {f"guides/editors/{n}" for n in EDITORS}
    targets = re.findall(r"\(editors/(\w+)\.md\)", read_page("guides/editors"))
    assert sorted(targets) == sorted(EDITORS)


def test_vscode_page_has_the_settings_and_commands_of_the_extension() -> None:
    contributes = json.loads((ROOT / "editors/vscode/package.json").read_text(encoding="utf-8"))["contributes"]
    settings = contributes["configuration"]["properties"]
    assert set(read_table("guides/editors/vscode", "setting")) == set(settings)
    titles = {f"*{command['category']}: {command['title']}*" for command in contributes["commands"]}
    assert set(read_table("guides/editors/vscode", "command")) == titles
    used = {key for block in read_settings("vscode") for key in block if key.startswith("apflint.")}
    assert used <= set(settings)
    assert {"source.fixAll.apflint": "explicit"} in [
        block.get("editor.codeActionsOnSave") for block in read_settings("vscode")
    ]


def test_snippets_start_the_server() -> None:
    assert "cmd = { 'apflint', 'lsp' }" in read_snippets("neovim", "lua")[0]
    assert [text.count('("apflint" "lsp")') for text in read_snippets("emacs", "lisp")] == [1, 1, 0]
    helix = tomllib.loads(read_snippets("helix", "toml")[0])
    assert helix["language-server"]["apflint"] == {"command": "apflint", "args": ["lsp"]}
    assert "apflint" in helix["language"][0]["language-servers"]
    binary = read_settings("zed")[0]["lsp"]["yaml-language-server"]["binary"]
    assert (Path(binary["path"]).name, binary["arguments"]) == ("apflint", ["lsp"])


def test_brackets_match() -> None:
    for text in (*read_snippets("neovim", "lua"), *read_snippets("emacs", "lisp")):
        assert all(text.count(opening) == text.count(closing) for opening, closing in ("()", "{}", "[]"))


def test_schemas_are_the_files_of_the_start_page() -> None:
    written = set(re.findall(r"> (\S+schema\.json|\S+configuration\.json)$", read_page("guides/editors"), re.MULTILINE))
    assert written == {"flowschema.json", "prioritylevelconfiguration.json"}
    for editor in EDITORS:
        assert set(re.findall(r"\./(\w+\.json)", read_page(f"guides/editors/{editor}"))) == written, editor


@pytest.mark.skipif(not has_nvim(), reason="needs Neovim 0.11 or later")
def test_neovim_shows_a_finding_and_fixes_it(tmp_path: Path) -> None:
    (tmp_path / "init.lua").write_text("\n".join(read_snippets("neovim", "lua")[:3]), encoding="utf-8")
    manifest = tmp_path / "flow-schema.yaml"
    manifest.write_text(SCHEMA.replace("verbs: [get, list]", 'verbs: [get, list, "*"]'), encoding="utf-8")
    (tmp_path / "apflint.toml").write_text('select = ["APF210"]\n', encoding="utf-8")
    (tmp_path / "session.lua").write_text(
        """
        local ok, problem = pcall(function()
          vim.cmd.edit('flow-schema.yaml')
          assert(vim.wait(30000, function() return #vim.diagnostic.get(0) > 0 end, 50), 'no finding')
          io.write('code=' .. vim.diagnostic.get(0)[1].code .. '\\n')
          vim.cmd('ApflintFix')
          assert(vim.wait(30000, function() return #vim.diagnostic.get(0) == 0 end, 50), 'not fixed')
          vim.cmd.write()
        end)
        io.write(ok and 'done' or tostring(problem))
        vim.cmd('qa!')
        """,
        encoding="utf-8",
    )
    done = subprocess.run(
        ["nvim", "--headless", "-u", "init.lua", "-c", "luafile session.lua"],
        cwd=tmp_path,
        env=environment()
        | {"HOME": str(tmp_path), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=90,
        check=True,
    )
    assert done.stdout == "code=APF210\ndone", done.stderr
    assert 'verbs: ["*"]' in manifest.read_text(encoding="utf-8")
