"""The local cache, warm, against the same files opened locally: windows of 16 KiB of a server's dataset.

Every page was read once over HTTP; the page cache holds both copies. What the cache does more is a check value for each
4 KiB and whole pages around each window.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import penstock
from layouts import files_of
from results import Result, SkippedError, alternate, ratios, warm
from workloads import TOKEN_BYTES, Corpora

WINDOW = 4096
BATCH = 8
AT_LEAST = 0.5


def measure(corpora: Corpora) -> list[Result]:
    path = corpora.documents()
    with tempfile.TemporaryDirectory() as folder, served(path.parent, Path(folder)) as address:
        cached = penstock.open(f"{address}/{path.name}", cache=Path(folder) / "cache").windows(WINDOW, metadata=False)
        local = penstock.open(path).windows(WINDOW, metadata=False)
        with penstock.Loader(cached, BATCH, order="sequential", epochs=1, rank=0, world_size=1) as loader:
            for _ in loader:
                pass
        warm(files_of(path))
        warm(Path(folder).glob("cache/*/*"))
        views = (local, cached)
        found = alternate(
            corpora.size.repeats, [partial(windows_per_second, view, corpora.size.seconds) for view in views]
        )
    line = partial(Result, "cache", cache="warm", bytes=WINDOW * TOKEN_BYTES)
    return [
        line("windows of local files", "windows/s", found[0]),
        line("windows of a remote dataset, all in the local cache", "windows/s", found[1]),
        line("local cache / local files", "ratio", ratios(found[1], found[0]), at_least=AT_LEAST),
    ]


def windows_per_second(view: penstock.View, seconds: float) -> float:
    with penstock.Loader(view, BATCH, rank=0, world_size=1, framework="numpy") as loader:
        for _ in range(8):
            next(loader)
        batches, begin = 0, time.perf_counter()
        while time.perf_counter() - begin < seconds:
            next(loader)
            batches += 1
        return batches * BATCH / (time.perf_counter() - begin)


@contextlib.contextmanager
def served(root: Path, folder: Path) -> Iterator[str]:
    """The address of an nginx that serves `root`."""
    program = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if program is None:
        raise SkippedError("nginx is not installed")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    places = " ".join(f"{each}_temp_path {folder}/{each};" for each in ("proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"user root; daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; keepalive_requests 1000000;\n"
        f"client_body_temp_path {folder}/body; {places}\n"
        f"server {{ listen 127.0.0.1:{port}; root {root.absolute()}; }} }}\n"
    )
    server = subprocess.Popen(
        [program, "-c", str(folder / "nginx.conf"), "-p", str(folder)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and server.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)
