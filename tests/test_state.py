"""The package must not use object ids as keys, and must not cache large values for longer than a run."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import apflint

MODULES = sorted(Path(apflint.__file__).parent.rglob("*.py"))
LARGE = {
    "Analysis",
    "Configuration",
    "ConfigurationComparison",
    "Document",
    "Effective",
    "Loaded",
    "Report",
    "Source",
    "Workspace",
}


def syntax_trees(word: str) -> list[tuple[Path, ast.Module]]:
    """Return the syntax trees of the modules whose text contains a word. Parsing all modules would take a second."""
    assert len(MODULES) > 100
    texts = ((path, path.read_text(encoding="utf-8")) for path in MODULES)
    return [(path, ast.parse(text)) for path, text in texts if re.search(rf"\b{word}\b", text)]


def test_nothing_is_identified_by_its_address() -> None:
    calls = [
        f"{path}:{node.lineno}"
        for path, tree in syntax_trees("id")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "id"
    ]
    assert calls == []


def test_no_cache_is_keyed_by_a_large_value() -> None:
    caches = [
        (f"{path}:{node.lineno}", LARGE & _names(node.args))
        for path, tree in syntax_trees("(lru_)?cache")
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef)
        and any(_names(decorator) & {"cache", "lru_cache"} for decorator in node.decorator_list)
    ]
    assert caches
    assert [cache for cache in caches if cache[1]] == []


def test_no_function_rebinds_names_of_its_module() -> None:
    statements = [
        f"{path}:{node.lineno}"
        for path, tree in syntax_trees("global")
        for node in ast.walk(tree)
        if isinstance(node, ast.Global)
    ]
    assert statements == []


def _names(node: ast.AST) -> set[str]:
    return {child.id for child in ast.walk(node) if isinstance(child, ast.Name)}
