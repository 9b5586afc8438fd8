"""Executes the steps on the page about running clusters, with the installed kubectl."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from support import pages, shell
from support.api_server import recorded_answers, serve

if TYPE_CHECKING:
    from pathlib import Path

NAME = "guides/running-cluster"


@pytest.mark.skipif(
    shutil.which("kubectl") is None, reason="kubectl is not installed; Debian has it in the package kubernetes-client"
)
def test_page_can_be_followed_with_a_real_kubectl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The commands of the page work with a server that answers with recorded objects. The page names its kubeconfig context."""
    prepare = shell.prepare

    def prepare_without_stand_in(directory: Path) -> dict[str, str]:
        variables = prepare(directory)
        (directory / "bin" / "kubectl").unlink()
        shutil.copy(kubeconfig, directory / "work" / "clusters.yaml")
        return variables | {"KUBECONFIG": kubeconfig}

    directory = tmp_path / "page"
    directory.mkdir()
    with serve(recorded_answers(), tmp_path) as kubeconfig:
        file = tmp_path / "kubeconfig.yaml"
        text = file.read_text(encoding="utf-8")
        context = "{name: staging, context: {cluster: recorded, user: alice}}"
        file.write_text(text.replace("contexts: [", f"contexts: [{context}, "), encoding="utf-8")
        monkeypatch.setattr(pages, "prepare", prepare_without_stand_in)
        pages.run_page(NAME, directory)
    commands = [line for block in pages.read_blocks(NAME, "console") for line, _ in pages.list_commands(block)]
    assert sum("--live" in line for line in commands) >= 10
