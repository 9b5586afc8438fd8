"""Recordings of the server's own code.

`fixtures/simulate` contains a part of the recordings. If the complete recordings are present, the tests use them.
"""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from _pytest.fixtures import SubRequest

Rows = list[dict[str, Any]]
COMPLETE = Path(os.environ.get("APFLINT_RECORDINGS") or ROOT.parent / "shared/oracle")


@pytest.fixture(params=["fixtures", "complete"])
def recording(request: SubRequest) -> Callable[[str], Rows]:
    """Return a function that reads a file of recordings. The function skips the test if the file does not exist."""
    directory = COMPLETE if request.param == "complete" else ROOT / "fixtures/simulate"

    def read(name: str) -> Rows:
        path = directory / name
        if not path.is_file():
            pytest.skip(f"the recording {path} does not exist: set APFLINT_RECORDINGS to its directory")
        data = path.read_bytes()
        rows = [json.loads(line) for line in (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()]
        assert rows
        return rows

    return read
