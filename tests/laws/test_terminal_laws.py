"""Laws of every text report in a terminal: lines fit, no column is lost, and colors are legible on dark and on light."""

from __future__ import annotations

import re

import pytest
from support.shell import ROOT

from apflint.cli.app import run
from apflint.output.console import PALETTE, count_cells

STORIES = "fixtures/stories"
INCIDENTS = "fixtures/doctor/incidents"
LOGS = "fixtures/simulate/incidents"
PROPOSE = f"fixtures/propose/list-heavy/audit.log.gz -f defaults:1.36 --server-concurrency 120 --metrics {INCIDENTS}/list-heavy/2-during.metrics.txt.gz"
HEAVY = f"{INCIDENTS}/list-heavy/1-during.metrics.txt.gz {INCIDENTS}/list-heavy/1-during.dump_requests.txt.gz {INCIDENTS}/list-heavy/2-during.metrics.txt.gz"
COMMANDS = {
    "graph": f"graph {STORIES}/accepted-but-wrong",
    "graph with errors": f"graph {STORIES}/small-cluster",
    "limits": f"limits {STORIES}/small-cluster --verbose",
    "limits --want": f"limits {STORIES}/small-cluster --want observability=100",
    "explain": f"explain list pods -A --as system:serviceaccount:ci:runner -f {STORIES}/accepted-but-wrong/ci.yaml --verbose",
    "explain a lease": f"explain update leases -n kube-system --as system:node:n1 -f {STORIES}/small-cluster",
    "diff": f"diff {STORIES}/move-ci/before {STORIES}/move-ci/after",
    "diff of releases": "diff defaults:1.25 defaults:1.36",
    "doctor": f"doctor --verbose {HEAVY}",
    "doctor of exempt requests": f"doctor {INCIDENTS}/exempt-abuse/1-during.metrics.txt.gz {INCIDENTS}/exempt-abuse/1-during.dump_requests.txt.gz",
    "replay": "replay fixtures/replay/live/audit.log.gz --server-concurrency 20+10 --by flow,verb --top 3 --isolated",
    "replay of a period": f"replay {PROPOSE} --since 2026-11-23T16:54:36Z --baseline 24h --top 3",
    "replay --compare": f"replay fixtures/replay/live/audit.log.gz --compare {STORIES}/move-ci/before -f {STORIES}/move-ci/after",
    "simulate": "simulate fixtures/simulate/load.yaml --server-concurrency 30 --kubernetes 1.36 -f defaults:1.36 --verbose",
    "simulate a log": f"simulate --from-audit {LOGS}/small-level.log.gz -f {LOGS}/small-level.objects.json --kubernetes 1.36 --server-concurrency 30",
    "why": f"why --as system:serviceaccount:inventory:asset-sync -f defaults:1.36 {HEAVY}",
    "shards": "shards --elephants 1,2,4",
    "test": "test fixtures/policy",
}
WIDTHS = (80, 120)
COMMAND = re.compile(r"^ *(apflint|kubectl) ")
PATH = re.compile(r"[\w.-]+/[\w./-]+")

WHITE, BLACK = "ffffff", "000000"
PALETTES = {
    "xterm": ("000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd", (WHITE, BLACK)),
    "GNOME": ("000000 cc0000 4e9a06 c4a000 3465a4 75507b 06989a", (WHITE, BLACK)),
    "VS Code, dark": ("000000 cd3131 0dbc79 e5e510 2472c8 bc3fbc 11a8cd", ("1e1e1e",)),
    "VS Code, light": ("000000 cd3131 107c10 949800 0451a5 bc05bc 0598bc", (WHITE,)),
    "macOS Terminal": ("000000 990000 00a600 999900 0000b2 b200b2 00a6b2", (WHITE,)),
}
"""The colors of the default palettes of terminals, from black to cyan, and the backgrounds on which they are used."""
MIN_CONTRAST = 2.1


def draw(name: str, width: int | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """Return what a command prints in a terminal of a width, or in a pipe."""
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: width is not None)
    if width is not None:
        monkeypatch.setenv("COLUMNS", str(width))
    assert run(COMMANDS[name].split()) in (0, 1)
    return capsys.readouterr().out


def list_titles(text: str) -> set[str]:
    """Return the words in the headers of tables, which are in capitals."""
    lines = (line for line in text.splitlines() if re.fullmatch(r"[A-Z0-9/ -]*[A-Z]{3}[A-Z0-9/ -]*", line))
    return {word for line in lines for word in line.split()}


@pytest.mark.parametrize("name", COMMANDS)
def test_lines_fit_and_no_column_is_lost(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    widest = draw(name, 250, monkeypatch, capsys)
    for width in WIDTHS:
        text = draw(name, width, monkeypatch, capsys)
        for line in text.splitlines():
            is_unbreakable = COMMAND.match(line) or (PATH.search(line) and len(line.split()) == 1)
            assert count_cells(line) <= width or is_unbreakable, line
            assert line == line.rstrip(" ")
        assert list_titles(text) >= list_titles(widest)


def test_laws_can_fail() -> None:
    assert list_titles("PRIORITY LEVEL  WAIT P50\nMIN: a note\nexempt  1\n") == {"PRIORITY", "LEVEL", "WAIT", "P50"}
    assert COMMAND.match("    apflint explain list pods")
    assert not COMMAND.match("a sentence about apflint explain")


def compute_luminance(color: str) -> float:
    """Return the relative luminance of a color (WCAG 2.1)."""
    parts = (int(color[start : start + 2], 16) / 255 for start in (0, 2, 4))
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def compute_worst_contrast(code: int) -> float:
    """Return the lowest contrast (WCAG 2.1) of an ANSI color to a background, among all palettes and their backgrounds."""
    contrasts = []
    for palette, backgrounds in PALETTES.values():
        for background in backgrounds:
            low, high = sorted((compute_luminance(palette.split()[code]), compute_luminance(background)))
            contrasts.append((high + 0.05) / (low + 0.05))
    return min(contrasts)


def test_colors_are_legible_on_light_and_dark() -> None:
    used = {tone: int(code[-1]) for tone, codes in PALETTE.items() for code in codes.split(";") if code.startswith("3")}
    assert {tone: code for tone, code in used.items() if compute_worst_contrast(code) < MIN_CONTRAST} == {}
    assert all(compute_worst_contrast(code) < MIN_CONTRAST for code in (3, 6)), (
        "yellow and cyan are not used for a reason"
    )
