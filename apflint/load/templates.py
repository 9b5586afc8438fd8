"""Recognising text that is not a manifest yet: Helm and Go templates, shell scripts, Terraform, Markdown, patches.

Only asked where the text as it stands is no manifest: what does parse is checked as it is, because that is what the API
server would get.
"""

from __future__ import annotations

import re

from apflint.record import NamedTuple
from apflint.wording import quote


class Template(NamedTuple):
    """What the text is (`a Helm template`), and how to get manifests from it; `start` and `end` show why."""

    what: str
    render: str
    start: int
    end: int


_SHELL = ("a shell script", "Let it print the manifest and pipe that: ... | apflint check -")
_FORMATS = {
    (".tf", ".hcl"): (
        "a Terraform file",
        "Move the manifest to a YAML file that Terraform reads with file(), and check that file",
    ),
    (".md", ".markdown"): ("a Markdown file", "Move the manifest to a YAML file, and check that file"),
}
"""Formats by the extension of a file's name: what a file is, and how to check the manifests in it."""
_WORDS = re.compile("flowcontrol|FlowSchema|PriorityLevelConfiguration")
_GO = re.compile(r"\{\{.*?\}\}|\{\{")
_HEREDOC = re.compile(r"^.*<<-?\s*['\"]?[A-Z_]+['\"]?.*$|^#!.*$", re.MULTILINE)
_SCRIPT = re.compile(r"\A#!|\A[^#\n][^\n]*<<-?\s*['\"]?[A-Z_]+['\"]?[^\n]*")
_VARIABLE = re.compile(r"\$\{[^${}\n]*\}|\$\([^$()\n]*\)|\$[A-Za-z_][A-Za-z0-9_]*|%[A-Z_]+%|<[A-Z_]+>")


def in_other_format(name: str, text: str) -> Template | None:
    """The template that a whole text is if its file name ends like that of a format that only contains manifests."""
    for extensions, what in _FORMATS.items():
        if name.lower().endswith(extensions):
            found = _WORDS.search(text)
            return Template(*what, found.start() if found else 0, found.end() if found else 0)
    return None


def is_script(text: str) -> Template | None:
    """The template that a whole text is if its first line is that of a shell script, or of a here-document in one."""
    found = _SCRIPT.match(text)
    return None if found is None else Template(*_SHELL, found.start(), found.end())


def in_text(text: str, start: int, end: int) -> Template | None:
    """The template in `text[start:end]`, a piece that does not parse as YAML."""
    if found := _GO.search(text, start, end):
        return Template(
            "a Helm or Go template",
            "Render it first: helm template CHART | apflint check -",
            found.start(),
            found.end(),
        )
    if found := _HEREDOC.search(text, start, end):
        return Template(*_SHELL, found.start(), found.end())
    if found := _VARIABLE.search(text, start, end):
        return Template(
            "a text with placeholders",
            "Fill them in first: envsubst < FILE | apflint check -",
            found.start(),
            found.end(),
        )
    return None


def in_name(value: str) -> str | None:
    """The placeholder in a value that ought to be a plain word (`$apf_api_version`, `{{ .Values.name }}`), or None."""
    found = _GO.search(value) or _VARIABLE.search(value)
    return found.group() if found else None


def suggest_rendering(value: str) -> str | None:
    """Return a question for a value with a placeholder that a template should have filled in, or None."""
    placeholder = in_name(value)
    return f"is {quote(placeholder)} a placeholder? render the template before checking it" if placeholder else None


def is_patch(value: dict[str, object]) -> bool:
    """Whether a mapping with apiVersion and kind is a patch for such an object rather than the object.

    `$patch` is kustomize's and kubectl's directive; `patch` and `patchType` beside a kind are how OpenShift's
    managed-cluster configuration writes them. Neither is a field of any Kubernetes object.
    """
    if "$patch" in value or ("patch" in value and "spec" not in value):
        return True
    return any(isinstance(part, dict) and "$patch" in part for part in value.values())


def placeholder_hint(value: str) -> str:
    """Return a sentence, after a space, for a value that a template should have filled in, or an empty string."""
    found = in_name(value)
    return (
        f" {quote(found)} looks like a placeholder: render the file before it is checked or applied." if found else ""
    )
