"""Headless Chromium, and a server on localhost for the pages that it opens."""

from __future__ import annotations

import shutil
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser

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
        self.send_header("Access-Control-Allow-Origin", "*")  # only the page's policy may block requests
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


def launch_chromium() -> Iterator[Browser]:
    """Yield a headless Chromium. Skip the test if Chromium is not installed."""
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
