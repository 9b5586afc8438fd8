"""Recognizes text that is not a manifest but contains or generates manifests: templates, scripts, Terraform, Markdown, patches.

A template that is valid YAML is checked like a manifest, because the API server might receive it unchanged.
"""

from __future__ import annotations

import re

from apflint.named_tuple import NamedTuple
from apflint.wording import quote


class Template(NamedTuple):
    """Text that is not a manifest but contains or generates manifests.

    `start` and `end` are the offsets of the part that a message about the text points to, such as
    `{{ .Values.name }}` or the first line of a shell script. Both are 0 if there is no such part.
    """

    what: str
    """Description for a message, such as `a shell script`."""
    help: str
    """Advice on how to get manifests from the template."""
    start: int
    end: int


_SHELL = ("a shell script", "pipe the output of the script: ./SCRIPT | apflint check -")
_IN_TEXT = "move the manifest to a YAML file, and check that file"
_OF_PROGRAM = "check the manifests that the program generates: PROGRAM | apflint check -"
_FILE_FORMATS = {
    (".tf", ".hcl"): (
        "a Terraform file",
        "move the manifest to a YAML file that Terraform reads with file(), and check that file",
    ),
    (".md", ".markdown"): ("a Markdown file", _IN_TEXT),
    (".adoc", ".asciidoc"): ("an AsciiDoc file", _IN_TEXT),
    (".rst",): ("a reStructuredText file", _IN_TEXT),
    (".html", ".htm"): ("an HTML file", _IN_TEXT),
    (".go",): ("a Go program", _OF_PROGRAM),
    (".py",): ("a Python program", _OF_PROGRAM),
    (".ts", ".tsx", ".mts", ".cts"): ("a TypeScript program", _OF_PROGRAM),
    (".js", ".jsx", ".mjs", ".cjs"): ("a JavaScript program", _OF_PROGRAM),
    (".java", ".kt", ".kts", ".scala", ".cs", ".rs", ".rb", ".swift"): ("a program", _OF_PROGRAM),
    (".cue",): ("a CUE file", "export the file: cue export --out yaml FILE | apflint check -"),
    (".jsonnet", ".libsonnet"): ("a Jsonnet file", "evaluate the file: jsonnet FILE | apflint check -"),
    (".j2", ".jinja", ".jinja2"): ("a Jinja template", "render the template, and pipe the result to: apflint check -"),
}
"""Maps file extensions to (description, advice). Commands in the advice must work without knowledge of the project."""
_APF_WORDS = re.compile("flowcontrol|FlowSchema|PriorityLevelConfiguration")
_GO = re.compile(r"\{\{.*?\}\}|\{\{")
_HEREDOC = re.compile(r"^.*<<-?\s*['\"]?[A-Z_]+['\"]?.*$|^#!.*$", re.MULTILINE)
_SCRIPT = re.compile(r"\A#!|\A[^#\n][^\n]*<<-?\s*['\"]?[A-Z_]+['\"]?[^\n]*")
_VARIABLE = re.compile(r"\$\{[^${}\n]*\}|\$\([^$()\n]*\)|\$[A-Za-z_][A-Za-z0-9_]*|%[A-Z_]+%|<[A-Z_]+>")


def recognize_file(name: str, text: str) -> Template | None:
    """Return a Template if the whole file is a template, program, script or document, or None for any other file.

    The extension of the name identifies a programming language or a format. The first line identifies a shell script.
    """
    extension = "".join(name.lower().rpartition(".")[1:]) if "." in name else ""
    for extensions, (what, help_) in _FILE_FORMATS.items():
        if extension in extensions:
            match = _APF_WORDS.search(text)
            return Template(what, help_, *(match.span() if match else (0, 0)))
    script = _SCRIPT.match(text)
    return Template(*_SHELL, *script.span()) if script else None


def recognize_template(text: str, start: int, end: int) -> Template | None:
    """Return a Template for the invalid YAML in `text[start:end]`, or None if it is no known kind of template."""
    if match := _GO.search(text, start, end):
        return Template(
            "a Helm or Go template", "render the chart: helm template CHART | apflint check -", *match.span()
        )
    if match := _HEREDOC.search(text, start, end):
        return Template(*_SHELL, *match.span())
    if match := _VARIABLE.search(text, start, end):
        return Template(
            "text with placeholders", "replace the placeholders: envsubst < FILE | apflint check -", *match.span()
        )
    return None


def find_placeholder(value: str) -> str | None:
    """Return the first placeholder in a value, such as `{{ .Values.name }}` or `$NAME`, or None if there is none."""
    match = _GO.search(value) or _VARIABLE.search(value)
    return match.group() if match else None


def suggest_rendering(value: str) -> str | None:
    """Return a help text about rendering the placeholder in a value, or None if the value has no placeholder."""
    placeholder = find_placeholder(value)
    return f"is {quote(placeholder)} a placeholder? render the template before checking it" if placeholder else None


def is_patch(value: dict[str, object]) -> bool:
    """Return whether a mapping with apiVersion and kind is a patch and not a complete object.

    kustomize and kubectl use the directive `$patch`. OpenShift's managed-cluster configuration uses the fields `patch` and
    `patchType`. No Kubernetes object has these fields.
    """
    if "$patch" in value or ("patch" in value and "spec" not in value):
        return True
    return any(isinstance(part, dict) and "$patch" in part for part in value.values())
