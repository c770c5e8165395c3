"""The local cache, warm, against the same files opened locally: windows of 16 KiB of a server's dataset.

Every page was read once over HTTP; the page cache holds both copies. What the cache does more is a check value for each
4 KiB and whole pages around each window.
"""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import penstock
from checks import rows_per_second
from layouts import files_of
from remote import server
from results import Result, alternate, ratios, warm
from workloads import TOKEN_BYTES, Corpora

WINDOW = 4096
BATCH = 8
AT_LEAST = 0.5


def measure(corpora: Corpora) -> list[Result]:
    path = corpora.documents()
    with tempfile.TemporaryDirectory() as folder, server(path.parent, Path(folder) / "nginx") as address:
        cached = penstock.open(f"{address}/{path.name}", cache=Path(folder) / "cache").windows(WINDOW, metadata=False)
        local = penstock.open(path).windows(WINDOW, metadata=False)
        with penstock.Loader(cached, BATCH, order="sequential", epochs=1, rank=0, world_size=1) as loader:
            for _ in loader:
                pass
        warm(files_of(path))
        warm(Path(folder).glob("cache/*/*"))
        views = (local, cached)
        found = alternate(
            corpora.size.repeats,
            [partial(rows_per_second, view, BATCH, corpora.size.seconds, warm_up=8) for view in views],
        )
    line = partial(Result, "cache", cache="warm", bytes=WINDOW * TOKEN_BYTES)
    return [
        line("windows of local files", "windows/s", found[0]),
        line("windows of a remote dataset, all in the local cache", "windows/s", found[1]),
        line("local cache / local files", "ratio", ratios(found[1], found[0]), at_least=AT_LEAST),
    ]
