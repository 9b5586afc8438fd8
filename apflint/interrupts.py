"""Delays interrupts by the user (Ctrl-C) in code that must not be interrupted."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def _can_handle() -> bool:
    """Return whether Ctrl-C raises KeyboardInterrupt in this thread. Only the main thread gets Ctrl-C."""
    is_main = threading.current_thread() is threading.main_thread()
    return is_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Delay Ctrl-C: if the user presses it inside the block, raise KeyboardInterrupt at the end of the block."""
    if not _can_handle():
        yield
        return
    is_interrupted = False

    def remember(*_: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True

    signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if is_interrupted:
        raise KeyboardInterrupt


@contextmanager
def note_interrupt() -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether the user pressed Ctrl-C in the block. The block can then end early with a partial result.

    A second Ctrl-C raises KeyboardInterrupt.
    """
    is_interrupted = False
    if not _can_handle():
        yield lambda: is_interrupted
        return

    def remember(*_: object) -> None:
        nonlocal is_interrupted
        is_interrupted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: is_interrupted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
