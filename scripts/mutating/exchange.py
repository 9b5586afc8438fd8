"""Replaces the code of functions in this process with the code of a mutant."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from functools import _lru_cache_wrapper
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from mutating.mutations import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from mutating.mutations import Mutant


def find_functions(file: str) -> dict[str, list[FunctionType]]:
    """Return a dictionary from qualified name to the function objects that code of `file` defined in this process."""
    path, functions = str(ROOT / file), defaultdict(list)
    for item in gc.get_objects():
        if isinstance(item, FunctionType) and item.__code__.co_filename == path:
            functions[item.__code__.co_qualname].append(item)
    return functions


def runs_alone(function: FunctionType) -> bool:
    """Return whether a function is not a closure and contains no functions, classes or lambdas.

    Replacing the code of other functions is not enough: a nested function that already exists keeps the original code.
    """
    code = function.__code__
    inner = [constant.co_name for constant in code.co_consts if isinstance(constant, CodeType)]
    return not code.co_freevars and all(name.startswith("<") and name != "<lambda>" for name in inner)


def replace_code(mutant: Mutant, module: cst.Module, functions: list[FunctionType]) -> bool:
    """Replace the code of the functions. Return False if the compiled code is equal.

    Raises LookupError if `functions` is empty, because such a mutant would survive every test.
    """
    if not functions:
        raise LookupError(f"{mutant.function} of {mutant.file} is not in this process")
    changed = mutant.node.deep_replace(mutant.mutation.original_node, mutant.mutation.mutated_node)
    texts = [module.code_for_node(node.with_changes(decorators=())) for node in (mutant.node, changed)]
    old, new = (_compile(text, mutant) for text in texts)
    if old == new:
        return _replace_defaults(texts[1], functions)
    for function in functions:
        function.__code__ = new
    return True


def _compile(text: str, mutant: Mutant) -> CodeType:
    module = compile(f"from __future__ import annotations\n{text}", mutant.file, "exec", dont_inherit=True)
    (code,) = (
        constant
        for constant in module.co_consts
        if isinstance(constant, CodeType) and constant.co_name == mutant.function.rpartition(".")[2]
    )
    return code


def _replace_defaults(text: str, functions: list[FunctionType]) -> bool:
    (node,) = (statement for statement in ast.parse(text).body if isinstance(statement, ast.FunctionDef))
    positional = tuple(default.value for default in node.args.defaults if isinstance(default, ast.Constant))
    named = {
        arg.arg: value.value
        for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if isinstance(value, ast.Constant)
    }
    replaced = False
    for function in functions:
        if (
            function.__defaults__
            and len(positional) == len(function.__defaults__)
            and positional != function.__defaults__
        ):
            function.__defaults__, replaced = positional, True
        if function.__kwdefaults__ and any(function.__kwdefaults__[name] != named[name] for name in named):
            function.__kwdefaults__, replaced = function.__kwdefaults__ | named, True
    return replaced


def find_caches() -> list[_lru_cache_wrapper[object]]:
    """Return the caches of all functions of apflint in this process."""
    return [
        item
        for item in gc.get_objects()
        if isinstance(item, _lru_cache_wrapper) and str(item.__module__).startswith("apflint")
    ]


def clear(caches: Iterable[_lru_cache_wrapper[object]]) -> None:
    """Clear caches, so that a test does not use results from an earlier test or from an import."""
    for cache in caches:
        cache.cache_clear()
