"""Which mistakes there are: those of mutmut, with a choice of our own of what to leave out."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import libcst as cst
from mutmut.mutation import file_mutation
from mutmut.mutation.mutators import operator_string
from mutmut.mutation.pragma_handling import IgnoredCode

ROOT = Path(__file__).resolve().parent.parent.parent
_COMPOUND = cst.If | cst.For | cst.While | cst.With


class Mutant(NamedTuple):
    """One mistake."""

    id: str
    file: str
    function: str
    """Qualified name of the function at the top of the module, or of the method, that it is in."""
    line: int
    lines: tuple[int, int]
    """Those whose execution makes a test relevant."""
    was: str
    now: str
    mutation: Any
    node: Any


def prose(node: cst.CSTNode) -> bool:
    """Whether this is a text that people read."""
    if isinstance(node, cst.FormattedString):
        return any(" " in part.value.strip() for part in node.parts if isinstance(part, cst.FormattedStringText))
    if isinstance(node, cst.ConcatenatedString):
        return prose(node.left) or prose(node.right)
    return isinstance(node, cst.SimpleString) and " " in str(node.raw_value)


def strict(node: cst.CSTNode) -> str:
    """The argument `strict` of a call: without that assertion a right program does the same."""
    given = [arg for arg in getattr(node, "args", ()) if arg.keyword and arg.keyword.value == "strict"]
    return cst.Module([]).code_for_node(given[0].value) if given else ""


class Visitor(file_mutation.MutationVisitor):
    """mutmut's visitor, with a choice of its own of what to leave out; `places` tells where each mutation is."""

    def __init__(self) -> None:
        operators = [pair for pair in file_mutation.mutation_operators if pair[1] is not operator_string]
        operators.append((cst.SimpleString, lambda node: list(operator_string(node))[:1]))
        super().__init__(operators, IgnoredCode(set(), set(), set()))
        self.stack: list[cst.CSTNode] = []
        self.places: list[tuple[Any, ...] | None] = []

    def _skip_node_and_children(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Annotation | cst.Decorator):
            return True
        if isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString | cst.ConcatenatedString):
            return True
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            return node.func.value in ("cast", "len", "isinstance")
        if isinstance(node, cst.Param) and node.default is not None:
            return not isinstance(node.default, cst.Name | cst.BaseNumber | cst.BaseString)
        return prose(node) or (
            isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == "strict"
        )

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Called by libcst; the children are looked at where it says True."""
        before = len(self.mutations)
        deeper: bool = super().on_visit(node)
        self.mutations[before:] = [
            each for each in self.mutations[before:] if strict(each.mutated_node) == strict(node)
        ]
        self.places += [self._place(node)] * (len(self.mutations) - before)
        self.stack.append(node)
        return deeper

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Called by libcst."""
        super().on_leave(original_node)
        self.stack.pop()

    def _place(self, node: cst.CSTNode) -> tuple[Any, ...] | None:
        """Function, its name, line, and the lines of the statement; a default counts wherever its function runs."""
        scopes = [each for each in self.stack if isinstance(each, cst.FunctionDef | cst.ClassDef)]
        outer = next((at for at, each in enumerate(scopes) if isinstance(each, cst.FunctionDef)), None)
        if outer is None:
            return None
        function = scopes[outer]
        inside = self.stack[self.stack.index(scopes[-1]) :]
        statements = (each for each in reversed(inside) if isinstance(each, cst.SimpleStatementLine | _COMPOUND))
        within = next(statements, node)
        if any(isinstance(each, cst.Parameters) for each in inside):
            within = function
        position, own = (self.get_metadata(file_mutation.PositionProvider, each, None) for each in (within, node))
        if position is None:
            return None
        first, last = position.start.line, position.end.line
        if within is not function and isinstance(within, _COMPOUND):
            # Its head may be of many lines, and those with nothing but constants are never seen to be executed.
            body = self.get_metadata(file_mutation.PositionProvider, within.body.body[0])
            last = max(first, body.start.line - 1)
        name = ".".join(each.name.value for each in scopes[: outer + 1])
        return function, name, (own or position).start.line, (first, last)


def mutants(file: str) -> tuple[cst.Module, list[Mutant]]:
    """All mutants of one file."""
    visitor = Visitor()
    module = cst.MetadataWrapper(cst.parse_module((ROOT / file).read_text())).visit(visitor)
    made = []
    for number, (mutation, place) in enumerate(zip(visitor.mutations, visitor.places, strict=True)):
        if place is not None:
            node, name, line, lines = place
            was, now = (module.code_for_node(each) for each in (mutation.original_node, mutation.mutated_node))
            made.append(Mutant(f"{file}:{number}", file, name, line, lines, was, now, mutation, node))
    return module, made
