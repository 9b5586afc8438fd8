"""Compares the recorded output of the overlays with the output of the installed kubectl or kustomize."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from support.overlays import OVERLAYS, STORY

BUILDERS = {"kustomize": ["kustomize", "build"], "kubectl": ["kubectl", "kustomize"]}


@pytest.mark.parametrize("overlay", OVERLAYS)
@pytest.mark.parametrize("program", BUILDERS)
def test_recorded_output_is_that_of_the_program(program: str, overlay: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    command = [*BUILDERS[program], str(STORY / "overlays" / overlay)]
    built = subprocess.run(command, capture_output=True, text=True, check=True)
    assert built.stdout == (STORY / "built" / f"{overlay}.txt").read_text("utf-8")


def test_each_overlay_is_recorded() -> None:
    assert {path.name for path in (STORY / "overlays").iterdir()} == {*OVERLAYS}
    assert {path.name for path in (STORY / "built").iterdir()} == {f"{overlay}.txt" for overlay in OVERLAYS}
