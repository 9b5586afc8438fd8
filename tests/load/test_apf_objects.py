"""Tests which APF objects are found in a file, and which problems the other content causes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from apflint.engine import Options, check
from apflint.load import Loaded, apf_objects, load
from apflint.load.source_text import STDIN, Source

if TYPE_CHECKING:
    from apflint.finding import Finding

GROUP = "flowcontrol.apiserver.k8s.io"
FLOW_SCHEMA = f"apiVersion: {GROUP}/v1\nkind: FlowSchema\nmetadata: {{name: x}}\n"


def read(text: str, name: str = "a.yaml") -> Loaded:
    return load(name, text.encode("utf-8", "surrogatepass"))


def problems(text: str) -> list[tuple[str, str, bool]]:
    """Return (kind, text that the problem marks, whether the server rejects the text) of each problem."""
    loaded = read(text)
    return [(p.kind, loaded.source.text[slice(*p.place.offsets)], p.is_rejected) for p in loaded.problems]


def skipped(text: str) -> dict[str, int]:
    return dict(read(text).skipped)


@pytest.mark.parametrize("kind", ["FlowSchema", "PriorityLevelConfiguration"])
@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1", "v1beta2", "v1beta3", "v1", "v7"])
def test_kinds_and_versions(kind: str, version: str) -> None:
    (found,) = read(f"apiVersion: {GROUP}/{version}\nkind: {kind}\n").documents
    assert (found.api_version, found.version, found.kind, found.prefix) == (f"{GROUP}/{version}", version, kind, ())


def test_other_objects_are_counted_by_kind() -> None:
    text = "kind: ConfigMap\n---\n" * 2 + "kind: 'Secret'\n---\n# nothing\n---\nfoo\n---\n" + FLOW_SCHEMA
    assert skipped(text) == {"ConfigMap objects": 2, "Secret objects": 1, "no Kubernetes object": 1}
    assert len(read(text).documents) == 1


def test_number_of_other_kinds_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apf_objects, "_MAX_OTHER_KINDS", 2)
    text = "---\n".join(f"kind: {kind}\n" for kind in ("A", "B", "C", "D", "A"))
    assert skipped(f"{text}---\n{FLOW_SCHEMA}") == {"A objects": 2, "B objects": 1, "other objects": 2}


def test_other_objects_that_mention_apf_are_counted() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\ndata: {a: FlowSchema}\n---\n- FlowSchema\n---\nFlowSchema\n"
    assert skipped(text) == {"ConfigMap objects": 1, "no Kubernetes object": 2}


def test_kind_with_escaped_letters_is_found() -> None:
    text = f'apiVersion: {GROUP}/v1\nkind: "\\x46lowSchema"\n---\n' * 2
    assert len(read(text).documents) == 2
    assert len(read(text.replace("flowcontrol", '"\\u0066lowcontrol').replace("/v1", '/v1"')).documents) == 2


def test_list_of_objects() -> None:
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
def test_items_of_typed_lists_inherit_kind_and_version(kind: str) -> None:
    text = f"apiVersion: {GROUP}/v1\nkind: {kind}List\nitems:\n- metadata: {{name: a}}\n- metadata: {{name: b}}\n"
    found = read(text).documents
    assert [(d.api_version, d.kind, d.name) for d in found] == [(f"{GROUP}/v1", kind, name) for name in "ab"]
    assert found[0].value == {"metadata": {"name": "a"}}


def test_duplicates_and_infinities_belong_to_their_item() -> None:
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


FLOW, LEVEL = "FlowSchema", "PriorityLevelConfiguration"
OF_GROUP = f"FlowSchema belongs to the group {GROUP}"


@pytest.mark.parametrize(("api_version", "kind", "message", "help_", "correction"), [
    (f"{GROUP}/v1", "FlowShema", f"the group {GROUP} has no kind `FlowShema`", "did you mean FlowSchema?", FLOW),
    (f"{GROUP}/v1", "PriorityLevel", f"the group {GROUP} has no kind `PriorityLevel`", f"did you mean {LEVEL}?", LEVEL),
    # A misspelled kind of a list gets help but no correction, because the items may be of another kind.
    (f"{GROUP}/v1", "FlowSchemasList", f"the group {GROUP} has no kind `FlowSchemasList`", "did you mean FlowSchemaList?", None),
    (f"{GROUP}/v1", "Pod", f"the group {GROUP} has no kind `Pod`", f"use {FLOW} or {LEVEL}", None),
    ("", FLOW, "this FlowSchema has no apiVersion, and kubectl rejects it", f"add apiVersion: {GROUP}/v1", None),
    ("", LEVEL, f"this {LEVEL} has no apiVersion, and kubectl rejects it", f"add apiVersion: {GROUP}/v1", None),
    *(
        (value, FLOW, f"apiVersion `{value}` does not exist: {OF_GROUP}", f"did you mean apiVersion: {intended}?", intended)
        for value, intended in (
            (GROUP, f"{GROUP}/v1"),
            ("v1", f"{GROUP}/v1"),
            ("v1alpha1", f"{GROUP}/v1alpha1"),
            ("v1beta3", f"{GROUP}/v1beta3"),
            ("flowcontrol/v1beta2", f"{GROUP}/v1beta2"),
            ("flowcontrol.apiserver.k8s.io./v1", f"{GROUP}/v1"),
            ("flowcontrl.apiserver.k8s.io/v1beta3", f"{GROUP}/v1beta3"),
        )
    ),
])  # fmt: skip
def test_advice_about_near_misses(
    api_version: str, kind: str, message: str, help_: str, correction: str | None
) -> None:
    (problem,) = read(f"{api_version and f'apiVersion: {api_version}'}\nkind: {kind}\n# FlowSchema {GROUP}\n").problems
    assert (problem.message, problem.help) == (message, help_)
    old = kind if f"{GROUP}/" in api_version or not api_version else api_version
    assert problem.place.source.text[slice(*problem.place.offsets)] == old
    assert problem.correction == (None if correction is None else (old, correction))


@pytest.mark.parametrize(
    ("api_version", "kind", "reason"),
    [
        ("v1gamma1", "FlowSchema", "FlowSchema objects"),
        ("v11", "FlowSchema", "FlowSchema objects"),
        ("apiserver.flowcontrol.io/v1", "FlowSchema", "FlowSchema objects of apiserver.flowcontrol.io"),
        ("example.com/v1", "FlowSchema", "FlowSchema objects of example.com"),
        ("apps/v1", "PriorityLevelConfiguration", "PriorityLevelConfiguration objects of apps"),
        ("v2", "FlowSchema", "FlowSchema objects"),
        ("x" * 10_000 + "/v1", "FlowSchema", f"FlowSchema objects of {'x' * 59}…"),
        ("apps/v1", "FlowSchemas", "FlowSchemas objects"),
    ],
)
def test_same_kind_in_another_group_is_counted(api_version: str, kind: str, reason: str) -> None:
    assert problems(f"apiVersion: {api_version}\nkind: {kind}\n") == []
    assert skipped(f"apiVersion: {api_version}\nkind: {kind}\n") == {reason: 1}


def test_shell_script_is_a_template() -> None:
    text = f"cat <<EOF | kubectl apply -f -\n---\n{FLOW_SCHEMA}metadata: {{name: $NAME}}\nEOF\n"
    assert [kind for kind, _, _ in problems(text)] == ["template"]
    assert not read(text).documents


def test_near_miss_in_a_list() -> None:
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
def test_template_that_is_not_yaml(body: str, marked: str) -> None:
    assert problems(FLOW_SCHEMA + body) == [("template", marked, True)]


def test_template_is_reported_once_per_file() -> None:
    text = "---\n".join([FLOW_SCHEMA + "{{- if x }}\na: [\n"] * 3)
    assert [kind for kind, _, _ in problems(text)] == ["template"]


def test_template_that_is_valid_yaml_is_checked() -> None:
    assert len(read(FLOW_SCHEMA + 'spec: "{{ .Values.spec }}"\n').documents) == 1


@pytest.mark.parametrize("api_version", ["$VERSION", "'{{ .Values.version }}'", "${VERSION}", "flowcontrol/<VERSION>"])
def test_placeholder_as_version(api_version: str) -> None:
    assert problems(f"apiVersion: {api_version}\nkind: FlowSchema\n") == [("template", api_version, False)]


@pytest.mark.parametrize("body", ["$patch: delete\n", "patch: a\n", "spec: {$patch: replace}\n"])
def test_patch_is_reported(body: str) -> None:
    assert problems(FLOW_SCHEMA + body) == [("template", "FlowSchema", False)]


HELM = "render the chart: helm template CHART | apflint check -"
SHELL = "replace the placeholders: envsubst < FILE | apflint check -"


@pytest.mark.parametrize(("text", "kind", "message", "help_", "is_rejected"), [
    (
        f"a: 1\n...\n«%YAML 1.2»\n---\n{FLOW_SCHEMA}",
        "syntax", "`%YAML 1.2`: Kubernetes reads only YAML 1.1", None, True,
    ),
    (
        f"a: 1\n---\n{FLOW_SCHEMA}spec: «*all»\n",
        "syntax", "the alias `*all` has no anchor `&all` before it", "quote the wildcard: '*'", True,
    ),
    (f"{FLOW_SCHEMA}? «[»a]\n: b\n", "syntax", "a key must not be a list or a mapping in Kubernetes", None, True),
    (f"{FLOW_SCHEMA}spec: «{{{{ .Values.a }}}}»\n", "template", "this is a Helm or Go template", HELM, True),
    (f"{FLOW_SCHEMA}«$SPEC»\n", "template", "this is text with placeholders", SHELL, True),
    (
        "apiVersion: «flowcontrol.apiserver.k8s.io/$VERSION»\nkind: FlowSchema\n",
        "template", "apiVersion is the placeholder `$VERSION`", "replace the placeholder: envsubst < FILE | apflint check -", False,
    ),
    (
        FLOW_SCHEMA.replace("FlowSchema", "«FlowSchema»") + "$patch: delete\n",
        "template", "this is a patch for a FlowSchema", "check the result: apflint check -k DIR", False,
    ),
    (
        f"apiVersion: {GROUP}/v1\nkind: FlowSchemaList\nitems: «{{}}»\n",
        "not-apf", "the items of a FlowSchemaList must be a list", None, False,
    ),
])  # fmt: skip
def test_every_part_of_a_problem(text: str, kind: str, message: str, help_: str | None, is_rejected: bool) -> None:
    before, marked, after = re.split("[«»]", text)
    (problem,) = read(before + marked + after).problems
    assert (problem.kind, problem.message, problem.help) == (kind, message, help_)
    start, end = problem.place.offsets
    assert (start, end) == (len(before), len(before) + len(marked))
    assert (problem.is_rejected, problem.correction) == (is_rejected, None)


@pytest.mark.parametrize(("name", "maximum", "text", "message"), [
    ("load.MAX_LINES", 3, f"«a»: 1\n{FLOW_SCHEMA}", "more than 3 lines in one file"),
    ("load.yaml.MAX_DOCUMENTS", 1, f"a: 1\n«-»--\n{FLOW_SCHEMA}---\n{FLOW_SCHEMA}", "more than 1 documents in one file"),
    ("load.yaml.MAX_DOCUMENT_CHARACTERS", 50, f"«a»{FLOW_SCHEMA[1:]}", "more than 50 characters in one document"),
    ("load.yaml.MAX_DEPTH", 2, f"{FLOW_SCHEMA}spec: [[«[»1]]]\n", "nested more than 2 levels deep"),
    ("load.yaml.MAX_VALUES", 5, FLOW_SCHEMA.replace("{", "«{»"), "more than 5 values in one document"),
])  # fmt: skip
def test_text_beyond_a_bound_is_unsafe(
    name: str, maximum: int, text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kind `unsafe` means that apflint does not check the text, although the server may accept it."""
    before, marked, after = re.split("[«»]", text)
    monkeypatch.setattr(f"apflint.{name}", maximum)
    (problem,) = read(before + marked + after).problems
    assert (problem.kind, problem.message, problem.is_rejected) == ("unsafe", message, False)
    assert problem.place.offsets == (len(before), len(before) + 1)


