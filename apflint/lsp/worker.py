"""One thread beside the one that talks to the editor: a check that takes a while keeps nobody from typing."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class Worker:
    """Runs jobs one after the other. Its thread is a daemon: whoever leaves need not wait for it."""

    def __init__(self) -> None:
        self._jobs: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]]] = SimpleQueue()
        threading.Thread(target=self._work, name="apflint-check", daemon=True).start()

    def run(self, job: Callable[[], T]) -> asyncio.Future[T]:
        """The result of a job, or its exception."""
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self._jobs.put((job, future))
        return future

    def _work(self) -> None:
        while True:
            job, future = self._jobs.get()
            result, error = None, None
            try:
                result = job()
            except Exception as raised:  # noqa: BLE001  # whoever asked gets it
                error = raised
            with suppress(RuntimeError):  # the loop has been closed meanwhile
                future.get_loop().call_soon_threadsafe(_settle, future, result, error)


def _settle(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():  # cancelled
        return
    if error is not None:
        future.set_exception(error)
    else:
        future.set_result(result)
