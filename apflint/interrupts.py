"""Delays interrupts by the user (Ctrl-C) in code that must not be interrupted."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def defer_interrupt() -> Iterator[None]:
    """Delay Ctrl-C: if the user presses it inside the block, raise KeyboardInterrupt at the end of the block."""
    if (
        threading.current_thread() is not threading.main_thread()  # only the main thread gets Ctrl-C
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
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
