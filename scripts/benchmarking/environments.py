"""Virtual environments: one for apflint as users install it, one for what it is compared with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarking.processes import environment

PEERS = ("yamllint", "check-jsonschema")
"""PyYAML comes with yamllint."""


class Tools(NamedTuple):
    """Commands, by their paths."""

    python: str
    """The Python of apflint's environment."""
    apflint: str
    peer_python: str
    yamllint: str
    check_jsonschema: str


def tools(folder: Path) -> Tools:
    """Makes the two environments in a folder, unless they are there, and installs apflint anew: a wheel, not editable."""
    own, peers = folder / "apflint", folder / "peers"
    root = Path(__file__).parents[2]
    _install(own, *(("--force-reinstall", "--no-deps") if own.exists() else ()), str(root))
    if not peers.exists():
        _install(peers, *PEERS)
    binaries = peers / "bin"
    return Tools(
        str(own / "bin/python"),
        str(own / "bin/apflint"),
        str(binaries / "python"),
        str(binaries / "yamllint"),
        str(binaries / "check-jsonschema"),
    )


def versions(found: Tools) -> str:
    """What was installed, for the note below the table."""
    said = subprocess.run(
        [found.peer_python, "-m", "pip", "list", "--format", "freeze"], capture_output=True, text=True, check=True
    ).stdout.lower()
    wanted = (*PEERS, "pyyaml")
    return ", ".join(line.replace("==", " ") for line in said.splitlines() if line.split("==")[0] in wanted)


def _install(place: Path, *what: str) -> None:
    if not place.exists():
        subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    command = [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *what]
    subprocess.run(command, check=True, env=environment(), stderr=subprocess.DEVNULL)
