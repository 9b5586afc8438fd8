"""Tests the findings in files that are not manifests, but contain manifests, such as templates and scripts.

The tests check the rule, the line and the message of each finding.
"""

from __future__ import annotations

import pytest

from apflint.engine import Options, check

MANIFEST = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: x}\nspec: {matchingPrecedence: 5}\n"
TERRAFORM = f'resource "kubernetes_manifest" "x" {{\n  manifest = yamldecode(<<EOT\n{MANIFEST}EOT\n  )\n}}\n'
MARKDOWN = f"# Flows\n\nText: with a colon: and another\n\n***\n\n```yaml\n{MANIFEST}```\n"
GO = f"package main\n\n// {{{{ no template }}}}\nconst schema = `{MANIFEST}`\n"
CUE = 'package apf\n\nlevel: {kind: "PriorityLevelConfiguration"\n\tmetadata: name: "x"}\n'
TYPESCRIPT = 'const team = "a";\nconst name = `${team}-level`;\nnew k8s.flowcontrol.v1.FlowSchema(name, {});\n'


def reported(name: str, text: str) -> list[tuple[str, int, str]]:
    """Return rule, line and message of each finding."""
    findings = check([(name, text.encode())], Options()).findings
    return [(finding.rule, finding.span.line, finding.message) for finding in findings]


@pytest.mark.parametrize(
    ("name", "text", "what", "line"),
    [
        ("main.tf", TERRAFORM, "a Terraform file", 3),
        ("dir/MAIN.TF", TERRAFORM, "a Terraform file", 3),
        ("apf.hcl", TERRAFORM, "a Terraform file", 3),
        ("README.md", MARKDOWN, "a Markdown file", 8),
        ("notes.markdown", MARKDOWN, "a Markdown file", 8),
        ("manifests.go", GO, "a Go program", 4),
        ("apf.cue", CUE, "a CUE file", 3),
        ("index.ts", TYPESCRIPT, "a TypeScript program", 3),
        ("index.mjs", TYPESCRIPT, "a JavaScript program", 3),
        ("synth.py", f'print("""{MANIFEST}""")', "a Python program", 1),
        ("Main.java", f'String s = """{MANIFEST}""";', "a program", 1),
        ("apf.jsonnet", CUE, "a Jsonnet file", 3),
        ("apf.yaml.j2", f"# {{{{ managed }}}}\n{MANIFEST}", "a Jinja template", 2),
        ("apf.rst", f"Flows::\n\n  {MANIFEST}", "a reStructuredText file", 3),
        ("apf.adoc", f"= Flows\n\n----\n{MANIFEST}----\n", "an AsciiDoc file", 4),
        ("apf.html", f"<pre>{MANIFEST}</pre>", "an HTML file", 1),
        ("main.sh", f"cat <<EOT\n{MANIFEST}EOT\n", "a shell script", 1),
    ],
)
def test_files_that_contain_manifests(name: str, text: str, what: str, line: int) -> None:
    assert reported(name, text) == [("APF003", line, f"this is {what}")]


@pytest.mark.parametrize(
    ("name", "words"), [("a.go", "PROGRAM | apflint"), ("a.cue", "cue export"), ("a.j2", "render the template")]
)
def test_advice_fits_the_file(name: str, words: str) -> None:
    (finding,) = check([(name, GO.encode())], Options()).findings
    assert words in (finding.help or "")
    assert "helm" not in (finding.help or "")


@pytest.mark.parametrize("name", ["go", "a.cue.yaml", "manifests.gopher", "cue/a.yaml"])
def test_other_names_are_read_as_manifests(name: str) -> None:
    assert all(rule != "APF003" for rule, _, _ in reported(name, MANIFEST))


@pytest.mark.parametrize("name", ["main.tf", "README.md"])
def test_files_without_a_manifest_are_other_text(name: str) -> None:
    report = check([(name, b'# nothing\n\nresource "a" "b" {}\n')], Options())
    assert not report.findings


@pytest.mark.parametrize(("rule_line", "shown"), [("***", '"***"'), ("  *****", '"*****"')])
def test_horizontal_rule_in_yaml(rule_line: str, shown: str) -> None:
    ((rule, line, message),) = reported("a.yaml", f"{rule_line}\n{MANIFEST}")
    assert (rule, line) == ("APF001", 1)
    assert message == f"{shown} is a horizontal rule of Markdown, not YAML"


def test_fence_in_yaml() -> None:
    ((rule, line, message),) = reported("a.yaml", f"```yaml\n{MANIFEST}```\n")
    assert (rule, line) == ("APF001", 1)
    assert message == '"```yaml" is a code fence of Markdown, not YAML'


def test_wildcard_without_quotes_is_still_an_alias() -> None:
    ((rule, _, message),) = reported("a.yaml", MANIFEST.replace("5}", "5, rules: [*]}"))
    assert rule == "APF001"
    assert "alias" in message
