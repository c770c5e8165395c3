"""Reading in a trial: by each reader, of this machine and through a cache."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import penstock
from injector import Injector
from verbs import Verb, put_dataset

_MOST_ERRORS = 8  # one fault may be met by several reads that were under way


def read(opened: Callable[[], penstock.Dataset], reader: str) -> tuple[str, BaseException | None]:
    """The digest of all that a loader gives, asked again after each error, and the first of these.

    Raises:
        penstock.Error: Asking again did not help.
    """
    errors: list[BaseException] = []

    def asked(call: Callable[[], Any]) -> Any:
        while True:
            try:
                return call()
            except penstock.Error as error:
                errors.append(error)
                if len(errors) == _MOST_ERRORS:
                    raise

    digest = hashlib.blake2b(digest_size=12)
    dataset = asked(opened)
    options: dict[str, Any] = {"seed": 1, "epochs": 1, "framework": "numpy", "threads": 2, "prefetch": 2}
    for make in (lambda: dataset.windows(40, lookahead=1), lambda: dataset.documents(columns=["score"])):
        with asked(partial(penstock.Loader, asked(make), 8, reader=reader, **options)) as loader:
            while (batch := asked(partial(next, loader, None))) is not None:
                look_at(batch, digest)
    return digest.hexdigest(), errors[0] if errors else None


def look_at(batch: Any, digest: Any) -> None:
    for name in batch:
        digest.update(np.ascontiguousarray(batch[name]).tobytes())
    for span in batch.spans:
        digest.update(repr((span.row, span.start, span.stop, span.id, span.raw)).encode())


def of_folder(reader: str, *, checks: str = "index", cold: bool = False) -> Verb:
    def run(folder: Path) -> Any:
        Injector().ring(cold=cold, backwards=True)
        return read(lambda: penstock.open(folder / "in", checks=checks), reader)

    return Verb(put_dataset, run, out="")


def of_server(folder: Path) -> Any:
    """Of a dataset that lies beside the trial's folder, through a cache in it."""
    address = f"{os.environ['PENSTOCK_SERVER']}/served/in"
    return read(lambda: penstock.open(address, cache=folder / "cache", cache_bytes=1 << 20), "auto")


def put_served(folder: Path) -> None:
    served = folder.parent / "served"
    if not served.exists():
        served.mkdir()
        put_dataset(served)


def put_cached(folder: Path) -> None:
    put_served(folder)
    of_server(folder)


READING: dict[str, Verb] = {
    "read: pread": of_folder("pread"),
    "read: pread, all checks": of_folder("pread", checks="all"),
    "read: direct": of_folder("direct"),
    "read: mmap": of_folder("mmap"),
    "read: uring": of_folder("uring", cold=True),
    "cache, filled": Verb(put_served, of_server, out="", kept="cache"),
    "cache, read": Verb(put_cached, of_server, out="", kept="cache"),
}
