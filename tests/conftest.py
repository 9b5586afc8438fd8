"""Fixtures that every test may use, and the bounds of property tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# Derandomised: a run on one machine is the same run on another. No deadline: a busy machine is no defect of the code.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")

for _name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "TEAMCITY_VERSION"):
    os.environ.pop(_name, None)  # a diff is printed with escapes there

UNMEASURED = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
"""The environment of a process whose time, memory or imports a test looks at: coverage.py is to stay out of it."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """The tests run in random order; this is how to have the same one again."""
    if config.pluginmanager.hasplugin("randomly"):
        terminalreporter.write_line(f"the same order again: --randomly-seed={config.option.randomly_seed}")


@pytest.fixture(scope="session")
def root() -> Path:
    """The top of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder beside the checkout with what was recorded from real servers; tests that need it skip elsewhere."""
    folder = ROOT.parent / "shared"
    if not (folder / "oracle").is_dir():
        pytest.skip("the recordings of real servers (../shared/oracle) are not beside this checkout")
    return folder
