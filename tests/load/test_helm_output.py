"""Output of `helm template`: one source for each template."""

from __future__ import annotations

from apflint.load.helm_output import split_helm_output

FLOW_SCHEMA = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: x}\n"


def sources(text: str) -> dict[str, str]:
    return {source.name: source.text for source in split_helm_output(text) or ()}


def test_helm_output_is_split_by_template() -> None:
    text = "---\n# Source: c/a.yaml\na: 1\n---\n# Source: c/b.yaml\nb: 1\n---\n# Source: c/a.yaml\na: 2\n"
    assert sources(text) == {"c/a.yaml": "a: 1\n---\na: 2\n", "c/b.yaml": "b: 1\n"}


def test_helm_output_with_crlf_and_spaces() -> None:
    text = "---\r\n# Source: c/a.yaml \r\na: b---\r\n---\r\n# Source: c/b.yaml\r\nb: 1\r\n"
    assert sources(text) == {"c/a.yaml": "a: b---\r\n", "c/b.yaml": "b: 1\r\n"}


def test_text_before_first_template_is_kept() -> None:
    assert sources("x: 1\n---\n# Source: c/a.yaml\na: 1\n") == {"<stdin>": "x: 1\n---\n", "c/a.yaml": "a: 1\n"}


def test_other_text_is_not_helm_output() -> None:
    assert split_helm_output(FLOW_SCHEMA) is None
    assert split_helm_output("# Source:\na: 1\n") is None


def test_source_comment_of_the_user_is_a_comment() -> None:
    assert split_helm_output(FLOW_SCHEMA.replace("metadata:", "# Source: the wiki\nmetadata:", 1)) is None
    assert sources("# Source: c/a.yaml\na: 1\n# Source: b\n") == {"c/a.yaml": "a: 1\n# Source: b\n"}
