"""Prose is for people: no code parses sentences, and only `apflint.output` writes sentences about results."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import apflint

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(apflint.__file__).parent
PARTS = {"removeprefix", "removesuffix", "startswith", "endswith", "partition", "rpartition"}
"""Methods that recognize or cut off a part of a string."""
WORDS = re.compile(r"[A-Za-z]{2,} | [a-z]{2,}|^: $|->")
"""Patterns of sentence parts: words next to a space, and separators of clauses and values."""
FORMATS = {
    "builtin/__init__.py": "the first comment of the manifests of a release, which names their source",
    "doctor/dumps.py": "times of Go",
    "doctor/prometheus_text.py": "the comments of metrics",
    "graph/mermaid.py": "arrows of the flowchart that it has rendered",
    "lsp/schema_fields.py": "descriptions of fields in schemas of Kubernetes, which mark fields of the server in no other form",
    "load/syntax_errors.py": "messages of the YAML parser, which have no other form",
    "output/findings/summary.py": "the reason of a skipped document, which names its kind",
}
"""Modules that may parse words, because these words belong to a format, and the name of this format."""
DECIDING = (
    *("evaluate/classify.py", "evaluate/match_reasons.py", "evaluate/flows.py", "evaluate/request_outcomes.py"),
    "request_explanation.py",
)
"""Modules that must not contain sentences, because `apflint.output` describes their results."""


def read(name: str) -> ast.Module:
    return ast.parse((ROOT / name).read_text(encoding="utf-8"))


@cache
def list_prose_constants() -> frozenset[str]:
    """Return the names of constants that are parts of sentences."""
    return frozenset(
        node.targets[0].id
        for path in ROOT.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str) and WORDS.search(node.value.value)
    )


def find_parsed_prose(tree: ast.AST) -> Iterator[str]:
    """Yield each part of a sentence that code recognizes or cuts."""
    for node in ast.walk(tree):
        arguments: list[ast.expr] = []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in PARTS:
            arguments = node.args
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            arguments = [node.left] if isinstance(node.left, ast.Constant) else []
        for part in (part for argument in arguments for part in ast.walk(argument)):
            if isinstance(part, ast.Name) and part.id in list_prose_constants():
                yield f"line {part.lineno}: {part.id}"
            is_period = ast.unparse(part) == "'.'" and ast.unparse(node).split("(")[0].endswith("removesuffix")
            if (
                isinstance(part, ast.Constant)
                and isinstance(part.value, str)
                and (is_period or WORDS.search(part.value))
            ):
                yield f"line {part.lineno}: {part.value!r}"


def find_sentences(tree: ast.AST) -> Iterator[str]:
    """Yield the strings with several words, except docstrings, Literal types, and arguments of Hint, Outcome and UserError."""
    ignored: set[int] = set()
    for node in ast.walk(tree):
        is_case = isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal"
        is_case |= isinstance(node, ast.Call) and ast.unparse(node.func) in ("Hint", "Outcome", "UserError")
        if is_case or isinstance(node, ast.Expr):
            ignored.update(map(id, ast.walk(node)))
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in ignored:
            words = re.findall("[A-Za-z]{2,} ", node.value)
            yield from [f"line {node.lineno}: {node.value!r}"] if len(words) > 1 else []


@pytest.mark.parametrize("name", sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.py")))
def test_no_code_takes_a_sentence_apart(name: str) -> None:
    parsed = list(find_parsed_prose(read(name)))
    assert bool(parsed) == (name in FORMATS), parsed


@pytest.mark.parametrize("name", DECIDING)
def test_modules_that_decide_write_no_sentences(name: str) -> None:
    assert list(find_sentences(read(name))) == []


def test_both_are_found() -> None:
    code = ast.parse('"""Doc of a module."""\nx = y.removeprefix("it goes ")\nz = f"{x} is not among {y}, so it fails"')
    assert list(find_parsed_prose(code)) == ["line 2: 'it goes '"]
    assert [*find_sentences(code)][-2:] == ["line 3: ' is not among '", "line 3: ', so it fails'"]
