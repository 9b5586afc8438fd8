"""No public function of the package has `Any` in its parameters or its result."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def annotated(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield name and annotation of the public parameters, results and attributes of a module or class."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            if child.name.startswith("_") and child.name != "__init__":
                continue
            signature = child.args
            for argument in (
                *signature.posonlyargs,
                *signature.args,
                *signature.kwonlyargs,
                signature.vararg,
                signature.kwarg,
            ):
                if argument is not None and argument.annotation is not None:
                    yield f"{child.name}({argument.arg})", argument.annotation
            if child.returns is not None:
                yield child.name, child.returns
        elif isinstance(child, ast.ClassDef) and not child.name.startswith("_"):
            yield from ((f"{child.name}.{name}", found) for name, found in annotated(child))
        elif isinstance(child, ast.AnnAssign) and not ast.unparse(child.target).startswith("_"):
            yield ast.unparse(child.target), child.annotation


def leaks(source: str) -> list[str]:
    return [
        name
        for name, found in annotated(ast.parse(source))
        if any(isinstance(part, ast.Name) and part.id == "Any" for part in ast.walk(found))
    ]


def test_leaks_of_any_are_found() -> None:
    assert leaks("def f(a: int, *b: Any, c: list[Any] = []) -> Any: ...") == ["f(c)", "f(b)", "f"]
    assert leaks("class A:\n    b: dict[str, Any]\n    def c(self) -> Any: ...\n    def _d(self) -> Any: ...") == [
        "A.b",
        "A.c",
    ]
    assert leaks("def _f(a: Any) -> Any: ...\nclass _A:\n    b: Any\nX: int = 1") == []


def test_no_public_function_has_any_in_its_signature(root: Path) -> None:
    found = {
        f"{path.relative_to(root)}: {name}"
        for path in sorted((root / "apflint").rglob("*.py"))
        for name in leaks(path.read_text("utf-8"))
    }
    assert found == set()
