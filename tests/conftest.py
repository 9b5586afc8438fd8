"""Fixtures for all tests, and settings of property tests."""

from __future__ import annotations

import gc
import os
import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parent.parent

# With `derandomize`, Hypothesis tries the same examples on all machines. But it also tries constants from the loaded
# modules, so runs that load other modules may differ. Without a deadline, tests do not fail on slow machines.
settings.register_profile(
    "ci",
    derandomize=True,
    deadline=None,
    max_examples=int(os.environ.get("APFLINT_TEST_EXAMPLES", "100")),
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("ci")

for _name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI", "TF_BUILD", "TEAMCITY_VERSION"):
    os.environ.pop(_name, None)  # otherwise, pytest would print diffs with color codes

collect_ignore: list[str] = []
"""Test modules that cannot run on this operating system."""
if sys.platform != "linux":
    collect_ignore += ["hostile", "test_fuzz.py"]  # these tests need RLIMIT_AS, /proc and /dev/full
if sys.platform == "win32":
    # Only the analysis is tested on Windows. All other tests rely on shells, terminals, signals, file modes or paths
    # with "/".
    _analysis = {"brute_force", "checks", "diff", "evaluate", "graph", "laws", "load", "proofs", "requests"}
    _analysis |= {"simulate", "support"}
    _analysis |= {f"test_{name}.py" for name in ("builtin", "catalogue", "conformance", "effective", "engine", "model")}
    _analysis |= {f"test_{name}.py" for name in ("record", "releases", "schema", "schema_violations", "spelling")}
    _analysis |= {f"test_{name}.py" for name in ("state", "string_formats", "types", "wording")}
    _not_tests = {"__init__.py", "__snapshots__", "__pycache__", "conftest.py"}
    collect_ignore += sorted({entry.name for entry in Path(__file__).parent.iterdir()} - _analysis - _not_tests)

UNMEASURED = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE_")}
"""Environment of a process whose time, memory or imports a test measures, without coverage.py."""


gc.disable()  # collections would only take time, because collecting tests frees no objects


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select at most N cases of each parametrized test if the environment has `APFLINT_TEST_CASES=N`."""
    maximum = os.environ.get("APFLINT_TEST_CASES")
    if maximum is None:
        return
    numbers = Counter[str]()
    selected: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in sorted(items, key=lambda item: item.nodeid):  # the plugin of random order may have shuffled the items
        function = item.nodeid.partition("[")[0]
        numbers[function] += 1
        (selected if numbers[function] <= int(maximum) else deselected).append(item)
    config.hook.pytest_deselected(items=deselected)
    items[:] = selected


def pytest_collection_finish() -> None:
    """Exclude modules and tests, which live until the end, from garbage collection, to save 0.5 s in each full collection."""
    gc.freeze()
    gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print how to repeat the random order of the tests, and list the tests that this operating system does not run."""
    if config.pluginmanager.hasplugin("randomly"):
        terminalreporter.write_line(f"the same order again: --randomly-seed={config.option.randomly_seed}")
    if collect_ignore:
        terminalreporter.write_line(f"not run on {sys.platform}: {', '.join(collect_ignore)}")


@pytest.fixture(scope="session")
def root() -> Path:
    """The root directory of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory next to the checkout with recordings of real servers. Tests that need it are skipped if it does not
    exist."""
    directory = ROOT.parent / "shared"
    if not (directory / "oracle").is_dir():
        pytest.skip("the recordings of real servers (../shared/oracle) are not beside this checkout")
    return directory
