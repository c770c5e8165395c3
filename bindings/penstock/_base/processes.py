"""Processes that a run starts: bound to it, with one thread of each library, and what is said of their ends."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from multiprocessing import popen_spawn_posix, resource_tracker, util
from multiprocessing.context import SpawnProcess
from types import FrameType, FunctionType, SimpleNamespace
from typing import Any

from penstock import _native

GUARD = (
    'a script that starts workers needs if __name__ == "__main__": around what it does, since each worker imports it'
)


def _spawn_bound(path: bytes | str, arguments: Sequence[str], fds: Sequence[int]) -> int:
    return _native.spawn_bound(os.fsdecode(path), [os.fsdecode(each) for each in arguments], list(fds))


class _BoundPopen(popen_spawn_posix.Popen):
    """Launches as multiprocessing does, by another call where that starts the process."""

    _launch = FunctionType(
        popen_spawn_posix.Popen._launch.__code__,  # type: ignore[attr-defined]
        {**vars(popen_spawn_posix), "util": SimpleNamespace(**{**vars(util), "spawnv_passfds": _spawn_bound})},
    )


class BoundProcess(SpawnProcess):
    """A spawned process that the kernel kills when the thread that started it ends, however it does.

    So nothing of a run goes on that was killed: not while a worker imports, nor while a tokenizer holds the GIL.
    """

    @staticmethod
    def _Popen(process_obj: Any) -> Any:
        return _BoundPopen(process_obj)


def how_it_ended(process: SpawnProcess, advice: str = "") -> str:
    """In words, of a process that was joined: what ended it, and `advice` where it may have been a lack of memory."""
    code = process.exitcode
    if code is None or code >= 0:
        return f"exited with code {code}"
    advice = f"? {advice}" if advice else "?"
    out_of_memory = f" (out of memory{advice})" if -code == signal.SIGKILL else ""
    return f"was killed by {signal.Signals(-code).name}{out_of_memory}"


ONE_THREAD = {"TOKENIZERS_PARALLELISM": "false", "RAYON_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""The environment of a worker, beside which as many others run as there are cores."""


@contextmanager
def _signals_later() -> Iterator[None]:
    """What Python does at Ctrl-C and SIGTERM it does afterwards. In the main thread, where it does it.

    Another thread may take the signal, so a mask of this one keeps no handler from being called: one that is set back
    may raise before the other is. A stack calls all the same what is left.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: dict[int, FrameType | None] = {}
    is_over = False
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    theirs = {int(number): each for number, each in handlers.items() if callable(each)}

    def later(number: int, frame: FrameType | None) -> None:
        if is_over:  # a third signal kept it from being set back
            theirs[number](number, frame)
        else:
            came.setdefault(number, frame)

    def deliver() -> None:
        nonlocal is_over
        is_over = True
        with ExitStack() as calls:
            for number, frame in reversed(came.items()):
                calls.callback(theirs[number], number, frame)

    with ExitStack() as stack:
        stack.callback(deliver)
        for number, each in theirs.items():
            stack.callback(signal.signal, number, each)
            signal.signal(number, later)
        yield


@contextmanager
def surroundings_of_workers() -> Iterator[None]:
    """Settings that children inherit that start inside: one thread for each tokenizer, and Ctrl-C blocked.

    Ctrl-C reaches the whole process group, from a worker's first instruction on; the parent alone decides. Neither it
    nor SIGTERM ends the parent inside: a child that waits for its first orders would tell that they do not come.
    """
    resource_tracker.ensure_running()  # else it starts below, and unblocks the signal
    with _signals_later():  # around all else: a handler that raises leaves no setting behind
        before = {name: os.environ.get(name) for name in ONE_THREAD}
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            os.environ.update(ONE_THREAD)
            yield
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
