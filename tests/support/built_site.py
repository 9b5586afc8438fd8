"""Builds the documentation site once in a run of the tests, because a build takes seven seconds of CPU time."""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

import build_site

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

PLAYGROUND = build_site.WITHOUT_PLAYGROUND.replace("<p>This copy", "<p>Test of a built playground. This copy")
"""Page of the playground of the site. Its link is checked like the links of all other pages."""


def build_once(factory: pytest.TempPathFactory) -> Path:
    """Return the site, which has a page in place of the playground. Workers of pytest-xdist share the site.

    The build raises an error for each warning and each broken link.
    """
    base = factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    site = shared / "documentation-site"
    with (shared / "documentation-site.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not site.exists():
            playground = factory.mktemp("built-playground")
            (playground / "index.html").write_text(PLAYGROUND, encoding="utf-8")
            build_site.build(site, playground)
    return site
