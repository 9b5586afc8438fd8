"""Virtual environments: one for apflint as users install it, one for the tools that it is compared with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarking.processes import environment

PEERS = ("yamllint", "check-jsonschema", "simpy")
"""PyYAML comes with yamllint."""


class Tools(NamedTuple):
    """Paths of the commands."""

    python: str
    """The Python of apflint's environment."""
    apflint: str
    peer_python: str
    yamllint: str
    check_jsonschema: str


def install_tools(folder: Path) -> Tools:
    """Create the two environments in a directory if they are missing, and reinstall apflint: as a wheel, not editable."""
    own, peers = folder / "apflint", folder / "peers"
    root = Path(__file__).parents[2]
    _install(own, *(("--force-reinstall", "--no-deps") if own.exists() else ()), f"{root}[replay]")
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


def list_versions(found: Tools) -> str:
    """Return names and versions of the other tools, for the note below the table."""
    listed = subprocess.run(
        [found.peer_python, "-m", "pip", "list", "--format", "freeze"], capture_output=True, text=True, check=True
    ).stdout.lower()
    wanted = (*PEERS, "pyyaml")
    return ", ".join(line.replace("==", " ") for line in listed.splitlines() if line.split("==")[0] in wanted)


def _install(environment_directory: Path, *packages: str) -> None:
    if not environment_directory.exists():
        subprocess.run([sys.executable, "-m", "venv", str(environment_directory)], check=True)
    command = [
        str(environment_directory / "bin/python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        *packages,
    ]
    subprocess.run(command, check=True, env=environment(), stderr=subprocess.DEVNULL)
