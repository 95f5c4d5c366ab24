"""One thread for work that blocks, that nobody waits for at the end: a process that ends leaves it behind.

A ThreadPoolExecutor joins its threads when the interpreter exits, whatever shutdown() was told: SIGTERM in the middle of a large night would
wait for the whole of its checking or writing, past the time that whoever stops us allows.
"""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

T = TypeVar("T")


class Worker(Executor):
    """Does one piece of work after the other, in a thread that is begun when it is needed: for loop.run_in_executor."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, work: Callable[..., T], /, *args: Any, **named: Any) -> "Future[T]":
        """Do it when all that came before is done."""
        future: Future[T] = Future()

        def do() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(work(*args, **named))
                except BaseException as error:  # noqa: BLE001 - whoever waits is told
                    future.set_exception(error)

        self._work.put(do)
        if self._thread is None:
            self._thread = threading.Thread(target=self._go_on, name=self._name, daemon=True)
            self._thread.start()
        return future

    def _go_on(self) -> None:
        while True:
            self._work.get()()
