"""Fixtures that every test may use, and the bounds of property tests."""

from __future__ import annotations

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
