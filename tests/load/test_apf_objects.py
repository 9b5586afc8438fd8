"""Which objects of ours a text holds, and what is said of the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apflint.load import Loaded, load
from apflint.load.helm_output import split_helm_output

GROUP = "flowcontrol.apiserver.k8s.io"
FLOW_SCHEMA = f"apiVersion: {GROUP}/v1\nkind: FlowSchema\nmetadata: {{name: x}}\n"


def read(text: str, name: str = "a.yaml") -> Loaded:
    return load(name, text.encode("utf-8", "surrogatepass"))


def problems(text: str) -> list[tuple[str, str, bool]]:
    """Return kind, marked text and whether the server rejects it, for each problem."""
    loaded = read(text)
    return [(p.kind, loaded.source.text[slice(*p.place.offsets)], p.is_rejected) for p in loaded.problems]


def skipped(text: str) -> dict[str, int]:
    return dict(read(text).skipped)


@pytest.mark.parametrize("kind", ["FlowSchema", "PriorityLevelConfiguration"])
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1", "v7"])
def test_our_two_kinds(kind: str, version: str) -> None:
    (found,) = read(f"apiVersion: {GROUP}/{version}\nkind: {kind}\n").documents
    assert (found.api_version, found.version, found.kind, found.prefix) == (f"{GROUP}/{version}", version, kind, ())


def test_other_objects_are_counted_by_kind() -> None:
    text = "kind: ConfigMap\n---\n" * 2 + "kind: 'Secret'\n---\n# nothing\n---\nfoo\n---\n" + FLOW_SCHEMA
    assert skipped(text) == {"ConfigMap objects": 2, "Secret objects": 1, "no Kubernetes object": 1}
    assert len(read(text).documents) == 1


def test_what_only_mentions_ours_is_counted_too() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\ndata: {a: FlowSchema}\n---\n- FlowSchema\n---\nFlowSchema\n"
    assert skipped(text) == {"ConfigMap objects": 1, "no Kubernetes object": 2}


def test_a_kind_written_with_escapes_is_ours_too() -> None:
    text = f'apiVersion: {GROUP}/v1\nkind: "\\x46lowSchema"\n---\n' * 2
    assert len(read(text).documents) == 2
    assert len(read(text.replace("flowcontrol", '"\\u0066lowcontrol').replace("/v1", '/v1"')).documents) == 2


def test_a_list_of_objects() -> None:
    items = [
        {"apiVersion": f"{GROUP}/v1", "kind": "FlowSchema", "metadata": {"name": "a"}},
        {"apiVersion": "v1", "kind": "ConfigMap"},
        {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": f"{GROUP}/v1beta3", "kind": "FlowSchema"}]},
        5,
        None,
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    loaded = read(text)
    assert [(d.version, d.prefix) for d in loaded.documents] == [
        ("v1", ("items", 0)),
        ("v1beta3", ("items", 2, "items", 0)),
    ]
    assert loaded.skipped == {
        "ConfigMap objects": 1,
        "no Kubernetes object": 1,
    }
    assert read(text, "a.json").documents[0].name == "a"


@pytest.mark.parametrize("kind", ["FlowSchema", "PriorityLevelConfiguration"])
def test_the_items_of_our_lists_need_not_say_what_they_are(kind: str) -> None:
    text = f"apiVersion: {GROUP}/v1\nkind: {kind}List\nitems:\n- metadata: {{name: a}}\n- metadata: {{name: b}}\n"
    found = read(text).documents
    assert [(d.api_version, d.kind, d.name) for d in found] == [(f"{GROUP}/v1", kind, name) for name in "ab"]
    assert found[0].value == {"metadata": {"name": "a"}}


def test_duplicates_and_infinities_go_to_their_own_item() -> None:
    item = f"- apiVersion: {GROUP}/v1\n  kind: FlowSchema\n"
    text = f"apiVersion: v1\nkind: List\nitems:\n{item}  a: 1\n  a: 2\n{item}  b: .nan\n{item}  c: {{d: 1, d: 2}}\n"
    found = read(text).documents
    assert [[duplicate.path for duplicate in d.duplicates] for d in found] == [[("a",)], [], [("c", "d")]]
    assert [d.not_finite for d in found] == [(), (("b",),), ()]


@pytest.mark.parametrize(
    ("api_version", "kind", "marked"),
    [
        (f"{GROUP}/v1", "FlowSchemas", "FlowSchemas"),
        (f"{GROUP}/v1", "flowschema", "flowschema"),
        (f"{GROUP}/v1", "PriorityLevel", "PriorityLevel"),
        (f"{GROUP}/v1", "Deployment", "Deployment"),
        ("flowcontrol.k8s.io/v1", "FlowSchema", "flowcontrol.k8s.io/v1"),
        ("flowcontrol.apiserver.k8s/v1", "FlowSchema", "flowcontrol.apiserver.k8s/v1"),
        ("flow-control.apiserver.k8s.io/v1", "FlowSchema", "flow-control.apiserver.k8s.io/v1"),
        ("v1beta3", "PriorityLevelConfiguration", "v1beta3"),
        (GROUP, "FlowSchema", GROUP),
    ],
)
def test_near_misses(api_version: str, kind: str, marked: str) -> None:
    assert problems(f"apiVersion: {api_version}\nkind: {kind}\n") == [("not-apf", marked, False)]


@pytest.mark.parametrize(
    ("api_version", "kind", "reason"),
    [
        ("example.com/v1", "FlowSchema", "FlowSchema objects of example.com"),
        ("apps/v1", "PriorityLevelConfiguration", "PriorityLevelConfiguration objects of apps"),
        ("v2", "FlowSchema", "FlowSchema objects"),
        ("x" * 10_000 + "/v1", "FlowSchema", f"FlowSchema objects of {'x' * 59}…"),
        ("apps/v1", "FlowSchemas", "FlowSchemas objects"),
    ],
)
def test_other_peoples_kinds_of_the_same_name(api_version: str, kind: str, reason: str) -> None:
    assert problems(f"apiVersion: {api_version}\nkind: {kind}\n") == []
    assert skipped(f"apiVersion: {api_version}\nkind: {kind}\n") == {reason: 1}


def test_a_shell_script_is_a_template_as_a_whole() -> None:
    text = f"cat <<EOF | kubectl apply -f -\n---\n{FLOW_SCHEMA}metadata: {{name: $NAME}}\nEOF\n"
    assert [kind for kind, _, _ in problems(text)] == ["template"]
    assert not read(text).documents


def test_a_near_miss_in_a_list() -> None:
    text = f"apiVersion: v1\nkind: List\nitems:\n- {{apiVersion: {GROUP}/v1, kind: FlowShema}}\n"
    assert problems(text) == [("not-apf", "FlowShema", False)]


@pytest.mark.parametrize(
    ("body", "marked"),
    [
        ("spec: {{ .Values.spec }}\n  a: b\n", "{{ .Values.spec }}"),
        ("{{- if .Values.on }}\nspec: {}\n{{- end }}\n", "{{- if .Values.on }}"),
        ("$EXTRA\n", "$EXTRA"),
        ("cat <<EOF\n", "cat <<EOF"),
        ("#!/bin/sh\nexit\n", "#!/bin/sh"),
    ],
)
def test_a_template_that_is_no_yaml(body: str, marked: str) -> None:
    assert problems(FLOW_SCHEMA + body) == [("template", marked, True)]


def test_a_template_is_said_once_a_file() -> None:
    text = "---\n".join([FLOW_SCHEMA + "{{- if x }}\na: [\n"] * 3)
    assert [kind for kind, _, _ in problems(text)] == ["template"]


def test_a_template_that_parses_is_checked_as_it_is() -> None:
    assert len(read(FLOW_SCHEMA + 'spec: "{{ .Values.spec }}"\n').documents) == 1


@pytest.mark.parametrize("api_version", ["$VERSION", "'{{ .Values.version }}'", "${VERSION}", "flowcontrol/<VERSION>"])
def test_a_placeholder_for_the_version(api_version: str) -> None:
    assert problems(f"apiVersion: {api_version}\nkind: FlowSchema\n") == [("template", api_version, False)]


@pytest.mark.parametrize("body", ["$patch: delete\n", "patch: a\n", "spec: {$patch: replace}\n"])
def test_a_patch(body: str) -> None:
    assert problems(FLOW_SCHEMA + body) == [("template", "FlowSchema", False)]


def test_other_peoples_mistakes_are_only_counted() -> None:
    assert problems("kind: ConfigMap\na: [\n---\n" + FLOW_SCHEMA) == []
    text = "data: {a: FlowSchema}\nb: c: d\n"
    assert problems(text) == [("syntax", ":", True)]


def test_a_mistake_in_the_structure() -> None:
    assert problems(FLOW_SCHEMA + "a: &a [*a]\n") == [("syntax", "*a", True)]
    assert problems(FLOW_SCHEMA + "~: 1\n") == [("syntax", "~", True)]


@pytest.mark.parametrize(
    ("data", "at", "words"),
    [
        (b"kind: FlowSchema\na: \xff\xfe\n", 20, "byte 0xff at offset 20 is not valid UTF-8"),
        (b"\xef\xbb\xbfkind: FlowSchema\na: \xc3", 20, "byte 0xc3 at offset 23 is not valid UTF-8"),
        (b"\xff\xfek\x00i", 4, "byte 0x69 at offset 4 is not valid UTF-16"),
    ],
)
def test_bytes_that_are_no_text(data: bytes, at: int, words: str) -> None:
    (problem,) = load("a.yaml", data).problems
    assert (problem.kind, *problem.place.offsets) == ("unsafe", at, at + 1)
    assert words in problem.message


def test_nothing_at_all() -> None:
    for data in (b"", b"\xef\xbb\xbf", b"\n", b"---\n", b"# FlowSchema\n"):
        loaded = load("a.yaml", data)
        assert not any((loaded.documents, loaded.problems, loaded.skipped))


def sources(text: str) -> dict[str, str]:
    return {source.name: source.text for source in split_helm_output(text) or ()}


def test_the_output_of_helm_template() -> None:
    text = "---\n# Source: c/a.yaml\na: 1\n---\n# Source: c/b.yaml\nb: 1\n---\n# Source: c/a.yaml\na: 2\n"
    assert sources(text) == {"c/a.yaml": "a: 1\n---\na: 2\n", "c/b.yaml": "b: 1\n"}


def test_helm_with_other_line_ends_and_blanks() -> None:
    text = "---\r\n# Source: c/a.yaml \r\na: b---\r\n---\r\n# Source: c/b.yaml\r\nb: 1\r\n"
    assert sources(text) == {"c/a.yaml": "a: b---\r\n", "c/b.yaml": "b: 1\r\n"}


def test_text_before_the_first_source_is_kept() -> None:
    assert sources("x: 1\n---\n# Source: c/a.yaml\na: 1\n") == {"<stdin>": "x: 1\n---\n", "c/a.yaml": "a: 1\n"}


def test_what_helm_did_not_write() -> None:
    assert split_helm_output(FLOW_SCHEMA) is None
    assert split_helm_output("# Source:\na: 1\n") is None


def test_values_are_those_of_kubernetes() -> None:
    body = "spec: {a: yes, b: 017, c: 1e2, d: 2001-01-01, e: ~, f: '5', g: [on, 1.5]}\n"
    value: Any = read(FLOW_SCHEMA + body).documents[0].value["spec"]
    assert value == {"a": True, "b": 15, "c": 100, "d": "2001-01-01", "e": None, "f": "5", "g": [True, 1.5]}


def test_a_comment_that_looks_like_helms_is_a_comment() -> None:
    assert split_helm_output(FLOW_SCHEMA.replace("metadata:", "# Source: the wiki\nmetadata:", 1)) is None
    assert sources("# Source: c/a.yaml\na: 1\n# Source: b\n") == {"c/a.yaml": "a: 1\n# Source: b\n"}


ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {name}
rules:
- apiGroups: [flowcontrol.apiserver.k8s.io]
"""


@pytest.mark.parametrize("name", ['{{ include "x.fullname" . }}', "a: b", "${NAME}: b"])
def test_other_peoples_objects_that_cannot_be_read_are_counted(name: str) -> None:
    text = ROLE.replace("{name}", name)
    assert problems(text) == []
    assert skipped(text) == {"ClusterRole objects": 1}


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowShema\nmetadata: a: b\n",
        "apiVersion flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchem\nmetadata: {}\n",
        "apiVersion: v1\nkind: List\nitems:\n- kind: FlowSchema: x\n",
        ROLE.replace("{name}", "x: y") + "apiVersion: flowcontrol.apiserver.k8s.io/v1\n",
    ],
)
def test_what_may_be_ours_and_cannot_be_read_is_told(text: str) -> None:
    assert [kind for kind, _, _ in problems(text)] == ["syntax"]


def test_items_of_a_list_that_are_no_list() -> None:
    text = f"apiVersion: {GROUP}/v1\nkind: FlowSchemaList\n"
    assert problems(text + "items: {}\n") == [("not-apf", "{}", False)]
    (problem,) = read(text + "items: {}\n").problems
    assert problem.message == "the items of a FlowSchemaList must be a list"
    assert problems(text + "items:\n") == problems(text) == []
