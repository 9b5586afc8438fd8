"""Virtual environments: one with apflint as users install it, and one with the compared tools."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from benchmarking.processes import environment

PEERS = ("yamllint", "check-jsonschema", "simpy")
"""Packages of the compared tools. PyYAML is a dependency of yamllint."""


class Tools(NamedTuple):
    """Paths of the commands."""

    python: str
    """Path of Python in the environment of apflint."""
    apflint: str
    peer_python: str
    yamllint: str
    check_jsonschema: str


def install_tools(directory: Path) -> Tools:
    """Create the two environments in a directory if they are missing.

    Reinstall apflint from a wheel, not in editable mode.
    """
    own, peers = directory / "apflint", directory / "peers"
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


def list_versions(found: Tools) -> dict[str, str]:
    """Return the version of each compared tool, for the note below the table. The keys are names of tools."""
    listed = subprocess.run(
        [found.peer_python, "-m", "pip", "list", "--format", "freeze"], capture_output=True, text=True, check=True
    ).stdout.lower()
    wanted = (*PEERS, "pyyaml")
    pairs = (line.split("==") for line in listed.splitlines())
    return {pair[0]: pair[1] for pair in pairs if pair[0] in wanted}


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
