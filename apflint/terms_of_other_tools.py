"""Translates words of kubectl, ruff, kubeconform, promtool and load generators to words of apflint.

This module is imported only if the user writes an unknown word.
"""

from __future__ import annotations

FAMILIAR_WORDS = {
    # commands
    "analyze": "doctor",
    "audit": "replay",
    "auth": "explain",
    "can-i": "explain",
    "convert": "migrate",
    "describe": "explain",
    "format": "fix",
    "fmt": "fix",
    "get": "explain",
    "lint": "check",
    "metrics": "doctor",
    "scan": "check",
    "server": "lsp",
    "top": "doctor",
    "validate": "check",
    "verify": "check",
    "version": "--version",
    # options
    "--check": "--diff",
    "-o": "--format",
    "--context": "--kube-context",
    "--disable": "--ignore",
    "--disable-rules": "--ignore",
    "--dry-run": "--diff",
    "--enable": "--extend-select",
    "--exclude-rule": "--ignore",
    "--exclude-rules": "--ignore",
    "--exit-code": "--fail-on",
    "--group": "--as-group",
    "--fix-only": "--fix",
    "--ignore-filename-pattern": "--exclude",
    "--json": "--format json",
    "--k8s-version": "--kubernetes",
    "--kube-version": "--kubernetes",
    "--kubernetes-version": "--kubernetes",
    "--level": "--fail-on",
    "--lint-fatal": "--fail-on warning",
    "--max-mutating-requests-inflight": "--server-concurrency",
    "--max-requests-inflight": "--server-concurrency",
    "--min-severity": "--fail-on",
    "--no-color": "--color never",
    "--output": "--format",
    "--output-file": "--report",
    "--output-format": "--format",
    "--rules": "--select",
    "--seats": "--server-concurrency",
    "--serviceaccount": "--as",
    "--severity": "--fail-on",
    "--skip": "--ignore",
    "--strict": "--fail-on warning",
    "--summary": "--statistics",
    "--target-version": "--kubernetes",
    "--unsafe": "--unsafe-fixes",
    "--user": "--as",
    "--warn-only": "--exit-zero",
    # keys of settings, loads and policy tests
    "disable": "ignore",
    "duration": "service",
    "enable": "extend-select",
    "kubernetes-version": "kubernetes",
    "latency": "service",
    "output-format": "format",
    "qps": "rate",
    "rps": "rate",
    "rules": "select",
    "skip": "ignore",
    "target-version": "kubernetes",
    "user": "as",
    "workers": "concurrency",
}
"""Maps words of other tools to words of apflint. A translation may include a value: `--json` is `--format json`."""


def translate(word: str, known: tuple[str, ...]) -> str | None:
    """Return the term of apflint that means the same as `word` in another tool, such as `doctor` for `top`.

    Return None if apflint has no such term, or if the term is not in `known`. `known` contains the
    terms that are possible at this place.
    """
    translated = FAMILIAR_WORDS.get(word)
    return translated if translated is not None and translated.split(" ")[0] in known else None
