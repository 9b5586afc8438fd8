"""A test asserts on every path: a test function that returns early may pass without having tested anything."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

import pytest
from conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def find_early_returns(tree: ast.AST) -> Iterator[int]:
    """Yield the lines of `return` statements before the first assertion of a test function."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            own = list(walk_own(node))
            asserted = min((part.lineno for part in own if is_assertion(part)), default=node.lineno + len(own))
            yield from (part.lineno for part in own if isinstance(part, ast.Return) and part.lineno < asserted)


def walk_own(node: ast.AST) -> Iterator[ast.stmt]:
    """Yield the statements of a function, except statements of nested functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        if not isinstance(child, ast.FunctionDef | ast.ClassDef):
            yield from walk_own(child)


def is_assertion(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assert) or (
        isinstance(node, ast.With) and any("raises" in ast.dump(item) for item in node.items)
    )


@pytest.mark.parametrize(
    "file", sorted((ROOT / "tests").rglob("test_*.py")), ids=lambda file: str(file.relative_to(ROOT / "tests"))
)
def test_no_test_returns_early(file: Path) -> None:
    assert list(find_early_returns(ast.parse(file.read_text(encoding="utf-8")))) == []


def test_early_returns_are_found() -> None:
    source = (
        "def test_x():\n    try: f()\n    except E: return\n    def inner():\n        return 1\n    assert inner()\n"
    )
    assert list(find_early_returns(ast.parse(source))) == [3]
