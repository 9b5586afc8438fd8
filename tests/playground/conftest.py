"""The built playground on a local server, and headless Chromium."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, BrowserContext, Page

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = (
    "--no-sandbox",  # CI may run as root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


class Handler(SimpleHTTPRequestHandler):
    """Serves a directory, and counts the requests."""

    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

    def __init__(self, *args: Any, paths: list[str], directory: str) -> None:
        self.paths = paths
        super().__init__(*args, directory=directory)

    def end_headers(self) -> None:
        self.send_header("Access-Control-Allow-Origin", "*")  # only the policy of a page may block its requests
        super().end_headers()

    def log_message(self, *_: Any) -> None:
        self.paths.append(self.path)


class Server:
    """A server on localhost that remembers the paths of its requests."""

    def __init__(self, directory: Path) -> None:
        self.paths: list[str] = []
        handler = partial(Handler, paths=self.paths, directory=str(directory))
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    chromium = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if chromium is None:
        pytest.skip("Chromium is not installed")
    with playwright.sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=chromium, args=CHROMIUM_FLAGS)
        yield started
        started.close()


@pytest.fixture(scope="session")
def built(browser: Browser, root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001  # skips first
    """The directory that the build script writes."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    out = tmp_path_factory.mktemp("built") / "playground"
    command = [sys.executable, str(root / "scripts" / "build_playground.py"), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return out


@pytest.fixture(scope="session")
def site(built: Path) -> Iterator[Server]:
    server = Server(built)
    yield server
    server.close()


@pytest.fixture(scope="session")
def other_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Another origin. It answers everybody."""
    server = Server(tmp_path_factory.mktemp("other"))
    yield server
    server.close()


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """A window with the default width."""
    opened = browser.new_context(viewport={"width": 1400, "height": 900})
    opened.set_default_timeout(90_000)  # starting Python takes seconds on a fast machine
    yield opened
    opened.close()


@pytest.fixture(scope="session")
def requested(context: BrowserContext) -> list[str]:
    """The URLs of all requests of all pages and workers."""
    urls: list[str] = []
    context.on("request", lambda request: urls.append(request.url))
    return urls


@pytest.fixture(scope="session")
def open_page(context: BrowserContext, site: Server, requested: list[str]) -> Iterator[Page]:  # noqa: ARG001  # listens
    """The playground after its first check. Tests share it, because starting Python takes long."""
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: problems.append(dialog.message))
    page.goto(site.url)
    page.wait_for_selector("#check .output[data-exit-code]")
    yield page
    assert problems == []
