"""How a function of this process becomes a mutant."""

from __future__ import annotations

import ast
import gc
from collections import defaultdict
from functools import _lru_cache_wrapper
from types import CodeType, FunctionType
from typing import TYPE_CHECKING

from mutating.mistakes import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterable

    import libcst as cst

    from mutating.mistakes import Mutant


def living(file: str) -> dict[str, list[FunctionType]]:
    """The functions of a file in this process by qualified name, wherever they are kept."""
    path, found = str(ROOT / file), defaultdict(list)
    for each in gc.get_objects():
        if isinstance(each, FunctionType) and each.__code__.co_filename == path:
            found[each.__code__.co_qualname].append(each)
    return found


def exchange(mutant: Mutant, module: cst.Module, functions: list[FunctionType]) -> bool:
    """Make the function of this process the mutated one. False where it comes out the same."""
    changed = mutant.node.deep_replace(mutant.mutation.original_node, mutant.mutation.mutated_node)
    texts = [module.code_for_node(node.with_changes(decorators=())) for node in (mutant.node, changed)]
    old, new = (_code(text, mutant) for text in texts)
    if old == new:
        return _exchange_defaults(texts[1], functions)
    for function in functions:
        function.__code__ = new
    return True


def _code(text: str, mutant: Mutant) -> CodeType:
    whole = compile(f"from __future__ import annotations\n{text}", mutant.file, "exec", dont_inherit=True)
    (code,) = (
        each
        for each in whole.co_consts
        if isinstance(each, CodeType) and each.co_name == mutant.function.rpartition(".")[2]
    )
    return code


def _exchange_defaults(text: str, functions: list[FunctionType]) -> bool:
    (node,) = (each for each in ast.parse(text).body if isinstance(each, ast.FunctionDef))
    plain = tuple(each.value for each in node.args.defaults if isinstance(each, ast.Constant))
    named = {
        arg.arg: value.value
        for arg, value in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        if isinstance(value, ast.Constant)
    }
    done = False
    for function in functions:
        if function.__defaults__ and len(plain) == len(function.__defaults__) and plain != function.__defaults__:
            function.__defaults__, done = plain, True
        if function.__kwdefaults__ and any(function.__kwdefaults__[each] != named[each] for each in named):
            function.__kwdefaults__, done = function.__kwdefaults__ | named, True
    return done


def caches() -> list[_lru_cache_wrapper[object]]:
    """The caches of this process."""
    return [
        each
        for each in gc.get_objects()
        if isinstance(each, _lru_cache_wrapper) and str(each.__module__).startswith("apflint")
    ]


def forget(remembering: Iterable[_lru_cache_wrapper[object]]) -> None:
    """Otherwise no test would do again what an earlier one, or a test module that was imported, has done."""
    for each in remembering:
        each.cache_clear()
