"""The mutations of a file. The mutations are those of mutmut, except those that tests cannot or need not detect."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import libcst as cst
from libcst.metadata import PositionProvider
from mutmut.mutation import file_mutation
from mutmut.mutation.mutators import mutation_operators, operator_string
from mutmut.mutation.pragma_handling import IgnoredCode

ROOT = Path(__file__).resolve().parent.parent.parent
_COMPOUND = cst.If | cst.For | cst.While | cst.With


class Mutant(NamedTuple):
    """A mutation of a function."""

    id: str
    file: str
    function: str
    """Qualified name of the outermost function or method that contains the mutated statement."""
    line: int
    lines: tuple[int, int]
    """First and last line of the mutated statement. A test is relevant if it executes one of these lines."""
    old: str
    new: str
    mutation: Any
    node: Any


def is_message(node: cst.CSTNode) -> bool:
    """Return whether a node is a string with a message for people."""
    if isinstance(node, cst.FormattedString):
        return any(" " in part.value.strip() for part in node.parts if isinstance(part, cst.FormattedStringText))
    if isinstance(node, cst.ConcatenatedString):
        return is_message(node.left) or is_message(node.right)
    return isinstance(node, cst.SimpleString) and " " in str(node.raw_value)


def find_strict(node: cst.CSTNode) -> str:
    """Return the argument `strict` of a call as text, or an empty string.

    Mutations of `strict` are left out: it is only an assertion, so tests of a correct program cannot detect them.
    """
    values = [arg for arg in getattr(node, "args", ()) if arg.keyword and arg.keyword.value == "strict"]
    return cst.Module([]).code_for_node(values[0].value) if values else ""


class Visitor(file_mutation.MutationVisitor):
    """The visitor of mutmut, with other exclusions. `places` contains the result of `_place` for each mutation."""

    def __init__(self) -> None:
        operators = [pair for pair in mutation_operators if pair[1] is not operator_string]
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
        return is_message(node) or (
            isinstance(node, cst.Arg) and node.keyword is not None and node.keyword.value == "strict"
        )

    def on_visit(self, node: cst.CSTNode) -> bool:
        """Return whether to visit the children. Called by libcst."""
        before = len(self.mutations)
        visits_children: bool = super().on_visit(node)
        self.mutations[before:] = [
            mutation for mutation in self.mutations[before:] if find_strict(mutation.mutated_node) == find_strict(node)
        ]
        self.places += [self._place(node)] * (len(self.mutations) - before)
        self.stack.append(node)
        return visits_children

    def on_leave(self, original_node: cst.CSTNode) -> None:
        """Leave a node. Called by libcst."""
        super().on_leave(original_node)
        self.stack.pop()

    def _place(self, node: cst.CSTNode) -> tuple[Any, ...] | None:
        """Return (function, name of the function, line, first and last line of the statement) of a mutated node.

        For a default value of a parameter, the last item is the first and last line of the function. Return None for
        code outside of functions.
        """
        scopes = [scope for scope in self.stack if isinstance(scope, cst.FunctionDef | cst.ClassDef)]
        outer = next((at for at, scope in enumerate(scopes) if isinstance(scope, cst.FunctionDef)), None)
        if outer is None:
            return None
        function = scopes[outer]
        inside = self.stack[self.stack.index(scopes[-1]) :]
        statements = (part for part in reversed(inside) if isinstance(part, cst.SimpleStatementLine | _COMPOUND))
        within = next(statements, node)
        if any(isinstance(part, cst.Parameters) for part in inside):
            within = function
        position, own = (self.get_metadata(PositionProvider, part, None) for part in (within, node))
        if position is None:
            return None
        first, last = position.start.line, position.end.line
        if within is not function and isinstance(within, _COMPOUND):
            # Use all lines of the head of a compound statement, such as `if ...:`. The head may have several lines, and
            # coverage.py does not report lines that contain only constants.
            body = self.get_metadata(PositionProvider, within.body.body[0])
            last = max(first, body.start.line - 1)
        name = ".".join(scope.name.value for scope in scopes[: outer + 1])
        return function, name, (own or position).start.line, (first, last)


def find_mutants(file: str) -> tuple[cst.Module, list[Mutant]]:
    """Return the module and all mutants of a file."""
    visitor = Visitor()
    module = cst.MetadataWrapper(cst.parse_module((ROOT / file).read_text())).visit(visitor)
    mutants = []
    for number, (mutation, place) in enumerate(zip(visitor.mutations, visitor.places, strict=True)):
        if place is not None:
            node, name, line, lines = place
            old, new = (module.code_for_node(part) for part in (mutation.original_node, mutation.mutated_node))
            mutants.append(Mutant(f"{file}:{number}", file, name, line, lines, old, new, mutation, node))
    return module, mutants


def make_controls(mutant: Mutant) -> tuple[Mutant, Mutant]:
    """Return two control mutants of the same function: one that raises an error immediately, and one that is equivalent."""
    body = mutant.node.body
    raising = body.with_changes(body=[cst.parse_statement("raise AssertionError")])
    equivalent = body.with_changes(body=[cst.parse_statement("control = 0"), *body.body])

    def replace_body(name: str, new: cst.BaseSuite) -> Mutant:
        mutation = file_mutation.Mutation(body, new, contained_by_top_level_function=None)
        return mutant._replace(id=f"{mutant.file}:{name}", mutation=mutation)

    return replace_body("raises", raising), replace_body("equivalent", equivalent)
