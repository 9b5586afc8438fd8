"""Runs command lines of apflint in the browser. The web worker of the playground imports this module in Pyodide."""

from __future__ import annotations

import io
import json
import os
import platform
import re
import shlex
import sys
import time
from contextlib import redirect_stderr, redirect_stdout
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

from apflint import __version__
from apflint.cli.main import run
from apflint.releases import RELEASES

MANIFESTS, OLD, LOAD = "manifests.yaml", "old.yaml", "load.yaml"
"""Names of the files in the in-memory file system that hold the texts of the editors."""
PROGRAM_WORDS = (["kubectl", "apflint", "explain"], ["apflint", "explain"], ["explain"])
"""Words that users may type or paste before a request. The longest come first."""
FIXABLE = re.compile(r"(?:(\d+) of them|It) can be fixed: apflint fix( --unsafe-fixes)?[^\n]*\n?")
"""The sentence about fixes below findings. The button for safe fixes replaces it."""
REPLACEMENTS = {
    re.compile(r"(add\s+that\s+file\s+)with\s+--context"): r"\1to the manifests",
    re.compile(r"(apflint\s+migrate\s+--to\s+\w+)"): r"\1 (on the command line)",
    re.compile(rf"^(apflint: {OLD}.*)(?:see `apflint check`|`apflint check` shows the errors)", re.MULTILINE): (
        r"\1swap the texts to see the findings"
    ),
    re.compile(r"see\s+`apflint check`|`apflint check`\s+shows\s+the\s+errors"): "see the findings",
    re.compile(r"(all\s+percentiles:)\s+--verbose"): r"\1 download",
    re.compile(r"(`objects`\s+in\s+a\s+load\s+file),\s+or\s+--objects"): r"\1",
    re.compile(r", as in --kubernetes [\d.]+ or defaults:[\d.]+"): "",
    re.compile(r" Try `apflint \w+ --help`\."): "",
}
"""Advice that names commands and options which the page does not have, and what helps in the page."""


class Terminal(io.StringIO):
    """Standard output in the browser. apflint wraps its prose for the width in COLUMNS, as on a terminal."""

    def isatty(self) -> bool:
        """Return True, because people read the output."""
        return True


class Job(NamedTuple):
    """A command, and what the user entered."""

    command: str
    manifests: str
    kubernetes: str
    seats: str
    """Value of --server-concurrency, or an empty string for its default."""
    request: str
    old: str
    """Manifests to compare with. If there are none, `diff` compares with the built-in objects."""
    load: str
    columns: int


def run_job(text: str) -> str:
    """Run a command for a job in JSON, which may have further fields. Return the result as JSON.

    The result has the exit code, both outputs, the duration, the number of safe fixes of `check`, and the manifests after `fix`.
    """
    fields = json.loads(text)
    job = Job(*(fields[name] for name in Job._fields))
    started = time.perf_counter()
    output, notes = Terminal(), io.StringIO()
    for name, content in ((MANIFESTS, job.manifests), (OLD, job.old), (LOAD, job.load)):
        Path(name).write_text(content, encoding="utf-8", errors="surrogatepass", newline="")
    os.environ["COLUMNS"] = str(job.columns)
    sys.stdin = io.StringIO()  # no command may wait for input
    with redirect_stdout(output), redirect_stderr(notes):
        try:
            exit_code = run(make_arguments(job))
        except ValueError as error:
            exit_code = 2
            sys.stderr.write(f"apflint: {error}\n")
    result = {
        "exitCode": exit_code,
        "output": adapt(output.getvalue()),
        "notes": adapt(notes.getvalue()),
        "seconds": time.perf_counter() - started,
        "fixes": count_safe_fixes(notes.getvalue()),
    }
    if job.command == "fix":
        result["manifests"] = Path(MANIFESTS).read_bytes().decode("utf-8", "surrogatepass")
    return json.dumps(result)


def adapt(text: str) -> str:
    """Replace advice that users of the page cannot follow."""
    text = FIXABLE.sub("", text)
    for pattern, replacement in REPLACEMENTS.items():
        text = pattern.sub(replacement, text)
    return text


def count_safe_fixes(notes: str) -> int:
    """Return the number of safe fixes that the summary of `check` states."""
    found = FIXABLE.search(notes)
    return 0 if found is None or found[2] else int(found[1] or 1)


def make_arguments(job: Job) -> list[str]:
    """Return the arguments of a command line. Raises ValueError for a request that is not one."""
    # No settings file exists, so the run must not search for one.
    shared = ["--isolated", "--kubernetes", job.kubernetes]
    if job.command == "fix":  # fixes do not depend on seats
        return ["fix", *shared, MANIFESTS]
    if job.seats:
        shared.append(f"--server-concurrency={job.seats}")
    colored = [*shared, "--color", "always"]
    match job.command:
        case "check":
            return ["check", *colored, MANIFESTS]
        case "limits":
            return ["limits", *colored, "--verbose", MANIFESTS]
        case "graph":
            return ["graph", *shared, "--format", "svg", MANIFESTS]
        case "diff":
            return ["diff", *colored, OLD if job.old.strip() else f"defaults:{job.kubernetes}", MANIFESTS]
        case "simulate":
            return ["simulate", *colored, "--filename", MANIFESTS, LOAD]
        case "charts":  # of the same simulation, because it has the same seed
            return ["simulate", *shared, "--format", "html", "--filename", MANIFESTS, LOAD]
        case _:
            return ["explain", *colored, "--filename", MANIFESTS, *split_request(job.request)]


def split_request(request: str) -> list[str]:
    """Return the words of a request. Raises ValueError if it cannot be split, or asks for help."""
    try:
        words = shlex.split(request)
    except ValueError as error:
        raise ValueError(f"the request cannot be split into words: {error}") from error
    for prefix in PROGRAM_WORDS:
        if words[: len(prefix)] == prefix:
            words = words[len(prefix) :]
            break
    if {"-h", "--help"} & {*words}:  # typer would import packages that the playground does not include
        raise ValueError("help texts are not part of the playground. See the page of `explain` in the documentation.")
    return words


def describe() -> str:
    """Return the version of apflint and the names of Kubernetes releases, newest first, as JSON."""
    return json.dumps({"apflint": __version__, "releases": [release.name for release in reversed(RELEASES)]})


def describe_packages() -> str:
    """Return the versions and licenses of all packages, and the packages that are missing in the browser, as JSON."""
    packages = sorted(map(describe_package, metadata.distributions()), key=str.lower)
    return json.dumps({"python": platform.python_version(), "packages": packages, "missing": find_missing()})


def describe_package(package: metadata.Distribution) -> str:
    """Return the name, version and license of a package, such as `attrs 26.1.0 (MIT)`."""
    fields = package.metadata
    license_name = fields.get("License-Expression") or fields.get("License") or "license in its package"
    return f"{package.name} {package.version} ({license_name})"


def find_missing() -> dict[str, str]:
    """Return the packages without a build for the browser, and for each one, what its replacement changes."""
    missing = {}
    try:
        import yaml._yaml  # noqa: F401  # the module compiled with libyaml
    except ImportError:
        missing["libyaml"] = (
            "The Python parser of PyYAML reads YAML instead. It takes longer, rejects tabs between a key and its value,"
            " and accepts some escapes of characters that libyaml rejects."
        )
    try:
        metadata.version("rpds-py")
    except metadata.PackageNotFoundError:
        missing["rpds-py"] = "jsonschema uses pyrsistent instead. The findings are the same."
    return missing
