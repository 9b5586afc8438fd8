"""Functions for the formats of code hosts: the order of findings, and paths from the root of the checkout."""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from apflint.finding import SEVERITIES
from apflint.load.source_text import STDIN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apflint.finding import Finding

_ROOT_VARIABLES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Environment variables with the directory of the checkout in a job of GitHub or GitLab."""


def rank(findings: Sequence[Finding]) -> list[int]:
    """Return the indices of the findings, the most important finding first.

    Equally important findings keep their order.

    Code hosts show only the first findings. Errors come before warnings. Among findings of equal severity, findings
    about rejected objects come first. Then the first finding of every rule comes before the second finding of any rule.
    """
    counts: dict[tuple[str, bool], int] = {}
    keys = []
    for finding in findings:
        kind = (finding.rule, finding.is_rejected)
        counts[kind] = counts.get(kind, 0) + 1
        keys.append((SEVERITIES.index(finding.severity), not finding.is_rejected, counts[kind]))
    return sorted(range(len(keys)), key=keys.__getitem__)


def relative_to_checkout(file: str) -> str:
    """Return the path of a file relative to the root of the checkout, with `/` and without `./`, as code hosts expect.

    Outside a CI job, or outside its checkout, the root is the current directory. Paths outside the root stay unchanged.
    """
    if file == STDIN:
        return file
    root = _find_root(os.getcwd(), tuple(os.environ.get(name, "") for name in _ROOT_VARIABLES))
    inside = os.path.relpath(file, root)
    if inside == os.pardir or inside.startswith(os.pardir + os.sep):
        inside = os.path.normpath(file)
    return inside.replace(os.sep, "/")


@lru_cache(maxsize=1)
def _find_root(here: str, candidates: tuple[str, ...]) -> str:
    for candidate in filter(None, candidates):
        root = os.path.realpath(candidate)
        if here == root or here.startswith(root.rstrip(os.sep) + os.sep):
            return root
    return here
