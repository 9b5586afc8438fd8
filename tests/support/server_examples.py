"""Reads the examples in the pages of rules about running servers, and diagnoses them.

A page has examples below its headings Bad and Good: metrics, dumps and manifests.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from apflint.checks import rules_of
from apflint.doctor.evidence import Evidence
from apflint.doctor.level_state import compute_state
from apflint.doctor.rule_runner import diagnose
from apflint.doctor.snapshot import group_servers, parse_part
from apflint.effective_configuration import Effective
from apflint.engine import load_inputs
from apflint.releases import parse_release
from apflint.workspace import build_workspace

if TYPE_CHECKING:
    from apflint.finding import Report
    from apflint.rule_catalogue import Rule

RULES = sorted(rules_of("runtime"))


def example_files(rule: Rule, heading: str) -> dict[str, str]:
    """Return the fenced blocks below a heading as files: `text` for metrics or a dump, `yml` for a manifest."""
    section = rule.body.split(f"## {heading}\n")[1].split("\n## ")[0]
    fences = re.findall(r"^```(\w+)\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)
    return {f"{number}.{language}": text for number, (language, text) in enumerate(fences, 1)}


def diagnose_files(files: dict[str, str], server_concurrency: int | None = None) -> Report:
    """Return the report about the servers in these files, compared with the manifests in the files."""
    parts = [parse_part(name, text) for name, text in files.items() if not name.endswith(".yml")]
    manifests = [(name, text.encode()) for name, text in files.items() if name.endswith(".yml")]
    effective = None
    if manifests:
        effective = Effective(build_workspace(load_inputs(manifests), parse_release("1.37")))
    evidence = [Evidence(compute_state(server), effective, server_concurrency) for server in group_servers(parts)]
    return diagnose(evidence, RULES)
