"""The field, priority level or suppression at each offset of incomplete documents."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from apflint.lsp.cursor import field_at
from apflint.lsp.features.completion import complete
from apflint.lsp.features.hover import explain

from .texts import FLOW, LEVEL, NEW_CLUSTER

JSON = '{"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema", "spec": {"rules": [{"subjects": []}]}}'
TYPED = st.sampled_from(
    ["", '"', "'", "{", "[", "{}", "]", "}", ":", ": ", "- ", "\n", "\r\n", "\t", " #", "# apflint: ignore[", "---\n", "|\n", "> ", "&a ", "*a",
     "? ", "!!str ", ",", "\u2028", "\U0001f600", "\\", "kind: ", "spec:\n"]
)  # fmt: skip
CHANGES = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), TYPED), max_size=4)


@settings(max_examples=100)
@given(
    st.sampled_from([FLOW, LEVEL, f"{LEVEL}---\n{FLOW}", JSON, f"# a\n{JSON}"]), CHANGES, st.floats(0, 1), st.booleans()
)
def test_requests_never_fail(
    text: str,
    changes: list[tuple[float, int, str]],
    where: float,
    json: bool,
) -> None:
    for at, length, new in changes:
        start = int(at * len(text))
        text = text[:start] + new + text[start + length :]
    offset = int(where * len(text))
    found = explain(text, offset, NEW_CLUSTER, json=json)
    assert found is None or 0 <= found.start <= offset <= found.end <= len(text)
    field = field_at(text, offset, json=json)
    assert field is None or 0 <= field.start <= offset <= field.end <= len(text)
    for item in complete(text, offset, NEW_CLUSTER, json=json):
        assert item.start <= offset <= item.end, "editors ignore proposals for other places"
        assert not {"\r", "\n"} & set(text[item.start : item.end]), "editors ignore proposals for several lines"


@pytest.mark.parametrize("text", ["{}\na", "{\n}\n\nkind", "[]\na"])
def test_braces_before_a_key(text: str) -> None:
    assert [item.label for item in complete(text, len(text), NEW_CLUSTER)] == ["apiVersion", "kind"]


@pytest.mark.parametrize("pattern", ["#", " ", "a: ", "[", "a: |\n \n"])
def test_time_of_long_lines_is_linear(pattern: str) -> None:
    text = f"kind: FlowSchema\nx: {pattern * (100_000 // len(pattern))}"
    start = time.process_time()
    complete(text, len(text), NEW_CLUSTER)
    explain(text, len(text), NEW_CLUSTER)
    assert time.process_time() - start < 2
