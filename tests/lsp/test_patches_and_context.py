"""The language server reports neither on patches nor on files of the context, as `apflint check`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from shell import LEVEL

from apflint.lsp.project import Project

if TYPE_CHECKING:
    from pathlib import Path

BAD = LEVEL.replace("queues: 64", "queues: 4")


@pytest.mark.parametrize("is_open", [False, True])
def test_findings_are_only_in_what_is_checked(is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.curdir)
    for name in ("platform.yaml", "overlay/patch.yaml", "own.yaml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(BAD, encoding="utf-8")
    (tmp_path / "overlay" / "kustomization.yaml").write_text("patches: [{path: patch.yaml}]\n", encoding="utf-8")
    (tmp_path / "apflint.toml").write_text('context = ["platform.yaml"]\nselect = ["APF305"]\n', encoding="utf-8")
    folder = os.path.realpath(tmp_path)
    texts = {os.path.join(folder, name): BAD for name in ("platform.yaml", "overlay/patch.yaml")} if is_open else {}
    (checked,) = Project(folder).check(texts, {}, again=True)
    assert {finding.file for finding in checked.report.findings} == {"own.yaml"}
