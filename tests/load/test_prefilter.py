"""The search for the API group and kinds of APF in a part of a text ignores words outside of the part."""

from __future__ import annotations

from apflint.load.prefilter import Prefilter, mentions_apf

TEXT = "FlowSchema\n---\nConfigMap\n---\nflowcontrol\n"
PARTS = ((0, 10, True), (15, 24, False), (15, 40, True), (15, 30, False), (29, 40, True), (1, 24, False), (0, 9, False))


def test_words_count_only_inside_the_part() -> None:
    for start, end, is_inside in PARTS:
        assert mentions_apf(TEXT, start, end) is is_inside
        if is_inside:
            assert Prefilter(TEXT).may_contain_apf(start, end)
    assert not Prefilter(TEXT).may_contain_apf(15, 24)
