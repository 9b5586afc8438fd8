"""Lets a replacement of a file finish before a signal ends the process."""

from __future__ import annotations

import os
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES = ("SIGTERM", "SIGHUP")


@contextmanager
def delay_termination() -> Iterator[None]:
    """Delay SIGTERM and SIGHUP until the body is done: else they leave its temporary file behind.

    Whoever ignores one of them or has a handler for it keeps that. In a thread, which gets no signals, nothing happens.
    """
    received: list[int] = []
    numbers = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]
    try:
        replaced = [number for number in numbers if signal.getsignal(number) == signal.SIG_DFL]
        for number in replaced:
            signal.signal(number, lambda number, _: received.append(number))
    except ValueError:  # signals are for the main thread only
        yield
        return
    try:
        yield
    finally:
        for number in replaced:
            signal.signal(number, signal.SIG_DFL)
        if received:
            os.kill(os.getpid(), received[0])
