"""Names of classes are unique, because a name that two modules define would have two meanings."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import apflint


def test_no_two_classes_have_the_same_name() -> None:
    """Private classes count, too."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in Path(apflint.__file__).parent.rglob("*.py")]
    names = Counter(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    assert len(names) > 100
    assert [name for name, number in names.items() if number > 1] == []
