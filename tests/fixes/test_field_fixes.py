"""Fixes of `apflint.fixes.field_fixes`, which several rules suggest."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from apflint.fixes.field_fixes import replace_item, replace_items


@given(st.lists(st.sampled_from("abAB"), min_size=1), st.data())
def test_one_item_is_replaced_as_several_are(items: list[str], data: st.DataObject) -> None:
    index = data.draw(st.integers(0, len(items) - 1))
    new = data.draw(st.sampled_from("abcABC").filter(lambda item: item != items[index]))
    fix = replace_item(("list", index), items[index], new, set(items), safe=False)
    assert fix == replace_items(("list",), items, {index: new}, safe=False)
