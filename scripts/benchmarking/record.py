"""The record of a benchmark run, and the tables of the documentation that are generated from the record."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RECORD = Path("docs/contributing/benchmark.json")
"""The record of the published run."""
_BLOCK = re.compile(r"(?s)<!-- benchmark [0-9a-z]* -->\n.*?<!-- end of benchmark -->\n")
STARTUP_PATHS = ("apflint", "pyproject.toml", "scripts/benchmarking")
"""Files on which the published times depend. The published run must include the last change of these files."""


def make_record(about: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    """Return the JSON record of a run. `about` contains commit, date, processors, runs and versions."""
    return json.dumps({"about": about, "rows": rows}, indent=1, ensure_ascii=False) + "\n"


def update_page(name: str, page: str, record: str) -> str:
    """Return a page with the tables of a record. Raises LookupError if the page lacks the markers for tables."""
    if len(_BLOCK.findall(page)) != 1:
        raise LookupError(f"{name} must have one block between <!-- benchmark --> and <!-- end of benchmark -->")
    return _BLOCK.sub(lambda _: render_block(name, record), page)


def render_block(name: str, record: str) -> str:
    """Return the generated block of a page. The block starts with a digest of the record."""
    content = json.loads(record)
    about, rows = content["about"], content["rows"]
    digest = hashlib.sha256(record.encode()).hexdigest()[:16]
    table = _render_selection(rows) if name.endswith("performance.md") else _render_all(rows)
    missed = sum(not row["met"] for row in rows)
    verdict = "All targets are met." if not missed else f"{missed} of {len(rows)} targets are missed."
    versions = ", ".join(f"{tool} {version}" for tool, version in about["versions"].items())
    note = (
        f"Commit {about['commit'][:12]}, {about['date']}: {about['runs']} runs (fewer of long processes) on"
        f" {about['processors']} processors, load {about['load']}, {versions}. {verdict}"
    )
    return f"<!-- benchmark {digest} -->\n{table}\n{note}\n<!-- end of benchmark -->\n"


def _render_all(rows: list[dict[str, Any]]) -> str:
    head = "| case | wall clock (CPU time) | ratio or rate, wall clock | ratio, CPU time | target | |\n|---|---|---|---|---|---|\n"
    return head + "".join(
        f"| {row['case']} | {row['measured']} | {row['wall_clock']} | {row['cpu_time']} | {row['target']} | {_describe(row)} |\n"
        for row in rows
    )


def _render_selection(rows: list[dict[str, Any]]) -> str:
    """Return a table of the rows that measure speed, with their CPU time. Omit the rows that measure growth."""
    head = "| task | wall clock (CPU time); for comparison | ratio, CPU time | target | |\n|---|---|---|---|---|\n"
    return head + "".join(
        f"| {row['case']} | {row['measured']} | {row['cpu_time']} | {row['target']} | {_describe(row)} |\n"
        for row in rows
        if not row["target"].startswith("n^")
    )


def _describe(row: dict[str, Any]) -> str:
    return "met" if row["met"] else "**missed**"
