"""Conditions for tests that start Spark."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

import pytest

needs_spark = pytest.mark.skipif(
    find_spec("pyspark") is None or shutil.which("java") is None,
    reason="Spark is not installed: apflint[spark] and Java 17",
)
without_warnings = pytest.mark.filterwarnings(
    # Py4J leaves the closing of its sockets to the garbage collector.
    "ignore::ResourceWarning",
    "ignore::pytest.PytestUnraisableExceptionWarning",
)
