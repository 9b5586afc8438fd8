"""Shows progress on standard error, for runs that take longer than a second on a terminal."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from threading import Event

T = TypeVar("T")

DELAY_SECONDS = 1.0
"""Seconds from the start until progress is shown, and seconds between two updates."""


class Progress:
    """The current activity of a run. The terminal shows `label`."""

    def __init__(self, label: str) -> None:
        self.label = label

    def track(self, files: Sequence[T]) -> Iterator[T]:
        """Yield the files, and show the number of the current file in the label. At the end, set the label to `Analyzing`."""
        for number, file in enumerate(files, 1):
            self.label = f"Reading file {number} of {len(files)}"
            yield file
        self.label = "Analyzing"


@contextmanager
def show_progress(label: str) -> Iterator[Progress]:
    """Show the label and the elapsed time on standard error, if the body of the `with` statement takes longer than a second.

    The line is erased at the end. Nothing is shown if standard error is not a terminal. The body of the `with` statement may
    change the label.
    """
    progress = Progress(label)
    if not (sys.stderr and sys.stderr.isatty()):
        yield progress
        return
    from threading import Event, Thread

    done = Event()
    thread = Thread(target=_show, args=(progress, done), daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        done.set()
        thread.join()


def _show(progress: Progress, done: Event) -> None:
    """Write the label and the elapsed seconds, once a second, until `done` is set."""
    started = time.monotonic()
    end = ""
    while not done.wait(DELAY_SECONDS):
        sys.stderr.write(f"\r\x1b[K{progress.label} ({time.monotonic() - started:.0f} s) ...")
        sys.stderr.flush()
        end = "\r\x1b[K"
    sys.stderr.write(end)
    sys.stderr.flush()
