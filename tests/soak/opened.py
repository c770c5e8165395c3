"""A thousand loaders of one store, opened and dropped: memory, descriptors and threads stay.

`python opened.py STORE FOLDER LOADERS` prints one line of JSON.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import penstock
from rate import held

LOADERS = 1000
_SAMPLES = 20
_ENDS = 10.0  # seconds
READERS = ("auto", "pread", "uring", "direct", "mmap")
STORES = (*(f"local, {each}" for each in READERS), "http", "http with cache", "s3", "own", "obstore", "fsspec")


def opener(store: str, folder: Path) -> Callable[[], tuple[penstock.View, dict[str, Any]]]:
    """Opens a dataset anew."""
    if store.startswith("local"):
        reader = store.partition(", ")[2]
        return lambda: (penstock.open(folder / "small").windows(64), {"reader": reader})
    if store.startswith("http"):
        cache = {"cache": folder / "small-cache"} if store.endswith("cache") else {}
        return lambda: (penstock.open(f"{os.environ['SOAK_ADDRESS']}/small", **cache).windows(64), {})
    if store == "s3":
        storage = penstock.Storage(endpoint=os.environ["SOAK_BUCKET"], region="us-east-1")
        return lambda: (penstock.open("s3://data/small", storage=storage).windows(64), {})
    from _python_stores import Own, memory_filesystem, memory_store

    make = {"own": Own, "obstore": memory_store, "fsspec": memory_filesystem}[store]
    of: Any = make(folder)
    name = f"{folder.name}/small" if store == "fsspec" else "small"
    return lambda: (penstock.open(name, store=of).windows(64), {})


def settled(samples: list[Any]) -> tuple[float, int, int]:
    """Resources held once the threads of a store in Python have ended: they are told to, and not waited for."""
    until = time.monotonic() + _ENDS
    while (now := held())[2] > min((each[2] for each in samples), default=now[2]) and time.monotonic() < until:
        time.sleep(0.01)
    return now


def go(store: str, folder: Path, loaders: int) -> dict[str, Any]:
    opened = opener(store, folder)
    samples, tokens = [], None
    for number in range(loaders):
        view, options = opened()
        loader = penstock.Loader(view, 4, seed=number % 3, framework="numpy", **options)
        found = [next(loader)["token"].copy() for _ in range(2)]
        if number % 3 == 0:
            assert tokens is None or all((a == b).all() for a, b in zip(found, tokens, strict=True)), number
            tokens = found
        if number % 2:
            loader.close()
        del loader, view
        if (number + 1) % max(1, loaders // _SAMPLES) == 0:
            gc.collect()
            samples.append(settled(samples))
    return {"loaders": loaders, "samples": samples}


def put_dataset(folder: Path) -> None:
    """A small one, unless it is there."""
    if not (folder / "small" / "dataset.json").exists():
        with penstock.Writer(folder / "small", {"token": "u2"}, "json", shard_size=30_000, overwrite=True) as writer:
            for number in range(300):
                writer.append(token=range(number), metadata={"n": number})


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1] / "python"))
    print(json.dumps(go(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))))
