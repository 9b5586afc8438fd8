"""Functions that operate the page of the playground."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from apflint.releases import NEWEST

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page


def show(
    page: Page,
    tab: str,
    manifests: str,
    *,
    kubernetes: str = NEWEST.name,
    request: str | None = None,
    old: str | None = None,
    load: str | None = None,
    seats: str | None = None,
) -> None:
    """Open a tab, and enter manifests and what this tab needs: a request, old manifests or a load. Wait for the results."""
    page.click(f"#tab-{tab}")
    if seats is not None:
        page.fill("#seats", seats)
    page.select_option("#kubernetes", kubernetes)
    page.fill("#manifests", manifests)
    if request is not None:
        page.fill("#request", request)
        page.press("#request", "Enter")
    if old is not None:
        page.fill("#old", old)
    if load is not None:
        page.fill("#load", load)
        page.click("#run")
    wait_for_results(page)


def wait_for_results(page: Page) -> None:
    """Wait until the page shows the results for the current input. The page marks earlier results as busy."""
    page.wait_for_selector("#check .output[aria-busy=false]", state="attached")
    page.wait_for_selector("[role=tabpanel]:not([hidden]) .output[aria-busy=false]", state="attached")


def wait_for(read: Callable[[], Any], wanted: Any) -> None:
    """Wait until `read` returns `wanted`."""
    deadline = time.monotonic() + 60
    while read() != wanted and time.monotonic() < deadline:
        time.sleep(0.1)
    assert read() == wanted
