"""Files in other formats that contain manifests: what is reported on them, and where."""

from __future__ import annotations

import pytest

from apflint.engine import Options, check

MANIFEST = "apiVersion: flowcontrol.apiserver.k8s.io/v1\nkind: FlowSchema\nmetadata: {name: x}\nspec: {matchingPrecedence: 5}\n"
TERRAFORM = f'resource "kubernetes_manifest" "x" {{\n  manifest = yamldecode(<<EOT\n{MANIFEST}EOT\n  )\n}}\n'
MARKDOWN = f"# Flows\n\nText: with a colon: and another\n\n***\n\n```yaml\n{MANIFEST}```\n"


def reported(name: str, text: str) -> list[tuple[str, int, str]]:
    """Rule, line and message of each finding."""
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
        ("main.sh", f"cat <<EOT\n{MANIFEST}EOT\n", "a shell script", 1),
    ],
)
def test_files_that_contain_manifests(name: str, text: str, what: str, line: int) -> None:
    assert reported(name, text) == [("APF003", line, f"this is {what}")]


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