def test_bound_of_characters_is_that_of_each_document(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apflint.load.yaml.MAX_DOCUMENT_CHARACTERS", len(FLOW_SCHEMA) + 4)
    loaded = read(f"{FLOW_SCHEMA}---\n" * 5)
    assert (len(loaded.documents), loaded.problems) == (5, ())


@pytest.mark.parametrize(
    ("name", "is_rendered"), [("a.yaml", False), (STDIN, True), ("live:flowschemas/a", True), ("a-", False)]
)
def test_rendered_sources(name: str, is_rendered: bool) -> None:
    assert Source(name, "").rendered is is_rendered


@pytest.mark.parametrize(
    ("body", "documents"), [("", 9), ("spec: [" + "1," * 100 + "]\n", 4), ("#" + ":" * 200 + "\n", 3)]
)
def test_content_of_a_file_is_bounded(body: str, documents: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The budget of a file is spent on documents (100 each) and on line ends, commas and colons (1 each)."""
    monkeypatch.setattr("apflint.load.apf_objects.MAX_FILE_CONTENT", 1000)
    text = (FLOW_SCHEMA + body + "---\n") * 20
    loaded = read(text)
    (problem,) = loaded.problems
    assert problem.message == f"this file is too large: apflint checks only its first {documents} documents"
    assert (problem.kind, problem.help, problem.is_rejected) == ("unsafe", "split the file", False)
    assert len(loaded.documents) == documents
    start, end = problem.place.offsets
    assert text.count("kind:", 0, start) == documents
    assert end == start + 1
    assert not read(FLOW_SCHEMA + body * 9).problems  # the first document is always read
    others = "kind: ConfigMap\n---\n" * 20
    assert not read(others + FLOW_SCHEMA).problems


def test_items_of_a_list_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("apflint.load.apf_objects.MAX_FILE_CONTENT", 1000)
    items = f"- {{apiVersion: {GROUP}/v1, kind: FlowSchema}}\n" * 20
    loaded = read(f"apiVersion: v1\nkind: List\nitems:\n{items}")
    # Costs: 100 for the document, 86 for its line ends, commas and colons, and 100 for each item.
    (problem,) = loaded.problems
    assert problem.message == "this file is too large: apflint checks only its first 8 documents"
    assert (len(loaded.documents), problem.help, problem.is_rejected) == (8, "split the file", False)
    assert loaded.source.text[: problem.place.offsets[0]].count("kind: FlowSchema") == 8


@pytest.mark.parametrize(("value", "counts"), [
    ({"kind": "Pod"}, {"Pod objects": 1}),
    ({"apiVersion": None, "kind": "Pod"}, {"Pod objects": 1}),
    ({"apiVersion": 1, "kind": "Pod"}, {"no Kubernetes object": 1}),
    ({"apiVersion": "v1"}, {"no Kubernetes object": 1}),
    ({"apiVersion": "v1", "kind": ""}, {"no Kubernetes object": 1}),
    ({"apiVersion": "v1", "kind": 3}, {"no Kubernetes object": 1}),
    ([{"kind": "Pod"}], {"no Kubernetes object": 1}),
    ({"apiVersion": "v1", "kind": "List", "items": [{"kind": "Pod"}, 3, None, {"kind": "Job"}]},
        {"Job objects": 1, "Pod objects": 1, "no Kubernetes object": 1}),
    ({"apiVersion": "v2", "kind": "List", "items": [{"kind": "Pod"}]}, {"List objects": 1}),
    ({"apiVersion": "v1", "kind": "List", "items": {}}, {"List objects": 1}),
    ({"apiVersion": "v1", "kind": "Lists", "items": [{"kind": "Pod"}]}, {"Lists objects": 1}),
])  # fmt: skip
def test_other_values_are_counted_with_and_without_a_tree(value: object, counts: dict[str, int]) -> None:
    text = json.dumps(value)
    assert dict(read(text, "a.json").skipped) == counts
    # A list that mentions APF is parsed, but its items are counted like those of an unparsed list.
    mention = {"kind": "ConfigMap", "data": {GROUP: "FlowSchema", "kind": "FlowSchema"}}
    both = json.dumps({"apiVersion": "v1", "kind": "List", "items": [value, mention]})
    assert dict(read(both, "a.json").skipped) == {**counts, "ConfigMap objects": 1}


def test_mistakes_in_other_objects_are_counted() -> None:
    assert problems("kind: ConfigMap\na: [\n---\n" + FLOW_SCHEMA) == []
    text = "data: {a: FlowSchema}\nb: c: d\n"
    assert problems(text) == [("syntax", ":", True)]


def test_decode_errors_are_reported() -> None:
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
def test_undecodable_bytes(data: bytes, at: int, words: str) -> None:
    (problem,) = load("a.yaml", data).problems
    assert (problem.kind, *problem.place.offsets) == ("unsafe", at, at + 1)
    assert (problem.help, problem.is_rejected, problem.correction) == (None, True, None)
    assert words in problem.message


def test_empty_input() -> None:
    for data in (b"", b"\xef\xbb\xbf", b"\n", b"---\n", b"# FlowSchema\n"):
        loaded = load("a.yaml", data)
        assert not any((loaded.documents, loaded.problems, loaded.skipped))


def test_values_are_decoded_as_kubernetes_does() -> None:
    body = "spec: {a: yes, b: 017, c: 1e2, d: 2001-01-01, e: ~, f: '5', g: [on, 1.5]}\n"
    value: Any = read(FLOW_SCHEMA + body).documents[0].value["spec"]
    assert value == {"a": True, "b": 15, "c": 100, "d": "2001-01-01", "e": None, "f": "5", "g": [True, 1.5]}


ROLE = """\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata:
  name: {name}
rules:
- apiGroups: [flowcontrol.apiserver.k8s.io]
"""


@pytest.mark.parametrize("name", ['{{ include "x.fullname" . }}', "a: b", "${NAME}: b"])
def test_unreadable_other_objects_are_counted(name: str) -> None:
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
def test_unreadable_documents_that_may_be_apf_are_reported(text: str) -> None:
    assert [kind for kind, _, _ in problems(text)] == ["syntax"]


def test_items_of_typed_list_must_be_a_list() -> None:
    text = f"apiVersion: {GROUP}/v1\nkind: FlowSchemaList\n"
    assert problems(text + "items: {}\n") == [("not-apf", "{}", False)]
    (problem,) = read(text + "items: {}\n").problems
    assert problem.message == "the items of a FlowSchemaList must be a list"
    assert problems(text + "items:\n") == problems(text) == []


# Objects that resemble APF objects, and manifests that only delete an object.

FLOW_SCHEMA_SPEC = {"matchingPrecedence": 5000, "priorityLevelConfiguration": {"name": "workload-low"}}
LEVEL_SPEC = {"type": "Limited", "limited": {"limitResponse": {"type": "Reject"}}}


def manifest(api_version: str, kind: str, spec: Any, **annotations: str) -> str:
    metadata = {"name": "x", "annotations": annotations}
    return yaml.safe_dump(
        {"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec}, sort_keys=False
    )


def findings(text: str) -> list[Finding]:
    return list(check([("a.yaml", text.encode())], Options()).findings)


@pytest.mark.parametrize(
    ("api_version", "correction"),
    [
        ("apiserver.config.k8s.io/v1", f"{GROUP}/v1"),
        ("apiserver.config.k8s.io/v1beta3", f"{GROUP}/v1beta3"),
        ("flows.example.com/v7", f"{GROUP}/v1"),
        ("etc", f"{GROUP}/v1"),
    ],
)
@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("FlowSchema", FLOW_SCHEMA_SPEC),
        ("FlowSchema", {"matchingPrecedence": 1}),
        ("FlowSchema", {"priorityLevelConfiguration": None}),
        ("FlowSchema", {"distinguisherMethod": {}}),
        ("PriorityLevelConfiguration", LEVEL_SPEC),
        ("PriorityLevelConfiguration", {"limited": {}}),
        ("PriorityLevelConfiguration", {"type": "Limited"}),
        ("PriorityLevelConfiguration", {"type": "Exempt"}),
    ],
)
def test_apf_spec_in_another_group_is_reported(api_version: str, correction: str, kind: str, spec: Any) -> None:
    (finding,) = findings(manifest(api_version, kind, spec))
    assert finding.rule == "APF005"
    assert (finding.span.line, finding.span.column) == (1, 13)
    assert f"`{api_version}`" in finding.message
    assert finding.fix is not None
    assert [edit.new for edit in finding.fix.edits] == [correction]
    assert not finding.fix.safe


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("FlowSchema", {"rules": []}),
        ("FlowSchema", None),
        ("FlowSchema", []),
        ("FlowSchema", LEVEL_SPEC),
        ("PriorityLevelConfiguration", {"type": "Fast", "limited": True}),
        ("PriorityLevelConfiguration", FLOW_SCHEMA_SPEC),
        ("FlowPlan", FLOW_SCHEMA_SPEC),
    ],
)
def test_other_spec_in_another_group_is_not_reported(kind: str, spec: Any) -> None:
    assert not findings(manifest("flows.example.com/v1", kind, spec))


@pytest.mark.parametrize("kind", ["FlowSchema", "PriorityLevelConfiguration"])
@pytest.mark.parametrize("with_spec", [False, True])
def test_manifest_that_only_deletes_an_object_is_skipped(kind: str, with_spec: bool) -> None:
    spec = {"FlowSchema": FLOW_SCHEMA_SPEC, "PriorityLevelConfiguration": LEVEL_SPEC}[kind] if with_spec else None
    text = manifest(f"{GROUP}/v1", kind, spec, **{"release.openshift.io/delete": "true"})
    report = check([("a.yaml", text.encode())], Options())
    assert not report.findings
    assert report.objects == 0
    assert [(entry.reason, entry.documents) for entry in report.skipped] == [
        ("manifests that only delete an object: release.openshift.io/delete", 1)
    ]


@pytest.mark.parametrize("value", ["false", "True", ""])
def test_other_values_of_the_annotation_do_not_delete(value: str) -> None:
    text = manifest(f"{GROUP}/v1", "FlowSchema", FLOW_SCHEMA_SPEC, **{"release.openshift.io/delete": value})
    assert check([("a.yaml", text.encode())], Options()).objects == 1
