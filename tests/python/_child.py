"""A process of its own that reads a remote dataset and then ends, is interrupted, or forks, with requests under way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import penstock
from _python_stores import Own


class Slow(Own):
    """A store of a user's own that takes its time once the dataset is open."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.pause = 0.0

    def read(self, path: str, offsets: list[int], sizes: list[int]) -> list[Any]:
        time.sleep(self.pause)
        return super().read(path, offsets, sizes)


def opened(kind: str, place: str) -> tuple[penstock.View, dict[str, str], Any]:
    """A view, how a loader is to read it, and what makes its reads take so many seconds, where that can be."""
    if kind == "own":
        store = Slow(Path(place))
        view = penstock.open("corpus", store=store).windows(64)
        store.pause = 0.05
        return view, {}, lambda seconds: setattr(store, "pause", seconds)
    if kind == "s3":
        dataset = penstock.open("s3://data/corpus", storage=penstock.Storage(endpoint=place))
        return dataset.windows(64), {}, lambda seconds: None
    assert kind == "obstore"
    return penstock.open(f"{place}/corpus").windows(64), {"reader": "python"}, lambda seconds: None


def interrupted(read: Any) -> None:
    """Reads until Ctrl-C ends it."""
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    try:
        while True:
            read()
    except KeyboardInterrupt:
        return


def in_child(call: Any) -> None:
    """Ends with an error unless `call` returns True in a child after a fork."""
    child = os.fork()
    if child == 0:
        os._exit(0 if call() else 3)
    assert os.waitpid(child, 0)[1] == 0


def refuses(view: penstock.View) -> bool:
    try:
        view[0]
    except penstock.InvalidArgumentError as error:
        return "spawn" in str(error)
    return False


def main(kind: str, place: str, *hows: str) -> None:
    view, options, pause = opened(kind, place)
    loader = penstock.Loader(view, 4, seed=1, **options)
    next(loader)
    for how in hows:
        if how == "fork":
            in_child(lambda: refuses(view))
            next(loader)
        elif how == "end of a child":
            child = os.fork()
            if child == 0:
                del loader, view
                sys.exit(0)  # an end of Python in the child, with all that the parent had
            assert os.waitpid(child, 0)[1] == 0
            next(loader)
        elif how != "exit":
            pause(600)
            interrupted((lambda: view[0]) if how == "interrupt a view" else (lambda: next(loader)))
            pause(0.05)


def run_child(hows: list[str], kind: str, place: str | Path) -> None:
    """Runs it: it is to end well, and to say nothing."""
    command = [sys.executable, __file__, kind, str(place), *hows]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr[-2000:]


if __name__ == "__main__":
    main(*sys.argv[1:])
