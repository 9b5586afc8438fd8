"""The direction of imports: each module imports only from its own layer and from layers below, and no two import each other.

Imports inside functions count. Imports only for type checkers do not count.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import apflint

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(apflint.__file__).parent

LAYERS: tuple[tuple[str, ...], ...] = (
    ("__main__", "cli", "lsp", "run"),
    (
        "baseline",
        "client_diagnosis",
        "input_checking",
        "diff",
        "edit",
        "graph",
        "output",
        "policy",
        "propose",
        "replay",
        "settings",
        "simulate",
        "sources",
    ),
    ("cluster_checking", "doctor", "engine", "monitoring", "request_explanation", "wanted_seats"),
    ("checks", "fixes", "rule_selection", "suppressions"),
    ("effective_configuration",),
    ("proofs",),
    ("requests",),
    ("evaluate",),
    ("builtin", "load", "model", "schema", "schema_violations", "workspace"),
    ("",),
)
"""Layers of modules and packages of `apflint`, from the top down. Modules that are not listed are in the lowest layer."""


def module_name(path: Path) -> str:
    """Return the dotted module name without `apflint.`, such as `load.yaml`, or "" for the package `apflint`."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def modules() -> dict[str, Path]:
    """Return the path of each module by its name."""
    return {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def imports() -> dict[str, tuple[str, ...]]:
    """Return the modules of `apflint` that each module imports at run time, at its top or inside functions."""
    return {name: tuple(dict.fromkeys(_imported(name, path))) for name, path in modules().items()}


def _imported(name: str, path: Path) -> Iterator[str]:
    for node in _run_time_nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _known(alias.name)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
                kept = package[: len(package) - node.level + 1]
                base = ".".join(filter(None, ("apflint", *kept, base)))
            for alias in node.names:
                submodule = list(_known(f"{base}.{alias.name}"))
                yield from submodule or _known(base)


def _known(dotted: str) -> Iterator[str]:
    name = dotted.removeprefix("apflint").removeprefix(".")
    if dotted.split(".", maxsplit=1)[0] == "apflint" and name and name in modules():
        yield name


def _run_time_nodes(node: ast.AST) -> Iterator[ast.AST]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            for other in child.orelse:
                yield other
                yield from _run_time_nodes(other)
            continue
        yield child
        yield from _run_time_nodes(child)


def layer(name: str) -> int:
    """Return the number of the layer of a module: 0 is the top layer."""
    top = name.split(".", maxsplit=1)[0]
    return next((number for number, members in enumerate(LAYERS) if top in members), len(LAYERS) - 1)


def cycles() -> list[list[str]]:
    """Return the groups of modules that import each other, directly or not (Tarjan's strongly connected components)."""
    graph = imports()
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        numbers[name] = lowest[name] = len(numbers)
        open_modules.append(name)
        for other in graph[name]:
            if other not in numbers:
                visit(other)
                lowest[name] = min(lowest[name], lowest[other])
            elif other in open_modules:
                lowest[name] = min(lowest[name], numbers[other])
        if lowest[name] == numbers[name]:
            at = open_modules.index(name)
            group = open_modules[at:]
            del open_modules[at:]
            if len(group) > 1 or name in graph[name]:
                found.append(sorted(group))

    for name in graph:
        if name not in numbers:
            visit(name)
    return found


def upward_imports() -> list[str]:
    """Return `importer -> imported` for each import of a module in a higher layer."""
    return [
        f"{name} -> {other}" for name, others in imports().items() for other in others if layer(other) < layer(name)
    ]


def test_no_module_imports_from_a_higher_layer() -> None:
    assert list(upward_imports()) == []


def test_other_commands_do_not_import_proposals() -> None:
    names = [path.stem for path in (ROOT / "cli" / "commands").glob("*.py") if path.stem not in ("__init__", "propose")]
    code = "; ".join(
        ["import sys", *(f"import apflint.cli.commands.{name}" for name in names), "print([*sys.modules])"]
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "apflint.cli.commands.limits" in done.stdout
    assert "propose" not in done.stdout
    assert "wanted_seats" not in done.stdout


def test_no_modules_import_each_other() -> None:
    assert cycles() == []


def test_the_command_line_and_the_language_server_do_not_import_each_other() -> None:
    across = [
        (name, other)
        for name, others in imports().items()
        for other in others
        if {name.split(".")[0], other.split(".")[0]} == {"cli", "lsp"}
    ]
    assert [pair for pair in across if not pair[1].startswith("lsp")] == []


LEVEL = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: PriorityLevelConfiguration
metadata: {name: batch}
spec:
  type: Limited
  limited:
    nominalConcurrencyShares: 10
    limitResponse: {type: Queue, queuing: {queues: 64, handSize: 6, queueLengthLimit: 50}}
"""
FLOW_SCHEMA = """\
apiVersion: flowcontrol.apiserver.k8s.io/v1
kind: FlowSchema
metadata: {name: ci}
spec:
  priorityLevelConfiguration: {name: workload-low}
  matchingPrecedence: 2000
  distinguisherMethod: {type: ByUser}
  rules:
  - subjects: [{kind: ServiceAccount, serviceAccount: {namespace: ci, name: runner}}]
    resourceRules: [{verbs: [list], apiGroups: [''], resources: [pods], namespaces: [ci]}]
"""
HEAVY = ("jsonschema", "pysat", "rich", "ruamel", "typer")
"""Packages whose import takes tens of milliseconds each."""


@pytest.mark.parametrize(("manifest", "unneeded"), [(LEVEL, (*HEAVY, "apflint.proofs")), (FLOW_SCHEMA, HEAVY)])
def test_a_check_imports_no_packages_that_it_does_not_need(
    manifest: str, unneeded: tuple[str, ...], tmp_path: Path
) -> None:
    (tmp_path / "manifest.yaml").write_text(manifest)
    command = (sys.executable, "-X", "importtime", "-m", "apflint", "check", "manifest.yaml")
    run = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    loaded = {line.rpartition("|")[2].strip() for line in run.stderr.splitlines()}
    assert run.returncode in (0, 1), run.stdout
    assert "apflint.engine" in loaded
    assert loaded.isdisjoint(unneeded)


def test_package_files_are_read_by_the_loader() -> None:
    """Only `apflint.package_data` reads files of the package, because the single-file build has no files to open."""
    paths = re.compile(r"\b__(?:file|path)__\b")
    found = {name for name, path in modules().items() if paths.search(path.read_text("utf-8"))}
    assert found == {
        "package_data",
        "cli.app",
    }  # cli.app passes `commands.__path__` to pkgutil, which lists the modules through the importer and opens no file
