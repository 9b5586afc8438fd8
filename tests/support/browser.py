"""Headless Chromium or Firefox, and a server on localhost for the pages that it opens."""

from __future__ import annotations

import os
import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

BROWSER_VARIABLE = "APFLINT_TEST_BROWSER"
"""Environment variable that selects the browser of the playground's tests: `chromium`, which is the default, or `firefox`."""
FIREFOX_NAMES = ("firefox-esr", "firefox")
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM_FLAGS = (
    "--no-sandbox",  # CI may run as root, and Chromium as root does not start with a sandbox
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
        self.send_header(
            "Access-Control-Allow-Origin", "*"
        )  # allow all origins, so that only the content security policy of a page can block requests
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


def launch_browser() -> Iterator[Browser]:
    """Yield the browser that the environment selects. Fail for an unknown name."""
    names = {"chromium": launch_chromium, "firefox": launch_firefox}
    yield from names[os.environ.get(BROWSER_VARIABLE, "chromium")]()


def launch_chromium() -> Iterator[Browser]:
    """Yield a headless Chromium. Skip the test if Chromium is not installed."""
    yield from _launch("chromium", CHROMIUM_NAMES, args=CHROMIUM_FLAGS)


def launch_firefox() -> Iterator[Browser]:
    """Yield a headless Firefox. Skip the test if Firefox is not installed."""
    # Without a channel, Playwright starts only its own build of Firefox.
    yield from _launch("firefox", FIREFOX_NAMES, channel="moz-firefox")


def _launch(kind: str, names: Iterable[str], **options: Any) -> Iterator[Browser]:
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="playwright is not installed: pip install playwright"
    )
    executable = next(filter(None, map(shutil.which, names)), None)
    if executable is None:
        pytest.skip(f"{kind.capitalize()} is not installed")
    with playwright.sync_playwright() as driver:
        started = getattr(driver, kind).launch(executable_path=executable, **options)
        yield started
        started.close()
