"""The built playground on a local server, and a headless browser."""

from __future__ import annotations

import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.browser import Server, launch_browser
from support.playground import show

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser for this module only: while Playwright runs, other tests of the process cannot use Playwright or asyncio."""
    yield from launch_browser()


@pytest.fixture(scope="module")
def built(browser: Browser, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001  # skips the tests before the build if there is no browser
    """The directory that the build script writes."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    out = tmp_path_factory.mktemp("built") / "playground"
    command = [sys.executable, str(root / "scripts" / "build_playground.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="module")
def site(built: Path) -> Iterator[Server]:
    server = Server(built)
    yield server
    server.close()


@pytest.fixture(scope="module")
def other_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with another origin, which answers all requests."""
    server = Server(tmp_path_factory.mktemp("other"))
    yield server
    server.close()


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A window with the default width."""
    opened = browser.new_context(viewport={"width": 1400, "height": 900})
    opened.set_default_timeout(90_000)  # starting Python takes seconds even on a fast machine
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def requested(context: BrowserContext) -> list[str]:
    """The URLs of all requests of all pages and workers."""
    urls: list[str] = []
    context.on("request", lambda request: urls.append(request.url))
    return urls


@pytest.fixture(scope="module")
def problems() -> list[str]:
    """Errors and dialogs of the shared page."""
    return []


@pytest.fixture(scope="module")
def started_page(context: BrowserContext, site: Server, requested: list[str], problems: list[str]) -> Page:  # noqa: ARG001  # starts recording
    """The playground after its first check. Tests share it, because starting Python takes long."""
    page = context.new_page()
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.goto(site.url)
    page.wait_for_selector("#check .output[data-exit-code]")
    return page


@pytest.fixture
def open_page(started_page: Page, problems: list[str]) -> Iterator[Page]:
    """Return the shared page of the playground, cleared of all texts and dialogs that earlier tests left.

    After each test, the fixture asserts that the page had no errors and opened no dialogs.
    """
    started_page.evaluate("about.close(); history.replaceState(null, '', location.pathname)")
    started_page.evaluate("for (const name of ['old', 'load', 'seats']) document.getElementById(name).value = ''")
    show(started_page, "explain", "", request="")
    show(started_page, "check", "")
    yield started_page
    found, problems[:] = problems[:], []
    assert found == []
